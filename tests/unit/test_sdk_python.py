#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The SDK for Python without a worker: handlers by claimd.run(), and a program that serves over two pipes, whose other
end is this test."""
import datetime
import json
import os
import select
import signal
import subprocess
import sys
import textwrap
import typing
import unittest

SDK = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "sdk", "python")
sys.path.insert(0, SDK)
import claimd  # noqa: E402

WAIT_S = 60


def fails(error):
    raise error


class Ends(unittest.TestCase):
    def ends(self, func, **expected):
        end, said = claimd.run(func)
        self.assertEqual({"n": 1, "delay_ms": None, **expected}, {"delay_ms": None, **end})
        return said

    def test_what_it_returns_is_the_result(self):
        for value in (None, 0, "ü", {"a": [1, None, True]}):
            self.ends(lambda job, value=value: value, end="done", result=value)

    def test_exceptions_of_ours_are_outcomes(self):
        self.ends(lambda job: fails(claimd.Retry(30, "jams")), end="retry", delay_ms=30000, error="jams")
        self.ends(lambda job: fails(claimd.Retry("jams")), end="retry", error="jams")
        self.ends(lambda job: fails(claimd.Retry()), end="retry", error="")
        self.ends(lambda job: fails(claimd.Snooze(1.5, "nap")), end="snooze", delay_ms=1500, error="nap")
        self.ends(lambda job: fails(claimd.Fail("bad")), end="fail", error="bad")
        self.ends(lambda job: fails(claimd.Cancel("void")), end="cancel", error="void")

    def test_delays_are_numbers_or_timedeltas_within_what_JSON_can_say(self):
        for delay, ms in ((0, 0), (0.0004, 0), (-3, 0), (datetime.timedelta(minutes=1), 60000), (1e300, 2**53 - 1)):
            self.assertEqual(ms, claimd.Retry(delay).delay_ms)
        self.ends(lambda job: fails(claimd.Retry(float("nan"))), end="retry",
                  error="ValueError: cannot convert float NaN to integer")

    def test_any_other_exception_is_a_retry_with_its_traceback_in_the_log(self):
        said = self.ends(lambda job: fails(KeyError("order")), end="retry", error="KeyError: 'order'")
        text = "\n".join(line["log"] for line in said)
        self.assertTrue(text.startswith("Traceback"), text)
        self.assertIn("fails(KeyError", text)

    def test_an_exception_in_a_library_of_ours_is_still_an_outcome(self):
        class Jam(claimd.Retry):
            pass
        self.ends(lambda job: fails(Jam(5, ValueError("jams"))), end="retry", delay_ms=5000, error="jams")

    def test_sys_exit_is_a_retry(self):
        self.ends(lambda job: sys.exit(3), end="retry", error="SystemExit: 3")

    def test_a_result_that_is_no_JSON_fails_for_good(self):
        loop = []
        loop.append(loop)
        deep = []
        for _ in range(100000):
            deep = [deep]
        for value in (float("nan"), float("inf"), object(), "\ud800", b"x", {1, 2}, loop, deep):
            end, _ = claimd.run(lambda job, value=value: value)
            self.assertEqual("fail", end["end"])
            self.assertTrue(end["error"].startswith("the result is not JSON: "), end)
        del deep

    def test_a_result_has_64_KiB_at_most_in_UTF_8(self):
        self.ends(lambda job: "x" * 65534, end="done", result="x" * 65534)
        self.ends(lambda job: "é" * 32768, end="fail", error="the result has 65538 bytes, at most 65536")

    def test_a_long_error_does_not_break_the_line(self):
        end, _ = claimd.run(lambda job: fails(claimd.Fail("😀" * 100000)))
        self.assertLess(len(json.dumps(end)), 128 * 1024)
        self.assertEqual(8192, len(end["error"]))

    def test_coroutines_are_run_to_their_end(self):
        async def later(job):
            import asyncio
            await asyncio.sleep(0)
            return job.args["x"] + 1
        end, _ = claimd.run(later, {"x": 1})
        self.assertEqual(2, end["result"])

        async def never(job):
            raise claimd.Fail("async")
        self.assertEqual("async", claimd.run(never)[0]["error"])


class Says(unittest.TestCase):
    def said(self, func, **line):
        return [{name: value for name, value in each.items() if name != "n"} for each in claimd.run(func, **line)[1]]

    def test_what_it_says_is_in_its_order(self):
        def func(job):
            job.progress(40, "häl\udcff")
            job.save({"at": 3})
            job.log("two\nlines")
            job.progress(41)
        self.assertEqual([{"progress": 40, "text": "häl\udcff"}, {"checkpoint": {"at": 3}}, {"log": "two"},
                          {"log": "lines"}, {"progress": 41}], self.said(func))

    def test_numbers_beyond_all_bounds_do_not_break_the_line(self):
        def func(job):
            for percent in (1e300, -(10**30), 40.9):
                job.progress(percent)
        self.assertEqual([{"progress": 101}, {"progress": -1}, {"progress": 40}], self.said(func))

    def test_long_lines_of_the_log_are_cut(self):
        said = self.said(lambda job: job.log("😀" * 100000))
        self.assertEqual([{"log": "😀" * 8192}], said)
        self.assertLess(len(json.dumps(said[0])), 128 * 1024)

    def test_a_checkpoint_is_checked_as_a_result_is(self):
        end, said = claimd.run(lambda job: job.save("x" * 65535))
        self.assertEqual(("fail", "the checkpoint has 65537 bytes, at most 65536"), (end["end"], end["error"]))
        self.assertEqual([], said)

    def test_a_job_has_what_the_worker_says_of_it(self):
        seen = []
        claimd.run(seen.append, [1], attempt=3, max_attempts=4, crashes=1, fence=9, key="job:7", job=7, queue="mail",
                   tags=["a"], metadata={"m": 1}, checkpoint=0, timeout_ms=5, predecessors=[])
        job = seen[0]
        self.assertEqual((7, "test", [1], 3, 4, 1, 9, "job:7", "mail", ["a"], {"m": 1}, 0, 5, []),
                         (job.id, job.kind, job.args, job.attempt, job.max_attempts, job.crashes, job.fence, job.key,
                          job.queue, job.tags, job.metadata, job.checkpoint, job.timeout_ms, job.predecessors))

    def test_a_job_without_tags_and_metadata_has_empty_ones(self):
        end, _ = claimd.run(lambda job: [job.tags, job.metadata], tags=None, metadata=None)
        self.assertEqual([[], {}], end["result"])

    def test_should_stop_says_why(self):
        self.assertEqual("cancel", claimd.run(lambda job: job.should_stop, stop="cancel")[0]["result"])
        self.assertIsNone(claimd.run(lambda job: job.should_stop)[0]["result"])

    def test_threads_of_a_handler_may_say_something(self):
        import threading

        def func(job):
            threads = [threading.Thread(target=lambda: [job.log("x") for _ in range(50)]) for _ in range(8)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        self.assertEqual([{"log": "x"}] * 400, self.said(func))


class Declares(unittest.TestCase):
    def test_a_kind_has_one_handler(self):
        claimd.job("test_one")(len)
        with self.assertRaisesRegex(ValueError, "test_one has two handlers"):
            claimd.job("test_one")(len)

    def test_types_can_be_looked_up(self):
        for thing in (claimd.job, claimd.run, claimd.main, claimd.enqueue, claimd.Job.progress, claimd.Job.save,
                      claimd.Job.log, claimd.Job.should_stop.fget, claimd.End.__init__):
            self.assertIn("return", typing.get_type_hints(thing))

    def test_main_without_a_worker_says_what_to_do(self):
        done = subprocess.run([sys.executable, "-c", "import claimd; claimd.main()"], env={"PYTHONPATH": SDK},
                              stderr=subprocess.PIPE, check=False)
        self.assertEqual(1, done.returncode)
        self.assertIn(b"claimd.run(function, args)", done.stderr)


class Cursor:
    def __init__(self):
        self.calls = []

    def cursor(self):
        return self

    def execute(self, *call):
        self.calls.append(call)

    def fetchone(self):
        return (812,)


class Enqueues(unittest.TestCase):
    def test_a_job_is_one_statement(self):
        conn = Cursor()
        self.assertEqual(812, claimd.enqueue(conn, "thumbnail", {"path": "ü"}, max_attempts=3, unique_key="a"))
        self.assertEqual(("SELECT claimd.enqueue(%s, %s::jsonb, max_attempts => %s, unique_key => %s)",
                          ("thumbnail", '{"path": "\\u00fc"}', 3, "a")), conn.calls[0])

    def test_metadata_is_given_as_JSON(self):
        conn = Cursor()
        claimd.enqueue(conn, "thumbnail", metadata={"m": 1}, tags=["a"])
        self.assertEqual(("thumbnail", "{}", '{"m": 1}', ["a"]), conn.calls[0][1])

    def test_options_are_names(self):
        with self.assertRaises(ValueError):
            claimd.enqueue(Cursor(), "thumbnail", **{"x => 1); DROP TABLE job; --": 1})


PROGRAM = """
    import asyncio, logging, os, subprocess, sys, threading, time, claimd

    @claimd.job("echo")
    def echo(job):
        return job.args

    @claimd.job("prints")
    def prints(job):
        print("printed", end="")
        print(" line")
        logging.info("logged %d", 1)
        sys.stderr.write("error\\n")
        subprocess.run(["/bin/echo", "of a child"], check=True, stdout=sys.stdout)
        print("not ended", end="")

    @claimd.job("polls")
    def polls(job):
        job.progress(1)
        while not job.should_stop:
            time.sleep(0.01)
        return job.should_stop

    @claimd.job("sleeps", interrupt=True)
    def sleeps(job):
        try:
            job.progress(1)
            time.sleep(600)
        except Exception:
            return "must not be caught"
        finally:
            job.log("cleaned up")

    @claimd.job("chatters", interrupt=True)
    def chatters(job):
        threading.Thread(target=lambda: [job.log("thread") for _ in range(2000)]).start()
        job.progress(1)
        while True:
            job.log("main")

    @claimd.job("awaits", interrupt=True)
    async def awaits(job):
        try:
            job.progress(1)
            await asyncio.sleep(600)
        finally:
            job.log("cleaned up")

    @claimd.job("async")
    async def later(job):
        await asyncio.sleep(0.01)
        return [len(asyncio.all_tasks()), id(asyncio.get_running_loop())]

    @claimd.job("forks")
    def forks(job):
        if os.fork() == 0:
            job.log("of the child")
            return "of the child"
        os.wait()
        return "of the parent"

    claimd.main()
