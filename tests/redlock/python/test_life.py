# SPDX-License-Identifier: Apache-2.0
"""What happens to locks in bad moments: Ctrl-C, fork(), the garbage collector, the end of the program,
a lease that is lost."""

import gc
import os
import signal
import sys
import threading
import unittest
import unittest.mock
import warnings
import weakref

import redlock
from redlock import State
from world import OPTIONS, SOON, World, until


class Life(World):
    def interrupted(self, program):
        """Ctrl-C is pressed when the program waits; it prints what came of it."""
        child = self.python("""
def when_waiting():
    while client.stats()["waiting"] == 0:
        time.sleep(0.01)
    os.kill(os.getpid(), signal.SIGINT)
client = redlock.Client()
threading.Thread(target=when_waiting).start()
lock = client.lock(sys.argv[1])
""" + program + """
while client.stats()["waiting"] > 0:
    time.sleep(0.01)
print("held", client.stats()["held"], lock.held)
""", self.key)
        self.assertEqual(self.ended_well(child), "interrupted\nheld 0 False\n")

    def test_ctrl_c_ends_a_wait(self):
        with self.client().lock(self.key):
            self.interrupted("""
try:
    with lock:
        print("two have it")
except KeyboardInterrupt:
    print("interrupted")
""")
        until(lambda: self.is_free(self.key))

    def test_ctrl_c_ends_asyncio(self):
        with self.client().lock(self.key):
            self.interrupted("""
async def main():
    async with redlock.aio.Lock(client, sys.argv[1]):
        print("two have it")
try:
    asyncio.run(main())
except KeyboardInterrupt:
    print("interrupted")
""")
        until(lambda: self.is_free(self.key))

    def test_a_lost_lock_ends_its_block_with_lost(self):
        client, changes = self.client(ttl=3), []
        told = threading.Event()

        def on_change(lock, state):
            changes.append((lock, state))
            if state == State.LOST:
                told.set()

        def lose(**options):
            told.clear()
            lock = client.lock(self.key, on_change=on_change, **options).acquire()
            with lock:
                self.steal(self.key)
                self.assertTrue(told.wait(SOON))
                self.assertEqual(lock.state, State.LOST)
                self.assertEqual(len(os.read(lock.fd, 8)), 8)
                with self.assertRaises(redlock.Lost):
                    lock.extend()
                for i in range(3):
                    self.redis(i, "del", self.key)
                if "wait" in options:
                    raise LookupError("on its way")
            return lock

        with self.assertRaises(redlock.Lost):
            lose()
        lock = lose(lost_ok=True)
        self.assertEqual(changes[-1], (lock, State.LOST))
        with self.assertRaises(LookupError):
            lose(wait=SOON)

    def test_a_lease_that_nothing_extends_is_lost_by_hand(self):
        lock = self.client().lock(self.key, manual=True).acquire()
        lock.extend()
        self.steal(self.key)
        with self.assertRaises(redlock.Lost):
            lock.extend()
        lock.unlock()

    def test_callbacks_that_raise_or_wait(self):
        failures = []
        hook, sys.unraisablehook = sys.unraisablehook, lambda failure: failures.append(failure.exc_value)
        self.addCleanup(setattr, sys, "unraisablehook", hook)
        client = self.client(ttl=3)
        for callback, text in ((lambda *_: 1 / 0, "division"), (lambda *_: client.lock("x").acquire(), "must not wait"),
                               (lambda *_: client.close(), "must not close")):
            with client.lock(self.key, on_change=callback, lost_ok=True):
                self.steal(self.key)
                until(lambda text=text: any(text in str(failure) for failure in failures))
            for i in range(3):
                self.redis(i, "del", self.key)

    def test_a_lock_that_is_forgotten_is_unlocked(self):
        client = self.client()
        with self.assertWarnsRegex(ResourceWarning, "nobody had unlocked"):
            client.lock(self.key).acquire()
            gc.collect()
        until(lambda: self.is_free(self.key))

    def test_a_client_that_is_forgotten_is_closed(self):
        client = redlock.Client(self.nodes, **OPTIONS, on_event=lambda event: None)
        gone = weakref.ref(client)
        with client.lock(self.key) as lock:
            del client
            gc.collect()
            self.assertTrue(lock.held)
        del lock
        gc.collect()
        self.assertIsNone(gone())
        until(lambda: self.redis(0, "client", "list").count("\n") < 2)

    def test_a_client_that_its_callback_frees_is_closed_by_another_thread(self):
        close, closed_by_callback = redlock.lib.redlock_close, []

        def note_close(pointer):
            closed_by_callback.append(getattr(redlock._here, "is_callback", False))
            close(pointer)

        client = redlock.Client(self.nodes, **OPTIONS, ttl=3)
        box = [client.lock(self.key, on_change=lambda lock, state: box.clear(), lost_ok=True).acquire()]
        del client
        with warnings.catch_warnings(), unittest.mock.patch.object(redlock.lib, "redlock_close", note_close):
            warnings.simplefilter("ignore")  # that nobody unlocks it is what this is about
            self.steal(self.key)
            until(lambda: closed_by_callback)
        self.assertEqual(closed_by_callback, [False])

    def test_a_program_that_ends_gives_back(self):
        for end in ("", "sys.exit(0)", "client.lock('x').acquire()"):
            child = self.python("""
client = redlock.Client(on_event=print)
lock = client.lock(sys.argv[1]).acquire()
threading.Thread(target=client.lock(sys.argv[1]).acquire, daemon=True).start()
while client.stats()["waiting"] == 0:
    time.sleep(0.01)
""" + end, self.key)
            self.assertNotIn("Traceback", self.ended_well(child))
            until(lambda: self.is_free(self.key))

    def test_fork(self):
        child = self.python("""
client = redlock.Client()
owner = client.owner()
def fails(call):
    try:
        call()
    except redlock.Error as error:
        assert error.result == redlock.Result.SYSTEM, error
        return
    raise AssertionError(call)
with client.lock(sys.argv[1]) as lock:
    pid = os.fork()
    if pid == 0:
        for call in (client.lock("x").acquire, lambda: client.try_lock("x"), client.stats, client.nodes, client.owner,
                     lambda: client.status("x"), lock.extend, lambda: client.acquire_each("ab"),
                     client.lock(sys.argv[1], owner=owner).acquire):
            fails(call)
        assert not lock.held and lock.left == 0 and lock.fd == -1 and lock.unlock() is None
        owner.cancel()
        with redlock.Client() as mine:
            assert mine.try_lock(sys.argv[1]) is None
            mine.lock(sys.argv[1] + "2").acquire().unlock()
        client.close()
        if len(sys.argv) > 2:
            os._exit(0)
        sys.exit(0)  # as the program ends
    assert os.waitpid(pid, 0)[1] == 0
    assert lock.held
    lock.extend()
print("well")
""", self.key)
        self.assertEqual(self.ended_well(child), "well\n")
        until(lambda: self.is_free(self.key))

    @unittest.skipIf("LD_PRELOAD" in os.environ, "the address sanitizer's malloc() may hang after a fork")
    def test_fork_while_others_wait(self):
        child = self.python("""
import multiprocessing
def work(key):
    with redlock.Client() as client, client.lock(key):
        pass
client = redlock.Client()
stop = threading.Event()
def hammer():
    while not stop.is_set():
        with client.lock(sys.argv[1]):
            pass
threads = [threading.Thread(target=hammer) for _ in range(4)]
for thread in threads: thread.start()
context = multiprocessing.get_context("fork")
for _ in range(10):
    process = context.Process(target=work, args=(sys.argv[1] + "2",))
    process.start()
    process.join()
    assert process.exitcode == 0
stop.set()
for thread in threads: thread.join()
print("well")
""", self.key)
        self.assertEqual(self.ended_well(child), "well\n")


if __name__ == "__main__":
    unittest.main()
