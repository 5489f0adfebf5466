/* SPDX-License-Identifier: Apache-2.0
 *
 * One job in a real runner, well-behaved or not; this program plays the worker. */
#include "base/clock.h"
#include "cluster/servers.h"
#include "model/job.h"
#include "protocol/run_said.h"
#include "runner_harness.h"
#include "support/suite.h"

#include <check.h>
#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/wait.h>

static struct harness h;

static void start_shipped(void)
{
    size_t len = 0;
    harness_start(&h, harness_plugins());
    (void)harness_hello(&h, &len);
}

static void start_misbehaving(void)
{
    size_t len = 0;
    harness_start(&h, harness_test_plugins());
    (void)harness_hello(&h, &len);
}

static void stop(void)
{
    harness_stop(&h);
}

static void assert_error(const struct result_frame *r, const char *wanted)
{
    ck_assert_msg(r->error_len == strlen(wanted) && memcmp(r->error, wanted, r->error_len) == 0,
                  "error is '%.*s', wanted '%s'", (int)r->error_len, r->error, wanted);
}

/* The stream has ended without a RESULT for the job that was started. */
static void assert_crashed(void)
{
    enum frame_type type = FRAME_HELLO;
    const char *body = NULL;
    size_t len = 0;
    ck_assert_int_eq(harness_read(&h, &type, &body, &len), STATUS_UNAVAILABLE);
    ck_assert_int_eq(atomic_load(&h.page->started_nonce), h.last_id + 100);
}

START_TEST(hello_names_each_kind_with_its_effective_numbers)
{
    harness_stop(&h);
    harness_start(&h, harness_test_plugins());
    size_t len = 0;
    const char *text = harness_hello(&h, &len);
    json_t *hello = json_loadb(text, len, 0, NULL);
    ck_assert_int_eq(json_integer_value(json_object_get(hello, "protocol")),
                     RUNNER_PROTOCOL_VERSION);
    size_t i = 0;
    json_t *kind = NULL;
    bool seen = false;
    json_array_foreach(json_object_get(hello, "kinds"), i, kind)
    {
        if (strcmp(json_string_value(json_object_get(kind, "name")), "spin") == 0) {
            seen = true;
            ck_assert_int_eq(json_integer_value(json_object_get(kind, "timeout_ms")), 1000);
            ck_assert_int_eq(json_integer_value(json_object_get(kind, "max_attempts")), 25);
            ck_assert_int_eq(json_integer_value(json_object_get(kind, "max_crashes")), 3);
            ck_assert(json_is_false(json_object_get(kind, "at_most_once")));
        }
    }
    ck_assert(seen);
    json_decref(hello);
}
END_TEST

START_TEST(a_job_is_done_and_its_start_was_announced)
{
    struct result_frame r;
    ck_assert_int_eq(atomic_load(&h.page->started_nonce), 0);
    harness_run(&h, "noop", "{}", &r);
    ck_assert_int_eq(r.outcome, CLAIMD_DONE);
    ck_assert_uint_eq(r.result_len, 0);
    ck_assert(!r.leaving);
    ck_assert_int_eq(atomic_load(&h.page->started_nonce), r.nonce);
    for (int i = 0; i < 1000; i++) {
        harness_run(&h, "noop", "{}", &r);
    }
}
END_TEST

START_TEST(jobs_that_were_sent_ahead_are_answered_in_order)
{
    struct result_frame r;
    for (int i = 0; i < RUNNER_DEPTH; i++) {
        harness_send(&h, "noop", "{}");
    }
    for (int i = 1; i <= 1000; i++) {
        harness_result(&h, &r);
        ck_assert_int_eq(r.id, i);
        harness_send(&h, "noop", "{}");
    }
}
END_TEST

START_TEST(G5_a_job_that_was_taken_back_is_never_begun)
{
    struct result_frame r;
    harness_send(&h, "sleep", "{\"ms\": 300}");
    ck_assert(WAIT_UNTIL(atomic_load(&h.page->started_nonce) == 101, 5 * US_PER_S));
    ck_assert(!harness_take_back(&h)); /* it has begun */
    harness_send(&h, "noop", "{}");
    ck_assert(harness_take_back(&h));
    harness_send(&h, "noop", "{}");
    harness_result(&h, &r);
    ck_assert_int_eq(r.id, 1);
    harness_result(&h, &r);
    ck_assert_int_eq(r.id, 3);
}
END_TEST

