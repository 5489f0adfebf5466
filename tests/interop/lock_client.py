#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A second client of the locks, made from docs/lock-protocol.md: level 1 and fences, with nothing but Python's own
library and the page's scripts.

lock_client.py serve TTL_MS NODE_TIMEOUT_MS PREFIX TRUST_FRESH SOCKET…   does what the lines of its input say
lock_client.py vectors FILE                                              checks itself against lock-vectors.json"""

import base64
import collections
import json
import os
import random
import re
import select
import socket
import sys
import time

PAGE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../docs/lock-protocol.md")
DRIFT_PPM = 10000
FENCE_ROUNDS = 5
FENCE_LIFE_MS = 7776000000


def scripts_of(page):
    """The blocks of Lua by the name in their first line, "-- NAME: …"."""
    with open(page, encoding="utf-8") as f:
        blocks = re.findall(r"^```lua\n-- (\w+).*?\n(.*?)^```$", f.read(), re.M | re.S)
    return {name: body.encode() for name, body in blocks}


SCRIPTS = scripts_of(PAGE)


def now_us():
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1000


# ---- what needs no server ----


def quorum_of(nodes):
    return nodes // 2 + 1


def drift_us(ttl_us, ppm=DRIFT_PPM):
    return (ttl_us * ppm + 999999) // 1000000 + 2000


def deadline_us(t0_us, ttl_us, drift, end_us=0):
    deadline = t0_us + ttl_us - drift
    return min(deadline, end_us) if end_us else deadline


def px_ms(t0_us, ttl_us, drift, end_us=0):
    rest_us = deadline_us(t0_us, ttl_us, drift, end_us) - t0_us + drift
    return max(1, min(-(-rest_us // 1000), ttl_us // 1000))


def verdict(nodes, ok, refused, error, validity_us, min_validity_us):
    """None = it is not decided yet."""
    quorum = quorum_of(nodes)
    blocking = nodes - quorum + 1
    if ok >= quorum:
        return "OK" if validity_us > 0 and validity_us >= min_validity_us else "LOST"
    if refused + error < blocking:
        return None
    if refused >= blocking:
        return "HELD"
    return "NO_QUORUM" if error >= blocking else "SPLIT"


def extension(nodes, confirmed, denied, error):
    quorum = quorum_of(nodes)
    if confirmed >= quorum:
        return "DONE"
    if denied >= nodes - quorum + 1:
        return "DENIED"
    return "OPEN" if confirmed + denied + error < nodes else "UNSURE"


def node_text(url):
    if url.startswith("unix:"):
        return url + "/0"
    _, _, rest = url.rpartition("://")
    address, _, db = rest.partition("/")
    address = address.rpartition("@")[2]
    if not re.search(r":\d+$", address):
        address += ":6379"
    return f"{address.lower()}/{db or 0}"


def fingerprint(urls):
    h = 14695981039346656037
    for byte in b"".join(text.encode() + b"\0" for text in sorted(map(node_text, urls))):
        h = (h ^ byte) * 1099511628211 % 2**64
    h = (h ^ h >> 30) * 0xBF58476D1CE4E5B9 % 2**64
    h = (h ^ h >> 27) * 0x94D049BB133111EB % 2**64
    return f"{h ^ h >> 31:016x}"


def base64url(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=")


# ---- one connection ----


class Incomplete(Exception):
    """A reply that is not complete yet."""


class ErrorReply(str):
    pass


def parse(data, at):
    end = data.find(b"\r\n", at)
    if end < 0:
        raise Incomplete
    kind, text = data[at : at + 1], bytes(data[at + 1 : end])
    at = end + 2
    if kind == b"+":
        return text, at
    if kind == b"-":
        return ErrorReply(text.decode()), at
    if kind == b":":
        return int(text), at
    count = int(text)
    if count < 0:
        return None, at
    if kind == b"$":
        if len(data) < at + count + 2:
            raise Incomplete
        return bytes(data[at : at + count]), at + count + 2
    items = []
    for _ in range(count):
        item, at = parse(data, at)
        items.append(item)
    return items, at


def command(*words):
    words = [w if isinstance(w, bytes) else str(w).encode() for w in words]
    return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(w), w) for w in words)


def call(script, keys, args):
    return command("EVAL", SCRIPTS[script], len(keys), *keys, *args)


Request = collections.namedtuple("Request", "count deadline_us replies on_done")


class Node:
    """One connection, made again when it broke; and what is known of the server behind it."""

    def __init__(self, client, path):
        self.client = client
        self.path = path
        self.socket = None
        self.retry_us = 0
        self.is_up = False
        self.id = 0
        self.stale = []  # ids of connections that broke, of this server
        self.run_id = None
        self.is_first = True
        self.down_us = 0
        self.uptime_us = 0
        self.canary = None
        self.is_known = False
        self.has_forgotten = False
        self.no_vote_us = 0
        self.why = "-"
        self.releases = []  # [key, value, until]: not acknowledged yet

    def may_vote(self):
        if now_us() >= self.no_vote_us:
            self.has_forgotten = False
        return self.is_up and self.is_known and now_us() >= self.no_vote_us

    def no_vote(self, until_us, why):
        if until_us > now_us():
            self.no_vote_us = max(self.no_vote_us, until_us)
            self.why = why

    # -- bytes --

    def connect(self):
        self.retry_us = now_us() + 50000 + random.randrange(50000)
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(self.client.timeout_us / 1000000)
        self.data = bytearray()
        self.requests = collections.deque()
        try:
            self.socket.connect(self.path)
        except OSError:
            self.close()
            return
        hello = command("INFO", "server", "memory", "replication", "cluster") + command("CLIENT", "ID")
        self.send(hello, 2, self.greeted, 5 * self.client.timeout_us)

    def close(self):
        if self.socket is None:
            return
        self.socket.close()
        self.socket = None
        if self.is_up:
            self.stale.append(self.id)
            self.down_us = now_us()
        self.is_up = self.is_known = False
        for request in self.requests:
            request.on_done(None)

    def send(self, data, count, on_done, timeout_us=None):
        """on_done gets the replies, or None: it is not known what happened."""
        if self.socket is None:
            on_done(None)
            return
        self.requests.append(Request(count, now_us() + (timeout_us or self.client.timeout_us), [], on_done))
        try:
            self.socket.sendall(data)
        except OSError:
            self.close()

    def read(self):
        try:
            more = self.socket.recv(65536)
        except OSError:
            more = b""
        if not more:
            self.close()
            return
        self.data += more
        while self.socket is not None and self.requests:
            try:
                reply, at = parse(self.data, 0)
            except Incomplete:
                return
            del self.data[:at]
            request = self.requests[0]
            request.replies.append(reply)
            if len(request.replies) == request.count:
                self.requests.popleft()
                request.on_done(request.replies)

    # -- which server is there? --

    def judge(self, info):
        version = info.get("valkey_version") or info["redis_version"]
        return (
            int(version.split(".")[0]) >= 7
            and info["role"] == "master"
            and info["connected_slaves"] == "0"
            and info["cluster_enabled"] == "0"
            and (info["maxmemory"] == "0" or info["maxmemory_policy"] == "noeviction")
            and all(n is self or not n.is_up or n.run_id != info["run_id"] for n in self.client.nodes)
        )

    def greeted(self, replies):
        if replies is None or isinstance(replies[0], ErrorReply):
            self.close()
            return
        info = dict(line.split(":", 1) for line in replies[0].decode().split("\r\n") if ":" in line)
        if not self.judge(info):
            self.why = "refused"
            self.close()
            self.retry_us = now_us() + 5000000
            return
        self.is_up = True
        self.id = replies[1]
        self.uptime_us = int(info["uptime_in_seconds"]) * 1000000
        if self.run_id != info["run_id"]:
            self.take_server(info["run_id"])
        for stale in self.stale:
            self.send(command("CLIENT", "KILL", "ID", stale), 1, lambda replies: None)
        self.stale = []
        self.send_releases()
        self.ask_canary()

    def take_server(self, run_id):
        is_another = self.run_id is not None
        start_us = max(now_us() - self.uptime_us, self.down_us)
        self.stale = []
        self.run_id, self.canary, self.is_first = run_id, None, not is_another
        self.has_forgotten = False
        if is_another:
            self.client.drop_votes(self)
        if is_another or not self.client.trust_fresh:
            self.no_vote(start_us + self.client.memory_us, "fresh")

    def ask_canary(self):
        args = [self.run_id, base64url(os.urandom(20))]
        self.send(call("canary", [self.client.prefix + "canary"], args), 1, self.take_canary)

    def take_canary(self, replies):
        start = (self.run_id + ":").encode()
        if replies is None or not isinstance(replies[0], list) or not replies[0][0].startswith(start):
            self.close()
            return
        value, now_s = replies[0]
        age_us = max(0, int(now_s) - int(value.split(b":")[1]) - 1) * 1000000
        memory_us = self.client.memory_us
        if self.canary is not None and value != self.canary:
            self.forget()
        elif age_us < memory_us < self.uptime_us and not (self.is_first and self.client.trust_fresh):
            self.no_vote(now_us() - age_us + memory_us, "canary")
        self.canary, self.is_known = value, True

    def forget(self):
        self.is_known, self.has_forgotten = False, True
        self.no_vote(now_us() + self.client.memory_us, "forgot")
        self.client.drop_votes(self)

    def is_alive(self, canary):
        """Does what it said with this canary count?"""
        self.may_vote()
        if self.is_known and canary != self.canary:
            self.forget()
            self.ask_canary()
        return self.is_known and not self.has_forgotten

    # -- releases that it has not acknowledged --

    def send_releases(self):
        self.releases = [r for r in self.releases if now_us() < r[2]]
        for release in self.releases:
            self.send_release(release, lambda reply: None)

    def send_release(self, release, on_reply):
        def on_done(replies):
            reply = replies[0] if replies else None
            if isinstance(reply, list) and release in self.releases:
                self.releases.remove(release)
            on_reply(reply if isinstance(reply, list) else None)

        self.send(call("release", [release[0]], [release[1]]), 1, on_done)


# ---- the client ----


class Lock:
    def __init__(self, key, value, ttl_us):
        self.key, self.value, self.ttl_us = key, value, ttl_us
        self.votes = set()
        self.written = set()  # the nodes that were sent the SET
        self.state = "HELD"
        self.deadline_us = 0

    def is_held(self):
        if now_us() >= self.deadline_us:
            self.state = "LOST"
        return self.state != "LOST"


class Client:
    def __init__(self, paths, ttl_ms, timeout_ms, prefix="redlock:", trust_fresh=False):
        self.ttl_us, self.timeout_us = ttl_ms * 1000, timeout_ms * 1000
        self.drift_us = drift_us(self.ttl_us)
        self.memory_us = self.ttl_us + self.drift_us
        self.prefix, self.trust_fresh = prefix, trust_fresh
        self.name = base64url(os.urandom(9))
        self.locks = set()
        self.thefts = 0
        self.nodes = [Node(self, path) for path in paths]
        self.quorum = quorum_of(len(self.nodes))

    def turn(self, until_us):
        """Reads what is there, closes what is late, connects what is down."""
        now = now_us()
        for node in self.nodes:
            if node.socket is not None and node.requests and now >= node.requests[0].deadline_us:
                node.close()
            if node.socket is None and now >= node.retry_us:
                node.connect()
        open_nodes = {node.socket: node for node in self.nodes if node.socket is not None}
        wait_s = max(0, min(until_us - now_us(), 5000)) / 1000000
        for ready in select.select(list(open_nodes), [], [], wait_s)[0]:
            open_nodes[ready].read()

    def run(self, is_over, limit_us):
        end_us = now_us() + limit_us
        while not is_over() and now_us() < end_us:
            self.turn(end_us)

    def voting(self):
        return sum(node.may_vote() for node in self.nodes)

    def drop_votes(self, node):
        for lock in self.locks:
            lock.votes.discard(node)
            if lock.deadline_us and len(lock.votes) < self.quorum and lock.is_held():
                lock.state = "SUSPECT"

    # -- acquire --

    def acquire(self, key):
        """A verdict, and the lock if it is OK."""
        for node in self.nodes:
            if node.is_up:
                node.send_releases()
        lock = Lock(key, self.name + base64url(os.urandom(11)), self.ttl_us)
        t0_us = now_us()
        voters = [node for node in self.nodes if node.may_vote()]
        if len(voters) < self.quorum:
            return "NO_QUORUM", None
        ok, refused, error = lock.votes, set(), set(self.nodes) - set(voters)
        set_key = command("SET", key, lock.value, "NX", "GET", "PX", px_ms(t0_us, self.ttl_us, self.drift_us))
        data = set_key + command("MGET", self.prefix + "canary")

        def judge():
            validity_us = deadline_us(t0_us, self.ttl_us, self.drift_us) - now_us()
            return verdict(len(self.nodes), len(ok), len(refused), len(error), validity_us, self.ttl_us // 2)

        def take(node):
            def on_done(replies):
                owner, canaries = replies or (ErrorReply(), None)
                if isinstance(owner, ErrorReply):
                    (refused if owner.startswith("WRONGTYPE") else error).add(node)
                elif owner not in (None, lock.value):
                    refused.add(node)
                elif isinstance(canaries, list) and node.is_alive(canaries[0]):
                    ok.add(node)
                else:
                    error.add(node)

            return on_done

        self.locks.add(lock)  # a node that forgets meanwhile takes its vote back
        for node in voters:
            lock.written.add(node)
            node.send(data, 2, take(node))
        self.run(lambda: judge() is not None, 2 * self.timeout_us)
        result = judge() or "NO_QUORUM"
        if result != "OK":
            self.locks.discard(lock)
            self.send_releases(lock, lambda node, reply: None)
            return result, None
        lock.deadline_us = deadline_us(t0_us, self.ttl_us, self.drift_us)
        return result, lock

    # -- extend --

    def extend(self, lock):
        if not lock.is_held():
            return "DENIED"
        t0_us = now_us()
        confirmed, denied, error, missing = set(), set(), set(), set()
        data = call("extend", [lock.key, self.prefix + "canary"], [lock.value, self.ttl_us // 1000])

        def take(node):
            def on_done(replies):
                reply = replies[0] if replies else None
                if not isinstance(reply, list) or not node.is_alive(reply[1]):
                    error.add(node)
                elif reply[0] == 1:
                    confirmed.add(node)
                    lock.votes.add(node)
                else:
                    if reply[0] == 0 and node in lock.votes and lock.is_held():
                        self.thefts += 1
                    denied.add(node)
                    lock.votes.discard(node)
                    if reply[0] == -1:
                        missing.add(node)

            return on_done

        def judge():
            return extension(len(self.nodes), len(confirmed), len(denied), len(error))

        for node in self.nodes:
            node.send(data, 1, take(node))
        self.run(lambda: len(confirmed) + len(denied) + len(error) == len(self.nodes), 2 * self.timeout_us)
        result = judge()
        if not lock.is_held() or result == "DENIED":
            lock.state = "LOST"
            return "DENIED"
        if result != "DONE":
            lock.state = "SUSPECT"
            return "UNSURE"
        lock.state = "HELD"
        lock.deadline_us = max(lock.deadline_us, deadline_us(t0_us, self.ttl_us, self.drift_us))
        for node in missing:
            lock.written.add(node)
            heal = command("SET", lock.key, lock.value, "NX", "PX", self.ttl_us // 1000)
            node.send(heal, 1, lambda replies: None)
        return result

    # -- fence --

    def fence(self, lock):
        """0 = there is none."""
        counter = f"{self.prefix}fence:{lock.key}"
        read, highest = set(), [0]
        answers = []

        def take_read(node):
            def on_done(replies):
                answers.append(node)
                if replies and isinstance(replies[0], list):
                    highest[0] = max(highest[0], int(replies[0][0] or 0))
                    if node.may_vote():
                        read.add(node)

            return on_done

        def take_stored(number, stored, beaten):
            def on_done(replies):
                answers.append(number)
                before = replies[0][0] if replies and isinstance(replies[0], list) else -1
                if before >= 0:
                    (stored if before < number else beaten).append(before)

            return on_done

        for node in self.nodes:
            node.send(command("MGET", counter), 1, take_read(node))
        self.run(lambda: len(answers) == len(self.nodes), 2 * self.timeout_us)
        for _ in range(FENCE_ROUNDS if len(read) >= self.quorum else 0):
            number, stored, beaten = highest[0] + 1, [], []
            answers.clear()
            data = call("fence", [lock.key, counter], [lock.value, number, FENCE_LIFE_MS])
            for node in self.nodes:
                node.send(data, 1, take_stored(number, stored, beaten))
            self.run(lambda: len(answers) == len(self.nodes), 2 * self.timeout_us)
            if len(stored) >= self.quorum:
                return number if lock.is_held() else 0
            if len(stored) + len(beaten) < self.quorum:
                return 0
            highest[0] = max([number] + beaten)
        return 0

    # -- release --

    def send_releases(self, lock, on_reply):
        for node in lock.written:
            release = [lock.key, lock.value, now_us() + lock.ttl_us]
            node.releases.append(release)
            node.send_release(release, lambda reply, node=node: on_reply(node, reply))

    def release(self, lock):
        """How many copies were deleted, another owner's, missing, unknown."""
        counts = collections.Counter()

        def take(node, reply):
            what = "unknown" if reply is None else "deleted" if reply[0] == 1 else "others" if reply[1] > 0 else "missing"
            counts[what] += 1
            if what == "others" and node in lock.votes and lock.is_held():
                self.thefts += 1

        self.locks.discard(lock)
        self.send_releases(lock, take)
        self.run(lambda: sum(counts.values()) == len(lock.written), 2 * self.timeout_us)
        return tuple(counts[what] for what in ("deleted", "others", "missing", "unknown"))


