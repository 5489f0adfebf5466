#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""selftest.py HANDLER_TEST PLUGIN_DIR: the conformance kit itself. Between it and claimd-handler-test stands this file,
which makes one mistake in what that says. The run must then fail, and say what it was: an attempt that ended otherwise,
one that wasn't executed, one too many, an exit code."""
import json
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
MISTAKES = {
    "none": None,
    "outcome": "end.done_with_a_result: outcome is",
    "result": "end.done_with_a_result: result is",
    "log": "end.steps_run_out: log is",
    "missing": "was not executed",
    "silent": "args.empty: was not executed",
    "more": "1 attempts more than there are",
    "code": "exit code 1",
}


def change(mistake, lines):
    ids = [json.loads(line) for line in lines]
    at = next(i for i, said in enumerate(ids) if said.get("result") == {"ok": True})  # end.done_with_a_result
    log = next(i for i, said in enumerate(ids) if said.get("log") == "worked\n")  # end.steps_run_out
    if mistake == "outcome":
        ids[at]["outcome"] = "retry"
    elif mistake == "result":
        ids[at]["result"] = {"ok": 1, "more": True}
    elif mistake == "log":
        del ids[log]["log"]
    elif mistake == "missing":
        ids.pop()
    elif mistake == "silent":
        ids.clear()
    elif mistake == "more":
        ids.append(ids[at])
    return "".join(json.dumps(said) + "\n" for said in ids)


def host():
    """In the place of claimd-handler-test."""
    done = subprocess.run([os.environ["REAL"]] + sys.argv[1:], stdout=subprocess.PIPE, check=False)
    mistake = os.environ["MISTAKE"]
    sys.stdout.write(change(mistake, done.stdout.decode().split("\n")[:-1]))
    sys.exit(1 if mistake == "code" else done.returncode)


def main():
    tool, plugins = sys.argv[1:]
    for mistake, words in MISTAKES.items():
        done = subprocess.run([os.path.join(HERE, "run.py"), os.path.join(HERE, "candidates", "plugin.json"),
                               "--handler-test", os.path.abspath(__file__), "--set", "PLUGINS=" + plugins],
                              env={**os.environ, "REAL": tool, "MISTAKE": mistake}, stdout=subprocess.PIPE, check=False)
        said = done.stdout.decode()
        if (done.returncode == 0) != (words is None) or (words or "") not in said:
            sys.exit("%s: exit code %d\n%s" % (mistake, done.returncode, said))


sys.setrecursionlimit(10000)  # some values are deeply nested
if "MISTAKE" in os.environ:
    host()
else:
    main()
