#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The page in a browser, against a running claimd-web in mode "operate" with the handlers of `claimctl dev`.

test_page.py URL OPERATOR_TOKEN READER_TOKEN [unittest's options]     against that one
test_page.py BIN [unittest's options]                                 against a cluster of its own, with the programs in
                                                                      the folder BIN

Every job of the tests has a tag of its own, so other jobs may be there. Exit code 77: no selenium or chromium."""

import os
import re
import signal
import sys
import unittest
import uuid

try:
    from api import Api
    from cluster import OPERATOR, READER, Cluster
    from page import Keys, Page, require_browser, run_tests
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)

PLACES = ("#/", "#/jobs", "#/queues", "#/schedules", "#/kinds", "#/cluster")
WIDTHS = (360, 768, 1280, 1920)
ACTS = {"Retry", "Cancel", "Delete", "Edit", "Enqueue a copy", "Pause", "Resume", "Drain", "Quiet", "Change",
        "Limit a key", "Remove", "Run now"}
EVIL = "<script>window.hurt = 1</script><img src=x onerror='window.hurt = 1'>"

BUTTONS = "return [...document.querySelectorAll('main button')].map((button) => button.innerText.trim())"

# What has the focus, and whether that can be seen: an outline, or a thick box in a diagram.
FOCUS = """
    const e = document.activeElement, style = getComputedStyle(e), box = e.querySelector('.box');
    const hasOutline = style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) >= 2;
    const hasBox = box !== null && parseFloat(getComputedStyle(box).strokeWidth) >= 2;
    return [e.outerHTML.slice(0, 80), e === document.body || hasOutline || hasBox];
"""

with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "audit.js"), encoding="utf-8") as file:
    AUDIT = file.read()


class PageTest(unittest.TestCase):
    """One browser for all tests of a class; each begins logged in as an operator."""

    @classmethod
    def setUpClass(cls):
        cls.page = Page(URL)
        cls.addClassCleanup(cls.page.close)
        cls.api = Api(URL, OPERATOR)

    def setUp(self):
        self.tag = "t" + uuid.uuid4().hex[:10]
        self.page.resize(1280)
        self.page.log_in(OPERATOR)

    def enqueue(self, kind="noop", args=None, **more):
        return self.api.enqueue(kind, args, tags=[self.tag], **more)

    def shows(self, *ids):
        """Waits until the list shows these jobs and no others."""
        wanted = {str(i) for i in ids}
        self.page.until(f"the rows {wanted}", lambda: set(self.page.rows()) == wanted)


class Finding(PageTest):
    def test_filters_are_in_the_url_and_back_takes_them_away(self):
        later = self.enqueue(delay="1h")
        waits = self.enqueue(queue="nobody_serves_this")
        self.page.go(f"#/jobs?tag={self.tag}")
        self.shows(later, waits)
        self.page.js("document.querySelector('.pill[title^=\"due later\"]').click()")
        self.shows(later)
        self.assertIn("state=scheduled", self.page.hash())
        self.page.driver.refresh()
        self.page.settle()
        self.shows(later)
        self.assertEqual(self.page.js(
            "return document.querySelector('.pill[title^=\"due later\"]').getAttribute('aria-pressed')"), "true")
        self.page.driver.back()
        self.shows(later, waits)
        self.page.driver.forward()
        self.shows(later)
        self.page.click("Clear")
        self.page.until("no filter", lambda: self.page.hash() == "#/jobs")

    def test_the_search_box_finds_a_filter_and_a_job(self):
        job = self.enqueue(delay="1h")
        self.page.go("#/jobs")
        self.page.press("/")
        self.page.press(f"tag:{self.tag}", Keys.ENTER)
        self.page.until("the filter", lambda: f"tag={self.tag}" in self.page.hash())
        self.shows(job)
        self.page.press(str(job), Keys.ENTER)  # the box keeps the focus
        self.page.until("the job", lambda: self.page.hash() == f"#/jobs/{job}")

    def test_a_search_in_args_says_what_it_has_read(self):
        jobs = [self.enqueue(delay="1h", args={"to": name}) for name in ("Ada", "Grace")]
        self.page.go(f"#/jobs?tag={self.tag}")
        self.page.press("/")
        self.page.press("q:ada", Keys.ENTER)
        self.shows(jobs[0])
        self.assertIn("2 jobs were searched", self.page.text())
        self.page.log_in(READER)
        self.page.go(f"#/jobs?tag={self.tag}&q=ada")
        self.page.until("the refusal", lambda: "only operators may search in args" in self.page.text())

    def test_a_refused_filter_is_told_and_can_be_taken_away(self):
        self.page.go("#/jobs?since=soon")
        self.page.until("the refusal", lambda: self.page.find("main [role=alert]"))
        self.page.click("remove the filter Since: soon")
        self.page.until("the list", lambda: self.page.find("main .panel"))

    def test_older_jobs_are_on_a_page_of_their_own(self):
        jobs = [self.enqueue(delay="1h") for _ in range(3)]
        self.page.go(f"#/jobs?tag={self.tag}&limit=2")
        self.shows(*jobs[1:])
        self.page.click("Older")
        self.shows(jobs[0])
        self.page.driver.back()
        self.shows(*jobs[1:])


class Inert(PageTest):
    def assert_inert(self):
        self.assertIsNone(self.page.js("return window.hurt ?? null"))
        self.assertEqual(len(self.page.all("main img, main script, main b.hurt")), 0)

    def test_html_in_args_and_tags_is_text(self):
        job = self.enqueue(args={"html": EVIL, EVIL: [EVIL]}, delay="1h")
        self.page.go(f"#/jobs/{job}")
        self.page.until("the args", lambda: "<script>" in self.page.text())
        self.assert_inert()

    def test_html_in_an_error_is_text(self):
        job = self.enqueue(kind="sleep", args={EVIL: 1})
        self.page.until("the end", lambda: self.api.job(job)["state"] not in ("available", "running"))
        self.page.go(f"#/jobs?tag={self.tag}")
        self.shows(job)
        self.page.go(f"#/jobs/{job}")
        self.page.until("the error", lambda: self.api.job(job)["error"] in self.page.text())
        self.assert_inert()

    def test_html_in_the_url_is_text(self):
        self.page.go("#/jobs?error=" + EVIL.replace(" ", "%20"))
        self.page.until("the filter", lambda: "onerror" in self.page.text())
        for place in ("jobs", "queues", "kinds", "schedules"):
            self.page.go(f"#/{place}/{EVIL.replace('/', '%2F').replace(' ', '%20')}")
            self.page.until("the refusal", lambda: self.page.find("main [role=alert]"))
        self.assert_inert()


class Acting(PageTest):
    def test_cancel_asks_first_and_changes_the_rows(self):
        jobs = [self.enqueue(delay="1h") for _ in range(3)]
        self.page.go(f"#/jobs?tag={self.tag}")
        self.shows(*jobs)
        self.page.js("document.querySelector('th input').click()")
        self.page.click("Cancel", ".bar")
        self.page.until("the question", lambda: "3 jobs will be cancelled" in self.page.text())
        self.assertEqual({self.api.job(i)["state"] for i in jobs}, {"scheduled"})
        self.page.click("Cancel 3 jobs", "dialog")
        self.page.until("the rows", lambda: all(self.page.state_of_row(i) == "cancelled" for i in jobs))
        self.assertEqual({self.api.job(i)["state"] for i in jobs}, {"cancelled"})

    def test_all_that_match_are_counted_before_they_are_cancelled(self):
        jobs = [self.enqueue(delay="1h") for _ in range(5)]
        self.page.go(f"#/jobs?tag={self.tag}&limit=2")
        self.shows(*jobs[3:])
        self.page.js("document.querySelector('th input').click()")
        self.page.click("Select all that match", ".bar")
        self.page.click("Cancel", ".bar")
        self.page.until("the count", lambda: "5 jobs will be cancelled" in self.page.text())
        self.page.click("Cancel 5 jobs", "dialog")
        self.page.until("the end", lambda: {self.api.job(i)["state"] for i in jobs} == {"cancelled"})

    def test_retry_of_a_cancelled_job_makes_it_run(self):
        job = self.enqueue(delay="1h")
        self.api.ask("POST", f"jobs/{job}/cancel")
        self.page.go(f"#/jobs/{job}")
        self.page.click("Retry", "main")
        self.page.click("Retry 1 job", "dialog")
        self.page.until("its end", lambda: self.api.job(job)["state"] == "completed")
        self.page.until("the page", lambda: "completed" == self.page.js(
            "return document.querySelector('.page-head .mark').innerText.trim()"))

    def test_edited_args_are_saved_and_a_second_editor_is_told(self):
        job = self.enqueue(args={"ms": 1}, kind="sleep", delay="1h")
        self.page.go(f"#/jobs/{job}")
        self.page.click("Edit", "main")
        self.fill_args('{"ms": 7}')
        self.page.click("Save", "dialog")
        self.page.until("the edit", lambda: self.api.job(job)["args"] == {"ms": 7})
        self.page.until("the new version", lambda: '"ms": 7' in self.page.text())
        self.page.click("Edit", "main")
        version = self.api.job(job)["version"]
        status, _ = self.api.ask("PATCH", f"jobs/{job}", {"args": {"ms": 9}}, If_Match=f'"{version}"')
        self.assertEqual(status, 200)
        self.fill_args('{"ms": 8}')
        self.page.click("Save", "dialog")
        self.page.until("the refusal", lambda: "Somebody else edited this job" in self.page.text())
        self.assertEqual(self.api.job(job)["args"], {"ms": 9})

    def test_args_that_are_no_json_are_not_sent(self):
        job = self.enqueue(delay="1h")
        self.page.go(f"#/jobs/{job}")
        self.page.click("Edit", "main")
        self.fill_args("{")
        self.page.click("Save", "dialog")
        self.page.until("the refusal", lambda: "The args are not JSON" in self.page.text())
        self.assertEqual(self.api.job(job)["version"], 1)

    def test_a_copy_is_enqueued(self):
        job = self.enqueue(args={"n": 4})
        self.page.go(f"#/jobs/{job}")
        self.page.click("Enqueue a copy", "main")
        self.page.click("Enqueue", "dialog")
        self.page.until("the copy", lambda: self.page.hash() not in ("", f"#/jobs/{job}"))
        copy = self.page.hash().rsplit("/", 1)[1]
        self.assertEqual(self.api.job(copy)["args"], {"n": 4})

    def test_a_queue_is_paused_and_resumed(self):
        self.page.go("#/queues/default")
        self.addCleanup(self.api.ask, "POST", "queues/default/resume")
        self.page.click("Pause", "main")
        self.page.click("Pause", "dialog")
        self.page.until("the pause", lambda: self.api.ask("GET", "queues/default")[1]["queue"]["paused"])
        self.page.click("Resume", "main")
        self.page.until("the resume", lambda: not self.api.ask("GET", "queues/default")[1]["queue"]["paused"])

    def test_a_limit_of_a_key_is_set_changed_and_removed(self):
        key = f"tenant:{self.tag}"
        limit = lambda: next((k for k in self.api.ask("GET", "keys")[1]["keys"] if k["key"] == key), {}).get("max_running")
        row = f"main tr[data-row='{key}']"
        self.page.go("#/queues")
        self.page.click("Limit a key", "main")
        self.fill("dialog input", 0, key)
        self.page.click("Save", "dialog")
        self.page.until("the refusal", lambda: "Give a key and a limit" in self.page.text())
        self.fill("dialog input", 1, "3")
        self.page.click("Save", "dialog")
        self.page.until("the limit", lambda: limit() == 3)
        self.page.click("Change", row)
        self.fill("dialog input", 0, "5")
        self.page.click("Save", "dialog")
        self.page.until("the change", lambda: limit() == 5)
        self.page.click("Remove", row)
        self.page.click("Remove", "dialog")
        self.page.until("its end", lambda: limit() is None)
        self.page.until("the row's end", lambda: not self.page.find(row))

    def fill(self, css, i, text):
        self.page.until("the field", lambda: len(self.page.all(css)) > i)
        self.page.js("""const f = document.querySelectorAll(arguments[0])[arguments[1]]; f.value = arguments[2];
                     f.dispatchEvent(new Event('input'))""", css, i, text)

    def fill_args(self, text):
        self.page.until("the field", lambda: self.page.find("dialog textarea"))
        self.page.js("""const t = document.querySelector('dialog textarea'); t.value = arguments[0];
                     t.dispatchEvent(new Event('input'))""", text)


class Watching(PageTest):
    def scheduled(self):
        return self.page.js("return document.querySelector('.pill[title^=\"due later\"] .quiet')?.innerText")

    def test_counters_and_rows_move_without_a_reload(self):
        self.page.go(f"#/jobs?tag={self.tag}")
        self.page.js("window.isTheSame = true")
        before = self.page.until("the counter", self.scheduled)
        job = self.enqueue(delay="1h")
        self.shows(job)
        self.page.until("the counter to move", lambda: self.scheduled() != before)
        self.assertTrue(self.page.js("return window.isTheSame"))

    def test_the_log_of_a_running_job_grows_without_a_reload(self):
        if CLUSTER is None:
            self.skipTest("the log is written by SQL")
        job = self.enqueue(kind="sleep", args={"ms": 60000})
        self.addCleanup(self.api.ask, "POST", f"jobs/{job}/cancel")
        self.page.go(f"#/jobs/{job}")
        self.page.until("its start", lambda: self.api.job(job)["state"] == "running")
        box = "document.querySelector('[aria-label=\"log of the running attempt\"]')"
        log = lambda: self.page.js(f"return {box}?.innerText")
        long = "\n".join(f"line {i}" for i in range(200))
        for text in ("one line", "one line\n" + EVIL, long, long + "\nthe last"):
            CLUSTER.sql(f"""INSERT INTO claimd.job_live (id, fence, log) SELECT id, fence, $${text}$$ FROM claimd.job WHERE id = {job}
                            ON CONFLICT (id) DO UPDATE SET log = excluded.log""")
            self.page.until("the log", lambda: log() == text)
            self.page.until("its end", lambda: self.page.js(
                f"const b = {box}; return b.scrollTop + b.clientHeight >= b.scrollHeight - 4"))
        self.assertIsNone(self.page.js("return window.hurt ?? null"))

    def test_a_lost_stream_is_replaced_by_polls_and_comes_back(self):
        # Without SharedWorker the stream is the page's own, so that its requests can be refused here.
        self.page.cdp("Network.enable")
        source = "delete window.SharedWorker"
        script = self.page.cdp("Page.addScriptToEvaluateOnNewDocument", source=source)["identifier"]
        self.addCleanup(self.page.cdp, "Page.removeScriptToEvaluateOnNewDocument", identifier=script)
        self.addCleanup(self.page.cdp, "Network.setBlockedURLs", urls=[])
        self.page.cdp("Network.setBlockedURLs", urls=["*/api/v1/events"])
        self.page.log_in(OPERATOR)
        self.page.go(f"#/jobs?tag={self.tag}")
        self.page.until("polls", lambda: self.page.find(".live.polling"))
        self.shows(self.enqueue(delay="1h"))
        self.page.cdp("Network.setBlockedURLs", urls=[])
        self.page.until("the stream", lambda: self.page.find(".live.live"))

    def test_a_paused_refresh_stands_still(self):
        self.page.go("#/jobs")
        self.page.until("the stream", lambda: self.page.find(".live.live, .live.polling"))
        for text in ("every 10 s", "every 60 s", "paused", "live"):
            self.page.js("document.querySelector('button.live').click()")
            self.page.until(text, lambda: f"refresh: {text}," in self.page.js(
                "return document.querySelector('button.live').getAttribute('aria-label')"))


class Reading(PageTest):
    def test_a_reader_sees_no_buttons_and_is_refused(self):
        job = self.enqueue(args={"secret": 1}, delay="1h")
        self.page.log_in(READER)
        for place in (*PLACES, f"#/jobs/{job}", f"#/jobs?tag={self.tag}", "#/queues/default"):
            self.page.go(place)
            buttons = self.page.js(BUTTONS)
            self.assertEqual(ACTS.intersection(buttons), set(), place)
            self.assertEqual(self.page.all("main input[type=checkbox]"), [], place)
        reader = Api(URL, READER)
        for method, path in (("POST", f"jobs/{job}/cancel"), ("DELETE", f"jobs/{job}"),
                             ("POST", "queues/default/pause")):
            self.assertEqual(reader.ask(method, path)[0], 403, path)

    def test_a_wrong_token_is_refused_and_a_right_one_lets_in(self):
        self.page.driver.delete_all_cookies()
        self.page.driver.get("about:blank")
        self.page.driver.get(URL)
        self.page.until("the login page", lambda: self.page.find("input[type=password]"))
        self.page.find("input[type=password]").send_keys("not-a-token-of-anyone", Keys.ENTER)
        self.page.until("the refusal", lambda: "Unknown token" in self.page.text())
        field = self.page.find("input[type=password]")
        field.clear()
        field.send_keys(OPERATOR, Keys.ENTER)
        self.page.until("the page", lambda: self.page.find(".frame"))


class Accessible(PageTest):
    def places(self):
        job = self.enqueue(kind="sleep", args={"bad": 1})
        self.page.until("the end", lambda: self.api.job(job)["state"] not in ("available", "running"))
        return (*PLACES, f"#/jobs/{job}", "#/queues/default", "#/kinds/sleep",
                "#/jobs?state=running,discarded&kind=sleep")

    def test_everything_is_readable_and_named_in_both_themes(self):
        places = self.places()
        for scheme in ("light", "dark"):
            self.page.scheme(scheme)
            for place in places:
                self.page.go(place)
                self.assertEqual(self.page.js(AUDIT), [], f"{place}, {scheme}")

    def test_no_page_is_wider_than_the_window(self):
        places = self.places()
        for width in WIDTHS:
            self.page.resize(width)
            for place in places:
                self.page.go(place)
                self.assertEqual(self.page.js(AUDIT), [], f"{place}, {width} px")

    def test_rows_are_walked_selected_and_opened_by_keys(self):
        jobs = [self.enqueue(delay="1h") for _ in range(3)]
        self.page.go(f"#/jobs?tag={self.tag}")
        self.shows(*jobs)
        self.page.press("j")
        self.page.press("j")
        self.page.press("k")
        self.page.press("x")
        self.page.until("the selection", lambda: "1 job selected" in self.page.text())
        self.page.press("j")
        self.page.press(Keys.ENTER)
        self.page.until("the second job", lambda: self.page.hash() == f"#/jobs/{jobs[1]}")

    def test_letters_go_to_pages_and_a_question_mark_lists_them(self):
        self.page.go("#/")
        for key, place in (("q", "#/queues"), ("j", "#/jobs"), ("c", "#/cluster"), ("o", "#/")):
            self.page.press("g", key)
            self.page.until(place, lambda: self.page.hash() == place)
        self.page.press("?")
        self.page.until("the list", lambda: self.page.find("dialog[open]"))
        self.page.press(Keys.ESCAPE)
        self.page.until("its end", lambda: not self.page.find("dialog[open]"))

    def test_the_focus_is_visible_wherever_tab_takes_it(self):
        for place in PLACES:
            self.page.go(place)
            seen = set()
            for _ in range(24):
                self.page.press(Keys.TAB)
                name, is_seen = self.page.js(FOCUS)
                seen.add(name)
                self.assertTrue(is_seen, f"{place}: no focus on {name}")
            self.assertGreater(len(seen), 9, place)

    def test_a_dialog_keeps_the_focus_and_gives_it_back(self):
        self.page.go("#/queues/default")
        self.page.focus("Pause", "main")
        self.page.press(Keys.ENTER)
        self.page.until("the question", lambda: self.page.find("dialog[open]"))
        for _ in range(8):
            self.page.press(Keys.TAB)
            self.assertTrue(self.page.js("""return document.activeElement === document.body
                || !!document.activeElement.closest('dialog')"""))
        self.page.press(Keys.ESCAPE)
        self.page.until("the focus on the button", lambda: self.page.js(
            "return document.activeElement.innerText.trim()") == "Pause")

    def test_nothing_is_reported_by_the_browser(self):
        self.page.driver.get_log("browser")
        for place in PLACES:
            self.page.go(place)
        severe = [e["message"] for e in self.page.driver.get_log("browser") if e["level"] == "SEVERE"
                  and "favicon" not in e["message"]]
        self.assertEqual(severe, [])


class Dying(PageTest):
    def test_a_killed_worker_is_shown_and_its_job_runs_again(self):
        if CLUSTER is None:
            self.skipTest("the workers are not of this host")
        job = self.enqueue(kind="sleep", args={"ms": 2000})
        self.page.go(f"#/jobs/{job}")
        pid = self.page.until("its worker", lambda: self.api.job(job)["pid"])
        os.kill(pid, signal.SIGKILL)
        self.page.go("#/cluster")
        self.page.until("the dead worker, or no worker once its job is free", lambda: not re.search(
            rf"{pid}\s+live", self.page.text()))
        self.page.until("its end", lambda: self.api.job(job)["state"] == "completed")
        self.assertEqual(self.api.job(job)["attempt"], 2)
        self.page.go(f"#/jobs/{job}")
        self.page.until("both attempts", lambda: re.search(
            r"Attempt 1 started.*Attempt 1 (lost|crashed).*Attempt 2 started", self.page.text(), re.S))


def main(words):
    global URL, OPERATOR, READER, CLUSTER
    CLUSTER = None
    require_browser()
    if words and words[0].startswith("http"):
        URL, OPERATOR, READER, *words = words
    else:
        CLUSTER = Cluster(words.pop(0))
        URL = CLUSTER.url
    return run_tests(words, CLUSTER)


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1:]))
