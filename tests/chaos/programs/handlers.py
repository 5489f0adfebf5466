# SPDX-License-Identifier: Apache-2.0
"""The handlers of tests/plugins/chaos.c as programs: `handlers.py serve KIND…`, and `handlers.py once` for one job."""
import hashlib, json, os, signal, sys, time

import claimd

STEP_S = 0.02


class Once:
    """What a program that is started for one job knows of it."""

    def __init__(self):
        self.id, self.fence, self.attempt = (int(os.environ["CLAIMD_" + name]) for name in ("JOB", "FENCE", "ATTEMPT"))
        self.kind, self.args, self.should_stop = os.environ["CLAIMD_KIND"], json.load(sys.stdin), None
        signal.signal(signal.SIGTERM, self.on_term)

    def on_term(self, *_):
        self.should_stop = "stop"


def note(job, op, what):
    """One write() of one line to a file that is only appended to: it survives a kill -9."""
    sha = hashlib.sha256(json.dumps(job.args, ensure_ascii=False).encode()).hexdigest()
    line = json.dumps({"t": time.clock_gettime_ns(time.CLOCK_BOOTTIME), "job": job.id, "fence": job.fence, "attempt": job.attempt,
                       "op": op, "as": what, "n": job.args["n"], "v": job.args.get("v", 0), "kind": job.kind, "pid": os.getpid(),
                       "sha": sha}, separators=(",", ":"))
    fd = os.open(job.args["path"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
    try:
        os.write(fd, line.encode() + b"\n")
    finally:
        os.close(fd)


def work(job):
    end = time.monotonic() + job.args["ms"] / 1000
    while (left := end - time.monotonic()) > 0:
        time.sleep(min(left, STEP_S))
        if not job.args["deaf"] and job.should_stop:
            note(job, "end", "stopped")
            raise claimd.Retry("asked to stop")


def fall(job, does):
    """What an attempt before the last one does."""
    note(job, "end", does)
    if does == "retry":
        raise claimd.Retry(0.1, "attempt %d is too early" % job.attempt)
    if does == "far":  # more than a row may hold
        raise claimd.Retry(1e10, "much later")
    if does == "snooze":
        raise claimd.Snooze(0, "fence %d" % job.fence)
    if does == "cancel":
        raise claimd.Cancel("told to give up, attempt %d" % job.attempt)
    if does == "segv":
        os.kill(os.getpid(), signal.SIGSEGV)
    if does == "abort":
        os.abort()
    if does == "exit":  # a program that runs once would be done with 0
        os._exit(1 if isinstance(job, Once) else 0)
    if does == "hang":
        signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        while True:
            time.sleep(3600)
    raise claimd.Fail("told to fail, attempt %d" % job.attempt)


def handle(job):
    does, until = job.args["do"], job.args["until"]
    note(job, "start", does)
    work(job)
    # A snooze doesn't count as an attempt, so the fence decides when to stop snoozing.
    is_last = job.fence % 3 == 0 if does == "snooze" else does == "done" or (until and job.attempt >= until)
    if not is_last:
        fall(job, does)
    note(job, "effect", "done")
    note(job, "end", "done")
    return {"n": job.args["n"], "fence": job.fence}


def run_once():
    try:
        said = {"result": handle(Once())}
    except claimd.End as e:
        said = {"end": e.end, "delay_ms": e.delay_ms, "error": e.error}
    os.write(4, json.dumps(said).encode() + b"\n")


if sys.argv[1] == "once":
    run_once()
else:
    for kind in sys.argv[2:]:
        claimd.job(kind)(handle)
    claimd.main()
