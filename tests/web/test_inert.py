#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Whatever a job, a worker or an operator writes is text on the page: it never becomes an element, and never runs.

test_inert.py BIN [unittest's options]     BIN: the folder of claimctl and claimd-web. Exit code 77: no selenium or
                                           chromium

Hostile text is written into each column that is free text, and each page is opened twice: as it is, where an attempt to
run something violates its content security policy and is counted, and without this policy, where it would run."""

import re
import sys
import unittest

try:
    from selenium.common.exceptions import TimeoutException
    from api import Api
    from cluster import OPERATOR, Cluster
    from page import Page, require_browser, run_tests
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)

WATCH = """
    window.violations = [];
    addEventListener("securitypolicyviolation", (e) => violations.push(`${e.violatedDirective} ${e.blockedURI}`));
"""
# What the hostile texts are made of: no page has these elements and attributes.
FOUND = """
    const wrong = [...document.querySelectorAll(
        "img, iframe, object, embed, script:not([src]), [onerror], [onload], b.hurt, [href^='javascript:' i]")];
    return [window.hit ?? null, window.violations, wrong.map((e) => e.outerHTML.slice(0, 200))];
"""
# The labels of all hostile texts that are on the page, as text or as a title.
LABELS = r"""
    const texts = [document.body.innerText, document.title,
                   ...[...document.querySelectorAll("[title]")].map((e) => e.title)].join("\n");
    const found = [...texts.matchAll(/<script>hit\(\\?"([a-z_]+)\\?"\)<\/script>/gi)];  // in JSON, quotes are escaped
    return [...new Set(found.map((m) => m[1].toLowerCase()))];
"""


def evil(label):
    """A text that would run as HTML, as the value of an attribute, and as a URL. It says what it is."""
    return (f'<script>hit("{label}")</script><img src=x onerror="window.hit=1">"\'><svg onload="window.hit=1">'
            '<b class=hurt>javascript:window.hit=1')


def quoted(text):
    return "'" + text.replace("'", "''") + "'"


class Names(unittest.TestCase):
    """Names of queues, kinds, schedules and maps have no room for HTML."""

    NAMES = ("<script>", "a<b", 'a"b', "a'b", "a&b", "a>b", "javascript:x", "A b")

    def test_the_api_refuses_them(self):
        for name in self.NAMES:
            for body in ({"kind": name}, {"kind": "noop", "queue": name}):
                status, answer = API.ask("POST", "jobs", body)
                self.assertEqual((status, answer["error"]["code"]), (400, "invalid"), body)

    def test_the_database_refuses_them(self):
        for name in self.NAMES:
            text = quoted(name)
            for call in (f"INSERT INTO claimd.job (kind) VALUES ({text})",
                         f"INSERT INTO claimd.job (kind, queue) VALUES ('noop', {text})",
                         f"INSERT INTO claimd.kind (name) VALUES ({text})",
                         f"INSERT INTO claimd.queue (name) VALUES ({text})",
                         f"SELECT claimd.schedule_set({text}, 'noop', '0 3 * * *')",
                         f"SELECT claimd.map_begin({text}, 'SELECT 1 AS id', 'id', 'noop', NULL, 'default', 1, NULL, NULL)"):
                self.assertRegex(CLUSTER.psql(call).stderr, "letters|must match|check constraint", call)


def seed():
    """Hostile text wherever there may be any. Returns the ids of jobs and of a batch by what they show."""
    ids = {"open": API.enqueue("noop", {evil("arg_name"): evil("args")}, queue="nobody", metadata={"m": evil("metadata")},
                               tags=[evil("tags")], exclusive=evil("exclusive_key"), unique=evil("unique_key")),
           "failed": API.enqueue("sleep", {"bad": 1}), "running": API.enqueue("sleep", {"ms": 600000}),
           "done": API.enqueue("noop", {})}
    CLUSTER.until("two jobs to end, one to run", lambda: [API.job(ids[n])["state"] for n in ("failed", "done", "running")] ==
                  ["discarded", "completed", "running"])
    API.ask("PATCH", f"jobs/{ids['open']}", {"args": {"x": evil("edited_args")}}, If_Match='"1"')
    CLUSTER.sql(f"""
        UPDATE claimd.job_attempt SET error = {quoted(evil("attempt_error"))}, log_tail = {quoted(evil("log"))}
         WHERE job_id = {ids["failed"]};
        UPDATE claimd.job_history SET error = {quoted(evil("error"))}, args = jsonb_build_object('a', {quoted(evil("args"))})
         WHERE id = {ids["failed"]};
        UPDATE claimd.job_history SET result = to_jsonb({quoted(evil("result"))}::text) WHERE id = {ids["done"]};
        UPDATE claimd.worker SET host = {quoted(evil("host"))};
        INSERT INTO claimd.worker SELECT (jsonb_populate_record(w, jsonb_build_object(
            'worker_id', gen_random_uuid(), 'version', {quoted(evil("version"))}, 'stale_at', clock_timestamp() + interval '1 hour',
            'refused', ARRAY[{quoted(evil("refused"))}]))).*
          FROM claimd.worker w LIMIT 1;
        INSERT INTO claimd.scheduler SELECT (jsonb_populate_record(s, jsonb_build_object(
            'scheduler_id', gen_random_uuid(), 'host', {quoted(evil("scheduler"))}, 'leader_since', NULL,
            'last_error', {quoted(evil("last_error"))}, 'stale_at', clock_timestamp() + interval '1 hour'))).*
          FROM claimd.scheduler s LIMIT 1;
        INSERT INTO claimd.job_live (id, fence, progress, percent, checkpoint)
        SELECT id, fence, {quoted(evil("progress"))}, 50, to_jsonb({quoted(evil("checkpoint"))}::text)
          FROM claimd.job WHERE id = {ids["running"]}
            ON CONFLICT (id) DO UPDATE SET progress = EXCLUDED.progress, percent = 50, checkpoint = EXCLUDED.checkpoint;
        UPDATE claimd.kind SET plugin = {quoted(evil("plugin"))}, version = {quoted(evil("kind_version"))} WHERE name = 'noop';
        SELECT claimd.pause_queue('nobody');
        UPDATE claimd.queue SET paused_by = {quoted(evil("paused_by"))} WHERE name = 'nobody';
        SELECT claimd.limit_key({quoted(evil("limit_key"))}, 2);
        SELECT claimd.schedule_set('nightly', 'noop', '0 3 * * *', args => jsonb_build_object('a', {quoted(evil("schedule_args"))}));
        UPDATE claimd.schedule SET error = {quoted(evil("schedule_error"))}, failed_at = clock_timestamp(), failures = 1,
               tags = ARRAY[{quoted(evil("schedule_tags"))}] WHERE name = 'nightly';
        UPDATE claimd.job_edit SET edited_by = {quoted(evil("edited_by"))} WHERE job_id = {ids["open"]};
        INSERT INTO claimd.web_audit (status, who, role, address, method, path, body)
        VALUES (200, {quoted(evil("who"))}, 'operator', {quoted(evil("address"))}, 'POST',
                {quoted("/api/v1/" + evil("path"))}, {quoted(evil("body"))});
        """)
    ids["batch"] = CLUSTER.sql(f"SELECT claimd.batch_open({quoted(evil('batch'))})")
    return ids


# What must be seen where. Sites are made with the ids of seed().
SEEN = {
    "#/": {"host"},
    "#/jobs": {"error"},
    "#/jobs?batch={batch}": {"batch"},
    "#/jobs/{open}": {"edited_args", "args", "metadata", "tags", "exclusive_key", "unique_key", "edited_by"},
    "#/jobs/{failed}": {"args", "error", "attempt_error", "log"},
    "#/jobs/{running}": {"host", "progress", "checkpoint"},
    "#/jobs/{done}": {"result"},
    "#/queues": {"limit_key"},
    "#/queues/nobody": {"paused_by"},
    "#/queues/default": {"host"},
    "#/schedules": {"schedule_error"},
    "#/schedules/nightly": {"schedule_args", "schedule_error", "schedule_tags"},
    "#/kinds": {"plugin", "kind_version"},
    "#/kinds/noop": {"plugin", "kind_version"},
    "#/kinds/sleep": {"error"},
    "#/cluster": {"host", "version", "refused", "scheduler", "last_error", "who", "address", "path", "body"},
}


class Pages(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.ids = seed()
        cls.addClassCleanup(API.ask, "POST", f"jobs/{cls.ids['running']}/cancel")
        cls.page = Page(CLUSTER.url)
        cls.addClassCleanup(cls.page.close)
        cls.page.cdp("Page.enable")
        cls.page.cdp("Page.addScriptToEvaluateOnNewDocument", source=WATCH)

    def begin(self, has_policy):
        self.page.cdp("Page.setBypassCSP", enabled=not has_policy)
        self.page.log_in(OPERATOR)

    def assert_inert(self, place):
        self.assertEqual(self.page.js(FOUND), [None, [], []], place)

    def test_the_probes_notice_what_runs(self):
        """Without this, the others could not fail."""
        write = "document.body.insertAdjacentHTML('beforeend', arguments[0])"  # the page redraws its own part
        self.begin(has_policy=True)
        self.page.js(write, evil("probe"))
        self.page.until("the violation", lambda: self.page.js(FOUND)[1])
        hit, violations, wrong = self.page.js(FOUND)
        self.assertIsNone(hit)
        self.assertTrue(any(v.startswith("script-src") for v in violations), violations)
        self.assertTrue(wrong)
        self.begin(has_policy=False)
        self.page.js(write, evil("probe"))
        self.page.until("the hit", lambda: self.page.js(FOUND)[0] == 1)

    def walk(self):
        for place, labels in SEEN.items():
            place = place.format(**self.ids)
            with self.subTest(place):
                self.page.go(place)
                seen = set()
                try:
                    self.page.until("the texts", lambda: seen.update(self.page.js(LABELS)) or labels <= seen)
                except TimeoutException:
                    self.fail(f"not shown: {labels - seen}")
                self.assert_inert(place)

    def test_texts_break_no_policy(self):
        self.begin(has_policy=True)
        self.walk()

    def test_texts_run_nowhere_even_without_the_policy(self):
        self.begin(has_policy=False)
        self.walk()

    def test_a_dialog_shows_them_as_text(self):
        self.begin(has_policy=False)
        self.page.go(f"#/jobs/{self.ids['open']}")
        for name in ("Edit", "Enqueue a copy", "Cancel"):
            self.page.click(name, "main")
            self.page.until("the dialog", lambda: self.page.find("dialog[open]"))
            self.assert_inert(name)
            self.page.js("document.querySelector('dialog[open]').close()")
            self.page.until("its end", lambda: not self.page.find("dialog[open]"))
        self.page.go("#/cluster")
        self.page.js("""const row = [...document.querySelectorAll("main tr")].find((r) => r.innerText.includes("<script>"));
                     [...row.querySelectorAll("button")].find((b) => b.innerText.trim() === "Drain").click()""")
        self.page.until("the question", lambda: '<script>hit("host")' in self.page.js(
            "return document.querySelector('dialog[open]')?.innerText ?? ''"))
        self.assert_inert("Drain")

    def test_filters_and_refusals_show_them_as_text(self):
        self.begin(has_policy=False)
        text = "".join(f"%{octet:02x}" for octet in evil("filter").encode())
        for name in ("error", "tag", "worker", "owner", "kind", "since", "batch", "map", "nope"):
            self.page.go(f"#/jobs?{name}={text}")
            self.assert_inert(name)
        for place in ("jobs", "queues", "kinds", "schedules", "nope"):
            self.page.go(f"#/{place}/{text}")
            self.assert_inert(place)

    def test_an_answer_of_the_api_is_no_page(self):
        self.page.cdp("Page.setBypassCSP", enabled=True)
        self.page.log_in(OPERATOR)
        text = "".join(f"%{octet:02x}" for octet in evil("path").encode())
        for path in (f"api/v1/jobs/{self.ids['open']}", "api/v1/cluster", "api/v1/audit", f"api/v1/jobs?{text}={text}",
                     f"api/v1/queues/{text}", f"api/v1/{text}", text):
            self.page.driver.get(CLUSTER.url.rstrip("/") + "/" + path)
            self.assertIn(self.page.js("return document.contentType"), ("application/json", "text/plain"), path)
            self.assert_inert(path)


class Brand(unittest.TestCase):
    """The name of the cluster, and of who is logged in by a proxy."""

    def test_they_are_text(self):
        name = "<img/src=x/onerror=window.hit=1>"
        url = CLUSTER.start_web("brand.json", cluster_name=name, proxies=["127.0.0.1"], proxy_user_header="X-User",
                                operators=[name])
        page = Page(url)
        self.addCleanup(page.close)
        page.cdp("Page.enable")
        # The browser does not add headers to the requests of a SharedWorker.
        page.cdp("Page.addScriptToEvaluateOnNewDocument", source=WATCH + "delete window.SharedWorker")
        page.cdp("Page.setBypassCSP", enabled=True)
        page.cdp("Network.enable")
        page.cdp("Network.setExtraHTTPHeaders", headers={"X-User": name})
        page.driver.get(url)
        page.until("the page", lambda: page.find(".frame"))
        self.assertEqual(2, len(re.findall(re.escape(name), page.text())), page.text()[:500])
        self.assertEqual(page.js(FOUND), [None, [], []])


def main(words):
    global CLUSTER, API
    require_browser()
    CLUSTER = Cluster(words.pop(0))
    API = Api(CLUSTER.url, OPERATOR)
    return run_tests(words, CLUSTER)


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1:]))
