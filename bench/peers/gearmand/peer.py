# SPDX-License-Identifier: Apache-2.0
"""Peer gearmand: its own server with jobs in memory, and workers that speak its protocol, since Debian has no client
in Python. default: one worker process. best: four."""
import os
import socket
import struct
import subprocess
import sys

sys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import common  # noqa: E402

CAN_DO, PRE_SLEEP, NOOP, JOB_CREATED, GRAB_JOB, NO_JOB, JOB_ASSIGN, WORK_COMPLETE, SUBMIT_JOB_BG = \
    1, 4, 6, 8, 9, 10, 11, 13, 18
BODY = b'{"customer": 1, "text": "a row of about fifty bytes"}'
IN_FLIGHT = 500

run = common.Run()
with socket.socket() as probe:
    probe.bind(("127.0.0.1", 0))
    port = probe.getsockname()[1]


def packet(kind, data=b""):
    return struct.pack(">4sII", b"\0REQ", kind, len(data)) + data


class Connection:
    def __init__(self):
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.file = self.socket.makefile("rb")

    def read(self):
        _, kind, size = struct.unpack(">4sII", self.file.read(12))
        return kind, self.file.read(size)

    def status(self):
        """Of our function: jobs that wait or run, those that run."""
        self.socket.sendall(b"status\n")
        total = running = 0
        for line in iter(self.file.readline, b".\n"):
            words = line.split(b"\t")
            total, running = (int(words[1]), int(words[2])) if words[0] == b"noop" else (total, running)
        return total, running


def enqueue(count):
    submit = packet(SUBMIT_JOB_BG, b"noop\0\0" + BODY)
    for at in range(0, count, IN_FLIGHT):
        some = min(IN_FLIGHT, count - at)
        client.socket.sendall(submit * some)
        for _ in range(some):
            assert client.read()[0] == JOB_CREATED


def work():
    c = Connection()
    out = packet(CAN_DO, b"noop")
    while True:
        c.socket.sendall(out + packet(GRAB_JOB))
        kind, data = c.read()
        while kind == NOOP:
            kind, data = c.read()
        if kind == NO_JOB:
            c.socket.sendall(packet(PRE_SLEEP))
            while c.read()[0] != NOOP:
                pass
            out = b""
            continue
        assert kind == JOB_ASSIGN
        run.ledger.ran()
        out = packet(WORK_COMPLETE, data[:data.index(b"\0") + 1])


def start_workers():
    for _ in range(4 if run.is_best else 1):
        if os.fork() == 0:
            work()


def is_up():
    with socket.socket() as s:
        return s.connect_ex(("127.0.0.1", port)) == 0


def done():
    return enqueued - control.status()[0]


program = common.need_program("gearmand", "gearman-job-server")
server = subprocess.Popen([program, "--listen", "127.0.0.1", "--port", str(port), "--log-file", "none"],
                          stdin=subprocess.DEVNULL, stdout=sys.stderr)
common.wait_for(is_up, "gearmand")
client, control = Connection(), Connection()
enqueued = run.count
run.go(enqueue, start_workers, lambda: control.status()[0] == 0, done)
