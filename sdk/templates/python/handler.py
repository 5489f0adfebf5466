"""@NAME@ {"count": N}: counts to N, a tenth of a second each. The process serves job after job, one at a time."""
import time

import claimd


@claimd.job("@NAME@")
def handle(job):
    count = job.args.get("count")
    if not isinstance(count, int) or not 1 <= count <= 1000:
        raise claimd.Fail("args need a count of 1 to 1000")  # fails for good
    for n in range(1, count + 1):
        if job.should_stop:
            raise claimd.Retry(f"told to stop at {n}")  # runs again after its backoff
        time.sleep(0.1)  # the work
        print(n, "of", count)  # a line of the attempt's log
        job.progress(100 * n // count, "counting")
    return {"counted": count}  # the job's result


claimd.main()
