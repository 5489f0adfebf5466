# SPDX-License-Identifier: Apache-2.0
"""The smallest adapter: a list in its own memory. It measures nothing; tests run it, and a new adapter may begin as
its copy. With the settings "lossy" one job is run and then forgotten, which the bench has to notice."""
import os
import sys
import threading

sys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import common  # noqa: E402

run = common.Run()
queue = []
finished = []
wake = threading.Condition()


def enqueue(count):
    with wake:
        queue.extend(range(count))
        wake.notify()


def work():
    while True:
        with wake:
            wake.wait_for(lambda: queue)
            job = queue[0]
        run.ledger.ran()
        if run.settings != "lossy" or job != 0:
            finished.append(job)
        with wake:
            queue.pop(0)


run.go(enqueue, threading.Thread(target=work, daemon=True).start, lambda: not queue, lambda: len(finished))
