#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A list of very many jobs is shown page by page, and no request reads the tables whole.

test_many_jobs.py BIN ROWS [unittest's options]     BIN: the folder of claimctl and claimd-web. Exit code 77: no selenium
                                                    or chromium

PostgreSQL logs the plan of each statement of claimd-web with what it has read (auto_explain), so the tests see what a
request costs, and not only how long it took."""

import json
import re
import sys
import time
import unittest

try:
    from api import Api
    from cluster import OPERATOR, Cluster
    from page import Page, require_browser, run_tests
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)

PAGE = 50
NEWER = 200         # jobs above a gap of ids
GAP = 10_000_000
LOAD_S = 900
TRIES = 5
FAST_S = 1          # the goal for a list of a million rows, for the best of a few tries
STEP_ROWS = 350_000  # the most that one statement reads in a search
PAGE_ROWS = 25_000   # … and for a page without a filter
SCANNED = 1_000      # the most that may be read of a table without an index: empty days are

SEEN = "return [...document.querySelectorAll('main tr[data-row]')].map((r) => Number(r.dataset.row))"


class Plans:
    """The plans of the statements of claimd-web's role."""

    def __init__(self, cluster):
        self.path = cluster.path("dev/postgres.log")
        self.at = 0
        for name, value in (("session_preload_libraries", "auto_explain"), ("auto_explain.log_min_duration", "0"),
                            ("auto_explain.log_analyze", "on"), ("auto_explain.log_timing", "off"),
                            ("auto_explain.log_nested_statements", "on"), ("auto_explain.log_format", "json")):
            cluster.sql(f"ALTER ROLE web_login SET {name} = '{value}'")

    def take(self):
        """The scans of each statement since the last call: lists of (node, table, rows read)."""
        with open(self.path, encoding="utf-8") as file:
            file.seek(self.at)
            text = file.read()
            self.at = file.tell()
        found = re.findall(r"duration: [\d.]+ ms  plan:\n((?:\t.*\n)+)", text)
        return [list(self.scans(json.loads(plan)["Plan"])) for plan in found]

    def scans(self, node):
        rows = sum(node.get(name, 0) for name in ("Actual Rows", "Rows Removed by Filter", "Rows Removed by Index Recheck"))
        if "Relation Name" in node:
            yield node["Node Type"], node["Relation Name"], rows * node["Actual Loops"]
        for child in node.get("Plans", []):
            yield from self.scans(child)


class ManyJobs(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        insert = """INSERT INTO claimd.job (kind, queue, scheduled_at, args, tags)
                    SELECT 'noop', 'later', now() + interval '1 day', jsonb_build_object('n', n),
                           CASE WHEN n = 1 THEN ARRAY['oldest'] END FROM generate_series(1, {}) AS n"""
        cls.running = Api(CLUSTER.url, OPERATOR).enqueue("sleep", {"ms": 3_600_000}, timeout="2h")
        CLUSTER.until("the run of a job", lambda: CLUSTER.sql("SELECT state FROM claimd.job") == "running")
        CLUSTER.sql("SET synchronous_commit = off;" + insert.format(ROWS), LOAD_S)
        CLUSTER.sql(f"SELECT setval(pg_get_serial_sequence('claimd.job', 'id'), {cls.running + ROWS + GAP});"
                    f"{insert.format(NEWER)}; VACUUM ANALYZE claimd.job", LOAD_S)
        cls.plans = Plans(CLUSTER)
        url = CLUSTER.start_web("many.json")
        cls.api = Api(url, OPERATOR)
        cls.addClassCleanup(cls.api.ask, "POST", f"jobs/{cls.running}/cancel")
        cls.oldest = cls.running + 1
        cls.newest = cls.running + ROWS + GAP + NEWER
        cls.page = Page(url)
        cls.addClassCleanup(cls.page.close)
        cls.page.log_in(OPERATOR)

    def setUp(self):
        self.plans.take()

    def assert_bounded(self, rows):
        """No statement has read more rows of jobs than that, and none has read them without an index."""
        statements = self.plans.take()
        self.assertTrue(any(table == "job" for scans in statements for _, table, _ in scans), "no plan was logged")
        for scans in statements:
            of_jobs = [scan for scan in scans if scan[1].startswith("job")]
            self.assertEqual([scan for scan in of_jobs if scan[0] == "Seq Scan" and scan[2] > SCANNED], [])
            self.assertLessEqual(sum(scan[2] for scan in of_jobs), rows, of_jobs)

    def get(self, query):
        status, answer = self.api.ask("GET", "jobs?" + query)
        self.assertEqual(status, 200, answer)
        return [job["id"] for job in answer["jobs"]], answer["page"]["next_after"]

    def fastest(self, what):
        """What the fastest of some tries took: the machine may be busy."""
        times = []
        while len(times) < TRIES and (not times or min(times) >= FAST_S):
            start = time.monotonic()
            what()
            times.append(time.monotonic() - start)
        return min(times)

    def test_pages_follow_each_other_without_gap_or_overlap(self):
        found, after = [], str(self.newest + 1)
        for _ in range(6):  # beyond the gap
            ids, after = self.get(f"limit={PAGE}&after={after}")
            found += ids
        newer = list(range(self.newest, self.newest - NEWER, -1))
        self.assertEqual(found, newer + list(range(self.oldest + ROWS - 1, self.oldest + ROWS - 1 - 6 * PAGE + NEWER, -1)))
        self.assert_bounded(PAGE_ROWS)

    def test_each_page_takes_less_than_a_second_wherever_it_is(self):
        for after in (self.newest + 1, ROWS // 2, self.oldest + PAGE):
            self.assertLess(self.fastest(lambda: self.get(f"limit={PAGE}&after={after}")), FAST_S, after)
        self.assert_bounded(PAGE_ROWS)

    def test_the_oldest_job_is_seen_running_at_once(self):
        self.assertEqual(self.get(f"state=running&limit={PAGE}")[0], [self.running])
        self.assert_bounded(STEP_ROWS)
        self.assertEqual(self.get("state=running&limit=1"), ([self.running], self.running))

    def show(self, place, first):
        self.page.go("#/")
        self.page.js("location.hash = arguments[0]", place)
        self.page.until(f"the job {first} on {place}", lambda: self.page.js(SEEN)[:1] == [first])

    def test_the_page_shows_the_newest_and_goes_on_to_older_ones(self):
        self.page.go("#/jobs")
        for number in range(3):
            first = self.newest - number * PAGE
            self.page.until(f"page {number}", lambda: self.page.js(SEEN) == list(range(first, first - PAGE, -1)))
            self.page.click("Older", "main")
        self.assertLess(self.fastest(lambda: self.show("#/jobs", self.newest)), FAST_S)
        self.assertLess(self.fastest(lambda: self.show(f"#/jobs?after={ROWS // 2}", ROWS // 2 - 1)), FAST_S)

    def test_a_search_for_a_rare_job_goes_on_in_bounded_steps(self):
        ids, after, parts = [], str(self.newest + 1), 0
        while after is not None:
            more, after = self.get(f"limit={PAGE}&tag=oldest&state=scheduled&after={after}")
            ids += more
            parts += 1
            self.assertLess(parts, 2 + ROWS // 10_000)
        self.assertEqual(ids, [self.newest - NEWER + 1, self.oldest])
        self.assert_bounded(STEP_ROWS)

    def test_a_search_below_a_gap_is_bounded_too(self):
        """A gap is read in no time: if ranges grew with it, the next one would read all that is below it."""
        ids, after = self.get("limit=1&kind=none")
        while after is not None:
            ids, after = self.get(f"limit=1&kind=none&after={after}")
        self.assertEqual(ids, [])
        self.assert_bounded(STEP_ROWS)

    def test_what_the_page_counts_reads_no_table_whole(self):
        for path in ("overview", "queues/later", "kinds/noop", "cluster", "series", "keys"):
            self.assertEqual(self.api.ask("GET", path)[0], 200, path)
        self.assert_bounded(200_000)


def main(words):
    global CLUSTER, ROWS
    require_browser()
    CLUSTER = Cluster(words[0], workers=1)
    ROWS = int(words[1])
    return run_tests(words[2:], CLUSTER)


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1:]))
