#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Measures what browsers that watch the page cost: the same drain of no-op jobs with open streams of live events and
without, in turns.

watched.py BIN [--jobs N] [--rounds N] [--streams N]     BIN: the folder of claimctl and claimd-web

Prints a table of the rounds and the medians of the ratios within a round: of the speed, and of the CPU time per job of all
processes of claimd, its servers and claimd-web. The streams' own reader, which stands for the browsers, is not counted, but
it takes time of the same processors: its part is shown. Exit code 1: the CPU rises by more than 3 %."""

import argparse
import http.client
import os
import statistics
import subprocess
import sys
import threading
import time
import urllib.parse

from cluster import OPERATOR, Cluster

GOAL = 1.03
DRAIN_S = 600
TICK = os.sysconf("SC_CLK_TCK")


class Streams:
    """Open streams of events, which a process of its own reads and throws away."""

    def __init__(self, url, count):
        self.process = subprocess.Popen([sys.executable, os.path.abspath(__file__), "--read", url, str(count)],
                                        stdout=subprocess.PIPE, stdin=subprocess.PIPE, text=True)
        assert self.process.stdout.readline().strip() == "open", "not all streams were opened"

    def cpu_s(self):
        return cpu_of(self.process.pid)

    def close(self):
        return int(self.process.communicate("\n")[0])


def open_stream(place):
    """The places of streams that were closed become free with the next event, at most 10 s later."""
    while True:
        stream = http.client.HTTPConnection(place.netloc)
        stream.request("GET", f"{place.path.rstrip('/')}/api/v1/events", headers={"Authorization": "Bearer " + OPERATOR})
        events = stream.getresponse()
        if events.status == 200:
            return events
        stream.close()
        time.sleep(0.5)


def watch(place, opened, received):
    events = open_stream(place)
    opened.release()
    for line in events:
        received.append(len(line))


def read_streams(url, count):
    """The process of Streams: says when all streams are open, and at the end of its input how many bytes have come."""
    opened, received = threading.Semaphore(0), []
    threading.stack_size(256 * 1024)
    for _ in range(count):
        threading.Thread(target=watch, args=(urllib.parse.urlsplit(url), opened, received), daemon=True).start()
    for _ in range(count):
        assert opened.acquire(timeout=60), "a stream was not opened"
    print("open", flush=True)
    sys.stdin.read(1)
    print(sum(received))


def cpu_of(pid, with_children=False):
    """Seconds of CPU of a process, and of its children that have ended."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
            fields = file.read().rsplit(")", 1)[1].split()
    except (FileNotFoundError, ProcessLookupError):
        return 0
    return sum(int(field) for field in fields[11:15 if with_children else 13]) / TICK


def descendants(pid):
    """The process and all below it."""
    parents = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", encoding="utf-8") as file:
                    parents.setdefault(int(file.read().rsplit(")", 1)[1].split()[1]), []).append(int(name))
            except (FileNotFoundError, ProcessLookupError):
                pass
    found = [pid]
    for one in found:
        found += parents.get(one, [])
    return found


class Bench:
    def __init__(self, bin_dir):
        self.cluster = Cluster(bin_dir, workers=2)
        self.web = self.cluster.programs[-1].pid

    def cpu_s(self):
        """(of claimd-web and its sessions, of all)."""
        sessions = [int(pid) for pid in self.cluster.sql(
            "SELECT pid FROM pg_stat_activity WHERE usename = 'web_login'").split()]
        web = cpu_of(self.web) + sum(cpu_of(pid) for pid in sessions)
        return web, cpu_of(self.web) + sum(cpu_of(pid, True) for pid in descendants(self.cluster.programs[0].pid))

    def drain(self, jobs):
        """Drains so many jobs; returns (seconds, CPU seconds of the web part, of all)."""
        sql = self.cluster.sql
        sql(f"SELECT claimd.pause_queue('default'); INSERT INTO claimd.job (kind) SELECT 'noop' FROM generate_series(1, {jobs})",
            DRAIN_S)
        sql("ANALYZE claimd.job; CHECKPOINT")
        time.sleep(2)  # until the pause is known everywhere
        last = int(sql("SELECT COALESCE(max(id), 0) FROM claimd.job_history"))
        before = self.cpu_s()
        sql("SELECT claimd.resume_queue('default')")
        end = time.monotonic() + DRAIN_S
        while sql("SELECT EXISTS (SELECT FROM claimd.job)") == "t":
            assert time.monotonic() < end, "the drain does not end"
            time.sleep(0.1)
        after = self.cpu_s()
        count, seconds = sql(f"""SELECT count(*), extract(epoch FROM max(finalized_at) - min(attempted_at))
            FROM claimd.job_history WHERE id > {last} AND state = 'completed' AND attempt = 1""").split("|")
        assert int(count) == jobs, f"{count} of {jobs} jobs were completed at once"
        return float(seconds), *(a - b for a, b in zip(after, before))

    def watched(self, jobs, streams):
        watching = Streams(self.cluster.url, streams)
        before = watching.cpu_s()
        try:
            return *self.drain(jobs), watching.cpu_s() - before
        finally:
            say(f"{watching.close() / 1e6:.1f} MB were sent to {streams} streams")


def say(text):
    print(text, file=sys.stderr, flush=True)


def median_of(values):
    return f"{statistics.median(values):.3f} (from {min(values):.3f} to {max(values):.3f})"


def measure(bench, options):
    bench.drain(options.jobs // 10)  # warms up
    rounds = []
    for number in range(options.rounds):
        results = {}
        for is_watched in ((False, True) if number % 2 == 0 else (True, False)):
            results[is_watched] = (bench.watched(options.jobs, options.streams) if is_watched
                                   else (*bench.drain(options.jobs), 0))
            say(f"round {number + 1}, {'watched' if is_watched else 'alone'}: {results[is_watched][0]:.2f} s")
        rounds.append((results[False], results[True]))
    return rounds


def report(rounds, jobs):
    print("| round | alone, jobs/s | watched, jobs/s | alone, CPU µs a job | watched | of it claimd-web and its sessions |"
          " reader of the streams |\n|---|---|---|---|---|---|---|")
    for number, (alone, watched) in enumerate(rounds, 1):
        us = [1e6 * value / jobs for value in (alone[2], watched[2], watched[1], watched[3])]
        print(f"| {number} | {jobs / alone[0]:,.0f} | {jobs / watched[0]:,.0f} | {us[0]:.1f} | {us[1]:.1f} | {us[2]:.2f} |"
              f" {us[3]:.2f} |")
    cpu = [watched[2] / alone[2] for alone, watched in rounds]
    share = [watched[1] / watched[2] for _, watched in rounds]
    print(f"speed, watched ÷ alone: {median_of([alone[0] / watched[0] for alone, watched in rounds])}")
    print(f"CPU per job, watched ÷ alone: {median_of(cpu)}")
    print(f"part of claimd-web and its sessions: {median_of(share)}")
    return statistics.median(cpu)


def main():
    if sys.argv[1:2] == ["--read"]:
        read_streams(sys.argv[2], int(sys.argv[3]))
        return
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bin")
    parser.add_argument("--jobs", type=int, default=200_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--streams", type=int, default=200)
    options = parser.parse_args()
    bench = Bench(options.bin)
    try:
        ratio = report(measure(bench, options), options.jobs)
    finally:
        bench.cluster.stop()
    sys.exit(1 if ratio > GOAL else 0)


if __name__ == "__main__":
    main()
