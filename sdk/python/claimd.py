# SPDX-License-Identifier: Apache-2.0
"""claimd for Python 3.9 and later: one file without dependencies. It speaks docs/handler-protocol.md, version 1.

    import claimd

    @claimd.job("thumbnail")
    def thumbnail(job):
        job.progress(40, "scaling")
        return {"path": job.args["path"] + ".jpg"}

    claimd.main()
"""
from __future__ import annotations

import collections, datetime, inspect, json, logging, os, re, select, signal, sys, threading, traceback
from typing import Any, Callable, Optional, Union

RESULT_MAX, ERROR_MAX, LOG_MAX, PROGRESS_MAX = 65536, 1024, 8192, 200
_handlers: dict[str, Callable[[Job], Any]] = {}


class End(Exception):
    """Ends the attempt. A delay is in seconds, or a timedelta: Retry(30, "printer jams"), Retry("printer jams")."""
    end = ""

    def __init__(self, delay: Union[float, datetime.timedelta, str, None] = None, error: str = "") -> None:
        if isinstance(delay, str):
            delay, error = None, delay
        super().__init__(error)
        seconds = delay.total_seconds() if isinstance(delay, datetime.timedelta) else delay
        self.error, self.delay_ms = error, None if seconds is None else max(0, round(seconds * 1000))


class Retry(End):
    """Failed: runs again after the delay, else after its kind's backoff."""
    end = "retry"


class Snooze(End):
    """Not now: runs again after the delay, and no attempt is charged."""
    end = "snooze"


class Fail(End):
    """Failed for good."""
    end = "fail"


class Cancel(End):
    """No longer wanted: the job ends as cancelled."""
    end = "cancel"


class Stop(BaseException):
    """Raised within a handler of @job(…, interrupt=True) when it should stop."""


def job(kind: str, interrupt: bool = False) -> Callable[[Callable[[Job], Any]], Callable[[Job], Any]]:
    """Makes a function, or an `async def`, the handler of a kind. What it returns is the job's result."""
    if not re.fullmatch(r"[a-z][a-z0-9_]{0,63}", kind):
        raise ValueError("no name of a kind: %r" % kind)

    def register(func: Callable[[Job], Any]) -> Callable[[Job], Any]:
        if kind in _handlers:
            raise ValueError("kind %s has two handlers" % kind)
        func._claimd_interrupt, _handlers[kind] = interrupt, func  # type: ignore[attr-defined]
        return func
    return register


def _text(text: object, limit: int) -> str:
    """As PostgreSQL takes it: without NUL and lone surrogates, at most `limit` octets."""
    return str(text).replace("\0", "\\0").encode("utf-8", "backslashreplace")[:limit].decode("utf-8", "ignore")


def _json(value: Any, what: str) -> str:
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False)
        size = len(text.encode("utf-8"))
    except (TypeError, ValueError, RecursionError) as e:  # UnicodeEncodeError is a ValueError
        raise Fail("the %s is no JSON: %s" % (what, e)) from e
    if size > RESULT_MAX:
        raise Fail("the %s has %d octets, at most %d" % (what, size, RESULT_MAX))
    return text


