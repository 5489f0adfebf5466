# SPDX-License-Identifier: Apache-2.0
"""Peer Celery, jobs in Redis. default: `celery worker`, a process for each CPU. best: 128 jobs prefetched by each, as
its guide to optimizing says of short tasks; no events between workers, of which there is one."""
import os
import subprocess
import sys

sys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import common  # noqa: E402

run = common.Run()
try:
    import redis
    import celery  # noqa: F401
except ImportError:
    common.missing("Celery or its client for Redis: apt-get install celery python3-redis")
os.environ.update(PEER_REDIS=run.redis, PEER_LEDGER=run.ledger_path, PEER_IS_BEST=str(int(run.is_best)))
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import noop  # noqa: E402

db = redis.Redis(unix_socket_path=run.redis)


def enqueue(count):
    for number in range(count):
        sleep_ms = common.sleep_ms_of(run.load, number)
        noop.noop.delay(1, "a row of about fifty bytes", sleep_ms, run.load["cpu_ms"])


def start_workers():
    argv = [sys.executable, "-m", "celery", "-A", "noop", "worker"]
    if run.load["slots"] > 0:
        argv += ["--concurrency", str(run.load["slots"])]
    if run.is_best:
        argv += ["--without-gossip", "--without-mingle", "--without-heartbeat"]
    subprocess.Popen(argv, cwd=os.path.dirname(os.path.abspath(__file__)), stdin=subprocess.DEVNULL,
                                    stdout=sys.stderr)


def left():
    return db.llen("celery") + db.hlen("unacked")


run.go(enqueue, start_workers, lambda: left() == 0, lambda: run.count - left())
