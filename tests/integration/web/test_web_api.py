#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every operation of the API, against openapi.json in both directions."""
import concurrent.futures
import json
import sys
import unittest
import urllib.parse

from world import Described, OPERATOR, READER, Web, World, until

world = web = api = None


def setUpModule():
    global world, web, api
    world = World()
    web = Web(world)
    api = Described(web.get("/api/v1/openapi.json").json)


def tearDownModule():
    web.stop()
    world.stop()


def call(method, path, body=None, status=200, token=OPERATOR, headers=None, query="", raw=None, **values):
    """Calls an operation, and validates its answer."""
    filled = path.format(**values)
    if method != "GET" and body is None and raw is None:
        body = {}
    reply = web.request(method, "/api/v1" + filled + query, body=body, token=token, headers=headers, raw=raw)
    api.check(method, "/api/v1" + path, reply)
    assert reply.status == status, f"{method} {filled}{query}: {reply.status} {reply.body[:400]}"
    return reply


def add(**fields):
    fields.setdefault("kind", "noop")
    fields.setdefault("delay", "1h")
    return call("POST", "/jobs", fields).json["job"]["id"]


class Reading(unittest.TestCase):
    def test_each_list_and_each_thing(self):
        job = add(tags=["a", "b,c"], args={"x": 1})
        batch = world.sql("SELECT claimd.batch_open('b')")
        world.sql("SELECT claimd.schedule_set('nightly', 'noop', '0 3 * * *')")
        world.sql("SELECT claimd.limit_key('k', 2)")
        world.sql("SELECT claimd.map_begin('m', 'SELECT 1 AS id', 'id', 'noop', NULL, 'default', 1, NULL, NULL)")
        for path in ("/session", "/overview", "/stats", "/doctor", "/cluster", "/lock-nodes", "/queues", "/jobs", "/kinds", "/workers",
                     "/schedules", "/batches", "/maps", "/keys"):
            call("GET", path, token=READER if path != "/session" else None)
        call("GET", "/openapi.json", token=READER)
        call("GET", "/queues/{name}", name="default")
        call("GET", "/jobs/{id}", id=job)
        call("GET", "/kinds/{name}", name="noop")
        call("GET", "/schedules/{name}", name="nightly")
        self.assertEqual(3, len(call("GET", "/schedules/{name}/next", query="?count=3", name="nightly").json["next"]))
        call("GET", "/batches/{batch}", batch=batch)
        call("GET", "/maps/{name}", name="m")
        call("GET", "/keys/{key}", key="k")
        call("GET", "/audit")
        call("GET", "/workers", query="?all=true")
        call("GET", "/series", query="?period=2h", status=400)
        for period, rows in (("15m", 15), ("1h", 60), ("24h", 90)):
            self.assertEqual(rows, len(call("GET", "/series", query=f"?period={period}", token=READER).json["series"]))

    def test_each_lock_node_says_how_fast_it_answers_and_what_time_it_has(self):
        nodes = call("GET", "/lock-nodes").json["lock_nodes"]
        self.assertEqual(3, len(nodes))
        for node in nodes:
            self.assertIn(node["state"], ("voting", "quarantined"))
            self.assertGreater(node["latency_s"], 0)
            self.assertLess(abs(node["clock_s"]), 1)  # the clock is that of this host
        self.assertGreaterEqual(sum(node["has_leader"] for node in nodes), 2)
        with open(world.config) as file:
            lock = json.load(file)["lock"]
        own = Web(world, CLAIMD_LOCK_NODES=",".join(lock["nodes"][:1] + ["127.0.0.1:1"]))
        gone = [node for node in own.get("/api/v1/lock-nodes").json["lock_nodes"] if node["node"] == "127.0.0.1:1"][0]
        self.assertEqual(("unreachable", None), (gone["state"], gone["latency_s"]))
        self.assertIn("refused", gone["why"].lower())
        own.stop()

    def test_the_series_counts_what_has_ended(self):
        job = call("POST", "/jobs", {"kind": "noop"}).json["job"]["id"]
        until("it has run", lambda: call("GET", "/jobs/{id}", id=job).json["job"]["state"] == "completed")
        own = Web(world)  # reads the last minute at its start
        last = until("a minute is known", lambda: [row for row in own.get("/api/v1/series").json["series"] if row["completed"]])[-1]
        self.assertGreaterEqual(last["completed"], 1)
        self.assertIsNotNone(last["wait_p95_s"])
        own.stop()

    def test_kinds_and_queues_say_how_many_runs_fail_and_how_long_jobs_wait(self):
        world.sql("INSERT INTO claimd.kind (name) VALUES ('measured')")
        world.sql("""INSERT INTO claimd.job_history (id, fence, created_at, scheduled_at, ready_at, attempted_at, finalized_at, worker_id, attempt,
                         crashes, generation, priority, share, state, queue, kind, args)
                     SELECT 900000000 + g, 900000000 + g, n, n, n - interval '30 s', n - interval '30 s' + g * interval '1 s', n,
                            '11111111-1111-1111-1111-111111111111', CASE WHEN g > 8 THEN 2 ELSE 1 END, 0, 0, 4, 0,
                            CASE WHEN g > 8 THEN 'discarded' ELSE 'completed' END, 'measured', 'measured', '{}'
                       FROM generate_series(1, 10) g, (SELECT clock_timestamp() AS n) AS now""")
        kind = until("the shared answer", lambda: [row for row in call("GET", "/kinds").json["kinds"] if row["kind"] == "measured"])[0]
        self.assertEqual(33.33, kind["failed_percent"])  # 4 of 12 runs
        row = until("the queue", lambda: [row for row in call("GET", "/queues").json["queues"] if row["queue"] == "measured"])[0]
        self.assertEqual(10, row["wait_p95_s"])
        world.sql("DELETE FROM claimd.job_history WHERE kind = 'measured'; DELETE FROM claimd.kind WHERE name = 'measured'")

    def test_a_job_names_its_batch_and_what_waits_for_it(self):
        batch = world.sql("SELECT claimd.batch_open('of one')")
        job = add(batch=int(batch))
        other = add(after=[job])
        shown = call("GET", "/jobs/{id}", id=job).json
        self.assertEqual((int(batch), [{"job": other, "kind": "noop", "state": "waiting"}]), (shown["job"]["batch"], shown["awaited_by"]))

    def test_what_is_missing_is_404(self):
        for path, values in (("/queues/{name}", {"name": "none"}), ("/jobs/{id}", {"id": 999999}), ("/kinds/{name}", {"name": "none"}),
                             ("/schedules/{name}", {"name": "none"}), ("/batches/{batch}", {"batch": 999999}), ("/maps/{name}", {"name": "none"})):
            self.assertEqual("not_found", call("GET", path, status=404, **values).code)
        self.assertEqual("not_found", web.get("/api/v1/none").code)

    def test_an_unknown_path_is_named_and_what_exists_is_said(self):
        error = web.get("/nonsense/%C3%A4").json["error"]
        self.assertEqual(("there is no /nonsense/%C3%A4", "the page is at /, the API below /api/v1/"), (error["message"], error["hint"]))
        self.assertIn("none.js", web.get("/assets/none.js").json["error"]["message"])

    def test_lists_of_jobs_have_pages_and_filters(self):
        ids = [add(kind="sleep", tags=["page"], args={"ms": 1}) for _ in range(5)]
        found, after = [], ""
        while after is not None:
            reply = call("GET", "/jobs", query=f"?tag=page&limit=2{after}").json
            found += [row["id"] for row in reply["jobs"]]
            after = reply["page"]["next_after"] and f"&after={reply['page']['next_after']}"
        self.assertEqual(sorted(ids, reverse=True), found)
        columns = call("GET", "/jobs", query="?columns=id,args&limit=1").json["jobs"][0]
        self.assertEqual({"id", "args"}, set(columns))
        self.assertEqual([], call("GET", "/jobs", query="?state=running&queue=default&kind=noop&since=1h").json["jobs"])
        for bad in ("state=bad", "limit=0", "limit=501", "after=x", "nope=1", "columns=nope", "since=x", "queue=%00", "kind=%ff", "kind=%zz",
                    "metadata=x", "batch=x", "tag="):
            self.assertEqual("invalid", call("GET", "/jobs", query="?" + bad, status=400).code, bad)
        call("GET", "/jobs", query="?batch=424242", status=404)

    def test_a_search_in_args_says_how_many_jobs_it_has_read(self):
        ids = [add(kind="sleep", tags=["look"], args={"to": f"Ada-{n}", "ms": 1}) for n in range(3)]
        found = call("GET", "/jobs", query="?tag=look&q=ada-1&columns=id,state").json
        self.assertEqual(([{"id": ids[1], "state": "scheduled"}], {"next_after": None, "searched": 3, "is_cut": False}),
                         (found["jobs"], found["page"]))
        self.assertEqual([], call("GET", "/jobs", query="?tag=look&q=grace").json["jobs"])
        self.assertIsNone(call("GET", "/jobs", query="?tag=look").json["page"]["searched"])
        pages = call("GET", "/jobs", query="?tag=look&q=ada&limit=2&columns=id").json
        rest = call("GET", "/jobs", query=f"?tag=look&q=ada&limit=2&columns=id&after={pages['page']['next_after']}").json
        self.assertEqual(ids[::-1], [row["id"] for row in pages["jobs"] + rest["jobs"]])
        for bad in ("q=", "q=" + "x" * 201):
            call("GET", "/jobs", query="?" + bad, status=400)
        self.assertEqual("forbidden", call("GET", "/jobs", query="?q=ada", token=READER, status=403).code)

    def test_a_search_in_args_reads_the_newest_10000_jobs_of_the_filter(self):
        world.sql("""INSERT INTO claimd.job (kind, queue, args, scheduled_at)
                     SELECT 'noop', 'deep', jsonb_build_object('n', 'deep-' || n), now() + interval '1 day' FROM generate_series(1, 10001) n""")
        world.sql("INSERT INTO claimd.job (kind, queue, scheduled_at) SELECT 'noop', 'other', now() + interval '1 day' FROM generate_series(1, 50)")
        first = call("GET", "/jobs", query="?queue=deep&q=%22deep-1%22&columns=id").json
        self.assertEqual(([], 10000, True), (first["jobs"], first["page"]["searched"], first["page"]["is_cut"]))
        more = call("GET", "/jobs", query=f"?queue=deep&q=%22deep-1%22&columns=id&after={first['page']['next_after']}").json
        self.assertEqual((1, 1, False), (len(more["jobs"]), more["page"]["searched"], more["page"]["is_cut"]))
        world.sql("DELETE FROM claimd.job WHERE queue IN ('deep', 'other')")

    def test_injection_in_filters_finds_nothing_and_breaks_nothing(self):
        before = world.sql("SELECT count(*) FROM claimd.jobs")
        for text in ("' OR '1'='1", "'; DROP TABLE claimd.job; --", '"},{"', "\\", "{", "%27", "$1", "x'::text"):
            for name in ("worker", "error", "owner", "map", "tag"):
                query = "?" + name + "=" + "".join(f"%{octet:02x}" for octet in text.encode())
                self.assertEqual([], call("GET", "/jobs", query=query).json["jobs"], query)
            call("GET", "/jobs", query="?q=" + urllib.parse.quote(text))
            for path in ("/queues/{name}", "/kinds/{name}", "/schedules/{name}", "/maps/{name}"):
                reply = web.get("/api/v1" + path.format(name="".join(f"%{octet:02x}" for octet in text.encode())))
                self.assertIn(reply.status, (400, 404))
        self.assertEqual(before, world.sql("SELECT count(*) FROM claimd.jobs"))

    def test_readers_do_not_see_private_values(self):
        job = add(args={"password": "hush-hush"}, metadata={"customer": "hush-hush"})
        call("PATCH", "/jobs/{id}", {"args": {"password": "hush-hush 2"}}, headers={"If-Match": '"1"'}, id=job)
        self.assertIn(b"hush-hush", call("GET", "/jobs/{id}", id=job).body)
        self.assertIn(b"hush-hush", call("GET", "/jobs", query="?columns=id,args").body)
        self.assertNotIn(b"hush", call("GET", "/jobs/{id}", id=job, token=READER).body)
        self.assertNotIn(b"hush", call("GET", "/jobs", query="?columns=id,args,metadata,result", token=READER).body)
        call("GET", "/jobs", query="?metadata=%7B%22customer%22%3A%22hush-hush%22%7D", token=READER, status=400)
        self.assertNotIn("hush", world.sql("SELECT string_agg(body, ' ') FROM claimd.web_audit"))


