#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The conformance kit (docs/guide/other-languages.md): all jobs of cases/*.json run on the candidate that a descriptor
names, by claimd-handler-test, and each attempt must end as its case says. A candidate that serves runs them twice, the
second time through relay.py. A case of the candidate's mode that was not executed fails the run."""
import argparse
import glob
import json
import os
import re
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
PYTHON = os.path.realpath(sys.executable)
SDK = next(path for path in (os.path.join(HERE, "..", "..", "sdk"), os.path.dirname(HERE))  # in a clone, or installed
           if path == os.path.dirname(HERE) or os.path.isdir(path))
MODES = {"plugin": ["plugin"], "serve": ["serve", "relay"], "once": ["once"]}
CASE_KEYS = {"id", "do", "args", "args=", "job", "modes", "relay", "expect", "once"}
EXIT_CODES = {"10": "done", "11": "retry", "12": "fail", "13": "snooze", "14": "cancel"}
LEFT = "%d.%d" % (40000000 + os.getpid(), time.time_ns() % 1000000)  # seconds that no other process sleeps


def load_cases():
    cases = []
    for path in sorted(glob.glob(os.path.join(HERE, "cases", "*.json"))):
        with open(path, encoding="utf-8") as file:
            cases += json.load(file)
    for case in cases:
        if not {"id", "expect"} <= set(case) <= CASE_KEYS or [each["id"] for each in cases].count(case["id"]) > 1:
            sys.exit("%s: no case, or two of this id" % case.get("id"))
    return cases


def is_of(case, mode):
    return mode in case["modes"] if "modes" in case else "relay" not in case or mode == "relay"


def expected(case, mode):
    """The attempts of a case; a mode may have its own, as a command that runs once has."""
    return case["once"] if mode == "once" and "once" in case else case["expect"]


def expand(text):
    """"<x*3>" is "xxx"."""
    text = re.sub(r"<([^<>]+)\*(\d+)>", lambda m: m[1] * int(m[2]), text)
    return text.replace("@LEFT@", LEFT)


def expand_all(value):
    if isinstance(value, dict):
        return {name: expand_all(each) for name, each in value.items()}
    if isinstance(value, list):
        return [expand_all(each) for each in value]
    return expand(value) if isinstance(value, str) else value


def job_line(case, mode):
    """Its steps are the text args.do, which is the first member."""
    args = json.loads(expand(case["args="])) if "args=" in case else case.get("args", {})
    if "do" in case:
        args = {"do": "\n".join(case["do"]), **args}
    if "relay" in case:
        args = {**args, "relay": case["relay"]}
    job = {"kind": "conform", "args": args, "again": len(expected(case, mode)) - 1, **case.get("job", {})}
    return json.dumps(expand_all(job), ensure_ascii=False)


def differences(wanted, said):
    """Members must be as they are named; null = not there, or null. "log~" is a regular expression for log, "result="
    the result as a JSON text."""
    for name, value in expand_all(wanted).items():
        have = said.get(name.rstrip("~="))
        value = json.loads(value) if name.endswith("=") else value
        if not (re.search(value, have or "", re.DOTALL) if name.endswith("~") else have == value):
            yield "%s is %s, not %s" % (name, json.dumps(have)[:300], json.dumps(value)[:300])


def write_handlers(candidate, mode, folder):
    if mode == "plugin":
        return candidate["file"]
    command, file = candidate["command"], {"kinds": {"conform": {}}, "mode": "once" if mode == "once" else "serve"}
    if mode == "relay":
        command = [PYTHON, os.path.join(HERE, "relay.py")] + command
    if mode == "once":
        file["exit_codes"] = EXIT_CODES
    path = os.path.join(folder, "conform.json")
    with open(path, "w", encoding="utf-8") as out:
        json.dump({**file, "command": command, "env": candidate.get("env", {})}, out)
    return path


def run(tool, candidate, mode, cases):
    """(exit code, what became of each attempt)"""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        jobs = os.path.join(folder, "jobs")
        with open(jobs, "w", encoding="utf-8") as file:
            file.write("".join(job_line(case, mode) + "\n" for case in cases))
        done = subprocess.run([tool, write_handlers(candidate, mode, folder), "--jobs", jobs],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=240, check=False)
    if done.returncode != 0:
        print(done.stderr.decode(errors="replace")[-2000:])
    return done.returncode, [json.loads(line) for line in done.stdout.decode().split("\n") if line]


def is_left():
    """Is a process still there that a job has left behind?"""
    for path in glob.glob("/proc/[0-9]*/cmdline"):
        try:
            with open(path, "rb") as file:
                if file.read().endswith(b"sleep\0%s\0" % LEFT.encode()):
                    return True
        except OSError:
            pass
    return False


def try_mode(tool, candidate, mode, cases):
    """What failed."""
    code, said = run(tool, candidate, mode, cases)
    failures = [] if code == 0 else ["claimd-handler-test: exit code %d" % code]
    for case in cases:
        for wanted in expected(case, mode):
            if not said:
                failures.append("%s: was not executed" % case["id"])
                break
            attempt = said.pop(0)
            failures += ["%s: %s (%s)" % (case["id"], each, json.dumps(attempt, ensure_ascii=False)[:400])
                         for each in differences(wanted, attempt)]
    if said:
        failures.append("%d attempts more than there are" % len(said))
    until = time.monotonic() + 20
    while is_left() and time.monotonic() < until:
        time.sleep(0.05)
    return failures + (["a process is left of a job"] if is_left() else [])


def load_candidate(path, values):
    with open(path, encoding="utf-8") as file:
        text = file.read()
    for name, value in {"HERE": os.path.dirname(os.path.abspath(path)), "PYTHON": PYTHON, "SDK": SDK, **values}.items():
        text = text.replace("@%s@" % name, value)
    return json.loads(text)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("candidate", help="its descriptor, a file")
    parser.add_argument("--handler-test", default="claimd-handler-test", metavar="PROGRAM")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="what @NAME@ in it stands for")
    parser.add_argument("--only", default="", metavar="TEXT", help="cases whose ids begin with it; the run then fails")
    options = parser.parse_args()
    candidate = load_candidate(options.candidate, dict(each.split("=", 1) for each in options.set))
    sys.setrecursionlimit(10000)  # some values are deeply nested
    cases, failed = load_cases(), bool(options.only)
    for mode in MODES[candidate["mode"]]:
        mine = [case for case in cases if is_of(case, mode) and case["id"].startswith(options.only)]
        failures = try_mode(options.handler_test, candidate, mode, mine)
        for failure in failures:
            print("FAILED", failure)
        print("%s, %s: %d cases, %d failures" % (candidate["name"], mode, len(mine), len(failures)))
        failed = failed or bool(failures)
    sys.exit(1 if failed else 0)


main()
