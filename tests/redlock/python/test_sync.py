# SPDX-License-Identifier: Apache-2.0
"""Locks of threads and of other processes: exclusion, waiting, several keys, fences, owners, errors."""

import os
import sys
import threading
import unittest

import redlock
from redlock import Mode, Result, State
from world import SOON, World, until

COUNT = "n=$(cat counter); echo $((n + 1)) >counter"  # not to be done by two at once


class Sync(World):
    def in_thread(self, work):
        """Starts a thread; its join() returns what `work` did, or raises it."""
        outcome = []

        def run():
            try:
                outcome.append(work())
            except BaseException as error:  # pylint: disable=broad-except
                outcome.append(error)

        thread = threading.Thread(target=run)
        thread.start()

        def join():
            thread.join(SOON)
            if isinstance(outcome[0], BaseException):
                raise outcome[0]
            return outcome[0]

        return join

    def waits(self, client, count=1):
        until(lambda: client.stats()["waiting"] == count)

    def test_threads_tasks_and_commands_exclude_each_other(self):
        counter = os.path.join(self.dir, "counter")
        with open(counter, "w", encoding="ascii") as file:
            file.write("0\n")
        program = """
def add():
    with open(sys.argv[1]) as file:
        n = int(file.read())
    with open(sys.argv[1], "w") as file:
        file.write(f"{n + 1}\\n")
"""
        tasks = self.python(program + """
async def one(client):
    async with client.lock(sys.argv[2]):
        add()
async def main():
    async with redlock.aio.Client() as client:
        await asyncio.gather(*(one(client) for _ in range(20)))
asyncio.run(main())
""", counter, self.key)
        threads = self.python(program + """
def one():
    with client.lock(sys.argv[2]):
        add()
with redlock.Client() as client:
    threads = [threading.Thread(target=one) for _ in range(20)]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
""", counter, self.key)
        commands = [self.exec(self.key, "sh", "-c", f"cd {self.dir}; {COUNT}") for _ in range(5)]
        for child in (tasks, threads):
            self.ended_well(child)
        for command in commands:
            command.communicate(timeout=SOON)
            self.assertEqual(command.returncode, 0)
        with open(counter, encoding="ascii") as file:
            self.assertEqual(file.read(), "45\n")

    def test_block(self):
        client = self.client()
        with client.lock(self.key) as lock:
            self.assertTrue(lock.held)
            self.assertEqual((lock.state, lock.key, lock.fence), (State.HELD, self.key, None))
            self.assertTrue(0 < lock.left <= 30)
            self.assertGreaterEqual(lock.fd, 0)
            self.assertEqual(lock.report.result, Result.OK)
            self.assertEqual([h.vote for h in client.status(self.key)], [redlock.Vote.REFUSED] * 3)
            lock.extend()
        self.assertEqual((lock.held, lock.state, lock.left, lock.fd), (False, State.LOST, 0, -1))
        self.assertIsNone(lock.unlock(), "nothing is left to unlock")
        until(lambda: self.is_free(self.key))

    def test_block_that_fails_unlocks(self):
        with self.assertRaises(ZeroDivisionError), self.client().lock(self.key):
            1 / 0  # pylint: disable=pointless-statement
        until(lambda: self.is_free(self.key))

    def test_a_lock_may_be_taken_again_but_not_twice(self):
        lock = self.client().lock(self.key)
        for _ in range(2):
            with lock:
                with self.assertRaisesRegex(RuntimeError, "needs a Lock of its own"):
                    lock.acquire()
                with self.assertRaisesRegex(RuntimeError, "has a block already"):
                    with lock:
                        self.fail("a block inside of its own")
                self.assertTrue(lock.held)

    def test_unlock_tells(self):
        lock = self.client().lock(self.key).acquire()
        report = lock.unlock(confirm=True)
        self.assertEqual((report.deleted, report.stolen), (3, 0))

    def test_abandoned(self):
        client = self.client()
        with client.lock(self.key) as lock:
            lock.abandon()
            self.assertFalse(lock.held)
        self.assertIsNone(client.try_lock(self.key))

    def test_waiting(self):
        client, other = self.client(), self.client()
        with client.lock(self.key):
            self.assertIsNone(other.try_lock(self.key))
            with self.assertRaises(redlock.Held) as caught:
                other.lock(self.key, wait=0.1).acquire()
            self.assertEqual(caught.exception.report.result, Result.HELD)
            self.assertGreater(caught.exception.report.holder_left, 0)
            self.assertIn("held", str(caught.exception))
            lock = other.lock(self.key, wait=SOON)
            join = self.in_thread(lock.acquire)
            self.waits(other)
        self.assertIs(join(), lock)
        self.assertTrue(lock.held)
        lock.unlock()

    def test_several_keys(self):
        client = self.client()
        keys = [self.key + "b", self.key + "a"]
        with client.lock(keys, fence=True) as lock:
            self.assertEqual(lock.key, keys[0])
            self.assertIsNone(client.try_lock(keys[1]))
            self.assertGreater(lock.fence, 0)
            locks = client.acquire_each([keys[0], self.key + "c", self.key.encode() + b"\0\xff"])
            self.assertEqual([each.held for each in locks], [False, True, True])
            self.assertEqual(locks[0].report.result, Result.HELD)
            for each in locks:
                each.unlock()
        self.assertEqual(client.acquire_each([]), [])
        until(lambda: all(map(self.is_free, keys)))

    def test_slots(self):
        client = self.client()
        first, second = (client.try_lock(self.key.encode() + b"\0", slots=2) for _ in range(2))
        self.assertEqual({first.slot, second.slot}, {1, 2})
        self.assertIsNone(client.try_lock(self.key.encode() + b"\0", slots=2))
        join = self.in_thread(lambda: client.lock(self.key.encode() + b"\0", slots=2).acquire())
        self.waits(client)
        freed = second.slot
        second.unlock()
        third = join()
        self.assertEqual(third.slot, freed)
        first.unlock()
        third.unlock()
        with self.assertRaises(redlock.Invalid):
            client.lock([self.key, "b"], slots=2).acquire()

    def test_readers_and_writer(self):
        client = self.client()
        with client.lock(self.key, mode=Mode.SHARED) as first, client.lock(self.key, mode=Mode.SHARED) as second:
            self.assertNotEqual(first.slot, second.slot)
            self.assertIsNone(client.try_lock(self.key, mode=Mode.EXCLUSIVE))
            with self.assertRaises(redlock.Held):
                client.lock(self.key, mode=Mode.EXCLUSIVE, wait=0.2).acquire()
        with client.lock(self.key, mode=Mode.EXCLUSIVE, fence=True) as writer:
            self.assertIsNone(writer.slot)
            self.assertIsNone(client.try_lock(self.key, mode=Mode.SHARED))
        with client.lock(self.key, mode=Mode.SHARED, fence=True) as reader:
            self.assertGreater(reader.fence, writer.fence)

    def test_fences_rise(self):
        client, fences = self.client(), []
        for _ in range(3):
            with client.lock(self.key, fence=True) as lock:
                fences.append(lock.fence)
            with self.exec(self.key, "sh", "-c", "echo $REDLOCK_FENCE", options=("--fence",)) as command:
                fences.append(int(command.communicate(timeout=SOON)[0]))
        self.assertEqual(fences, sorted(set(fences)))
        self.assertEqual(len(fences), 6)

    def test_owner(self):
        client = self.client()
        owner = client.owner()
        with client.lock(self.key, owner=owner), client.lock(self.key, owner=owner, fence=True) as inner:
            inner.unlock()
            self.assertIsNone(client.try_lock(self.key))
            self.assertFalse(inner.held)
        until(lambda: self.is_free(self.key))

    def test_owner_cancels(self):
        client = self.client()
        owner = client.owner()
        with client.lock(self.key):
            join = self.in_thread(client.lock(self.key, owner=owner).acquire)
            self.waits(client)
            owner.cancel()
            with self.assertRaises(redlock.Cancelled):
                join()
            with self.assertRaises(redlock.Cancelled):
                client.lock(self.key, owner=owner).acquire()

    def test_close_cancels_and_loses(self):
        client, other = self.client(), self.client()
        held = client.lock(self.key + "held").acquire()
        with other.lock(self.key):
            join = self.in_thread(client.lock(self.key).acquire)
            self.waits(client)
            client.close()
            with self.assertRaises(redlock.Cancelled):
                join()
        client.close()
        self.assertFalse(held.held)
        with self.assertRaises(redlock.Lost):
            held.extend()
        held.unlock()
        for late in (client.lock(self.key).acquire, lambda: client.status(self.key)):
            with self.assertRaises(redlock.Error):
                late()
        self.assertEqual((client.nodes(), client.stats()["held"]), ([], 0))
        client.owner().cancel()

    def test_many_use_a_client_that_is_closed(self):
        client = self.client()

        def use():
            try:
                while True:
                    with client.lock(f"{self.key}{threading.get_ident()}", lost_ok=True) as lock:
                        lock.extend()
            except (redlock.Cancelled, redlock.Lost):
                return True

        joins = [self.in_thread(use) for _ in range(8)]
        until(lambda: client.stats()["results"][Result.OK] > 50)
        client.close()
        self.assertTrue(all(join() for join in joins))

    def test_nodes_and_events(self):
        events, failures = [], []
        hook, sys.unraisablehook = sys.unraisablehook, failures.append
        self.addCleanup(setattr, sys, "unraisablehook", hook)

        def on_event(event):
            events.append(event)
            raise LookupError("in a callback")

        client = self.client(on_event=on_event)
        self.assertEqual([node.name for node in client.nodes()], self.nodes.split(","))
        self.assertTrue(all(node.may_vote and node.server for node in client.nodes()))
        self.stop(2)
        until(lambda: any(e.node == 2 and e.kind == redlock.EventKind.DOWN for e in events))
        self.start(2)
        until(lambda: client.nodes()[2].is_up)
        until(lambda: any(isinstance(failure.exc_value, LookupError) for failure in failures))
        with client.lock(self.key):
            pass

    def test_no_quorum(self):
        client = redlock.Client("unix:/nowhere/1.sock,unix:/nowhere/2.sock", ttl=1)
        self.addCleanup(client.close)
        with self.assertRaises(redlock.NoQuorum) as caught:
            client.try_lock(self.key)
        self.assertIn("/nowhere/1.sock", str(caught.exception))
        self.assertEqual(caught.exception.report.votes, (redlock.Vote.DOWN,) * 2)

    def test_wrong_arguments(self):
        client, other = self.client(), self.client()
        for error, text, call in (
                (redlock.Invalid, "an empty key", lambda: client.lock("").acquire()),
                (redlock.Invalid, "too long", lambda: client.lock("x" * 1025).acquire()),
                (redlock.Invalid, "0 keys", lambda: client.lock([]).acquire()),
                (redlock.Invalid, "513 keys", lambda: client.lock(map(str, range(513))).acquire()),
                (TypeError, "key: str or bytes, not int", lambda: client.lock([1])),
                (TypeError, "not iterable", lambda: client.lock(None)),
                (TypeError, "unexpected keyword", lambda: client.lock("k", waits=1)),
                (TypeError, "on_change", lambda: client.acquire_each(["k"], on_change=print)),
                (redlock.Invalid, "wait=-1", lambda: client.lock("k", wait=-1)),
                (redlock.Invalid, "ttl=0", lambda: client.lock("k", ttl=0)),
                (redlock.Invalid, "ttl_ms is 500", lambda: client.lock("k", ttl=0.5).acquire()),
                (redlock.Invalid, "ttl=nan", lambda: client.lock("k", ttl=float("nan"))),
                (TypeError, "", lambda: client.lock("k", ttl="5")),
                (redlock.Invalid, "another client", lambda: client.lock("k", owner=other.owner()).acquire()),
                (redlock.Invalid, "zero byte", lambda: client.status("a\0b")),
                (redlock.Invalid, "no nodes", lambda: redlock.Client("")),
                (redlock.Invalid, "10 nodes", lambda: redlock.Client(f"h{i}" for i in range(10))),
                (TypeError, "iterable", lambda: redlock.fingerprint(5)),
                (redlock.Invalid, "the schemes are", lambda: redlock.Client("redlis://a")),
                (redlock.Invalid, "node_timeout_ms", lambda: redlock.Client("a", node_timeout=9)),
                (redlock.Invalid, "zero byte", lambda: redlock.Client("a", password="a\0b")),
                (redlock.Invalid, "empty", lambda: redlock.fingerprint(["a", ""]))):
            with self.subTest(text=text), self.assertRaisesRegex(error, text):
                call()
        self.assertTrue(issubclass(redlock.Invalid, ValueError))

    def test_fingerprint_and_version(self):
        self.assertEqual(redlock.fingerprint("a,b"), redlock.fingerprint(["b", "A:6379"]))
        self.assertNotEqual(redlock.fingerprint("a"), redlock.fingerprint("b"))
        self.assertRegex(redlock.version(), r"^\d+\.\d+")


if __name__ == "__main__":
    unittest.main()