class Acting(unittest.TestCase):
    def test_jobs(self):
        job = add()
        self.assertTrue(call("POST", "/jobs", {"kind": "noop", "delay": "1h", "unique": "u"}).json["job"]["inserted"])
        self.assertFalse(call("POST", "/jobs", {"kind": "noop", "delay": "1h", "unique": "u", "on_conflict": "ignore"}).json["job"]["inserted"])
        self.assertEqual(2, call("POST", "/jobs/many", {"jobs": [{"kind": "noop"}, {"kind": "noop"}]}).json["enqueued"]["jobs"])
        self.assertEqual("available", call("POST", "/jobs/{id}/retry", id=job).json["job"]["state"])
        until("it has run", lambda: call("GET", "/jobs/{id}", id=job).json["job"]["state"] == "completed")
        call("POST", "/jobs/{id}/retry", id=job, status=409)
        call("POST", "/jobs/{id}/retry", {"even_completed": True}, id=job)
        until("it has run again", lambda: call("GET", "/jobs/{id}", id=job).json["job"]["state"] == "completed")
        call("POST", "/jobs/{id}/cancel", id=job, status=409)
        call("DELETE", "/jobs/{id}", id=job)
        call("DELETE", "/jobs/{id}", id=job, status=404)
        other = add()
        self.assertEqual("cancelled", call("POST", "/jobs/{id}/cancel", id=other).json["job"]["state"])

    def test_a_repetition_with_the_same_key_enqueues_nothing_more(self):
        one = {"kind": "noop", "queue": "once", "tags": ["once"]}
        for path, body, other in (("/jobs", one, one | {"priority": 1}), ("/jobs/many", {"jobs": [one, one]}, {"jobs": [one]})):
            key = {"Idempotency-Key": "order 42".replace(" ", "-") + path}
            before = int(world.sql("SELECT count(*) FROM claimd.job"))
            first = call("POST", path, body, headers=key)
            again = call("POST", path, dict(reversed(body.items())), headers=key)
            self.assertEqual((None, "true", first.json), (first.headers["Idempotency-Replayed"], again.headers["Idempotency-Replayed"], again.json))
            self.assertEqual("key_used", call("POST", path, other, headers=key, status=422).code)
            self.assertEqual(before + len(body.get("jobs", [1])), int(world.sql("SELECT count(*) FROM claimd.job")))
        self.assertEqual("key_used", call("POST", "/jobs", one, headers=key, status=422).code)
        for bad in ("", "x" * 201, "a b", "\u00e4"):
            call("POST", "/jobs", one, headers={"Idempotency-Key": bad}, status=400)
        call("POST", "/queues/{name}/resume", name="default", headers=key, status=400)

    def test_a_refused_request_does_not_use_its_key_up(self):
        key = {"Idempotency-Key": "refused-first"}
        call("POST", "/jobs", {"kind": "noop", "delay": "1h", "priority": 77}, headers=key, status=400)
        call("POST", "/jobs/many", {"jobs": [{"kind": "noop", "priority": 77}]}, headers=key, status=400)
        self.assertIsNone(call("POST", "/jobs", {"kind": "noop", "delay": "1h"}, headers=key).headers["Idempotency-Replayed"])

    def test_a_key_is_of_its_caller_and_lasts_a_day(self):
        body, key = {"kind": "noop", "delay": "1h"}, {"Idempotency-Key": "for-a-day"}
        first = call("POST", "/jobs", body, headers=key).json
        world.sql("UPDATE claimd.web_key SET who = 'somebody else' WHERE key = 'for-a-day'")
        second = call("POST", "/jobs", body, headers=key).json
        self.assertNotEqual(first, second)
        world.sql("UPDATE claimd.web_key SET at = now() - interval '25 hours' WHERE key = 'for-a-day'")
        self.assertNotEqual(second, call("POST", "/jobs", body, headers=key).json)
        self.assertEqual("1", world.sql("SELECT count(*) FROM claimd.web_key WHERE key = 'for-a-day'"))  # the other one was removed

    def test_of_requests_at_once_with_one_key_one_enqueues(self):
        before = int(world.sql("SELECT count(*) FROM claimd.job"))
        key = {"Idempotency-Key": "at-once"}
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            replies = list(pool.map(lambda _: web.post("/api/v1/jobs", {"kind": "noop", "delay": "1h"}, headers=key), range(8)))
        self.assertEqual({200}, {reply.status for reply in replies} - {503})
        self.assertEqual(1, len({reply.body for reply in replies if reply.status == 200}))
        self.assertEqual(before + 1, int(world.sql("SELECT count(*) FROM claimd.job")))

    def test_an_edit_needs_the_version_that_was_read(self):
        job = add()
        etag = call("GET", "/jobs/{id}", id=job).headers["ETag"]
        self.assertEqual("version_required", call("PATCH", "/jobs/{id}", {"priority": 1}, id=job, status=428).code)
        call("PATCH", "/jobs/{id}", {"priority": 1, "args": {"n": [1]}, "tags": ["x"]}, id=job, headers={"If-Match": etag})
        late = call("PATCH", "/jobs/{id}", {"priority": 2}, id=job, headers={"If-Match": etag}, status=412)
        self.assertEqual("version_conflict", late.code)
        self.assertEqual("1|[1]", world.sql(f"SELECT priority, args -> 'n' FROM claimd.job WHERE id = {job}"))
        call("PATCH", "/jobs/{id}", {"priority": 2}, id=999999, headers={"If-Match": etag}, status=404)
        for bad in ({}, {"nope": 1}, {"priority": 77}, {"ids": [1]}, {"tags": "x"}):
            call("PATCH", "/jobs/{id}", bad, id=job, headers={"If-Match": '"2"'}, status=400)

    def test_many_jobs(self):
        ids = [add(tags=["bulk"]) for _ in range(5)]
        dry = call("POST", "/jobs/bulk", {"act": "cancel", "filter": {"tag": ["bulk"]}, "dry_run": True}).json
        self.assertEqual((5, 0, True), (dry["summary"]["matched"], dry["summary"]["done"], dry["summary"]["is_dry_run"]))
        by_id = call("POST", "/jobs/bulk", {"act": "cancel", "ids": [ids[0], 999999]}).json["jobs"]
        self.assertEqual(["cancelled", None], [row["state"] for row in by_id])
        done = call("POST", "/jobs/bulk", {"act": "cancel", "filter": {"tag": "bulk"}, "limit": 3}).json["summary"]
        self.assertEqual((3, 3, 0, True), (done["matched"], done["done"], done["failed"], done["is_cut"]))
        done = call("POST", "/jobs/bulk", {"act": "cancel", "filter": {"tag": "bulk"}}).json["summary"]
        self.assertEqual((1, False), (done["done"], done["is_cut"]))
        refused = call("POST", "/jobs/bulk", {"act": "delete", "filter": {"tag": "bulk", "state": "cancelled"}}).json
        self.assertEqual(5, refused["summary"]["done"])
        for bad in ({}, {"act": "x", "ids": [1]}, {"act": "retry"}, {"act": "retry", "ids": [1], "filter": {"kind": "noop"}},
                    {"act": "retry", "ids": []}, {"act": "retry", "ids": ["1"]}, {"act": "retry", "filter": {}},
                    {"act": "retry", "filter": {"nope": "1"}}, {"act": "retry", "filter": {"kind": "noop"}, "limit": 0}, {"act": "retry", "ids": [1], "x": 1}):
            call("POST", "/jobs/bulk", bad, status=400)

    def test_queues_kinds_schedules_workers(self):
        world.sql("SELECT claimd.schedule_set('act', 'noop', '0 3 * * *')")
        self.assertTrue(call("POST", "/queues/{name}/pause", name="default").json["queue"]["paused"])
        self.assertTrue([row for row in call("GET", "/queues").json["queues"] if row["queue"] == "default"][0]["paused"])
        self.assertFalse(call("POST", "/queues/{name}/resume", name="default").json["queue"]["paused"])
        self.assertEqual(5, call("POST", "/queues/{name}/limit", {"running": 5, "rate": "50/m"}, name="q").json["queue"]["max_running"])
        call("POST", "/queues/{name}/limit", {"running": 0}, name="q", status=400)
        call("POST", "/queues/{name}/weight", {"weight": 3}, name="q")
        call("POST", "/kinds/{name}/pause", name="noop")
        call("POST", "/kinds/{name}/resume", name="noop")
        self.assertEqual("paused", call("POST", "/schedules/{name}/pause", name="act").json["schedule"]["state"])
        call("POST", "/schedules/{name}/resume", name="act")
        call("POST", "/schedules/{name}/run", name="act")
        call("POST", "/schedules/{name}/run", name="none", status=404)
        host = call("GET", "/workers").json["workers"][0]["host"]
        for what in ("quiet", "resume", "drain"):
            self.assertEqual(1, len(call("POST", "/workers/{worker}/" + what, {"dry_run": True}, worker=host).json["asked"]))
        call("POST", "/workers/{worker}/quiet", worker=host)
        until("it is quiet", lambda: call("GET", "/workers").json["workers"][0]["state"] == "quiet")
        call("POST", "/workers/{worker}/resume", worker=host)
        until("it is live", lambda: call("GET", "/workers").json["workers"][0]["state"] == "live")
        call("POST", "/workers/{worker}/drain", worker="none", status=404)

    def test_keys(self):
        def shown(key):
            return next((row for row in call("GET", "/keys").json["keys"] if row["key"] == key), None)
        for key in ("tenant/7 \u00e4", "customer:*"):
            path = urllib.parse.quote(key, safe="")
            limited = call("POST", "/keys/{key}/limit", {"running": 3, "rate": "60/m"}, key=path).json["key"]
            self.assertEqual((key, 3, 1), (limited["key"], limited["max_running"], limited["starts_per_s"]))
            self.assertEqual(3, shown(key)["max_running"])
            for bad in ({"running": 0}, {"running": 1001}, {"rate": "x"}, {"nope": 1}):
                call("POST", "/keys/{key}/limit", bad, key=path, status=400)
            call("POST", "/keys/{key}/limit", {"running": "none"}, key=path)
            self.assertEqual(1, shown(key)["starts_per_s"])
            call("POST", "/keys/{key}/limit", {"running": "none", "rate": "none"}, key=path)
        self.assertIsNone(shown("tenant/7 \u00e4"))
        call("POST", "/keys/{key}/limit", {"running": 1}, key="k", token=READER, status=403)

    def test_each_act_is_in_the_audit(self):
        job = add()
        call("POST", "/jobs/{id}/cancel", id=job)
        call("POST", "/jobs/{id}/cancel", id=job)
        newest = call("GET", "/audit").json["audit"][0]
        self.assertEqual(("anna", "operator", "127.0.0.1", "POST", f"/api/v1/jobs/{job}/cancel", 200),
                         tuple(newest[name] for name in ("who", "role", "address", "method", "path", "status")))
        call("POST", "/jobs/{id}/cancel", id=job, token=READER, status=403)
        self.assertEqual(newest["id"], call("GET", "/audit").json["audit"][0]["id"])
        call("GET", "/audit", token=READER, status=403)

    def test_the_role_may_do_no_more(self):
        for statement in ("DELETE FROM claimd.job", "UPDATE claimd.job SET state = 'running'", "DELETE FROM claimd.web_audit",
                          "UPDATE claimd.web_audit SET who = 'x'", "SELECT claimd.finish_upgrade()", "SELECT claimd.set_owners(true)",
                          "INSERT INTO claimd.worker DEFAULT VALUES", "CREATE TABLE claimd.x (y int)"):
            with self.assertRaises(AssertionError, msg=statement):
                world.sql(statement, user="web_login")


