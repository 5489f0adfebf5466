# SPDX-License-Identifier: Apache-2.0
"""The handlers of tests/plugins/soak.c as programs: `handlers.py serve KIND…`, and `handlers.py once` for one job, without the
SDK, which would take longer to load than the job."""
import json, os, signal, sys, time

STEP_S = 0.05


def parent_of(pid):
    with open("/proc/%d/stat" % pid, encoding="ascii") as file:
        return int(file.read().rpartition(")")[2].split()[1])


RUNNER = os.getppid()
WORKER = parent_of(RUNNER)
LEDGER = os.open(os.path.join(os.environ["TMPDIR"], "ledger.csv"), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)


class Once:
    """What a program that is started for one job knows of it, and says. Of a stop it knows no reason, so it goes on."""
    should_stop = None

    def __init__(self):
        self.id, self.fence, self.attempt = (int(os.environ["CLAIMD_" + name]) for name in ("JOB", "FENCE", "ATTEMPT"))
        self.args, self.checkpoint = json.load(sys.stdin), json.loads(os.environ["CLAIMD_CHECKPOINT"] or "null")
        signal.signal(signal.SIGTERM, signal.SIG_IGN)

    def say(self, **line):
        os.write(4, json.dumps(line).encode() + b"\n")

    def progress(self, percent, text):
        self.say(progress=percent, text=text)

    def save(self, value):
        self.say(checkpoint=value)


def note(job, event, text=""):
    """As note() of the plugin: one write() of one line."""
    line = "%d,%d,%d,%d,%s,%d,%d,%d,%d,%s\n" % (time.time_ns() // 1000, job.id, job.fence, job.attempt, event, job.args["n"],
                                              job.args.get("v", 0), WORKER, RUNNER, text)
    os.write(LEDGER, line.encode())


def work(job):
    """True: cancelled. It goes on although it is told to stop for another reason."""
    s = job.args.get("ms", 0) / 1000
    end = time.monotonic() + s
    while (left := end - time.monotonic()) > 0:
        time.sleep(min(left, STEP_S))
        if job.should_stop == "cancel":
            return True
        if s > STEP_S:
            note(job, "t")
    return False


def fall(job, does):
    """What an attempt before the last one does: (end, delay in ms, error)."""
    note(job, "x", does)
    if does == "retry":
        return "retry", None, "attempt %d is too early" % job.attempt
    if does == "snooze":
        return "snooze", 0, "not now"
    if does == "crash":
        os.kill(os.getpid(), signal.SIGKILL)
    if does == "steps":
        job.progress(job.attempt * 10, "on its way")
        job.save({"at": job.attempt})
        return "retry", 0, "the next step"
    return "fail", None, "told to fail"


def handle(job):
    """None where the job is done."""
    does, until = job.args.get("do", "done"), job.args.get("until", 0)
    note(job, "s", (job.checkpoint or {}).get("at", 0))
    if work(job):
        note(job, "x", "cancel")
        return "cancel", None, "as you like"
    # A snooze doesn't count as an attempt, so the fence decides when to stop snoozing.
    is_last = job.fence % 2 == 0 if does == "snooze" else does == "done" or (until and job.attempt >= until)
    if not is_last:
        return fall(job, does)
    note(job, "d")
    return None


def run_once():
    job = Once()
    end = handle(job)
    if end is None:
        job.say(result={"fence": job.fence})
    else:
        job.say(end=end[0], delay_ms=end[1], error=end[2])


def serve(kinds):
    import claimd
    ends = {"retry": claimd.Retry, "snooze": claimd.Snooze, "fail": claimd.Fail, "cancel": claimd.Cancel}

    def run(job):
        end = handle(job)
        if end is not None:
            raise ends[end[0]](end[1] if end[1] is None else end[1] / 1000, end[2])
        return {"fence": job.fence}

    for kind in kinds:
        claimd.job(kind)(run)
    claimd.main()


if sys.argv[1] == "once":
    run_once()
else:
    serve(sys.argv[2:])
