# SPDX-License-Identifier: Apache-2.0
"""claimd for Python 3.9 and later (docs/guide/python.md), by version 1 of docs/handler-protocol.md; no dependencies."""
from __future__ import annotations

import collections, datetime, inspect, json, logging, os, re, select, signal, sys, threading, traceback
from typing import Any, Callable, Optional, Union

RESULT_MAX, TEXT_MAX, NUMBER_MAX = 65536, 8192, 2**53 - 1  # bytes, characters
Handler = Callable[["Job"], Any]
_handlers: dict[str, tuple[Handler, bool]] = {}
_encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False).encode  # json.dumps() would make an encoder each time


class End(Exception):
    """Ends the attempt. A delay is in seconds, or a timedelta: Retry(30, "printer jams"), Retry("printer jams")."""
    end = ""

    def __init__(self, delay: Union[float, datetime.timedelta, str, None] = None, error: str = "") -> None:
        if isinstance(delay, str):
            delay, error = None, delay
        super().__init__(error)
        seconds = delay.total_seconds() if isinstance(delay, datetime.timedelta) else delay
        self.error = str(error)
        self.delay_ms = None if seconds is None else min(NUMBER_MAX, max(0, round(seconds * 1000)))


class Retry(End):  # failed: runs again after the delay, else after its kind's backoff
    end = "retry"


class Snooze(End):  # not now: runs again after the delay, and no attempt is charged
    end = "snooze"


class Fail(End):  # failed for good
    end = "fail"


class Cancel(End):  # no longer wanted: the job ends as cancelled
    end = "cancel"


class Stop(BaseException):
    """Raised within a handler of @job(…, interrupt=True) when it should stop."""


def job(kind: str, interrupt: bool = False) -> Callable[[Handler], Handler]:
    """Makes a function, or an `async def`, the handler of a kind. What it returns is the job's result."""
    def register(func: Handler) -> Handler:
        if kind in _handlers:
            raise ValueError("kind %s has two handlers" % kind)
        _handlers[kind] = (func, interrupt)
        return func
    return register


def _json(value: Any, what: str) -> str:
    try:
        text = "null" if value is None else _encode(value)
        size = len(text.encode("utf-8"))
    except (TypeError, ValueError, RecursionError) as e:  # UnicodeEncodeError is a ValueError
        raise Fail("the %s is not JSON: %s" % (what, e)) from e
    if size > RESULT_MAX:
        raise Fail("the %s has %d bytes, at most %d" % (what, size, RESULT_MAX))
    return text


class Job:
    """One attempt of one job."""

    def __init__(self, program: _Program, line: dict[str, Any]) -> None:
        self._program, self._n = program, line["n"]
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
        """0 to 100, and a text of at most 200 characters; what is out of these bounds is refused, as the log says."""
        said = {"n": self._n, "progress": min(101, max(-1, int(percent)))}
        self._program.send(json.dumps(said if text is None else {**said, "text": str(text)[:TEXT_MAX]}))

    def save(self, value: Any) -> None:
        """Keeps a checkpoint for the next attempt."""
        self._program.send('{"n": %d, "checkpoint": %s}' % (self._n, _json(value, "checkpoint")))

    def log(self, text: object) -> None:
        for line in str(text).splitlines() or [""]:
            self._program.send(json.dumps({"n": self._n, "log": line[:TEXT_MAX]}))

    @property
    def should_stop(self) -> Optional[str]:
        """None, or why: "timeout", "cancel", "shutdown" or "lease". It is killed soon after."""
        program = self._program
        with program:
            while select.select([program.fd_in], [], [], 0)[0] and program.read_some():
                pass
        return program.stop["stop"] if program.stop.get("n") == self._n else None


class _Output:  # sys.stdout and sys.stderr of handlers: writes lines to the attempt's log
    def __init__(self, program: _Program) -> None:
        self.program, self.rest, self.lock = program, "", threading.Lock()

    def __getattr__(self, name: str) -> Any:  # passes fileno() and the like to the real stderr
        return getattr(sys.__stderr__, name)

    def write(self, text: str) -> int:
        with self.lock:
            *lines, self.rest = (self.rest + text).split("\n")
        for line in lines:
            if (current := self.program.current) and os.getpid() == self.program.pid:
                current.log(line)
            else:
                os.write(2, line.encode("utf-8", "backslashreplace") + b"\n")
        return len(text)


