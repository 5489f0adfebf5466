# SPDX-License-Identifier: Apache-2.0
"""What the tests share: three private Redis masters, and waiting for what is to happen."""

import os
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

import redlock

SOON = 60  # seconds; no verdict depends on how long something takes
# The masters were started a moment ago, and share one machine, which may be busy.
OPTIONS = {"trust_fresh": True, "node_timeout": 0.2}
WITH_OPTIONS = f"import functools, redlock; redlock.Client = functools.partial(redlock.Client, **{OPTIONS})\n"


def until(is_so):
    """Waits until it is so."""
    end = time.monotonic() + SOON
    while not is_so():
        if time.monotonic() > end:
            raise AssertionError("it never came to be so")
        time.sleep(0.01)


class World(unittest.TestCase):
    """Masters of this class's own, and a key of each test's own."""

    @classmethod
    def setUpClass(cls):
        cls.dir = tempfile.mkdtemp()
        cls.addClassCleanup(shutil.rmtree, cls.dir, ignore_errors=True)
        cls.sockets = [f"{cls.dir}/{i}.sock" for i in range(3)]
        cls.servers = [None] * 3
        for i in range(3):
            cls.start(i)
        cls.addClassCleanup(lambda: [cls.stop(i) for i in range(3)])
        for i in range(3):
            until(lambda i=i: cls.redis(i, "ping") == "PONG")
        cls.nodes = ",".join("unix:" + path for path in cls.sockets)
        cls.environment = {**os.environ, "REDLOCK_NODES": cls.nodes}

    @classmethod
    def start(cls, i):
        cls.servers[i] = subprocess.Popen(
            ["redis-server", "--port", "0", "--unixsocket", cls.sockets[i], "--save", "", "--appendonly", "no",
             "--dir", cls.dir], stdout=subprocess.DEVNULL)

    @classmethod
    def stop(cls, i):
        cls.servers[i].kill()
        cls.servers[i].wait()

    @classmethod
    def redis(cls, i, *command):
        line = ["redis-cli", "-s", cls.sockets[i], *command]
        return subprocess.run(line, capture_output=True, text=True, check=False).stdout.strip()

    def setUp(self):
        self.key = self.id()

    def client(self, **options):
        client = redlock.Client(self.nodes, **OPTIONS, **options)
        self.addCleanup(client.close)
        return client

    def steal(self, key):
        """Another has it now: what the holder will notice."""
        for i in range(3):
            self.redis(i, "set", key, "thief", "px", "600000")

    def is_free(self, key):
        return all(self.redis(i, "exists", key) == "0" for i in range(3))

    def python(self, program, *arguments, **options):
        """A process that runs the program, whose clients have these nodes and options."""
        text = WITH_OPTIONS + "import asyncio, os, signal, sys, threading, time, redlock.aio\n" + program
        child = subprocess.Popen([sys.executable, "-X", "dev", "-c", text, *arguments], text=True, env=self.environment,
                                 stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **options)
        self.addCleanup(child.stdout.close)
        self.addCleanup(child.wait)
        self.addCleanup(child.kill)
        return child

    def ended_well(self, child):
        output, _ = child.communicate(timeout=SOON)
        self.assertEqual(child.returncode, 0, output)
        return output

    def exec(self, key, *command, options=()):
        """`redlock exec`, which waits for the lock."""
        line = ["redlock", "exec", key, "--trust-fresh", "--node-timeout", "200ms", "--wait", "forever", *options]
        return subprocess.Popen([*line, "--", *command], text=True, env=self.environment, stdout=subprocess.PIPE)