START_TEST(a_runner_waits_for_room_in_the_ring_and_loses_no_result)
{
    struct result_frame r;
    char *args = malloc(40001);
    ck_assert_ptr_nonnull(args);
    memset(args, '1', 40000);
    args[40000] = '\0';
    for (int i = 0; i < 4; i++) { /* more than the ring holds, less than the socket */
        harness_send(&h, "echo", args);
    }
    ck_assert(WAIT_UNTIL(atomic_load(&h.page->started_nonce) == 104, 5 * US_PER_S));
    for (int i = 1; i <= 4; i++) {
        harness_result(&h, &r);
        ck_assert_int_eq(r.id, i);
        ck_assert_uint_eq(r.result_len, 40000);
    }
    free(args);
}
END_TEST

START_TEST(the_largest_args_arrive)
{
    char *args = malloc(JOB_ARGS_MAX + 1);
    ck_assert_ptr_nonnull(args);
    memset(args, ' ', JOB_ARGS_MAX);
    memcpy(args, "{\"ms\": 0}", 9);
    args[JOB_ARGS_MAX] = '\0';
    struct result_frame r;
    harness_run(&h, "sleep", args, &r);
    ck_assert_int_eq(r.outcome, CLAIMD_DONE);
    free(args);
}
END_TEST

START_TEST(a_kind_that_nobody_serves_is_answered_with_a_reason)
{
    struct result_frame r;
    harness_run(&h, "noopx", "{}", &r);
    ck_assert_int_eq(r.outcome, RESULT_UNSERVED);
    assert_error(&r, "no plugin of this runner serves kind noopx");
    ck_assert_int_eq(atomic_load(&h.page->started_nonce), 0);
}
END_TEST

START_TEST(the_end_of_the_stream_ends_an_idle_runner_with_0)
{
    ck_assert_int_eq(shutdown(h.fd, SHUT_WR), 0);
    int status = harness_wait(&h);
    ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}
END_TEST

START_TEST(G5_what_is_no_job_ends_the_runner)
{
    ck_assert_int_gt(send(h.fd, "no frame at all", 15, MSG_NOSIGNAL), 0);
    int status = harness_wait(&h);
    ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 1);
}
END_TEST

START_TEST(G1_a_handler_that_crashes_or_exits_gives_no_result)
{
    static const char *const kinds[] = {"crash_segv", "crash_abort", "crash_exit0"};
    harness_send(&h, kinds[_i], "{}");
    assert_crashed();
    int status = harness_wait(&h);
    ck_assert(_i == 2 ? WIFEXITED(status) : WIFSIGNALED(status));
}
END_TEST

/* The ring may have its result: whether that counts depends on which is faster. */
START_TEST(G4_a_handler_that_closes_our_descriptors_ends_its_runner)
{
    harness_send(&h, "close_fds", "{}");
    (void)harness_wait(&h);
}
END_TEST

START_TEST(G5_garbage_on_the_frames_is_seen_as_such)
{
    harness_send(&h, "garbage", "{}");
    enum frame_type type = FRAME_HELLO;
    const char *body = NULL;
    size_t len = 0;
    enum status st = harness_read(&h, &type, &body, &len);
    if (st == STATUS_OK) { /* the run's result, which comes through the ring */
        st = harness_read(&h, &type, &body, &len);
    }
    ck_assert_int_eq(st, STATUS_INVALID);
}
END_TEST

START_TEST(a_result_beyond_the_limit_fails_the_job_with_a_reason)
{
    struct result_frame r;
    harness_run(&h, "huge_result", "{}", &r);
    ck_assert_int_eq(r.outcome, CLAIMD_FAIL);
    ck_assert_uint_eq(r.result_len, 0);
    assert_error(&r, "the result of 199999 bytes is too long");
    harness_run(&h, "heedless_result", "{}", &r);
    ck_assert_int_eq(r.outcome, CLAIMD_FAIL);
    ck_assert_uint_eq(r.result_len, 0);
    assert_error(&r, "result refused: 200000 bytes, at most 65536");
    harness_run(&h, "echo", "[1e70000]", &r); /* as PostgreSQL prints it */
    ck_assert_int_eq(r.outcome, CLAIMD_FAIL);
    ck_assert_uint_eq(r.result_len, 0);
    harness_run(&h, "echo", "[1e60000,\"1e70000\"]", &r);
    ck_assert_int_eq(r.outcome, CLAIMD_DONE);
}
END_TEST

