#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""run.py HANDLER_TEST CANDIDATE SOURCE_DIR TEST_PLUGIN_DIR [CANDIDATES.json]: the conformance kit. All jobs of cases.json run
in their order on one handler, by claimd-handler-test; each case must end as it says. A candidate says where it differs. A
case that was not executed, or an id of `differs` that is no case, fails."""
import json
import os
import subprocess
import sys
import tempfile


def differences(expected, said):
    """Members that are named must be as they are named; null = must not be there."""
    return ["%s is %s, not %s" % (key, json.dumps(said.get(key)), json.dumps(value))
            for key, value in expected.items() if said.get(key) != value]


def write_handlers(candidate, folder):
    if "file" in candidate:
        return candidate["file"]
    path = os.path.join(folder, "conform.json")
    with open(path, "w", encoding="utf-8") as file:
        json.dump(candidate["handlers"], file)
    return path


def job_line(case):
    job = {"kind": "conform", **case["job"]}
    fill = job.pop("fill", 0)
    if fill:
        job["args"] = {**job["args"], "fill": "x" * fill}
    return json.dumps(job, ensure_ascii=False)


def run(tool, path, cases):
    jobs = []
    for case in cases:
        jobs.append(job_line(case))
    listing = os.path.join(os.path.dirname(path) if path.endswith(".json") else tempfile.gettempdir(), "jobs.%d" % os.getpid())
    with open(listing, "w", encoding="utf-8") as file:
        file.write("\n".join(jobs) + "\n")
    try:
        done = subprocess.run([tool, path, "--jobs", listing], stdout=subprocess.PIPE, timeout=240, check=False)
    finally:
        os.unlink(listing)
    return done.returncode, [json.loads(line) for line in done.stdout.decode().splitlines()]


def main():
    tool, name, source, plugins = sys.argv[1:5]
    here = os.path.dirname(os.path.abspath(__file__))
    with open(os.path.join(here, "cases.json"), encoding="utf-8") as file:
        cases = json.load(file)
    with open(sys.argv[5] if len(sys.argv) > 5 else os.path.join(here, "candidates.json"), encoding="utf-8") as file:
        text = file.read()
    for mark, value in (("@SOURCE@", source), ("@TEST_PLUGINS@", plugins), ("@PYTHON@", os.path.realpath(sys.executable))):
        text = text.replace(mark, value)
    candidate = json.loads(text)[name]
    differs = candidate.get("differs", {})
    failures = ["%s: no such case" % each for each in differs if each not in [case["id"] for case in cases]]
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        code, said = run(tool, write_handlers(candidate, folder), cases)
    if code != 0:
        failures.append("claimd-handler-test: exit code %d" % code)
    for case in cases:
        for expected in differs.get(case["id"], case["expect"]):
            if not said:
                failures.append("%s: was not executed" % case["id"])
                continue
            attempt = said.pop(0)
            failures += ["%s: %s (%s)" % (case["id"], each, json.dumps(attempt)[:400])
                         for each in differences(expected, attempt)]
    if said:
        failures.append("%d attempts more than there are" % len(said))
    for failure in failures:
        print("FAILED", failure)
    print("%s: %d cases, %d failures" % (name, len(cases), len(failures)))
    sys.exit(1 if failures else 0)


main()