class Job:
    """One attempt of one job."""

    def __init__(self, program: _Program, line: dict[str, Any]) -> None:
        self._program, self._stop, self._n = program, None, line["n"]
        self.id: int = line["job"]
        self.kind: str = line["kind"]
        self.args: Any = line.get("args")
        self.attempt: int = line.get("attempt", 1)
        self.max_attempts: int = line.get("max_attempts", 25)
        self.crashes: int = line.get("crashes", 0)
        self.fence: int = line.get("fence", 0)  # rises with every claim of any job
        self.key: str = line.get("key", "job:%d" % self.id)  # the same for all attempts
        self.queue: str = line.get("queue", "default")
        self.tags: list[str] = line.get("tags") or []
        self.metadata: Any = line.get("metadata") or {}
        self.timeout_ms: Optional[int] = line.get("timeout_ms")
        self.predecessors: Any = line.get("predecessors")
        self.checkpoint: Any = line.get("checkpoint")  # what an earlier attempt has saved, or None

    def progress(self, percent: float, text: Optional[str] = None) -> None:
        said = {"n": self._n, "progress": min(100, max(0, int(percent)))}
        self._program.send(said if text is None else {**said, "text": _text(text, 4 * PROGRESS_MAX)[:PROGRESS_MAX]})

    def save(self, value: Any) -> None:
        """Keeps a checkpoint for the next attempt."""
        self._program.send_text('{"n": %d, "checkpoint": %s}' % (self._n, _json(value, "checkpoint")))

    def log(self, text: object) -> None:
        for line in str(text).splitlines() or [""]:
            self._program.send({"n": self._n, "log": _text(line, LOG_MAX)})

    @property
    def should_stop(self) -> Optional[str]:
        """None, or why: "timeout", "cancel", "shutdown" or "lease". It is killed soon after."""
        self._program.look()
        return self._stop


class _Output:  # sys.stdout and sys.stderr of handlers: lines of the attempt's log
    encoding, errors = "utf-8", "backslashreplace"

    def __init__(self, program: _Program) -> None:
        self.program, self.rest, self.lock = program, "", threading.Lock()

    def __getattr__(self, name: str) -> Any:  # fileno() and the like: of the real one
        return getattr(sys.__stderr__, name)

    def flush(self) -> None:
        pass

    def write(self, text: str) -> int:
        with self.lock:
            *lines, self.rest = (self.rest + text).split("\n")
        for line in lines:
            self.program.log(line)
        return len(text)

    def end_line(self) -> None:
        self.write("\n" if self.rest else "")


class _Program:
    def __init__(self, fd_in: int, fd_out: int) -> None:
        self.fd_in, self.fd_out, self.pid, self.thread = fd_in, fd_out, os.getpid(), threading.get_ident()
        self.lock, self.depth, self.may_stop, self.wants_stop = threading.RLock(), 0, False, False
        self.buffer, self.lines = b"", collections.deque()
        self.current: Optional[Job] = None
        self.loop, self.output = None, _Output(self)

    def __enter__(self) -> None:  # one at a time on the pipes, and no Stop in the middle
        self.depth += threading.get_ident() == self.thread
        self.lock.acquire()

    def __exit__(self, *_: Any) -> None:
        self.lock.release()
        self.depth -= threading.get_ident() == self.thread
        if self.wants_stop and threading.get_ident() == self.thread:
            self.on_term()

    def on_term(self, *_: Any) -> None:
        if os.getpid() != self.pid:
            os._exit(143)
        self.wants_stop = self.may_stop and self.depth > 0
        if self.may_stop and self.depth == 0:
            self.may_stop = False
            raise Stop()

    def send(self, said: dict[str, Any]) -> None:
        self.send_text(json.dumps(said))

    def send_text(self, text: str) -> None:
        data = text.encode("utf-8") + b"\n"
        with self:
            while data and os.getpid() == self.pid:  # what a forked child says is not the job's
                data = data[os.write(self.fd_out, data):]

    def log(self, line: str) -> None:
        current = self.current
        if current and os.getpid() == self.pid:
            current.log(line)
        else:
            os.write(2, _text(line, LOG_MAX).encode("utf-8") + b"\n")

    def read_some(self) -> bool:
        chunk = os.read(self.fd_in, 65536)
        *lines, self.buffer = (self.buffer + chunk).split(b"\n")
        self.lines.extend(json.loads(line) for line in lines)
        return bool(chunk)

    def look(self) -> None:
        """Reads what is there. A stop is the present run's or nobody's."""
        with self:
            while select.select([self.fd_in], [], [], 0)[0] and self.read_some():
                pass
            for line in [x for x in self.lines if "stop" in x]:
                self.lines.remove(line)
                if self.current and line.get("n") == self.current._n:
                    self.current._stop = line["stop"]

    def next_line(self, member: str) -> Optional[dict[str, Any]]:
        while True:
            while self.lines:
                line = self.lines.popleft()
                if member in line:
                    return line
            if not self.read_some():
                return None

    def call(self, this: Job) -> str:
        func = _handlers[this.kind]
        try:
            self.may_stop = getattr(func, "_claimd_interrupt", False)
            value = func(this)
            if inspect.iscoroutine(value):
                import asyncio  # takes 40 ms, which most programs need not spend
                self.loop = self.loop or asyncio.new_event_loop()
                value = self.loop.run_until_complete(value)
        finally:
            self.may_stop = self.wants_stop = False
        return '{"n": %d, "end": "done", "result": %s}' % (this._n, _json(value, "result"))

    def run(self, line: dict[str, Any]) -> None:
        this = self.current = Job(self, line)
        end = {"n": this._n, "end": "retry"}
        try:
            last = self.call(this)
        except End as e:
            end.update({"end": e.end, "error": _text(e.error, ERROR_MAX)})
            last = json.dumps(end if e.delay_ms is None else {**end, "delay_ms": e.delay_ms})
        except Stop:
            last = json.dumps({**end, "error": "stopped: %s" % (this.should_stop or "SIGTERM")})
        except (Exception, SystemExit) as e:
            self.output.end_line()
            this.log(traceback.format_exc())
            last = json.dumps({**end, "error": _text("%s: %s" % (type(e).__name__, e), ERROR_MAX)})
        if os.getpid() != self.pid:
            os._exit(1)  # a forked child came back from the handler, too
        self.output.end_line()
        self.current = None
        self.send_text(last)


