# SPDX-License-Identifier: Apache-2.0
"""The same for asyncio:

    import redlock.aio

    async with redlock.aio.Client("10.0.0.1,10.0.0.2,10.0.0.3") as client:
        async with client.lock("nightly-backup", wait=5):
            ...  # nobody else does this now

No thread waits for a lock, and waiting never blocks the loop. A task that is cancelled while it
waits gives back what it wins at that moment. Callbacks are called by the loop."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Iterable, Sequence

import redlock
from redlock import Held, Holding, Key, LockBase, Node, Nodes, Owner, Report, Request, Split

if TYPE_CHECKING:
    from typing import Unpack

    from redlock import LockOptions


async def _wait(locks: Sequence[LockBase], keys: Sequence[bytes], each: bool) -> list[Report]:
    loop = asyncio.get_running_loop()
    over = loop.create_future()

    def tell() -> None:
        try:
            loop.call_soon_threadsafe(lambda: over.done() or over.set_result(None))
        except RuntimeError:  # the loop was closed
            request.give_up()

    request = Request(locks, keys, each, tell)
    try:
        request.start()
        await over
        return request.reports()
    except BaseException:
        request.give_up()
        raise


class Lock(LockBase):
    """One holder's lock; an asynchronous context manager. See redlock.Lock."""

    async def acquire(self) -> Lock:
        self._won(*await _wait([self], self._keys, False))
        return self

    async def __aenter__(self) -> Lock:
        if self._enter():
            await self.acquire()
        self._is_inside = True
        return self

    async def __aexit__(self, kind: object, *_: object) -> None:
        self._leave(kind is not None)

    async def extend(self) -> None:
        await asyncio.to_thread(self._extend)

    async def unlock(self, *, confirm: bool = False) -> Report | None:
        return await asyncio.to_thread(self._unlock, True) if confirm else self._unlock()


class Client:
    """See redlock.Client, whose options it has; `async with` opens and closes it."""

    def __init__(self, nodes: Nodes = None, **options: Any) -> None:
        self._nodes, self._options = nodes, options
        self._client: redlock.Client | None = None

    def _on_loop(self, options: Any, name: str) -> Any:
        loop, callback = asyncio.get_running_loop(), options.get(name)
        if callback is None:
            return options
        return {**options, name: lambda *arguments: loop.call_soon_threadsafe(callback, *arguments)}

    @property
    def sync(self) -> redlock.Client:
        """The client behind it."""
        if self._client is None:
            raise RuntimeError("the client is not open: async with")
        return self._client

    async def __aenter__(self) -> Client:
        self._client = await asyncio.to_thread(redlock.Client, self._nodes, **self._on_loop(self._options, "on_event"))
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        await asyncio.to_thread(self.sync.close)

    def lock(self, key: Key | Iterable[Key], **options: Unpack[LockOptions]) -> Lock:
        return Lock(self.sync, key, **self._on_loop(options, "on_change"))

    async def try_lock(self, key: Key | Iterable[Key], **options: Unpack[LockOptions]) -> Lock | None:
        try:
            return await self.lock(key, **{**options, "wait": 0}).acquire()
        except (Held, Split):
            return None

    async def acquire_each(self, keys: Iterable[Key], **options: Unpack[LockOptions]) -> list[Lock]:
        locks = [self.lock(key, **{**options, "wait": 0}) for key in keys]
        if locks:
            for lock, report in zip(locks, await _wait(locks, [lock._keys[0] for lock in locks], True)):
                lock._take(report)
        return locks

    def owner(self) -> Owner:
        return Owner(self.sync)

    def nodes(self) -> list[Node]:
        return self.sync.nodes()

    async def status(self, key: Key) -> list[Holding]:
        return await asyncio.to_thread(self.sync.status, key)

    def stats(self) -> dict[str, Any]:
        return self.sync.stats()