# ---- for tests ----


def serve(args):
    client = Client(args[4:], int(args[0]), int(args[1]), args[2], args[3] == "1")
    lock = None
    while True:
        if not select.select([sys.stdin], [], [], 0)[0]:
            client.turn(now_us() + 5000)
            continue
        words = os.read(0, 4096).decode().split()
        if not words:
            return 0
        if words[0] == "acquire":
            result, lock = client.acquire(words[1])
            answer = result + (" " + lock.value.decode() if lock else "")
        elif words[0] == "extend":
            answer = f"{client.extend(lock)} {lock.state}"
        elif words[0] == "fence":
            answer = client.fence(lock)
        elif words[0] == "release":
            answer = " ".join(map(str, client.release(lock)))
        elif words[0] == "known":  # every node has been asked once
            client.run(lambda: all(node.is_known for node in client.nodes), 60000000)
            answer = " ".join(node.why for node in client.nodes)
        elif words[0] == "voting":
            client.run(lambda: client.voting() == len(client.nodes), 60000000)
            answer = client.voting()
        elif words[0] == "thefts":
            answer = client.thefts
        else:
            return 2
        print(answer, flush=True)


def check(name, got, want, case):
    if got != want:
        sys.exit(f"{name}: {got} instead of {want} for {case}")