class _Program:
    def __init__(self, fd_in: int, fd_out: int) -> None:
        self.fd_in, self.fd_out, self.pid, self.thread = fd_in, fd_out, os.getpid(), threading.get_ident()
        self.lock, self.is_busy, self.may_stop, self.wants_stop = threading.RLock(), False, False, False
        self.buffer, self.lines, self.stop = b"", collections.deque(), {}  # stop: the last one received, of any run
        self.current: Optional[Job] = None
        self.loop, self.output = None, _Output(self)

    def __enter__(self) -> None:  # one thread at a time on the pipes, and no Stop in the middle
        if threading.get_ident() == self.thread:
            self.is_busy = True
        self.lock.acquire()

    def __exit__(self, *_: Any) -> None:
        self.lock.release()
        if threading.get_ident() == self.thread:
            self.is_busy = False
            if self.wants_stop:
                self.on_term()

    def on_term(self, *_: Any) -> None:
        if os.getpid() != self.pid:
            os._exit(143)
        self.wants_stop = self.may_stop and self.is_busy
        if self.may_stop and not self.is_busy and self.current and self.current.should_stop:
            self.may_stop = False
            raise Stop()

    def send(self, text: str) -> None:
        data = text.encode("utf-8") + b"\n"
        with self:
            while data and os.getpid() == self.pid:  # a forked child must not write lines of the job
                data = data[os.write(self.fd_out, data):]

    def read_some(self) -> bool:
        chunk = os.read(self.fd_in, 65536)
        *lines, self.buffer = (self.buffer + chunk).split(b"\n")
        for line in map(json.loads, map(bytes.decode, lines)):  # given bytes, loads() would guess the encoding
            if "stop" in line:
                self.stop = line
            elif "job" in line:
                self.lines.append(line)
        return bool(chunk)

    def run_async(self, coroutine: Any) -> Any:
        import asyncio  # takes 40 ms, which most programs need not spend
        self.loop = self.loop or asyncio.new_event_loop()
        task = self.loop.create_task(coroutine)
        try:
            return self.loop.run_until_complete(task)
        finally:
            if not task.done():  # after a Stop: it must not continue during the next job
                task.cancel()
                self.loop.run_until_complete(asyncio.wait([task]))

    def call(self, this: Job, func: Handler, interrupt: bool) -> str:
        try:
            self.may_stop = interrupt
            value = func(this)
            value = self.run_async(value) if inspect.iscoroutine(value) else value
        finally:
            self.may_stop = self.wants_stop = False
            if self.output.rest:
                self.output.write("\n")
        return '{"n": %d, "end": "done", "result": %s}' % (this._n, _json(value, "result"))

    def run(self, line: dict[str, Any], func: Handler, interrupt: bool = False) -> None:
        this = self.current = Job(self, line)
        how, delay_ms, last = "retry", None, None
        try:
            last = self.call(this, func, interrupt)
        except End as e:
            how, delay_ms, error = e.end, e.delay_ms, e.error
        except Stop:
            error = "stopped: %s" % this.should_stop
        except (Exception, SystemExit) as e:
            error = "%s: %s" % (type(e).__name__, e)
            this.log(traceback.format_exc())
        if os.getpid() != self.pid:
            os._exit(1)  # a forked child also returned from the handler
        self.current = None
        self.send(last or json.dumps({"n": this._n, "end": how, "delay_ms": delay_ms, "error": error[:TEXT_MAX]}))


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
    program.send(json.dumps({"claimd": 1, "kinds": sorted(_handlers), "sigterm": True}))
    while program.read_some():
        while program.lines:
            line = program.lines.popleft()
            program.run(line, *_handlers[line["kind"]])


def run(func: Handler, args: Any = None, **line: Any) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """For tests without servers: (how a handler ends, what it said before). With stop="cancel" it should stop."""
    (fd_in, fd_out), said = os.pipe(), []
    program = _Program(fd_in, fd_out)
    program.send = lambda text: said.append(json.loads(text))  # type: ignore[method-assign]
    program.stop = {"n": 1, "stop": line.pop("stop", None)}
    try:
        program.run({"n": 1, "job": 1, "kind": "test", "args": {} if args is None else args, **line}, func)
    finally:
        os.close(fd_in), os.close(fd_out), program.loop and program.loop.close()
    return said[-1], said[:-1]


def enqueue(conn: Any, kind: str, args: Any = None, **options: Any) -> int:
    """Adds a job in the caller's transaction, by psycopg 3 or 2. Options are those of claimd.enqueue()."""
    if not all(re.fullmatch(r"[a-z_]+", name) for name in options):
        raise ValueError("options: %s" % ", ".join(options))
    values = [json.dumps(value) if isinstance(value, dict) else value for value in options.values()]
    cursor = conn.cursor()
    cursor.execute("SELECT claimd.enqueue(%s, %s::jsonb" + "".join(", %s => %%s" % name for name in options) + ")",
                   (kind, json.dumps({} if args is None else args), *values))
    return int(cursor.fetchone()[0])
