#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A contender of the lock's contest (tests/e2e/contest.h): contender.py DIRECTORY NAME SECONDS TTL_MS SOCKET…

NAME "page": it locks by lock_client.py, as docs/lock-protocol.md says. Else as redlock-py does, by Debian's
python3-redis.

redlock-py's protocol: SET NX PX with 22 letters and digits as the token, one node after the other,
and a script that deletes the key where it has that token."""

import os
import random
import string
import sys
import time

sys.dont_write_bytecode = True  # the source tree stays as it is
import lock_client

KEY = "contest"
UNLOCK = """
if redis.call("get",KEYS[1]) == ARGV[1] then
    return redis.call("del",KEYS[1])
else
    return 0
end"""
DRIFT_FACTOR = 0.01


def boot_us():
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1000


class RedlockPy:
    def __init__(self, paths, ttl_ms):
        import redis  # not a part of Python

        self.errors = redis.exceptions.RedisError
        self.nodes = [redis.Redis(unix_socket_path=path, socket_timeout=0.2) for path in paths]
        self.ttl_ms = ttl_ms

    def unlock(self, token):
        for node in self.nodes:
            try:
                node.eval(UNLOCK, 1, KEY, token)
            except self.errors:
                pass

    def lock(self):
        """What unlock() takes, and until when it holds; or None."""
        token = "".join(random.choice(string.ascii_letters + string.digits) for _ in range(22))
        start_us = boot_us()
        votes = 0
        for node in self.nodes:
            try:
                votes += bool(node.set(KEY, token, nx=True, px=self.ttl_ms))
            except self.errors:
                pass
        deadline_us = start_us + int((self.ttl_ms - self.ttl_ms * DRIFT_FACTOR - 2) * 1000)
        if votes >= len(self.nodes) // 2 + 1 and boot_us() < deadline_us:
            return token, deadline_us
        self.unlock(token)
        return None


class Page:
    def __init__(self, paths, ttl_ms):
        self.client = lock_client.Client(paths, ttl_ms, ttl_ms // 10)
        self.unlock = self.client.release

    def lock(self):
        self.client.turn(boot_us())
        lock = self.client.acquire(KEY)[1]
        return lock and (lock, lock.deadline_us)


def read(path):
    try:
        with open(path, encoding="ascii") as f:
            return int(f.read() or "0")
    except FileNotFoundError:
        return 0


def section(directory, log, deadline_us):
    """What only one may do at a time."""
    value = read(directory + "/counter") + 1
    inside = directory + "/inside"
    log(f"enter {os.getpid()} {boot_us()} {deadline_us} {value}")
    try:
        fd = os.open(inside, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666)
    except FileExistsError:
        if boot_us() < read(inside):
            log(f"violation {os.getpid()} {boot_us()} 0 0")
        fd = os.open(inside, os.O_CREAT | os.O_TRUNC | os.O_WRONLY, 0o666)
    os.write(fd, str(deadline_us).encode())
    os.close(fd)
    fd = os.open(directory + "/counter", os.O_CREAT | os.O_WRONLY, 0o666)
    os.write(fd, str(value).encode())  # never shorter: it is whole at any time
    os.close(fd)
    try:
        os.unlink(inside)
    except FileNotFoundError:
        pass
    log(f"leave {os.getpid()} {boot_us()} {deadline_us} {value}")


def main():
    directory, name, seconds, ttl_ms = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    protocol = (Page if name == "page" else RedlockPy)(sys.argv[5:], ttl_ms)
    log_fd = os.open(f"{directory}/{name}.log", os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o666)
    end_us = boot_us() + seconds * 1000000
    while boot_us() < end_us:
        won = protocol.lock()
        if won is not None:
            section(directory, lambda line: os.write(log_fd, (line + "\n").encode()), won[1])
            protocol.unlock(won[0])
        time.sleep(random.random() * 0.005)


main()