def main() -> None:
    """Serves jobs until the worker wants no more. To be called last."""
    fds = [int(os.environ.pop("CLAIMD_" + name, -1)) for name in ("IN", "OUT")]
    if -1 in fds:
        sys.exit("claimd: a program that claimd-worker starts; to try a handler: claimd.run(function, args)")
    for fd in fds:
        os.set_inheritable(fd, False)
    program = _Program(*fds)
    signal.signal(signal.SIGTERM, program.on_term)
    sys.stdout = sys.stderr = program.output  # type: ignore[assignment]
    logging.basicConfig(stream=sys.stdout, level=logging.INFO, format="%(levelname)s %(name)s: %(message)s")
    low, high = (program.next_line("claimd") or {"claimd": [0, 0]})["claimd"]
    if not low <= 1 <= high:
        sys.exit("claimd: this SDK speaks version 1 of the protocol, the worker %d to %d" % (low, high))
    program.send({"claimd": 1, "sdk": "python", "kinds": sorted(_handlers), "sigterm": True})
    for line in iter(lambda: program.next_line("job"), None):
        program.run(line)


def run(func: Callable[[Job], Any], args: Any = None, **line: Any) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Runs a handler here, without servers, for tests: (its end, what it said before)."""
    (fd_in, fd_out), said, before = os.pipe(), [], _handlers.get("test")
    program = _Program(fd_in, fd_out)
    program.send_text = lambda text: said.append(json.loads(text))  # type: ignore[method-assign]
    _handlers["test"] = func
    try:
        program.run({"n": 1, "job": 1, "kind": "test", "args": {} if args is None else args, **line})
    finally:
        _handlers.pop("test")
        if before:
            _handlers["test"] = before
        os.close(fd_in), os.close(fd_out)
    return said[-1], said[:-1]


def enqueue(conn: Any, kind: str, args: Any = None, **options: Any) -> int:
    """Adds a job in the caller's transaction, by psycopg 3 or 2. Options are those of claimd.enqueue()."""
    if not all(re.fullmatch(r"[a-z_]+", name) for name in options):
        raise ValueError("options: %s" % ", ".join(options))
    named = "".join(", %s => %%s" % name for name in options)
    cursor = conn.cursor()
    cursor.execute("SELECT claimd.enqueue(%s, %s::jsonb" + named + ")",
                   (kind, json.dumps({} if args is None else args), *options.values()))
    return int(cursor.fetchone()[0])
