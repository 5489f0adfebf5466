# SPDX-License-Identifier: Apache-2.0
"""The candidate of the conformance kit (cases.json) in Python: what args["do"] names."""
import os
import signal
import time

import claimd


def wait(job, heeds):
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    job.progress(1)
    while not (heeds and job.should_stop):
        time.sleep(0.01)
    raise claimd.Retry(0, "told to stop")


@claimd.job("conform")
def conform(job):
    what = job.args["do"]
    if what == "log":
        job.log("first ü€😀")
        job.log("second")
    elif what == "progress":
        job.progress(40, "half")
    elif what == "retry":
        raise claimd.Retry(30, 'the printer "jams"')
    elif what == "backoff":
        raise claimd.Retry("as usual")
    elif what == "snooze":
        raise claimd.Snooze(60, "not packed")
    elif what == "fail":
        raise claimd.Fail("bad order")
    elif what == "cancel":
        raise claimd.Cancel("void")
    elif what == "nothing":
        return None
    elif what == "echo":
        return job.args
    elif what == "checkpoint":
        if job.checkpoint is not None:
            return job.checkpoint
        job.save({"at": 3})
        raise claimd.Retry(0, "once more")
    elif what == "too_long":
        return "x" * 70000
    elif what == "print":
        print("printed")
    elif what == "crash":
        os.kill(os.getpid(), signal.SIGKILL)
    elif what in ("stop", "ignore"):
        wait(job, what == "stop")
    return {"ok": True}


claimd.main()
