# SPDX-License-Identifier: Apache-2.0
"""What the plugin `work` does, as a program that serves: {"sleep_ms": N}; the result of py_stamp says when it was
started, by the clock of this machine."""
import time

import claimd


@claimd.job("py_work")
def work(job):
    ms = job.args.get("sleep_ms", 0)
    if ms > 0:
        time.sleep(ms / 1000)


@claimd.job("py_stamp")
def stamp(job):
    return {"boot_us": time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1000}


claimd.main()
