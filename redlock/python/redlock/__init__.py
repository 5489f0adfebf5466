# SPDX-License-Identifier: Apache-2.0
"""Locks over 1 to 9 independent Redis or Valkey masters, by libredlock.so.0.

    import redlock

    with redlock.Client("10.0.0.1,10.0.0.2,10.0.0.3") as client:
        with client.lock("nightly-backup", wait=5):
            ...  # nobody else does this now

A lock is a lease: it is extended while its holder lives, and ends when it dies. Times are seconds.
A key is bytes or text. What fails raises a redlock.Error, whose report says why. Clients, owners and
what a lock says of itself may be used by any thread. In a forked child a client raises Error: open
one there. Callbacks come from a thread of the library's, may do anything but wait for a lock or
close a client, and what they raise goes to sys.unraisablehook. For asyncio see redlock.aio."""

from __future__ import annotations

import atexit
import functools
import itertools
import os
import sys
import threading
import warnings
import weakref
from ctypes import byref, c_size_t, c_void_p, create_string_buffer, pythonapi, sizeof, string_at
from typing import TYPE_CHECKING, Any, Callable, Iterable, NamedTuple, Sequence, TypedDict, Union

from . import _c
from ._c import EventKind, Mode, Result, State, Vote, lib

Key = Union[str, bytes]
Nodes = Union[str, Iterable[str], None]

if TYPE_CHECKING:
    from typing import Unpack


class Report(NamedTuple):
    """What happened, whatever the result is."""
    result: Result
    tries: int
    waited: float
    left: float  # of the lease
    holder_left: float | None  # HELD: until the holder's lease ends; None = unknown
    deleted: int  # of a release, in nodes × keys, like the next three
    missing: int
    stolen: int  # held by another although the lease had not ended: must be 0
    unknown: int  # not acknowledged: the key ends there by its ttl
    votes: tuple[Vote, ...]  # of the last try, in the order of the nodes
    holder: str  # HELD: the holder's label; "" = none
    message: str  # one line: the result, and the nodes that failed and why


class Event(NamedTuple):
    """Something happened to a node; the text begins with the node's name."""
    node: int
    kind: EventKind
    text: str


class Node(NamedTuple):
    """What is known of a node."""
    name: str
    server: str
    version: str
    run_id: str
    evict_policy: str
    is_up: bool
    may_vote: bool
    is_master: bool
    has_native: bool
    uptime: float
    quarantine: float
    clock_offset: float | None
    why: str  # why it may not vote


class Holding(NamedTuple):
    """Of a key on one node: OK = free there, REFUSED = held, else no answer."""
    vote: Vote
    holder: str  # the start of its token
    ttl: float | None  # None = without expiry
    label: str  # its client's; anyone may have written it
    waiting: int  # number of waiters in line there


class LockOptions(TypedDict, total=False):
    """See Client.lock()."""
    wait: float | None
    fence: bool
    ttl: float | None
    max_hold: float | None
    slots: int
    mode: Mode
    manual: bool
    owner: Owner | None
    on_change: Callable[[Any, State], object] | None
    lost_ok: bool


class Error(Exception):
    """A call failed. This class itself: the system could not, or it is a forked child."""
    result = Result.SYSTEM

    def __init__(self, message: str, report: Report | None = None) -> None:
        super().__init__(message)
        self.report = report


class NotAcquired(Error):
    """The lock was not won."""


class Held(NotAcquired):
    """Another client has it, and had it for as long as we waited."""
    result = Result.HELD


class Split(NotAcquired):
    """Several clients tried at once, and none has a majority: try again."""
    result = Result.SPLIT


class NoQuorum(NotAcquired):
    """Too many nodes are down, silent, in quarantine, or refuse the key. Of extend(): not confirmed."""
    result = Result.NO_QUORUM


class Cancelled(NotAcquired):
    """By Owner.cancel() or Client.close()."""
    result = Result.CANCELLED


class Lost(Error):
    """The lease is over, or the majority came too late: stop what it protected."""
    result = Result.LOST


