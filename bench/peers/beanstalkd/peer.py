# SPDX-License-Identifier: Apache-2.0
"""Peer beanstalkd: its own server in the run's directory, and workers that speak its protocol.

default: jobs in memory; one connection that reserves a job, deletes it, reserves the next. best: four worker processes
that send 50 commands at a time. safe: the same, with a log that is flushed at each write (-b, -f 0)."""
import os
import socket
import subprocess
import sys

sys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import common  # noqa: E402

BODY = b'{"customer": 1, "text": "a row of about fifty bytes"}'
PUTS = 500  # in flight

run = common.Run()
path = os.path.join(run.dir, "b.sock")


class Connection:
    def __init__(self):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(path)
        self.file = self.socket.makefile("rb")

    def stats(self):
        self.socket.sendall(b"stats\r\n")
        text = self.file.read(int(self.file.readline().split()[1]) + 2).decode()
        return dict(line.split(": ") for line in text.splitlines() if ": " in line)


def enqueue(count):
    put = b"put 0 0 60 %d\r\n%s\r\n" % (len(BODY), BODY)
    for at in range(0, count, PUTS):
        some = min(PUTS, count - at)
        control.socket.sendall(put * some)
        for _ in range(some):
            assert control.file.readline().startswith(b"INSERTED")


# One write asks for as many jobs and deletes those of the time before.
def work(in_flight):
    c = Connection()
    deletes = []
    while True:
        # Only a lone request waits for a job: those behind it in the same write would wait as well.
        is_waiting = in_flight == 1 or not deletes
        asked = 1 if is_waiting else in_flight
        c.socket.sendall(b"".join(deletes) + (b"reserve\r\n" if is_waiting else b"reserve-with-timeout 0\r\n" * asked))
        for _ in deletes:
            assert c.file.readline() == b"DELETED\r\n"
        deletes = []
        for _ in range(asked):
            words = c.file.readline().split()
            if words[0] == b"RESERVED":
                c.file.read(int(words[2]) + 2)
                deletes.append(b"delete %s\r\n" % words[1])
        run.ledger.ran(len(deletes))


def start_workers():
    for _ in range(4 if run.is_best else 1):
        if os.fork() == 0:
            work(50 if run.is_best and run.work == "drain" else 1)


def is_empty():
    s = control.stats()
    return s["current-jobs-ready"] == "0" and s["current-jobs-reserved"] == "0"


def is_up():
    with socket.socket(socket.AF_UNIX) as s:
        return s.connect_ex(path) == 0


argv = [common.need_program("beanstalkd", "beanstalkd"), "-l", "unix:" + path]
if run.settings == "safe":
    argv += ["-b", run.dir, "-f", "0"]
server = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=sys.stderr)
common.wait_for(is_up, "beanstalkd")
control = Connection()
run.go(enqueue, start_workers, is_empty, lambda: int(control.stats()["cmd-delete"]))
