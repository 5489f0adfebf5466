#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Measures how long claimd-web takes for the requests of each page when the tables are large.

scale.py BIN [--open N] [--finished N] [--rounds N] [--limit-ms N]     BIN: the folder of claimctl and claimd-web

Makes a private cluster in $TMPDIR with that many open and finished jobs (1 million take 0.8 GB) and a few running ones,
which are the oldest. Then it asks for what each page asks for, one request at a time, in rounds: an answer that is shared
among all who look is made for each of them. Prints for each request the median and the 95th percentile of the time until
the answer, and of the CPU time of claimd-web and its sessions of PostgreSQL. Exit code 1: a percentile is over the limit
(300 ms)."""

import argparse
import datetime
import os
import sys
import threading
import time

from api import Api
from cluster import OPERATOR, Cluster

KINDS = 10
QUEUES = 8
DAYS = 7
CHUNK = 1_000_000
LOAD_S = 3600
RUNNING = 6
FIRST = 101  # ids of the history begin here; those of the running jobs are lower
COLUMNS = "id,kind,queue,state,attempt,created_at,ready_at,attempted_at,finalized_at,error"

# Rows as jobs leave them: 97 % completed; the errors of one in a million can be searched for.
FINISHED = """
    INSERT INTO claimd.job_history (id, fence, created_at, scheduled_at, ready_at, attempted_at, finalized_at, worker_id,
           attempt, crashes, generation, priority, share, state, queue, kind, args, tags, error)
    SELECT n, n, t.at - interval '2 s', t.at - interval '2 s', t.at - interval '2 s', t.at - interval '1 s', t.at,
           '00000000-0000-0000-0000-000000000001', 1, 0, 0, 4, 0,
           CASE WHEN n % 100 < 97 THEN 'completed' WHEN n % 100 < 99 THEN 'discarded' ELSE 'cancelled' END,
           'q' || n % {queues}, 'k' || n % 7, jsonb_build_object('to', 'customer' || n || '@example.org', 'n', n),
           CASE WHEN n % 1000000 = 0 THEN ARRAY['rare'] END,
           CASE WHEN n % 100 IN (97, 98) THEN 'connection refused' || CASE WHEN n % 1000000 = 97 THEN ' needle' ELSE '' END END
      FROM generate_series({low}::bigint, {high}) AS n
     CROSS JOIN LATERAL (SELECT {day}::timestamptz + (n - {low}) * {step} * interval '1 us' AS at) t"""
OPEN = """
    INSERT INTO claimd.job (kind, queue, args, scheduled_at, tags)
    SELECT 'k' || n % {kinds}, 'q' || n % {queues}, jsonb_build_object('to', 'customer' || n || '@example.org', 'n', n),
           clock_timestamp() + CASE WHEN n % 3 = 0 THEN interval '1 day' ELSE interval '0' END,
           CASE WHEN n % 1000000 = 0 THEN ARRAY['rare'] END
      FROM generate_series(1, {count}) AS n"""


def say(text):
    print(f"{datetime.datetime.now():%H:%M:%S} {text}", flush=True)


def load(cluster, text):
    cluster.sql("SET synchronous_commit = off; SET TIME ZONE 'UTC';" + text, LOAD_S)


def make_days(cluster):
    """Tables of the days before today: the scheduler makes none."""
    for back in range(1, DAYS):
        day = datetime.datetime.now(datetime.timezone.utc).date() - datetime.timedelta(days=back)
        name = f"claimd.job_history_{day:%Y%m%d}"
        load(cluster, f"""
            SET ROLE claimd_scheduler;
            CREATE TABLE {name} (LIKE claimd.job_history INCLUDING ALL);
            ALTER TABLE claimd.job_history ATTACH PARTITION {name} FOR VALUES FROM ('{day} 00:00Z')
                TO ('{day + datetime.timedelta(days=1)} 00:00Z')""")


def make_finished(cluster, count):
    now = datetime.datetime.now(datetime.timezone.utc)
    midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
    done = 0
    for back in range(DAYS - 1, -1, -1):
        of_day = (count - done) // (back + 1)
        begin = midnight - datetime.timedelta(days=back)
        step = int((86400 if back else (now - midnight).total_seconds()) * 1e6) / max(of_day, 1)
        for start in range(0, of_day, CHUNK):
            size = min(CHUNK, of_day - start)
            at = begin + datetime.timedelta(microseconds=start * step)
            load(cluster, FINISHED.format(low=FIRST + done + start, high=FIRST + done + start + size - 1, queues=QUEUES,
                                          day=f"'{at.isoformat()}'", step=step))
            say(f"finished: {done + start + size:,}")
        done += of_day


def make_open(cluster, count):
    for done in range(0, count, CHUNK):
        load(cluster, OPEN.format(kinds=KINDS, queues=QUEUES, count=min(CHUNK, count - done)))
        say(f"open: {min(count, done + CHUNK):,}")


def make(cluster, api, open_jobs, finished):
    load(cluster, f"""
        ALTER SYSTEM SET max_wal_size = '8GB'; SELECT pg_reload_conf();
        INSERT INTO claimd.kind (name) SELECT 'k' || n FROM generate_series(0, {KINDS - 1}) AS n;
        SELECT claimd.schedule_set('nightly', 'k0', '0 3 * * *', queue => 'q0')""")
    for _ in range(RUNNING):
        api.enqueue("sleep", {"ms": 3_600_000}, timeout="2h")
    cluster.until("running jobs", lambda: int(cluster.sql(
        "SELECT count(*) FROM claimd.job WHERE state = 'running'")) == RUNNING)
    make_days(cluster)
    load(cluster, f"SELECT setval(pg_get_serial_sequence('claimd.job', 'id'), {FIRST + finished})")
    threads = [threading.Thread(target=make_finished, args=(cluster, finished)),
               threading.Thread(target=make_open, args=(cluster, open_jobs))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    say("vacuum")
    load(cluster, "VACUUM ANALYZE")
    say(cluster.sql("""SELECT format('%s of open jobs, %s of finished ones', pg_size_pretty(pg_total_relation_size('claimd.job')),
        pg_size_pretty((SELECT sum(pg_total_relation_size(inhrelid)) FROM pg_inherits
                         WHERE inhparent = 'claimd.job_history'::regclass)))"""))


def pages(open_jobs, finished):
    """The requests of each page, as in web/assets/pages: (page, path, whether its answer is shared)."""
    last = FIRST + finished + open_jobs
    of = "jobs?limit=50&columns=" + COLUMNS
    running = "jobs?state=running&limit=200&columns=id,kind,queue,attempted_at,worker_id"
    yield from (("every page", "session", False), ("Overview", "overview", True), ("Overview", "doctor", True),
                ("Overview", "series?period=24h", False), ("Jobs", of, False))
    for back in (0.01, 0.5, 0.999):
        yield "Jobs, later page", f"{of}&after={int(last - (last - FIRST) * back)}", False
    for state in ("available", "scheduled", "retryable", "running", "completed", "discarded", "cancelled"):
        yield "Jobs, a state", f"{of}&state={state}", False
    for some in ("kind=k3", "queue=q5", "kind=k9&state=discarded", "since=1h", "tag=rare", "error=needle", "q=customer7", "worker=nobody"):
        yield "Jobs, a filter", f"{of}&{some}", False
    for name, job in (("open", last - 10), ("finished", FIRST + finished // 2), ("running", 1)):
        yield f"Job, {name}", f"jobs/{job}", False
    yield from (("Queues", "keys", False), ("Queue", "queues/q0", False), ("Schedules", "schedules", False),
                ("Schedule", "schedules/nightly", False), ("Kinds", "kinds", True), ("Kind", "kinds/k3", False),
                ("Kind", "jobs?kind=k3&state=discarded,retryable&limit=5", False),
                ("Kind without failures", "jobs?kind=k9&state=discarded,retryable&limit=5", False),
                ("Cluster", "cluster", True), ("Cluster", "lock-nodes", True), ("Cluster", running, False), ("Cluster", "audit", False))


class Cpu:
    """The CPU time of claimd-web and its sessions."""

    def __init__(self, cluster):
        self.cluster = cluster
        self.pids = []

    def find(self):
        self.pids = [self.cluster.programs[-1].pid, *map(int, self.cluster.sql(
            "SELECT pid FROM pg_stat_activity WHERE usename = 'web_login'").split())]

    def ms(self):
        total = 0
        for pid in self.pids:
            for task in os.listdir(f"/proc/{pid}/task"):
                try:
                    with open(f"/proc/{pid}/task/{task}/schedstat", encoding="ascii") as file:
                        total += int(file.read().split()[0])
                except (FileNotFoundError, ProcessLookupError):
                    pass  # a thread of a connection has ended: its time is not counted
        return total / 1e6


def measure(cluster, api, requests, rounds):
    times = {request: [] for request in requests}
    cpu = Cpu(cluster)
    for number in range(rounds + 1):  # the first fills caches and is not counted
        for request in requests:
            _, path, is_shared = request
            if is_shared:
                api.ask("POST", "queues/nowhere/resume")  # after an act, shared answers are made again
            cpu.find()
            before, start = cpu.ms(), time.monotonic()
            status, _ = api.ask("GET", path)
            took = (time.monotonic() - start) * 1000
            if status != 200:
                say(f"{path}: {status} after {took:.0f} ms")
            if number > 0:
                times[request].append((took, max(0, cpu.ms() - before)))
    return times


def percentile(values, part):
    return sorted(values)[min(len(values) - 1, int(len(values) * part))]


def report(times, limit_ms):
    print("| page | request | time, ms | p95 | CPU, ms | p95 |\n|---|---|---|---|---|---|")
    over = 0
    for (page, path, _), pairs in times.items():
        wall, cpu = ([pair[i] for pair in pairs] for i in (0, 1))
        p95 = percentile(wall, 0.95)
        over += p95 > limit_ms
        print(f"| {page} | `{path.replace('&columns=' + COLUMNS, '')}` | {percentile(wall, 0.5):.0f} | {p95:.0f} |"
              f" {percentile(cpu, 0.5):.0f} | {percentile(cpu, 0.95):.0f} |")
    print(f"{over} of {len(times)} requests are over {limit_ms} ms")
    return over


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bin")
    parser.add_argument("--open", type=int, default=2_000_000)
    parser.add_argument("--finished", type=int, default=10_000_000)
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--limit-ms", type=int, default=300)
    parser.add_argument("--hold", action="store_true", help="measure again after each line of input; q ends it")
    options = parser.parse_args()
    cluster = Cluster(options.bin, workers=1, env={"CLAIMD_WORKER_SLOTS": str(RUNNING + 2)})
    try:
        api = Api(cluster.url, OPERATOR)
        say(f"cluster in {cluster.folder.name}")
        make(cluster, api, options.open, options.finished)
        requests = list(pages(options.open, options.finished))
        over = report(measure(cluster, api, requests, options.rounds), options.limit_ms)
        while options.hold and sys.stdin.readline().strip() != "q":
            cluster.programs[-1].terminate()
            cluster.programs.pop().wait()
            api = Api(cluster.start_web("again.json"), OPERATOR)
            over = report(measure(cluster, api, requests, options.rounds), options.limit_ms)
    finally:
        cluster.stop()
    sys.exit(1 if over else 0)


if __name__ == "__main__":
    main()