class ZErrors(unittest.TestCase):
    """Runs last: it breaks functions."""

    def test_each_documented_error_comes(self):
        for method, path in api.operations():
            filled = path.format(id=1, name="x", worker="x", batch=1, key="x")
            write = method != "GET"
            if api.operations()[method, path]["x-role"] != "none":
                api.check(method, path, web.request(method, filled, body={} if write else None, token=None))
                api.check(method, path, web.request(method, filled, body={} if write else None, headers={"Host": "evil.example"}))
            if write:
                api.check(method, path, web.request(method, filled, raw=b"{}", headers={"Content-Type": "text/plain"}))
                api.check(method, path, web.request(method, filled, body={}, headers={"Origin": "https://evil.example"}))
                api.check(method, path, web.request(method, filled, raw=b"[" * 40))
        call("POST", "/login", {"token": "wrong-wrong-wrong-wrong"}, status=401, token=None)
        call("POST", "/login", {}, status=400, token=None)
        for _ in range(12):
            last = web.post("/api/v1/login", {"token": "wrong-wrong-wrong-wrong"}, token=None)
            api.check("POST", "/api/v1/login", last)
        self.assertEqual((429, "60"), (last.status, last.headers["Retry-After"]))
        reply = web.request("PUT", "/api/v1/jobs", body={})
        self.assertEqual((405, "GET, POST"), (reply.status, reply.headers["Allow"]))
        api.check("POST", "/api/v1/jobs", reply)
        reply = web.request("POST", "/api/v1/jobs", length=(1 << 20) + 1)
        self.assertEqual("too_large", reply.code)
        api.check("POST", "/api/v1/jobs", reply)

    def test_y_a_slow_query_ends_after_two_seconds(self):
        signature = world.sql("SELECT pg_get_function_result('claimd.schedule_next(text, integer)'::regprocedure)")
        world.sql(f"CREATE OR REPLACE FUNCTION claimd.schedule_next(name text, n integer DEFAULT 5) RETURNS {signature} LANGUAGE sql AS "
                  "'SELECT now(), now()::text FROM pg_sleep(10)'")
        world.sql("SELECT claimd.schedule_set('slow', 'noop', '0 3 * * *')")
        self.assertEqual("timeout", call("GET", "/schedules/{name}/next", name="slow", status=504).code)
        world.sql(f"CREATE OR REPLACE FUNCTION claimd.schedule_next(name text, n integer DEFAULT 5) RETURNS {signature} LANGUAGE plpgsql AS "
                  "'BEGIN RAISE EXCEPTION ''broken''; END'")
        self.assertEqual("internal", call("GET", "/schedules/{name}/next", name="slow", status=500).code)

    def test_z_without_postgresql_it_says_so_and_comes_back(self):
        world.sql("ALTER DATABASE claimd CONNECTION LIMIT 0; SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'web_login'")
        until("it cannot connect", lambda: web.get("/api/v1/kinds").status == 503)
        self.assertEqual("unavailable", call("GET", "/kinds", status=503).code)
        world.sql("ALTER DATABASE claimd CONNECTION LIMIT -1")
        until("it is back", lambda: web.get("/api/v1/kinds").status == 200)

    def test_zz_everything_described_was_called(self):
        missing = [operation for operation in api.operations() if 200 not in api.answered.get(operation, ())]
        # Streams and sessions have tests of their own.
        self.assertEqual([("POST", "/api/v1/login"), ("POST", "/api/v1/logout"), ("GET", "/api/v1/events")], missing)
        codes = set(api.document["components"]["schemas"]["error"]["properties"]["error"]["properties"]["code"]["enum"])
        self.assertEqual({"read_only", "unknown"}, codes - api.answered["codes"])


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], "-v"])