class Invalid(Error, ValueError):
    """A mistake in the call."""
    result = Result.INVALID


_ERRORS = {kind.result: kind for kind in (Error, Held, Split, NoQuorum, Lost, Cancelled, Invalid)}
_FORKED = "the client belongs to another process: open one after fork()"
_ids = itertools.count(1)
_clients: weakref.WeakValueDictionary[int, Client] = weakref.WeakValueDictionary()
_watched: weakref.WeakValueDictionary[int, LockBase] = weakref.WeakValueDictionary()
_requests: dict[int, Request] = {}
_here = threading.local()  # .is_callback: this thread runs callbacks
_ending = threading.Event()  # the program is ending: its clients are about to be closed


def _ms(name: str, value: float | None) -> int:
    if value is None:
        return 0  # the library's default
    if not 0 < value < 1e12:
        raise Invalid(f"{name}={value!r}: a number of seconds, more than 0")
    return max(1, round(value * 1000))


def _bytes(name: str, value: Key) -> bytes:
    if not isinstance(value, (str, bytes)):
        raise TypeError(f"{name}: str or bytes, not {type(value).__name__}")
    return value if isinstance(value, bytes) else value.encode("utf-8", "surrogateescape")


def _text(name: str, value: Key | None) -> bytes | None:
    raw = value if value is None else _bytes(name, value)
    if raw is not None and b"\0" in raw:
        raise Invalid(f"{name}: a zero byte")
    return raw


def _list(nodes: Nodes) -> bytes | None:
    return _text("nodes", nodes if nodes is None or isinstance(nodes, (str, bytes)) else ",".join(nodes))


def _report(raw: _c.Report) -> Report:
    return Report(Result(raw.result), raw.tries, raw.waited_ms / 1000, raw.left_ms / 1000,
                  raw.holder_ms / 1000 if raw.holder_ms >= 0 else None, raw.deleted, raw.missing, raw.stolen,
                  raw.unknown, tuple(map(Vote, raw.votes[:raw.node_count])), raw.holder.decode(errors="replace"),
                  raw.message.decode(errors="replace"))


def _node(raw: _c.NodeInfo) -> Node:
    texts = (getattr(raw, name).decode(errors="replace") for name in Node._fields[:5])
    offset = None if raw.clock_offset_us == -2**63 else raw.clock_offset_us / 1e6
    return Node(*texts, raw.is_up, raw.may_vote, raw.is_master, raw.has_native, raw.uptime_ms / 1000,
                raw.quarantine_ms / 1000, offset, raw.why.decode(errors="replace"))


def _check(code: int, raw: _c.Report) -> None:
    if code != Result.OK:
        report = _report(raw)
        raise _ERRORS[Result(code)](report.message, report)


def _note_callback() -> None:
    if not getattr(_here, "is_callback", False):
        _here.is_callback = True
        if sys.version_info < (3, 12):
            # Keeps Python's record of this thread. If each callback made a new one, a child that
            # is forked at that moment would hang: before 3.12, fork() ignores the lock of these
            # records.
            pythonapi.PyGILState_Ensure()


@_c.OnEvent
def _on_event(ctx, event):  # type: ignore[no-untyped-def]
    _note_callback()
    client = _clients.get(ctx)
    if client is not None:
        e = event[0]
        client._on_event(Event(e.node, EventKind(e.kind), e.text.decode(errors="replace")))


@_c.OnChange
def _on_change(ctx, _handle, state):  # type: ignore[no-untyped-def]
    _note_callback()
    lock = _watched.get(ctx)
    if lock is not None:
        lock._on_change(lock, State(state))


@_c.Done
def _on_done(ctx, count, handles, reports):  # type: ignore[no-untyped-def]
    _note_callback()
    _requests.pop(ctx).end(handles[:count], [_c.Report.from_buffer_copy(reports[i].contents) for i in range(count)])


@functools.cache
def _watch_end() -> None:
    """After the first finalizer, since what is registered last is called first."""
    atexit.register(_ending.set)


