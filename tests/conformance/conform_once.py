# SPDX-License-Identifier: Apache-2.0
"""The candidate of the conformance kit as a command that runs once for each job, without an SDK: args from stdin, lines
to descriptor 4. It takes the steps of args["do"], which docs/guide/other-languages.md describes."""
import json
import os
import signal
import subprocess
import sys
import time

from steps import octets, steps, write

is_stopped = False


def on_term(*_):
    global is_stopped
    is_stopped = True


def say(**line):
    write(4, json.dumps(line).encode() + b"\n")


def end(how, why, delay_ms=None):
    say(end=how, error=why, delay_ms=delay_ms)
    sys.exit(0)


def delayed(how, rest):
    seconds, _, why = rest.partition(" ")
    end(how, why, None if seconds == "-" else 1000 * int(seconds))


def result(text):
    write(4, b'{"result": ' + (text or "null").encode() + b"}\n")
    sys.exit(0)


def await_stop(heeds):
    while not (heeds and is_stopped):
        time.sleep(0.01)


def about():
    names = {"job": int, "key": str, "kind": str, "queue": str, "attempt": int, "max_attempts": int, "crashes": int}
    return json.dumps({name: kind(os.environ["CLAIMD_" + name.upper()]) for name, kind in names.items()})


STEPS = {
    "log": lambda rest: say(log=octets(rest).decode(errors="replace")),
    "print": lambda rest: write(1, octets(rest) + b"\n"),
    "progress": lambda rest: say(progress=int(rest.partition(" ")[0]), text=rest.partition(" ")[2]),
    "checkpoint": lambda rest: write(4, b'{"checkpoint": %s}\n' % rest.encode()),
    "raw": lambda rest: write(4, octets(rest.replace("@N@", "1")) + b"\n"),
    "kill": lambda rest: os.kill(os.getpid(), getattr(signal, "SIG" + rest)),
    "exit": lambda rest: sys.exit(int(rest)),
    "leave": lambda rest: subprocess.Popen(["/bin/sleep", rest], start_new_session=True),
    "wait": lambda rest: time.sleep(float(rest)),
    "await_stop": lambda rest: await_stop(True),
    "ignore_stop": lambda rest: await_stop(False),
    "done": result,
    "done_args": lambda rest: result(args_text),
    "done_checkpoint": lambda rest: result(os.environ["CLAIMD_CHECKPOINT"] or "null"),
    "done_about": lambda rest: result(about()),
    "retry": lambda rest: delayed("retry", rest),
    "snooze": lambda rest: delayed("snooze", rest),
    "fail": lambda rest: end("fail", rest),
    "cancel": lambda rest: end("cancel", rest),
}

signal.signal(signal.SIGTERM, on_term)
args_text = sys.stdin.buffer.read().decode()
for verb, rest in steps(json.loads(args_text), int(os.environ["CLAIMD_ATTEMPT"])):
    STEPS[verb](rest)
