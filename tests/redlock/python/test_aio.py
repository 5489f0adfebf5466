# SPDX-License-Identifier: Apache-2.0
"""Locks of asyncio's tasks: waiting, cancellation, what the loop is told."""

import asyncio
import threading
import unittest

import redlock.aio
from redlock import Result, State
from world import OPTIONS, SOON, World


async def until(is_so):
    async with asyncio.timeout(SOON):
        while not is_so():
            await asyncio.sleep(0.01)


class Aio(World, unittest.IsolatedAsyncioTestCase):
    async def asyncSetUp(self):
        asyncio.get_running_loop().slow_callback_duration = SOON  # redis-cli is slow
        self.c = await self.enterAsyncContext(redlock.aio.Client(self.nodes, **OPTIONS))

    async def waits(self, count=1):
        await until(lambda: self.c.stats()["waiting"] == count)

    async def is_given_back(self, key):
        await until(lambda: self.c.stats()["held"] == 0 and self.c.stats()["waiting"] == 0)
        await until(lambda: self.is_free(key))

    async def test_block(self):
        async with self.c.lock(self.key, fence=True) as lock:
            self.assertTrue(lock.held and lock.left > 0 and lock.fence > 0)
            self.assertIsNone(await self.c.try_lock(self.key))
            self.assertEqual([h.vote for h in await self.c.status(self.key)], [redlock.Vote.REFUSED] * 3)
            await lock.extend()
            with self.assertRaises(redlock.Held):
                await self.c.lock(self.key, wait=0.1).acquire()
        self.assertFalse(lock.held)
        again = await self.c.lock(self.key).acquire()
        self.assertEqual((await again.unlock(confirm=True)).deleted, 3)
        self.assertIsNone(await again.unlock())
        self.assertEqual(len(self.c.nodes()), 3)

    async def test_each(self):
        async with self.c.lock(self.key):
            locks = await self.c.acquire_each([self.key, self.key + "b"])
            self.assertEqual([lock.held for lock in locks], [False, True])
            await locks[1].unlock()

    async def test_200_wait_without_a_thread_each(self):
        inside, entered = 0, 0

        async def one():
            nonlocal inside, entered
            async with self.c.lock(self.key):
                inside += 1
                self.assertEqual(inside, 1)
                await asyncio.sleep(0)
                entered, inside = entered + 1, inside - 1

        async with self.c.lock(self.key):
            threads = threading.active_count()
            tasks = [asyncio.create_task(one()) for _ in range(200)]
            await self.waits(200)
            self.assertEqual(threading.active_count(), threads)
        await asyncio.gather(*tasks)
        self.assertEqual(entered, 200)

    async def test_a_cancelled_wait_is_over(self):
        async with self.c.lock(self.key):
            task = asyncio.create_task(self.c.lock(self.key).acquire())
            await self.waits()
            task.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await task
            await self.waits(0)
            with self.assertRaises(TimeoutError):
                async with asyncio.timeout(0.05), self.c.lock(self.key):
                    self.fail("two have it")
            await self.waits(0)
        await self.is_given_back(self.key)

    async def test_a_lock_won_while_its_task_is_cancelled_is_given_back(self):
        won = 0
        for i in range(200):
            lock = self.c.lock(self.key)
            task = asyncio.create_task(lock.acquire())
            for _ in range(i % 50):
                await asyncio.sleep(0)
            if i % 2:  # the answer is there, and the task has not seen it
                await asyncio.sleep(0)
                while lock._handle is None:
                    pass
            task.cancel()
            try:
                await task
                won += 1
                await lock.unlock()
            except asyncio.CancelledError:
                pass
            self.assertFalse(lock.held)
        self.assertLess(won, 200)
        await self.is_given_back(self.key)

    async def test_a_wait_with_an_owner_gives_back_what_it_gets(self):
        owner = self.c.owner()
        async with self.c.lock(self.key):
            task = asyncio.create_task(self.c.lock(self.key, owner=owner).acquire())
            await self.waits()
            task.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await task
        await self.is_given_back(self.key)
        async with self.c.lock(self.key, owner=owner), self.c.lock(self.key, owner=owner):
            pass
        owner.cancel()
        with self.assertRaises(redlock.Cancelled):
            await self.c.lock(self.key, owner=owner).acquire()

    async def test_losing_it_is_told_on_the_loop(self):
        told = asyncio.get_running_loop().create_future()

        def on_change(lock, state):
            asyncio.get_running_loop()  # raises in any other thread
            if state == State.LOST:
                told.set_result(lock)

        async with redlock.aio.Client(self.nodes, **OPTIONS, ttl=3) as client:
            with self.assertRaises(redlock.Lost):
                async with client.lock(self.key, on_change=on_change) as lock:
                    self.steal(self.key)
                    self.assertIs(await asyncio.wait_for(told, SOON), lock)
                    self.assertEqual(lock.state, State.LOST)

    async def test_the_end_of_the_loop_gives_up(self):
        async with self.c.lock(self.key):
            async def main():
                client = await redlock.aio.Client(self.nodes, **OPTIONS).__aenter__()
                asyncio.create_task(client.lock(self.key).acquire())
                while client.stats()["waiting"] == 0:
                    await asyncio.sleep(0.01)
                return client

            other = await asyncio.to_thread(asyncio.run, main())
            await until(lambda: other.stats()["waiting"] == 0)
            other.sync.close()
        await self.is_given_back(self.key)

    async def test_closing_cancels(self):
        client = redlock.aio.Client(self.nodes, **OPTIONS)
        with self.assertRaisesRegex(RuntimeError, "not open"):
            client.lock(self.key)
        async with self.c.lock(self.key):
            async with client:
                task = asyncio.create_task(client.lock(self.key).acquire())
                await until(lambda: client.stats()["waiting"] == 1)
            with self.assertRaises(redlock.Cancelled):
                await task
        self.assertEqual(self.c.stats()["results"][Result.SYSTEM], 0)


if __name__ == "__main__":
    unittest.main()