def _close(pointer: int, once: threading.Lock) -> None:
    if once.acquire(blocking=False):
        if getattr(_here, "is_callback", False):  # collected on the callback thread, whose end it would await
            threading.Thread(target=lib.redlock_close, args=(pointer,)).start()
        else:
            lib.redlock_close(pointer)


class Request:
    """An acquisition under way. What it wins is its locks', or goes back at once if it was given up.
    `tell` is called when it is over, on the library's thread."""

    def __init__(self, locks: Sequence[LockBase], keys: Sequence[bytes], each: bool,
                 tell: Callable[[], object]) -> None:
        self._locks, self._keys, self._each, self._tell = locks, keys, each, tell
        self._mutex = threading.Lock()
        self._raw: list[_c.Report] | None = None
        self._is_given_up = False
        self._own = c_void_p()  # an owner for this request alone, used to cancel it

    def start(self) -> None:
        first, raw, ctx = self._locks[0], _c.Report(size=sizeof(_c.Report)), next(_ids)
        pointer = first._client._use()
        if self._each and first._on_change:
            raise TypeError("acquire_each() has no on_change")
        for lock in self._locks:
            with lock._mutex:
                if lock._handle or lock._request:
                    raise RuntimeError(f"{lock!r} is taken: each holder needs a Lock of its own")
                lock._request = self
        if first._owner is None:
            lib.redlock_owner_new(pointer, byref(self._own))
        asked = _c.Request(
            size=sizeof(_c.Request), keys=(_c.Key * len(self._keys))(*((key, len(key)) for key in self._keys)),
            count=len(self._keys), each=self._each, owner=first._owner._handle if first._owner else self._own.value,
            on_change=_on_change if first._on_change else _c.OnChange(), ctx=first._id, **first._terms)
        _requests[ctx] = self
        code = lib.redlock_start(pointer, byref(asked), _on_done, ctx, byref(raw))
        if code != Result.OK:
            _requests.pop(ctx).end([], [])
        _check(code, raw)

    def end(self, handles: Sequence[int | None], raw: list[_c.Report]) -> None:
        with self._mutex:
            self._raw, own, self._own = raw, self._own, c_void_p()
            for lock, handle in itertools.zip_longest(self._locks, handles):
                if self._is_given_up:
                    lib.redlock_unlock(handle, None)
                else:
                    lock._handle, lock._request = handle, None
        lib.redlock_owner_free(own)
        self._tell()

    def reports(self) -> list[Report]:
        return [_report(raw) for raw in self._raw or ()]

    def give_up(self) -> None:
        with self._mutex:
            self._is_given_up = True
            if self._own:
                lib.redlock_cancel(self._own)
            for lock in self._locks:
                if lock._request is self:
                    lock._request = None
        for lock in self._locks if self._raw is not None else ():
            lock._unlock()


class Owner:
    """Locks of one owner may be nested: one that it has is entered again at once, and freed by as many
    unlocks. Threads may share an owner; the nodes know nothing of it."""

    def __init__(self, client: Client) -> None:
        handle, self._client = c_void_p(), client
        if lib.redlock_owner_new(client._use(), byref(handle)) != Result.OK:
            raise Error("no memory for an owner")
        self._handle = handle.value
        weakref.finalize(self, lib.redlock_owner_free, self._handle).atexit = False

    def cancel(self) -> None:
        """Its requests end as Cancelled, now and later; its locks stay."""
        lib.redlock_cancel(self._handle)


def _slot(handle: int) -> int:
    size = c_size_t()
    key = lib.redlock_lock_key(handle, byref(size))
    return int(string_at(key, size.value).rpartition(b"#")[2])


