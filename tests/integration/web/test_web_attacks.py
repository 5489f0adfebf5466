#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Attacks on claimd-web, and what a misconfigured one refuses."""
import json
import os
import re
import resource
import socket
import ssl
import statistics
import subprocess
import sys
import time
import unittest

from world import BIN, LIMIT_S, OPERATOR, READER, Web, World, until

world = web = None
COOKIE = re.compile(r"^claimd_session=([0-9a-f]{64}); Path=/; Max-Age=43200; HttpOnly; SameSite=Strict$")
LOGIN = {"token": OPERATOR}


def setUpModule():
    global world, web
    world = World()
    web = Web(world)


def tearDownModule():
    web.stop()
    world.stop()


def origin(of=None):
    of = of or web
    return f"http://{of.host}:{of.port}"


def connect(to=None):
    to = to or web
    return socket.create_connection((to.host, to.port), timeout=LIMIT_S)


def raw(text, to=None):
    """Sends bytes, and returns the status of each answer until the server closes."""
    got = b""
    with connect(to) as s:
        try:
            s.sendall(text)
            s.shutdown(socket.SHUT_WR)
            while part := s.recv(65536):
                got += part
        except OSError:
            pass  # it has answered, or not, before it read all
    return [int(code) for code in re.findall(rb"^HTTP/1\.[01] (\d+)", got, re.M)]


def head(method="GET", path="/api/v1/jobs", *lines, token=OPERATOR):
    start = [f"{method} {path} HTTP/1.1", f"Host: {web.host}:{web.port}", f"Authorization: Bearer {token}", *lines]
    return ("\r\n".join(start) + "\r\n\r\n").encode()


def jobs():
    return world.sql("SELECT count(*) FROM claimd.jobs")


def is_there():
    return web.get("/api/v1/session").status == 200


class Tokens(unittest.TestCase):
    def test_without_or_with_a_wrong_token_nothing_is_told_or_done(self):
        for token in (None, "", "x", OPERATOR[:-1], OPERATOR + "0", OPERATOR.upper(), " " + OPERATOR):
            self.assertEqual(401, web.get("/api/v1/jobs", token=token).status, token)
            self.assertEqual(401, web.post("/api/v1/jobs", {"kind": "noop"}, token=token).status)
        for value in ("Basic " + OPERATOR, OPERATOR, "Bearer", "Bearer  " + OPERATOR, "Bearer " + "x" * 5000):
            self.assertEqual(401, web.get("/api/v1/jobs", token=None, headers={"Authorization": value}).status, value[:20])
        self.assertEqual("none", web.get("/api/v1/session", token=None).json["session"]["role"])
        self.assertEqual("0", jobs())

    def test_readers_change_nothing(self):
        self.assertEqual("forbidden", web.post("/api/v1/jobs", {"kind": "noop"}, token=READER).code)
        self.assertEqual("0", jobs())

    def test_in_read_mode_operators_change_nothing(self):
        reading = Web(world, mode="read")
        self.assertEqual("read_only", reading.post("/api/v1/jobs", {"kind": "noop"}).code)
        self.assertFalse(reading.get("/api/v1/session").json["session"]["can_act"])
        for path in ("overview", "stats", "cluster", "queues", "queues/default", "jobs", "kinds", "kinds/noop", "workers", "schedules", "batches", "maps",
                     "keys", "doctor", "series", "audit"):
            self.assertEqual(200, reading.get("/api/v1/" + path).status, path)
        reading.stop()
        self.assertEqual("0", jobs())

    def test_a_comparison_takes_as_long_for_a_token_that_begins_right(self):
        def took(token):
            begun = time.perf_counter()
            web.get("/api/v1/session", token=token)
            return time.perf_counter() - begun
        samples = {"right": [], "wrong": []}
        for _ in range(150):
            samples["right"].append(took(OPERATOR[:-1] + "~"))
            samples["wrong"].append(took("~" + OPERATOR[1:]))
        right, wrong = (statistics.median(samples[name]) for name in ("right", "wrong"))
        self.assertLess(abs(right - wrong), 0.5 * max(right, wrong), "a gross difference")

    def test_files_of_tokens_that_are_refused(self):
        for mode, text, why in ((0o644, f"operator a {OPERATOR}", "chmod o="), (0o600, "operator a short", "20 to 128"), (0o600, "", "no token"),
                                (0o600, f"admin a {OPERATOR}", "reader, operator"), (0o600, f"operator {OPERATOR}", "ROLE NAME TOKEN"),
                                (0o600, f"operator a {OPERATOR}\nreader b {OPERATOR}", "twice"), (0o600, f"operator a {'x' * 200}", "at most 128")):
            path = f"{world.dir}/bad"
            with open(path, "w") as file:
                os.chmod(path, mode)
                file.write(text)
            done = self.start(CLAIMD_WEB_TOKENS_FILE=path)
            self.assertEqual(2, done.returncode, text)
            self.assertIn(why, done.stderr)
            self.assertNotIn(OPERATOR, done.stderr)

    def test_others_are_not_served_without_tokens(self):
        done = self.start(CLAIMD_WEB_LISTEN="0.0.0.0:0", CLAIMD_WEB_TOKENS_FILE="")
        self.assertEqual(2, done.returncode)
        self.assertIn("web.tokens_file or web.proxies", done.stderr)

    def start(self, **env):
        all_env = {**os.environ, "CLAIMD_CONFIG": world.config, "CLAIMD_WEB_LISTEN": "127.0.0.1:0", **env}
        return subprocess.run([f"{BIN}/claimd-web"], env=all_env, text=True, capture_output=True, timeout=LIMIT_S)

    def test_without_tokens_all_on_this_host_read_and_nobody_acts(self):
        open_one = Web(world, tokens_file="")
        session = open_one.get("/api/v1/session", token=None).json["session"]
        self.assertEqual(("reader", "open", False, False), tuple(session[name] for name in ("role", "by", "can_act", "login")))
        self.assertEqual(200, open_one.get("/api/v1/jobs", token=None).status)
        self.assertEqual("forbidden", open_one.post("/api/v1/jobs", {"kind": "noop"}, token=None).code)
        open_one.stop()


