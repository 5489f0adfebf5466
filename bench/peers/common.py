# SPDX-License-Identifier: Apache-2.0
"""What the adapters in Python share: the steps of the contract, and a ledger that handlers write.

A handler appends the time of its start to the ledger: how often it ran, and when first, is known without asking the
peer, whatever processes it runs in.
"""
import json
import os
import random
import shutil
import struct
import sys
import time

WARM_UP = 20
SAMPLES_SECONDS = 180
TIMES = struct.Struct("q")


class Ledger:
    def __init__(self, path):
        self.file = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600)

    def ran(self, times=1):
        os.write(self.file, TIMES.pack(time.monotonic_ns()) * times)

    def runs(self):
        return os.fstat(self.file).st_size // TIMES.size

    def started_at(self, number):
        return TIMES.unpack(os.pread(self.file, TIMES.size, number * TIMES.size))[0]


class Run:
    def __init__(self):
        self.work, self.settings, count, self.dir, self.conninfo, self.redis, load = sys.argv[1:8]
        self.load = json.loads(load)
        self.count = int(count)
        self.is_best = self.settings != "default"
        self.ledger_path = os.path.join(self.dir, "ledger")
        self.ledger = Ledger(self.ledger_path)

    def go(self, enqueue, start_workers, is_empty, done):
        """All of the contract. `enqueue` takes how many; `is_empty` looks at the store, `done` returns what it counts."""
        if self.work == "drain":
            enqueue(self.count)
        print("ready", flush=True)
        sys.stdin.readline()
        start_workers()
        result = self._drain(is_empty, done) if self.work == "drain" else self._start(enqueue)
        print(json.dumps(result), flush=True)
        sys.stdin.readline()

    def _drain(self, is_empty, done):
        while self.ledger.runs() < self.count or not is_empty():
            time.sleep(0.005)
        seconds = (time.monotonic_ns() - self.ledger.started_at(0)) / 1e9
        return {"seconds": seconds, "runs": self.ledger.runs(), "done": done()}

    def _start(self, enqueue):
        ms = []
        end = time.monotonic() + SAMPLES_SECONDS
        number = 0
        while number < WARM_UP + self.count and time.monotonic() < end:
            enqueue(1)
            enqueued_at = time.monotonic_ns()
            while self.ledger.runs() <= number:
                time.sleep(0.002)
            if number >= WARM_UP:
                ms.append((self.ledger.started_at(number) - enqueued_at) / 1e6)
            number += 1
            time.sleep(random.uniform(0.02, 0.08))
        return {"ms": ms}


def sleep_ms_of(load, number):
    """What the handler of a job does: half of a mixed load sleep 1 ms, one in a hundred 500."""
    if not load["is_mixed"]:
        return load["sleep_ms"]
    at = number % 100
    return 1 if at < 50 else 5 if at < 80 else 20 if at < 95 else 100 if at < 99 else 500


def work(sleep_ms, cpu_ms):
    if sleep_ms > 0:
        time.sleep(sleep_ms / 1000)
    end = time.thread_time() + cpu_ms / 1000
    while cpu_ms > 0 and time.thread_time() < end:
        pass


def missing(what):
    print("missing " + what, flush=True)
    sys.exit(0)


def need_program(name, package):
    path = shutil.which(name) or shutil.which(name, path="/usr/sbin:/sbin")
    return path or missing(f"{name}: apt-get install {package}")


def wait_for(condition, what):
    end = time.monotonic() + 30
    while not condition():
        if time.monotonic() > end:
            sys.exit(f"{what} did not come up in 30 s")
        time.sleep(0.01)
