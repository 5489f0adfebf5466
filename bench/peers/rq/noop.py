# SPDX-License-Identifier: Apache-2.0
"""What RQ's workers import."""
import os
import sys

sys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import common  # noqa: E402

ledger = common.Ledger(os.environ["PEER_LEDGER"])


def noop(customer, text, sleep_ms=0):
    ledger.ran()
    common.work(sleep_ms, 0)
