# SPDX-License-Identifier: Apache-2.0
"""Peer RQ, jobs in Redis. default: `rq worker`, which forks for each job. best: two SimpleWorkers, which run jobs in
their own process, and don't log each; for handlers that take time, as many as there are slots."""
import os
import subprocess
import sys

sys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import common  # noqa: E402

run = common.Run()
try:
    import redis
    from rq import Queue
except ImportError:
    common.missing("RQ or its client for Redis: apt-get install python3-rq python3-redis")
os.environ.update(PEER_LEDGER=run.ledger_path)
db = redis.Redis(unix_socket_path=run.redis)
queue = Queue(connection=db)


def enqueue(count):
    for _ in range(count):
        queue.enqueue("noop.noop", 1, "a row of about fifty bytes", run.load["sleep_ms"])


def start_workers():
    argv = [common.need_program("rq", "python3-rq"), "worker", "-u", "unix://" + run.redis, "-P",
            os.path.dirname(os.path.abspath(__file__))]
    if run.is_best:
        argv += ["--worker-class", "rq.SimpleWorker", "--quiet"]
    for _ in range(run.load["slots"] or (2 if run.is_best else 1)):
        subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=sys.stderr)


# A job is finished when it stands in the registry of those.
def done():
    return db.zcard("rq:finished:default")


run.go(enqueue, start_workers, lambda: len(queue) == 0 and done() == run.count, done)