class LockBase:
    """What locks of both kinds have; see Client.lock()."""

    def __init__(self, client: Client, keys: Key | Iterable[Key], *, wait: float | None = None,
                 fence: bool = False, ttl: float | None = None, max_hold: float | None = None,
                 slots: int = 0, mode: Mode = Mode.PLAIN, manual: bool = False, owner: Owner | None = None,
                 on_change: Callable[[Any, State], object] | None = None, lost_ok: bool = False) -> None:
        self._handle: int | None = None
        self._request: Request | None = None
        self._mutex = threading.RLock()  # guards these two: no handle is freed while it is being read
        self._turn = threading.RLock()  # serializes calls that wait for the nodes
        self._is_inside = False  # inside the block of a with statement
        self._client, self._owner, self._on_change, self._lost_ok = client, owner, on_change, lost_ok
        several = (keys,) if isinstance(keys, (str, bytes)) else tuple(keys)
        self._keys = [_bytes("key", key) for key in several]
        self._terms = {"wait_ms": -1 if wait is None else 0 if wait == 0 else _ms("wait", wait),
                       "fence": fence, "ttl_ms": _ms("ttl", ttl), "max_hold_ms": _ms("max_hold", max_hold),
                       "slots": slots, "mode": mode, "manual": manual}
        self.key = several[0] if several else ""  #: the first, of several
        self.slot: int | None = None  #: 1 to `slots`, of a semaphore or a reader
        self.fence: int | None = None  #: rises with every grant of the key; None = not asked for
        self.report: Report | None = None  #: of the last acquisition
        self._id = next(_ids)
        if on_change is not None:
            _watched[self._id] = self

    def _ask(self, function: Callable[[int], int], otherwise: int) -> int:
        if self._client._is_forked():
            return otherwise
        with self._mutex:
            return function(self._handle) if self._handle else otherwise

    @property
    def left(self) -> float:
        """Seconds of the lease; 0 = lost, or not held."""
        return self._ask(lib.redlock_left_ms, 0) / 1000

    @property
    def state(self) -> State:
        """LOST also before it was won and after it was unlocked."""
        return State(self._ask(lib.redlock_state, State.LOST))

    @property
    def held(self) -> bool:
        """Still ours, by the clock."""
        return self.state != State.LOST

    @property
    def fd(self) -> int:
        """Becomes readable at SUSPECT and at LOST; -1 = not held. Read 8 bytes; unlock() closes it."""
        return self._ask(lib.redlock_fd, -1)

    def abandon(self) -> None:
        """Neither extends nor releases it any more: the lease ends by its ttl."""
        handle = self._pop()
        if handle:
            lib.redlock_abandon(handle)

    def _pop(self) -> int | None:
        if self._client._is_forked():
            return None  # it belongs to the parent
        with self._turn, self._mutex:
            handle, self._handle = self._handle, None
        return handle

    def _unlock(self, confirm: bool = False) -> Report | None:
        handle, raw = self._pop(), _c.Report(size=sizeof(_c.Report))
        if not handle:
            return None
        lib.redlock_unlock(handle, byref(raw) if confirm else None)
        return _report(raw) if confirm else None

    def _extend(self) -> None:
        self._client._use()
        with self._turn:
            code = Result(lib.redlock_extend(self._handle)) if self._handle else Result.LOST
        if code != Result.OK:
            raise _ERRORS[code](lib.redlock_text(code).decode())

    def _take(self, report: Report) -> None:
        self.report = report
        self.fence = self._ask(lib.redlock_fence, 0) or None
        if self._terms["slots"] or self._terms["mode"]:
            self.slot = self._ask(_slot, 0) or None

    def _won(self, report: Report) -> None:
        self._take(report)
        if report.result != Result.OK or self._handle is None:
            raise _ERRORS[report.result](report.message, report)

    def _enter(self) -> bool:
        """Whether it is still to be won."""
        if self._is_inside:
            raise RuntimeError(f"{self!r} has a block already: nested ones need locks of one Owner")
        return self._handle is None

    def _leave(self, is_failing: bool) -> None:
        is_lost = self._handle is not None and not self.held
        self._is_inside = False
        self._unlock()
        if is_lost and not is_failing and not self._lost_ok:
            raise Lost(f"the lease of {self.key!r} ended before the block did")

    def __repr__(self) -> str:
        return f"<{type(self).__module__}.Lock {self.key!r}{' held' if self.held else ''}>"

    def __del__(self) -> None:
        if getattr(self, "_handle", None) and not self._client._is_forked():
            self._unlock()
            warnings.warn(f"nobody had unlocked {self!r}", ResourceWarning, source=self)


