/* SPDX-License-Identifier: Apache-2.0
 *
 * The output of handlers: which job it belongs to, where it goes, and that no handler waits for the
 * log's reader. */
#include "base/clock.h"
#include "runner_harness.h"
#include "support/suite.h"

#include <check.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>

static struct harness h;
static int log_ends[2];

static void setup(void)
{
    size_t len = 0;
    ck_assert_int_eq(pipe2(log_ends, O_CLOEXEC), 0);
    h.log_fd = log_ends[1];
    harness_start(&h, harness_test_plugins());
    (void)close(log_ends[1]);
    (void)harness_hello(&h, &len);
}

static void teardown(void)
{
    harness_stop(&h);
    (void)close(log_ends[0]);
}

static bool has_text(const char *bytes, size_t len, const char *text)
{
    return len > 0 && memmem(bytes, len, text, strlen(text)) != NULL;
}

/* Reads the log until it has `text`, and keeps what it read. */
static void read_log(struct buf *b, const char *text)
{
    while (!has_text(buf_at(b), b->len, text)) {
        struct pollfd p = {.fd = log_ends[0], .events = POLLIN};
        ck_assert_msg(poll(&p, 1, 60000) == 1, "the log has no '%s'", text);
        ck_assert_int_eq(buf_reserve(b, 65536, NULL), STATUS_OK);
        ssize_t n = read(log_ends[0], buf_at(b) + b->len, 65536);
        ck_assert_msg(n > 0, "the log ends without '%s'", text);
        buf_grew(b, (size_t)n);
    }
}

static void check_tail(const struct result_frame *r, const char *text, bool is_wanted)
{
    ck_assert_msg(has_text(r->log_tail, r->log_tail_len, text) == is_wanted,
                  "the log tail is '%.*s', and '%s' is %s", (int)r->log_tail_len, r->log_tail, text,
                  is_wanted ? "missing" : "not to be in it");
}

START_TEST(G1_what_a_handler_and_its_children_print_is_in_the_log_of_its_run_alone)
{
    struct result_frame r;
    harness_run(&h, "prints", "{\"text\": \"one\", \"end\": \"fail\"}", &r);
    ck_assert_int_eq(r.outcome, CLAIMD_FAIL);
    check_tail(&r, "one to stderr\n", true);
    check_tail(&r, "one to stdout, without an end of the line", true);
    check_tail(&r, "Traceback of a child\n", true);
    harness_run(&h, "prints", "{\"text\": \"two\", \"end\": \"done\"}", &r);
    harness_run(&h, "prints", "{\"text\": \"three\", \"end\": \"fail\"}", &r);
    check_tail(&r, "three to stderr\n", true);
    check_tail(&r, "two", false);
    check_tail(&r, "one", false);
}
END_TEST

START_TEST(every_line_that_is_printed_is_a_line_of_the_log_that_names_the_job)
{
    struct result_frame r;
    struct buf log = BUF_INIT(1 << 20);
    harness_run(&h, "prints", "{\"text\": \"a b\", \"end\": \"done\"}", &r);
    read_log(&log, "event=handler_output job=1 text=\"a b to stderr\"\n");
    read_log(&log,
             "event=handler_output job=1 text=\"a b to stdout, without an end of the line\"\n");
    buf_release(&log);
}
END_TEST

START_TEST(F5_a_handler_that_prints_waits_for_no_reader_of_the_log)
{
    struct result_frame r;
    struct buf log = BUF_INIT(64 << 20);
    harness_run(&h, "prints_much", "{\"lines\": 200000}", &r); /* the log is not read */
    ck_assert_int_eq(r.outcome, CLAIMD_FAIL);
    ck_assert_uint_eq(r.log_tail_len, JOB_LOG_TAIL_MAX);
    check_tail(&r,
               "\nline 199999 of many that a handler prints\n"
               "line 200000 of many that a handler prints\n",
               true);
    read_log(&log, "event=handler_output");
    harness_run(&h, "prints", "{\"text\": \"x\", \"end\": \"done\"}", &r);
    read_log(&log, "event=handler_output_dropped lines=");
    buf_release(&log);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("what handlers print");
    TCase *t = tcase_create("a runner");
    tcase_set_timeout(t, 120);
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, G1_what_a_handler_and_its_children_print_is_in_the_log_of_its_run_alone);
    tcase_add_test(t, every_line_that_is_printed_is_a_line_of_the_log_that_names_the_job);
    tcase_add_test(t, F5_a_handler_that_prints_waits_for_no_reader_of_the_log);
    suite_add_tcase(suite, t);
    return suite_run(suite);
}
