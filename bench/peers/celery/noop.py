# SPDX-License-Identifier: Apache-2.0
"""What Celery's workers import."""
import os
import sys

from celery import Celery

sys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import common  # noqa: E402

app = Celery("noop", broker="redis+socket://" + os.environ["PEER_REDIS"])
ledger = common.Ledger(os.environ["PEER_LEDGER"])
if os.environ["PEER_IS_BEST"] == "1":
    app.conf.worker_prefetch_multiplier = 128
    app.conf.task_ignore_result = True


@app.task(name="noop")
def noop(customer, text, sleep_ms, cpu_ms):
    ledger.ran()
    common.work(sleep_ms, cpu_ms)