class Sessions(unittest.TestCase):
    def login(self, **headers):
        return web.post("/api/v1/login", LOGIN, token=None, headers={"Origin": origin(), **headers})

    def test_a_session_begins_with_a_secret_of_its_own_and_ends(self):
        planted = "claimd_session=" + "a" * 64
        first, second = self.login(Cookie=planted), self.login()
        secrets = [COOKIE.match(reply.headers["Set-Cookie"]).group(1) for reply in (first, second)]
        self.assertEqual(3, len({"a" * 64, *secrets}))
        self.assertEqual(401, web.get("/api/v1/jobs", token=None, headers={"Cookie": planted}).status)
        mine = {"Cookie": f"other=1; claimd_session={secrets[0]}", "Origin": origin()}
        self.assertEqual(200, web.get("/api/v1/jobs", token=None, headers=mine).status)
        self.assertEqual(404, web.post("/api/v1/jobs/1/cancel", token=None, headers=mine).status)
        self.assertEqual("none", web.post("/api/v1/logout", token=None, headers=mine).json["session"]["role"])
        self.assertEqual(401, web.get("/api/v1/jobs", token=None, headers=mine).status)
        self.assertEqual(200, web.get("/api/v1/jobs", token=None, headers={"Cookie": f"claimd_session={secrets[1]}"}).status)

    def test_a_reload_of_the_tokens_ends_sessions_and_tokens(self):
        own = Web(world)
        cookie = own.post("/api/v1/login", LOGIN, token=None).headers["Set-Cookie"].split(";")[0]
        world.write_tokens(f"operator carl {OPERATOR[::-1]}\nreader bob {READER}\n")
        try:
            own.process.send_signal(1)
            until("the tokens are read", lambda: "event=tokens_read" in own.output())
            self.assertEqual(401, own.get("/api/v1/jobs", token=None, headers={"Cookie": cookie}).status)
            self.assertEqual(401, own.get("/api/v1/jobs").status)
            self.assertEqual("carl", own.get("/api/v1/session", token=OPERATOR[::-1]).json["session"]["who"])
            world.write_tokens("nonsense\n")
            own.process.send_signal(1)
            until("they are refused", lambda: "event=tokens_refused" in own.output())
            self.assertEqual(200, own.get("/api/v1/jobs", token=OPERATOR[::-1]).status)
        finally:
            world.write_tokens(f"operator anna {OPERATOR}\nreader bob {READER}\n")
        own.stop()

    def test_no_secret_is_in_the_log(self):
        cookie = self.login().headers["Set-Cookie"]
        self.assertNotIn(OPERATOR, web.output())
        self.assertNotIn(COOKIE.match(cookie).group(1), web.output())