def check_vectors(path):
    with open(path, encoding="utf-8") as f:
        vectors = json.load(f)
    for v in vectors["fingerprints"]:
        check("fingerprint", fingerprint(v["nodes"]), v["fingerprint"], v)
    for v in vectors["drifts"]:
        check("drift", drift_us(v["ttl_us"], v["ppm"]), v["drift_us"], v)
    for v in vectors["leases"]:
        terms = (v["t0_us"], v["ttl_us"], v["drift_us"], v["end_us"])
        check("lease", [deadline_us(*terms), px_ms(*terms)], [v["deadline_us"], v["px_ms"]], v)
    for v in vectors["verdicts"]:
        votes = (v["nodes"], v["ok"], v["refused"], v["error"], v["validity_us"], v["min_validity_us"])
        check("verdict", verdict(*votes), v["verdict"], v)
    for v in vectors["extensions"]:
        check("extension", extension(v["nodes"], v["confirmed"], v["denied"], v["error"]), v["verdict"], v)
    for v in vectors["tokens"]["drawn"]:
        check("token", base64url(bytes.fromhex(v["bytes"])).decode(), v["text"], v)
    return 0


if __name__ == "__main__":
    sys.exit(serve(sys.argv[2:]) if sys.argv[1] == "serve" else check_vectors(sys.argv[2]))
