#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The lock as a block: whatever leaves the block, an exception, say, gives the lock back, and the one that waits has
it at once. A block that ends after its lease raises Lost. Tasks of asyncio wait without a thread each."""

import asyncio
import sys
import threading

import redlock.aio

KEY = "example:with-block"
# The masters were started a moment ago, and share one machine, which may be busy.
OPTIONS = {"nodes": sys.argv[1:], "trust_fresh": True, "node_timeout": 0.2}


def second(client):
    with client.lock(KEY, wait=60, fence=True) as lock:
        print(f"B: has it, fence {lock.fence}")


async def count():
    counter = 0

    async def one(client):
        nonlocal counter
        async with client.lock(KEY):
            before = counter
            await asyncio.sleep(0)
            counter = before + 1

    async with redlock.aio.Client(**OPTIONS) as client:
        await asyncio.gather(*(one(client) for _ in range(50)))
    print(f"tasks: {counter} of 50")


def main():
    with redlock.Client(**OPTIONS) as client:
        waiting = threading.Thread(target=second, args=(client,))
        try:
            with client.lock(KEY, fence=True) as lock:
                print(f"A: has it, fence {lock.fence}")
                print(f"B: tries: {client.try_lock(KEY)}")
                waiting.start()
                raise OSError("the disk is full")
        except OSError as error:
            print(f"A: {error}")
        waiting.join()
        try:
            with client.lock(KEY, max_hold=2) as lock:
                while lock.held:
                    threading.Event().wait(lock.left)
                print("A: works on")
        except redlock.Lost as error:
            print(f"A: {error}")
    asyncio.run(count())


main()