class Origins(unittest.TestCase):
    def setUp(self):
        cookie = web.post("/api/v1/login", LOGIN, token=None).headers["Set-Cookie"].split(";")[0]
        self.cookie = {"Cookie": cookie}

    def test_a_form_of_another_page_does_nothing(self):
        for kind in ("application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "text/plain", None, "application/jsonp", "text/json"):
            for sent_origin in (origin(), "https://evil.example"):
                reply = web.request("POST", "/api/v1/jobs", raw=b'{"kind": "noop"}', token=None,
                                    headers={**self.cookie, "Content-Type": kind, "Origin": sent_origin})
                self.assertIn(reply.status, (403, 415), kind)
        self.assertEqual("0", jobs())

    def test_a_request_of_another_origin_does_nothing(self):
        port = web.port
        for sent in ("https://evil.example", "null", "", f"http://127.0.0.1:{port + 1}", f"http://localhost:{port}", f"http://127.0.0.1:{port}.evil.example",
                     f"http://127.0.0.1:{port}/", f"ftp://127.0.0.1:{port}", None):
            reply = web.post("/api/v1/jobs", {"kind": "noop"}, token=None, headers={**self.cookie, "Origin": sent})
            self.assertEqual(("forbidden", 403), (reply.code, reply.status), sent)
            if sent is not None:
                reply = web.post("/api/v1/jobs", {"kind": "noop"}, headers={"Origin": sent})
                self.assertEqual(403, reply.status, sent)
                self.assertEqual(403, web.post("/api/v1/login", LOGIN, token=None, headers={"Origin": sent}).status)
        self.assertEqual("0", jobs())

    def test_no_answer_allows_other_origins(self):
        for reply in (web.get("/api/v1/jobs", headers={"Origin": "https://evil.example"}), web.request("OPTIONS", "/api/v1/jobs")):
            self.assertEqual([], [name for name in reply.headers if name.lower().startswith("access-control")])
        self.assertIn("default-src 'none'", reply.headers["Content-Security-Policy"])
        self.assertEqual("nosniff", reply.headers["X-Content-Type-Options"])

    def test_a_name_that_was_bound_again_reaches_nothing(self):
        for host in ("evil.example", "evil.example:8420", "127.0.0.1.evil.example", "localhost.evil.example", "", "[::1", "127.0.0.1:x", "a b", "127.0.0.1@x"):
            self.assertIn(web.get("/api/v1/jobs", headers={"Host": host}).status, (400, 421), host)
        self.assertEqual([421], raw(b"GET /api/v1/jobs HTTP/1.0\r\n\r\n"))
        for host in ("localhost", "LOCALHOST:99", "127.0.0.1", "[::1]:8420"):
            self.assertEqual(200, web.get("/api/v1/jobs", headers={"Host": host}).status, host)


class Bytes(unittest.TestCase):
    """What is not the HTTP of a browser."""

    def test_paths_that_climb_out(self):
        for path in ("/assets/../../../../etc/passwd", "/assets/%2e%2e/%2e%2e/etc/passwd", "/assets/..%2f..%2fetc%2fpasswd", "//etc/passwd", "/assets//etc/passwd",
                     "/assets/.%00.js", "/api/v1/../v1/jobs", "/api/v1/jobs/..", "/api/v1/jobs/%2e%2e", "/api/v1/queues/%00", "/api/v1/queues/%ff", "/api/v1/queues/%",
                     "/assets/" + "a/" * 4000, "/%2e%2e/%2e%2e/etc/passwd"):
            reply = web.get(path)
            self.assertIn(reply.status, (400, 404, 414, 431), path[:60])
            self.assertNotIn(b"root:", reply.body)

    def test_a_folder_of_assets_is_not_left(self):
        folder = f"{world.dir}/assets"
        os.mkdir(folder)
        with open(f"{folder}/index.html", "w") as file:
            file.write("<p>hello")
        os.symlink("/etc/passwd", f"{folder}/link.txt")
        own = Web(world, assets_dir=folder)
        page = own.get("/", token=None)
        self.assertEqual((200, b"<p>hello", "text/html; charset=utf-8"), (page.status, page.body, page.headers["Content-Type"]))
        self.assertEqual(304, own.get("/", token=None, headers={"If-None-Match": page.headers["ETag"]}).status)
        for path in ("/assets/link.txt", "/assets/../tokens", "/assets/..%2ftokens", "/assets/.hidden", "/assets/", "/assets/index.html.bak"):
            self.assertEqual(404, own.get(path).status, path)
        own.stop()

    def test_methods(self):
        for method in ("PUT", "OPTIONS", "TRACE", "CONNECT", "get", "PATCH", "DELETE", "FOO", "POST "):
            for more in ({}, {"X-HTTP-Method-Override": "GET"}):
                self.assertIn(web.request(method.strip(), "/api/v1/queues", body={}, headers=more).status, (400, 405), method)
        reply = web.get("/api/v1/jobs/1/cancel", headers={"X-HTTP-Method-Override": "POST", "X-Method-Override": "POST"})
        self.assertEqual(405, reply.status)
        empty = web.request("HEAD", "/api/v1/queues")
        self.assertEqual((200, b""), (empty.status, empty.body))
        self.assertEqual(401, web.request("HEAD", "/api/v1/queues", token=None).status)

    def test_a_length_in_doubt_is_refused(self):
        body = b'{"kind":"noop"}'
        two = head("POST", "/api/v1/jobs", "Content-Type: application/json", f"Content-Length: {len(body)}", "Content-Length: 0") + body
        chunked = head("POST", "/api/v1/jobs", "Content-Type: application/json", "Transfer-Encoding: chunked") + b"f\r\n" + body + b"\r\n0\r\n\r\n"
        both = head("POST", "/api/v1/jobs", "Content-Type: application/json", "Transfer-Encoding: chunked", "Content-Length: 4") + b"0\r\n\r\n"
        odd = head("POST", "/api/v1/jobs", "Content-Type: application/json", "Content-Length: +15") + body
        negative = head("POST", "/api/v1/jobs", "Content-Type: application/json", "Content-Length: -1") + body
        for text in (two, chunked, both):
            self.assertEqual([400], raw(text), text[:200])
        for text in (odd, negative):  # refused by libmicrohttpd, which sends the head of its answer twice
            self.assertEqual({400}, set(raw(text)), text[:200])
        self.assertEqual("0", jobs())

    def test_a_header_that_is_there_twice_is_refused(self):
        for line in (f"Authorization: Bearer {READER}", f"Host: {web.host}", "Origin: x\r\nOrigin: y"):
            self.assertEqual([400], raw(head("GET", "/api/v1/jobs", line)))

    def test_many_headers_and_long_ones_are_refused(self):
        many = head("GET", "/api/v1/jobs", *(f"X-{i}: y" for i in range(1000)))
        long = head("GET", "/api/v1/jobs", "X: " + "y" * 100000)
        for text in (many, long, head("GET", "/" + "x" * 100000), b"\0" * 100000, b"GET / HTTP/9.9\r\n\r\n", b"\r\n" * 50000):
            self.assertTrue(all(code >= 400 for code in raw(text)), text[:40])
        sent = 0
        with connect() as s:
            s.sendall(head()[:-2])
            try:
                while sent < 10**6:
                    s.sendall(b"X-Y: z\r\n" * 100)
                    sent += 100
            except (ConnectionResetError, BrokenPipeError):
                pass
        self.assertLess(sent, 10**6)
        self.assertTrue(is_there())

    def test_bodies_that_are_too_long_or_too_deep(self):
        start = head("POST", "/api/v1/jobs", "Content-Type: application/json", "Content-Length: 1000000000")
        self.assertEqual([413], raw(start))
        self.assertIn(raw(start + b"{" * 100000), ([413], []))
        for bad in (b"[" * 100000, b'{"a":' * 100000, b'{"kind":"noop","kind":"x"}', b"[]", b"1", b"{", b"\xff", b'{"args":"\\u0000","kind":"noop"}x', b'{"kind": "no\0op"}',
                    b'{"kind":"noop","args":' + b"[" * 40 + b"]" * 40 + b"}", b'{"kind":"noop","priority":1e999}'):
            self.assertEqual(400, web.request("POST", "/api/v1/jobs", raw=bad).status, bad[:30])
        self.assertEqual("0", jobs())


class Connections(unittest.TestCase):
    def test_a_head_or_body_that_never_ends_is_cut_off(self):
        slow = []
        for text in (b"", b"GET /api/v1/jobs HTTP/1.1\r\n", head("GET", "/")[:-2]):
            slow.append(connect())
            slow[-1].sendall(text)
        begun = time.monotonic()
        for s in slow:
            s.settimeout(0.5)
            cut = False
            while not cut and time.monotonic() - begun < LIMIT_S:
                try:
                    s.sendall(b"X")  # a byte now and then: it is never silent
                    cut = s.recv(1000) == b""
                except TimeoutError:
                    pass
                except OSError:
                    cut = True
            self.assertTrue(cut, "it stays for ever")
            s.close()
        self.assertTrue(is_there())

    def test_many_connections_do_not_keep_others_out(self):
        held = []
        limit = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
        for i in range(10000):
            try:
                s = socket.create_connection((web.host, web.port), timeout=1)
                s.sendall(b"GET / HTTP/1.1\r\n")
                held.append(s)
            except OSError:
                pass
            if i % 1000 == 0:
                self.assertTrue(is_there())
        self.assertGreater(len(held), 400)
        self.assertTrue(is_there())
        for s in held:
            s.close()

    def test_256_streams_then_503_and_the_others_are_served(self):
        streams = []
        for _ in range(256):
            s = connect()
            s.sendall(head("GET", "/api/v1/events", token=READER))
            streams.append(s)
        for s in streams:
            self.assertIn(b"200 OK", s.recv(4096))
        refused = web.get("/api/v1/events")
        self.assertEqual((503, "unavailable"), (refused.status, refused.code))
        self.assertTrue(is_there())
        status = open(f"/proc/{web.process.pid}/status").read()
        print("256 streams:", re.search(r"VmRSS:\s*(.*)", status).group(1), re.search(r"Threads:\s*(.*)", status).group(1), "threads", file=sys.stderr)
        for s in streams[1:]:
            s.close()
        until("the streams are closed", lambda: self.opens_stream())
        # The first one has read nothing since, and is still there: it costs its buffers only.
        streams[0].close()

    def opens_stream(self):
        with connect() as s:
            s.sendall(head("GET", "/api/v1/events"))
            return b"200 OK" in s.recv(4096)

    def test_a_stream_tells_what_changes(self):
        with connect() as s:
            s.sendall(head("GET", "/api/v1/events"))
            file = s.makefile("rb")
            events = []
            while not events:
                line = file.readline()
                events += [line] if line.startswith(b"event: counters") else []
            counters = json.loads(file.readline()[len("data: "):])
            self.assertEqual({"queues", "workers", "finished", "health"}, set(counters))
            world.sql("SELECT claimd.pause_queue('default')")
            topics = []
            while "queues" not in topics:
                while not file.readline().startswith(b"event: changed"):
                    pass
                topics = json.loads(file.readline()[len("data: "):])["topics"]
        world.sql("SELECT claimd.resume_queue('default')")


class Proxies(unittest.TestCase):
    def test_a_listed_proxy_says_who_asks(self):
        own = Web(world, proxies="127.0.0.1", operators="anna@example.org", tokens_file="", hosts="jobs.example.org", path_prefix="/claimd")
        user = {"X-Forwarded-User": "anna@example.org", "X-Forwarded-For": "9.9.9.9, 10.1.1.1", "Host": "jobs.example.org", "Origin": "https://jobs.example.org"}
        self.assertEqual(401, own.get("/claimd/api/v1/jobs", token=None).status)
        self.assertEqual(404, own.get("/api/v1/jobs", token=None, headers=user).status)
        self.assertEqual((308, "/claimd/"), (lambda r: (r.status, r.headers["Location"]))(own.get("/claimd", token=None, headers=user)))
        reply = own.post("/claimd/api/v1/jobs/7/cancel", token=None, headers=user)
        self.assertEqual(("not_found", "close"), (reply.code, reply.headers["Connection"]))
        self.assertEqual("anna@example.org|10.1.1.1", world.sql("SELECT who, address FROM claimd.web_audit ORDER BY id DESC LIMIT 1"))
        bert = {**user, "X-Forwarded-User": "bert@example.org"}
        self.assertEqual(200, own.get("/claimd/api/v1/jobs", token=None, headers=bert).status)
        self.assertEqual("forbidden", own.post("/claimd/api/v1/jobs/7/cancel", token=None, headers=bert).code)
        for name in ("", " ", "anna@example.org\x01"):
            self.assertIn(own.get("/claimd/api/v1/jobs", token=None, headers={**user, "X-Forwarded-User": name}).status, (400, 401))
        own.stop()

    def test_others_are_not_believed(self):
        own = Web(world, proxies="10.0.0.1", operators="anna")
        self.assertEqual(401, own.get("/api/v1/jobs", token=None, headers={"X-Forwarded-User": "anna"}).status)
        own.stop()


class Tls(unittest.TestCase):
    def test_https_by_configuration(self):
        key, certificate = f"{world.dir}/key.pem", f"{world.dir}/cert.pem"
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost", "-keyout", key, "-out", certificate],
                       check=True, capture_output=True)
        own = Web(world, tls_key_file=key, tls_certificate_file=certificate)
        self.assertEqual("https", own.scheme)
        context = ssl.create_default_context(cafile=certificate)
        context.check_hostname = False
        with context.wrap_socket(connect(own)) as s:
            body = json.dumps(LOGIN).encode()
            s.sendall(f"POST /api/v1/login HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)
            answer = s.recv(8192)
        self.assertIn(b"200 OK", answer)
        self.assertIn(b"; Secure", answer)
        own.stop()


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], "-v"])