class Lock(LockBase):
    """One holder's lock; a context manager."""

    def acquire(self) -> Lock:
        """Waits for it; for the block of a with statement that is done already."""
        self._won(*self._client._wait([self], self._keys, False))
        return self

    def __enter__(self) -> Lock:
        if self._enter():
            self.acquire()
        self._is_inside = True
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        self._leave(kind is not None)

    def extend(self) -> None:
        """Extends the lease to a full ttl from now. NoQuorum or Split: the old deadline stands."""
        self._extend()

    def unlock(self, *, confirm: bool = False) -> Report | None:
        """Gives it back at once, or waits for the nodes' answers. Nothing happens if it is not held."""
        return self._unlock(confirm)


class Client:
    """A connection per node, for any number of threads. Waits until each node has answered or failed
    once, open_timeout (2 s) at most. redlock.h describes the options; the defaults are its own."""

    def __init__(self, nodes: Nodes = None, *, user: str | None = None, password: str | None = None,
                 ca_file: str | None = None, cert_file: str | None = None, key_file: str | None = None,
                 server_name: str | None = None, label: str | None = None, ttl: float | None = 30.0, ttl_max: float | None = None,
                 node_timeout: float | None = None, open_timeout: float | None = None,
                 majority_opens: bool = False, trust_fresh: bool = False, no_line: bool = False,
                 prefix: str | None = None, on_event: Callable[[Event], object] | None = None) -> None:
        texts = {"user": user, "password": password, "ca_file": ca_file, "cert_file": cert_file,
                 "key_file": key_file, "server_name": server_name, "label": label, "prefix": prefix}
        self._on_event = on_event
        self._pid = os.getpid()
        self._id = next(_ids)
        _clients[self._id] = self
        options = _c.Options(
            size=sizeof(_c.Options), nodes=_list(nodes), ttl_ms=_ms("ttl", ttl), ttl_max_ms=_ms("ttl_max", ttl_max),
            node_timeout_ms=_ms("node_timeout", node_timeout), open_ms=_ms("open_timeout", open_timeout),
            majority_opens=majority_opens, trust_fresh=trust_fresh, no_line=no_line, ctx=self._id,
            on_event=_on_event if on_event else _c.OnEvent(), **{name: _text(name, texts[name]) for name in texts})
        pointer, keeper, raw = c_void_p(), c_void_p(), _c.Report(size=sizeof(_c.Report))
        _check(lib.redlock_open(byref(options), byref(pointer), byref(raw)), raw)
        self._pointer = pointer.value
        self._once = threading.Lock()
        weakref.finalize(self, _close, self._pointer, self._once)  # also runs when the interpreter ends
        _watch_end()
        # An owner keeps the client's memory alive: calls after close() are refused instead of
        # crashing.
        lib.redlock_owner_new(pointer, byref(keeper))
        weakref.finalize(self, lib.redlock_owner_free, keeper.value).atexit = False

    def _is_forked(self) -> bool:
        return os.getpid() != self._pid

    def _use(self) -> int:
        if self._is_forked():
            raise Error(_FORKED)
        return self._pointer

    def _wait(self, locks: Sequence[Lock], keys: Sequence[bytes], each: bool) -> list[Report]:
        if getattr(_here, "is_callback", False):
            raise RuntimeError("a callback must not wait for a lock: answers come by its thread")
        over = threading.Event()
        request = Request(locks, keys, each, over.set)
        try:
            request.start()
            over.wait()
            if _ending.is_set() and threading.current_thread().daemon:
                threading.Event().wait()  # ends with the program; its stderr must not be used any more
            return request.reports()
        except BaseException:  # such as Ctrl-C
            request.give_up()
            raise

    def lock(self, key: Key | Iterable[Key], **options: Unpack[LockOptions]) -> Lock:
        """A lock of one key, or of all the given keys at once; acquire() or a with statement takes it.

        wait: for so many seconds, 0 = not at all, None = as long as it takes. Waiters stand in line.
        fence: fills Lock.fence, by two more round trips.
        ttl: of the lease; the client's. max_hold: the lease ends then at the latest.
        slots: a semaphore, one of so many slots of the key; the same number everywhere.
        mode: Mode.SHARED, for one of up to 16 readers, or `slots`; Mode.EXCLUSIVE, for one writer alone.
        manual: nothing extends it but extend().
        owner: an Owner, for nested locks. A request with an owner that Ctrl-C ends keeps its place in
        line, and gives back what it gets.
        on_change(lock, state): is called when the state changes.
        lost_ok: by default, leaving the block with a lock that was lost raises Lost, unless another
        exception is on its way."""
        return Lock(self, key, **options)

    def try_lock(self, key: Key | Iterable[Key], **options: Unpack[LockOptions]) -> Lock | None:
        """The lock, won, or None where another client has it; the options are those of lock()."""
        try:
            return self.lock(key, wait=0, **options).acquire()
        except (Held, Split):
            return None

    def acquire_each(self, keys: Iterable[Key], **options: Unpack[LockOptions]) -> list[Lock]:
        """A lock for each key, in one round, without waiting: look at `held`, and at `report`."""
        locks = [self.lock(key, wait=0, **options) for key in keys]
        if locks:
            for lock, report in zip(locks, self._wait(locks, [lock._keys[0] for lock in locks], True)):
                lock._take(report)
        return locks

    def owner(self) -> Owner:
        return Owner(self)

    def nodes(self) -> list[Node]:
        """What is known of each node."""
        raw = (_c.NodeInfo * _c.NODES_MAX)()
        return [_node(node) for node in raw[:lib.redlock_nodes(self._use(), raw, len(raw))]]

    def status(self, key: Key) -> list[Holding]:
        """Who holds a key, on each node."""
        raw, report = (_c.Holding * _c.NODES_MAX)(), _c.Report(size=sizeof(_c.Report))
        _check(lib.redlock_inspect(self._use(), _text("key", key), raw, byref(report)), report)
        return [Holding(Vote(h.vote), h.holder.decode(errors="replace"), h.ttl_ms / 1000 if h.ttl_ms >= 0 else None,
                        h.label.decode(errors="replace"), h.waiting)
                for h in raw[:len(self.nodes())]]

    def break_(self, key: str | bytes) -> Report:
        """Takes a key away from its holder, for operators; Error where too few nodes deleted it."""
        raw = _c.Report(size=sizeof(_c.Report))
        _check(getattr(lib, "redlock_break")(self._use(), _text("key", key), byref(raw)), raw)
        return _report(raw)

    def stats(self) -> dict[str, Any]:
        """The counters of redlock_status.h; `results` by name."""
        raw = _c.Stats(size=sizeof(_c.Stats))
        lib.redlock_get_stats(self._use(), byref(raw))
        counters = {name: getattr(raw, name) for name, _ in _c.Stats._fields_[1:]}
        return {**counters, "results": dict(zip(Result, raw.results)), "latency": list(raw.latency)}

    def close(self) -> None:
        """Cancels what waits, and releases what is held: these locks are lost."""
        if getattr(_here, "is_callback", False):
            raise RuntimeError("a callback must not close a client")
        _close(self._pointer, self._once)

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def fingerprint(nodes: Nodes) -> str:
    """16 hexadecimal digits, equal for equal lists of nodes, whatever their order."""
    text, raw = create_string_buffer(_c.FINGERPRINT_SIZE), _c.Report(size=sizeof(_c.Report))
    _check(lib.redlock_fingerprint(_list(nodes) or b"", text, byref(raw)), raw)
    return text.value.decode()


def version() -> str:
    """The library's."""
    return lib.redlock_version().decode()