"""


class Served(unittest.TestCase):
    """A program of the SDK; what is said to it and by it are lines."""

    def setUp(self):
        to, of = os.pipe(), os.pipe()
        env = {"PYTHONPATH": SDK, "CLAIMD_IN": str(to[0]), "CLAIMD_OUT": str(of[1])}
        self.program = subprocess.Popen([sys.executable, "-c", textwrap.dedent(PROGRAM)], env=env,
                                        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, pass_fds=(to[0], of[1]))
        os.close(to[0])
        os.close(of[1])
        self.to, self.of, self.rest, self.n = to[1], of[0], b"", 0
        self.say({"claimd": [1, 1]})
        self.hello = self.hear()

    def tearDown(self):
        self.program.kill()
        self.program.communicate()
        for fd in (self.to, self.of):
            if fd >= 0:
                os.close(fd)

    def say(self, *lines):
        data = b"".join(json.dumps(line).encode() + b"\n" for line in lines)
        while data:
            data = data[os.write(self.to, data):]

    def hear(self):
        while b"\n" not in self.rest:
            self.assertTrue(select.select([self.of], [], [], WAIT_S)[0], "it says nothing")
            chunk = os.read(self.of, 65536)
            self.assertTrue(chunk, "it has ended")
            self.rest += chunk
        line, self.rest = self.rest.split(b"\n", 1)
        return json.loads(line)

    def start(self, kind, args=None):
        self.n += 1
        self.say({"n": self.n, "job": 40 + self.n, "kind": kind, "args": args})

    def rest_of_run(self):
        said = []
        while not said or "end" not in said[-1]:
            line = self.hear()
            if line.pop("n") == self.n:  # a thread of a run before may still say something about that
                said.append(line)
        return said

    def run_job(self, kind, args=None):
        self.start(kind, args)
        return self.rest_of_run()

    def test_hello_names_the_version_and_all_kinds(self):
        self.assertEqual((1, True), (self.hello["claimd"], self.hello["sigterm"]))
        self.assertLess({"echo", "sleeps"}, set(self.hello["kinds"]))

    def test_job_after_job_over_the_same_pipes(self):
        for args in (1, {"x": "ü\u2028" * 100000}, None, "n" * 1000000):
            end = self.run_job("echo", args)[-1]
            self.assertEqual(args if len(json.dumps(args)) < 65536 else None, end.get("result"))

    def test_unknown_lines_and_members_are_ignored(self):
        self.say({"later": 1}, {"n": 1, "job": 1, "kind": "echo", "args": 7, "later": {"x": 1}}, {"colour": "red"})
        self.n = 1
        self.assertEqual([{"end": "done", "result": 7}], self.rest_of_run())

    def test_prints_and_logging_are_lines_of_the_log(self):
        said = self.run_job("prints")
        self.assertEqual(["printed line", "INFO root: logged 1", "error", "not ended"],
                         [line["log"] for line in said[:-1]])
        os.close(self.to)
        self.to = -1
        self.assertEqual(b"of a child\n", self.program.communicate(timeout=WAIT_S)[0])

    def test_a_stop_is_told_to_who_asks(self):
        self.start("polls")
        self.hear()
        self.say({"stop": "lease", "n": self.n})
        self.assertEqual("lease", self.rest_of_run()[-1]["result"])

    def test_a_stop_of_another_run_means_nothing(self):
        self.run_job("echo", 1)
        self.start("polls")
        self.hear()
        self.say({"stop": "lease", "n": 1}, {"stop": "cancel", "n": 2})
        self.assertEqual("cancel", self.rest_of_run()[-1]["result"])

    def test_a_stop_may_come_with_its_job(self):
        self.n = 1
        self.say({"n": 1, "job": 1, "kind": "polls"}, {"stop": "timeout", "n": 1})
        self.assertEqual("timeout", self.rest_of_run()[-1]["result"])

    def stop_by_signal(self, kind):
        self.start(kind)
        first = self.hear()
        while "progress" not in first:
            first = self.hear()
        self.program.send_signal(signal.SIGTERM)  # without a stop: it means nothing
        self.say({"stop": "timeout", "n": self.n})
        self.program.send_signal(signal.SIGTERM)
        return self.rest_of_run()

    def test_interrupt_ends_a_call_that_blocks_but_for_its_finally(self):
        self.assertEqual([{"log": "cleaned up"}, {"end": "retry", "delay_ms": None, "error": "stopped: timeout"}],
                         self.stop_by_signal("sleeps"))

    def test_interrupt_never_breaks_a_line(self):
        for _ in range(5):
            said = self.stop_by_signal("chatters")
            self.assertEqual("stopped: timeout", said[-1]["error"])
            self.assertEqual(1, self.run_job("echo", 1)[-1]["result"])

    def test_an_interrupted_coroutine_does_not_go_on_in_the_next_job(self):
        loop = self.run_job("async")[-1]["result"][1]
        self.assertEqual([{"log": "cleaned up"}, {"end": "retry", "delay_ms": None, "error": "stopped: timeout"}],
                         self.stop_by_signal("awaits"))
        self.assertEqual([1, loop], self.run_job("async")[-1]["result"])

    def test_a_SIGTERM_between_jobs_means_nothing(self):
        self.program.send_signal(signal.SIGTERM)
        self.assertEqual("of the job", self.run_job("echo", "of the job")[-1]["result"])

    def test_a_forked_child_is_mute(self):
        self.assertEqual([{"end": "done", "result": "of the parent"}], self.run_job("forks"))
        self.assertEqual(1, self.run_job("echo", 1)[-1]["result"])

    def test_it_leaves_when_the_host_does(self):
        os.close(self.to)
        self.to = -1
        self.assertEqual(0, self.program.wait(WAIT_S))


unittest.main()
