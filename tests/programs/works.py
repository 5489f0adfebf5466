# SPDX-License-Identifier: Apache-2.0
"""Handlers by the SDK, for tests: what a job's args say."""
import asyncio
import logging
import os
import subprocess
import sys
import time

import claimd


@claimd.job("py_echo")
def echo(job):
    return {"args": job.args, "attempt": job.attempt, "checkpoint": job.checkpoint, "tags": job.tags,
            "metadata": job.metadata, "queue": job.queue, "key": job.key, "pid": os.getpid()}


@claimd.job("py_says")
def says(job):
    job.progress(40, "häl\udcfff")
    job.save({"step": 3})
    print("printed", end="")
    print(" line")
    logging.warning("careful")
    subprocess.run(["/bin/echo", "of a child"], check=True)
    job.log("the last")
    if job.attempt == 1:
        raise claimd.Retry(0, "once more")
    return job.checkpoint


@claimd.job("py_ends")
def ends(job):
    how = job.args["how"]
    if how == "snooze" and not os.path.exists(job.args["path"]):
        open(job.args["path"], "x").close()
        raise claimd.Snooze(1, "not packed")
    if how == "fail":
        raise claimd.Fail("bad order")
    if how == "cancel":
        raise claimd.Cancel("void")
    if how == "retry":
        raise claimd.Retry(3600, "the printer jams")
    if how == "exception":
        raise KeyError("order")
    if how == "exit":
        sys.exit(3)
    if how == "big":
        return "x" * 70000
    if how == "nan":
        return float("nan")
    if how == "nul":
        return "a\0b"
    if how == "fork":
        if os.fork() == 0:
            return "of the child"
        os.wait()
    return how


@claimd.job("py_async")
async def later(job):
    await asyncio.sleep(0.001)
    return "async"


@claimd.job("py_polls")
def polls(job):
    job.progress(1)
    while not job.should_stop:
        time.sleep(0.01)
    raise claimd.Retry(0, "told: " + job.should_stop)


@claimd.job("py_sleeps", interrupt=True)
def sleeps(job):
    job.progress(1)
    time.sleep(600)


claimd.main()
