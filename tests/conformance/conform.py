# SPDX-License-Identifier: Apache-2.0
"""The candidate of the conformance kit as a program that serves, by the SDK. It takes the steps of args["do"], which
docs/guide/other-languages.md describes."""
import json
import os
import signal
import subprocess
import sys
import time

import claimd
from steps import octets, steps, write

runs = 0


def await_stop(job, heeds):
    while not (heeds and job.should_stop):
        time.sleep(0.01)


def delay(rest):
    seconds, _, why = rest.partition(" ")
    return None if seconds == "-" else int(seconds), why


def about(job):
    return {name: getattr(job, "id" if name == "job" else name)
            for name in ("job", "key", "kind", "queue", "attempt", "max_attempts", "crashes")}


class Done(Exception):
    pass


def raises(what):
    raise what


STEPS = {
    "log": lambda job, rest: job.log(octets(rest).decode(errors="surrogateescape")),
    "print": lambda job, rest: write(1, octets(rest) + b"\n"),
    "progress": lambda job, rest: job.progress(int(rest.partition(" ")[0]), rest.partition(" ")[2] or None),
    "checkpoint": lambda job, rest: job.save(json.loads(rest)),
    "raw": lambda job, rest: write(4, octets(rest.replace("@N@", str(runs))) + b"\n"),
    "kill": lambda job, rest: os.kill(os.getpid(), getattr(signal, "SIG" + rest)),
    "exit": lambda job, rest: os._exit(int(rest)),
    "leave": lambda job, rest: subprocess.Popen(["/bin/sleep", rest], start_new_session=True),
    "wait": lambda job, rest: time.sleep(float(rest)),
    "await_stop": lambda job, rest: await_stop(job, True),
    "ignore_stop": lambda job, rest: await_stop(job, False),
    "throw": lambda job, rest: raises(LookupError(rest)),
    "done": lambda job, rest: raises(Done(json.loads(rest or "null"))),
    "done_args": lambda job, rest: raises(Done(job.args)),
    "done_checkpoint": lambda job, rest: raises(Done(job.checkpoint)),
    "done_about": lambda job, rest: raises(Done(about(job))),
    "done_tags": lambda job, rest: raises(Done([job.tags, job.metadata])),
    "done_reason": lambda job, rest: raises(Done(job.should_stop)),
    "done_no_json": lambda job, rest: raises(Done(float("nan"))),
    "retry": lambda job, rest: raises(claimd.Retry(*delay(rest))),
    "snooze": lambda job, rest: raises(claimd.Snooze(*delay(rest))),
    "fail": lambda job, rest: raises(claimd.Fail(rest)),
    "cancel": lambda job, rest: raises(claimd.Cancel(rest)),
}


@claimd.job(sys.argv[1] if len(sys.argv) > 1 else "conform")
def conform(job):
    global runs
    runs += 1
    try:
        for verb, rest in steps(job.args, job.attempt):
            STEPS[verb](job, rest)
    except Done as done:
        return done.args[0]
    return None


claimd.main()