START_TEST(a_result_passes_as_the_bytes_that_it_is)
{
    static const struct {
        const char *kind;
        const char *result;
    } cases[] = {
        {"bad_result_nul", "{\"text\": \"a\\u0000b\"}"},
        {"bad_result_surrogate", "{\"text\": \"\\ud800\"}"},
        {"bad_result_number", "{\"number\": 1e400000}"},
        {"bad_result_utf8", "{\"text\": \"half \xe2\x82\"}"},
    };
    struct result_frame r;
    harness_run(&h, cases[_i].kind, "{}", &r);
    ck_assert_int_eq(r.outcome, CLAIMD_DONE);
    ck_assert_uint_eq(r.result_len, strlen(cases[_i].result));
    ck_assert_mem_eq(r.result, cases[_i].result, r.result_len);
}
END_TEST

START_TEST(fail_retry_and_no_outcome_are_told_apart)
{
    struct result_frame r;
    harness_run(&h, "fail", "{}", &r);
    ck_assert_int_eq(r.outcome, CLAIMD_FAIL);
    assert_error(&r, "told to fail, attempt 1");
    harness_run(&h, "retry", "{\"until\": 2}", &r);
    ck_assert_int_eq(r.outcome, CLAIMD_RETRY);
    ck_assert_int_eq(r.retry_after_us, 0);
    assert_error(&r, "attempt 1 is too early");
    harness_run(&h, "retry", "{\"until\": 1}", &r);
    ck_assert_int_eq(r.outcome, CLAIMD_DONE);
    ck_assert_uint_eq(r.error_len, 0);
    harness_run(&h, "no_outcome", "{}", &r);
    ck_assert_int_eq(r.outcome, CLAIMD_FAIL);
    assert_error(&r, "the handler returned 77, which is not an outcome");
}
END_TEST

START_TEST(a_snooze_and_a_cancel_come_with_their_reasons)
{
    struct result_frame r;
    char path[96];
    char args[160];
    (void)snprintf(path, sizeof path, "%s/nap-XXXXXX", suite_tmp());
    int fd = mkstemp(path);
    ck_assert_int_ge(fd, 0);
    (void)snprintf(args, sizeof args, "{\"path\": \"%s\", \"times\": 2, \"ms\": 5}", path);
    harness_run(&h, "snooze", args, &r);
    ck_assert_int_eq(r.outcome, CLAIMD_SNOOZE);
    ck_assert_int_eq(r.retry_after_us, 5000);
    assert_error(&r, "nap 1");
    harness_run(&h, "snooze_once", args, &r);
    ck_assert_int_eq(r.outcome, CLAIMD_RETRY);
    ck_assert_int_eq(r.retry_after_us, 5000);
    assert_error(&r, "charged, a job of an at_most_once kind can't snooze: nap 2");
    harness_run(&h, "give_up", "{}", &r);
    ck_assert_int_eq(r.outcome, CLAIMD_CANCEL);
    assert_error(&r, "order 7 is void");
    (void)close(fd);
    (void)unlink(path);
}
END_TEST

START_TEST(progress_and_checkpoint_are_refused_outside_their_limits_and_change_nothing_then)
{
    static const char codes[] = "[-1,-1,-1,-1,-1,-1,-1,-1,-1,-1,-1,-1,0,0]";
    struct result_frame r;
    char text[RUNNER_PROGRESS_BYTES];
    static char json[JOB_CHECKPOINT_MAX];
    int percent = 0;
    size_t len = 0;
    uint32_t count = 0;
    harness_run(&h, "refusals", "{\"ms\": 1}", &r);
    ck_assert_uint_eq(r.result_len, strlen(codes));
    ck_assert_mem_eq(r.result, codes, r.result_len);
    ck_assert(run_said_read_progress(h.page, h.last_id + 100, &count, &percent, text, &len));
    ck_assert_uint_eq(count, 2); /* one change */
    ck_assert_int_eq(percent, 100);
    ck_assert_uint_eq(len, JOB_PROGRESS_MAX);
    ck_assert(!run_said_read_progress(h.page, h.last_id + 100, &count, &percent, text, &len));
    count = 0;
    ck_assert(run_said_read_checkpoint(h.page, h.last_id + 100, &count, json, &len));
    ck_assert_uint_eq(count, 2);
    ck_assert_uint_eq(len, strlen("[1, \"two\"]"));
    ck_assert_mem_eq(json, "[1, \"two\"]", len);
}
END_TEST

START_TEST(a_delay_beyond_366_days_is_the_usual_backoff_and_is_said)
{
    struct result_frame r;
    harness_run(&h, "retry", "{\"until\": 2, \"ms\": 31622400000}", &r);
    ck_assert_int_eq(r.retry_after_us, JOB_DELAY_US_MAX);
    assert_error(&r, "attempt 1 is too early");
    harness_run(&h, "retry", "{\"until\": 2, \"ms\": 31622400001}", &r);
    ck_assert_int_eq(r.outcome, CLAIMD_RETRY);
    ck_assert_int_eq(r.retry_after_us, -1);
    assert_error(&r, "retry after 31622400001 ms is more than 31622400000 (366 days), the usual "
                     "backoff is used: attempt 1 is too early");
    harness_run(&h, "retry", "{\"until\": 2, \"ms\": -9223372036854775808}", &r);
    ck_assert_int_eq(r.retry_after_us, -1);
    assert_error(&r, "attempt 1 is too early");
}
END_TEST

START_TEST(log_tail_and_error_are_bounded_and_keep_their_ends)
{
    struct result_frame r;
    harness_run(&h, "chatter", "{}", &r);
    ck_assert_uint_eq(r.log_tail_len, JOB_LOG_TAIL_MAX);
    ck_assert_mem_eq(r.log_tail + r.log_tail_len - 10, "line 4999\n", 10);
    ck_assert_uint_eq(r.error_len, JOB_ERROR_MAX);
    ck_assert_int_eq(r.retry_after_us, 1500 * US_PER_MS);
    harness_run(&h, "fail", "{}", &r);
    ck_assert_uint_eq(r.log_tail_len, 0);
    ck_assert_int_eq(r.retry_after_us, -1);
}
END_TEST

static int run_suite(Suite *suite)
{
    return suite_run(suite);
}

int main(void)
{
    Suite *suite = suite_create("runner");
    TCase *shipped = tcase_create("shipped plugins");
    tcase_set_timeout(shipped, 30);
    tcase_add_checked_fixture(shipped, start_shipped, stop);
    tcase_add_test(shipped, a_job_is_done_and_its_start_was_announced);
    tcase_add_test(shipped, jobs_that_were_sent_ahead_are_answered_in_order);
    tcase_add_test(shipped, G5_a_job_that_was_taken_back_is_never_begun);
    tcase_add_test(shipped, the_largest_args_arrive);
    tcase_add_test(shipped, a_kind_that_nobody_serves_is_answered_with_a_reason);
    tcase_add_test(shipped, the_end_of_the_stream_ends_an_idle_runner_with_0);
    tcase_add_test(shipped, G5_what_is_no_job_ends_the_runner);
    suite_add_tcase(suite, shipped);

    TCase *bad = tcase_create("misbehaving plugins");
    tcase_set_timeout(bad, 30);
    tcase_add_checked_fixture(bad, start_misbehaving, stop);
    tcase_add_test(bad, hello_names_each_kind_with_its_effective_numbers);
    tcase_add_loop_test(bad, G1_a_handler_that_crashes_or_exits_gives_no_result, 0, 3);
    tcase_add_test(bad, G4_a_handler_that_closes_our_descriptors_ends_its_runner);
    tcase_add_test(bad, G5_garbage_on_the_frames_is_seen_as_such);
    tcase_add_test(bad, a_runner_waits_for_room_in_the_ring_and_loses_no_result);
    tcase_add_test(bad, a_result_beyond_the_limit_fails_the_job_with_a_reason);
    tcase_add_loop_test(bad, a_result_passes_as_the_bytes_that_it_is, 0, 4);
    tcase_add_test(bad, fail_retry_and_no_outcome_are_told_apart);
    tcase_add_test(bad, a_snooze_and_a_cancel_come_with_their_reasons);
    tcase_add_test(
        bad, progress_and_checkpoint_are_refused_outside_their_limits_and_change_nothing_then);
    tcase_add_test(bad, a_delay_beyond_366_days_is_the_usual_backoff_and_is_said);
    tcase_add_test(bad, log_tail_and_error_are_bounded_and_keep_their_ends);
    suite_add_tcase(suite, bad);
    return run_suite(suite);
}
