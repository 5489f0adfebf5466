/* SPDX-License-Identifier: Apache-2.0 */
#include "base/rand.h"
#include "model/job.h"
#include "protocol/protocol.h"
#include "protocol/result_ring.h"
#include "protocol/run_log.h"
#include "support/suite.h"

#include <check.h>
#include <stdio.h>

static const struct job_frame JOB = {.id = 42,
                                     .fence = INT64_MAX,
                                     .nonce = INT64_MAX - 1,
                                     .attempt = 2,
                                     .max_attempts = 25,
                                     .timeout_us = 1234567,
                                     .kind = "noop",
                                     .kind_len = 4,
                                     .args = "{\"a\":1}",
                                     .args_len = 7,
                                     .predecessors = "[{\"id\": 1}]",
                                     .predecessors_len = 11};
static const struct result_frame RESULT = {.id = 42,
                                           .fence = 7,
                                           .nonce = 8,
                                           .outcome = CLAIMD_RETRY,
                                           .leaving = true,
                                           .retry_after_us = -1,
                                           .ran_us = 15,
                                           .result = "{}",
                                           .result_len = 2,
                                           .error = "why",
                                           .error_len = 3,
                                           .log_tail = "a\0b\n",
                                           .log_tail_len = 4};

static struct buf out;
static struct err err;

static void setup(void)
{
    buf_init(&out, 4 * FRAME_MAX);
    err = (struct err){0};
}

static void teardown(void)
{
    buf_release(&out);
}

/* Returns the body of the only frame in `out`, which must be of this type. */
static const char *body_of(enum frame_type wanted, size_t *ret_len)
{
    enum frame_type type = FRAME_HELLO;
    const char *body = NULL;
    size_t size = 0;
    ck_assert_int_eq(frame_take(&out, &type, &body, ret_len, &size, &err), STATUS_OK);
    ck_assert_int_eq(type, wanted);
    ck_assert_uint_eq(size, out.len);
    return body;
}

START_TEST(a_job_arrives_as_it_was_sent)
{
    ck_assert_int_eq(job_frame_put(&out, &JOB, &err), STATUS_OK);
    size_t len = 0;
    const char *body = body_of(FRAME_JOB, &len);
    struct job_frame got;
    ck_assert_int_eq(job_frame_get(body, len, &got, &err), STATUS_OK);
    ck_assert_int_eq(got.id, JOB.id);
    ck_assert_int_eq(got.fence, JOB.fence);
    ck_assert_int_eq(got.nonce, JOB.nonce);
    ck_assert_int_eq(got.attempt, JOB.attempt);
    ck_assert_int_eq(got.max_attempts, JOB.max_attempts);
    ck_assert_int_eq(got.timeout_us, JOB.timeout_us);
    ck_assert_uint_eq(got.kind_len, JOB.kind_len);
    ck_assert_mem_eq(got.kind, JOB.kind, JOB.kind_len);
    ck_assert_uint_eq(got.args_len, JOB.args_len);
    ck_assert_mem_eq(got.args, JOB.args, JOB.args_len);
    ck_assert_uint_eq(got.predecessors_len, JOB.predecessors_len);
    ck_assert_mem_eq(got.predecessors, JOB.predecessors, JOB.predecessors_len);
}
END_TEST

START_TEST(a_result_arrives_as_it_was_sent)
{
    ck_assert_int_eq(result_frame_put(&out, &RESULT, &err), STATUS_OK);
    size_t len = 0;
    const char *body = body_of(FRAME_RESULT, &len);
    struct result_frame got;
    ck_assert_int_eq(result_frame_get(body, len, &got, &err), STATUS_OK);
    ck_assert_int_eq(got.id, RESULT.id);
    ck_assert_int_eq(got.fence, RESULT.fence);
    ck_assert_int_eq(got.nonce, RESULT.nonce);
    ck_assert_int_eq(got.outcome, CLAIMD_RETRY);
    ck_assert(got.leaving);
    ck_assert_int_eq(got.retry_after_us, -1);
    ck_assert_int_eq(got.ran_us, 15);
    ck_assert_mem_eq(got.result, "{}", 2);
    ck_assert_mem_eq(got.error, "why", 3);
    ck_assert_uint_eq(got.log_tail_len, 4);
    ck_assert_mem_eq(got.log_tail, "a\0b\n", 4);
}
END_TEST

START_TEST(the_bytes_of_a_frame_are_fixed)
{
    static const unsigned char hello[] = {7,   0,   0,   0,   FRAME_HELLO, RUNNER_PROTOCOL_VERSION,
                                          '{', '"', 'a', '"', '}'};
    ck_assert_int_eq(hello_frame_put(&out, "{\"a\"}", 5, &err), STATUS_OK);
    ck_assert_uint_eq(out.len, sizeof hello);
    ck_assert_mem_eq(buf_at(&out), hello, sizeof hello);
}
END_TEST

START_TEST(frames_come_off_one_after_the_other)
{
    ck_assert_int_eq(job_frame_put(&out, &JOB, &err), STATUS_OK);
    ck_assert_int_eq(result_frame_put(&out, &RESULT, &err), STATUS_OK);
    enum frame_type type = FRAME_HELLO;
    const char *body = NULL;
    size_t len = 0;
    size_t size = 0;
    ck_assert_int_eq(frame_take(&out, &type, &body, &len, &size, &err), STATUS_OK);
    ck_assert_int_eq(type, FRAME_JOB);
    buf_consume(&out, size);
    (void)body_of(FRAME_RESULT, &len);
}
END_TEST

START_TEST(the_largest_job_and_result_fit_and_one_byte_more_does_not)
{
    autofree char *bytes = calloc(1, JOB_ARGS_MAX + 1);
    ck_assert_ptr_nonnull(bytes);
    struct job_frame job = JOB;
    job.args = bytes;
    job.args_len = JOB_ARGS_MAX;
    ck_assert_int_eq(job_frame_put(&out, &job, &err), STATUS_OK);
    size_t len = 0;
    struct job_frame got;
    const char *body = body_of(FRAME_JOB, &len);
    ck_assert_int_eq(job_frame_get(body, len, &got, &err), STATUS_OK);
    size_t before = out.len;
    job.args_len++;
    ck_assert_int_eq(job_frame_put(&out, &job, &err), STATUS_LIMIT);
    ck_assert_uint_eq(out.len, before);

    buf_reset(&out);
    struct result_frame result = RESULT;
    result.result = result.error = result.log_tail = bytes;
    result.result_len = JOB_RESULT_MAX;
    result.error_len = JOB_ERROR_MAX;
    result.log_tail_len = JOB_LOG_TAIL_MAX;
    ck_assert_int_eq(result_frame_put(&out, &result, &err), STATUS_OK);
    result.error_len++;
    ck_assert_int_eq(result_frame_put(&out, &result, NULL), STATUS_LIMIT);
}
END_TEST

START_TEST(G5_a_length_beyond_the_bound_is_refused_before_its_body_came)
{
    static const unsigned char heads[][FRAME_HEAD] = {
        {0xff, 0xff, 0xff, 0xff, FRAME_RESULT, RUNNER_PROTOCOL_VERSION},
        {0xff, 0xff, 0xff, 0x7f, FRAME_RESULT, RUNNER_PROTOCOL_VERSION},
        {1, 0, 0, 0, FRAME_RESULT, RUNNER_PROTOCOL_VERSION},
        {0, 0, 0, 0, FRAME_RESULT, RUNNER_PROTOCOL_VERSION},
        {2, 0, 0, 0, 0, RUNNER_PROTOCOL_VERSION},
        {2, 0, 0, 0, FRAME_NUDGE + 1, RUNNER_PROTOCOL_VERSION},
        {2, 0, 0, 0, FRAME_RESULT, RUNNER_PROTOCOL_VERSION + 1},
        {'j', 'u', 'n', 'k', 'j', 'u'},
    };
    ck_assert_int_eq(buf_append(&out, heads[_i], FRAME_HEAD, &err), STATUS_OK);
    enum frame_type type = FRAME_HELLO;
    const char *body = NULL;
    size_t len = 0;
    size_t size = 0;
    ck_assert_int_eq(frame_take(&out, &type, &body, &len, &size, &err), STATUS_INVALID);
}
END_TEST

START_TEST(G5_every_truncated_frame_is_incomplete_and_every_truncated_body_invalid)
{
    ck_assert_int_eq(result_frame_put(&out, &RESULT, &err), STATUS_OK);
    size_t len = 0;
    const char *body = body_of(FRAME_RESULT, &len);
    for (size_t cut = 0; cut < len; cut++) {
        struct result_frame got;
        ck_assert_int_eq(result_frame_get(body, cut, &got, NULL), STATUS_INVALID);
    }
    for (size_t cut = 0; cut < out.len; cut++) {
        struct buf part = out;
        part.len = cut;
        enum frame_type type = FRAME_HELLO;
        size_t size = 0;
        ck_assert_int_eq(frame_take(&part, &type, &body, &len, &size, NULL), STATUS_NOT_FOUND);
    }
}
END_TEST

START_TEST(G5_a_body_with_bytes_left_over_is_refused)
{
    ck_assert_int_eq(job_frame_put(&out, &JOB, &err), STATUS_OK);
    size_t whole = out.len - FRAME_HEAD;
    ck_assert_int_eq(buf_append(&out, "x", 1, &err), STATUS_OK);
    struct job_frame got;
    ck_assert_int_eq(job_frame_get(buf_at(&out) + FRAME_HEAD, whole + 1, &got, &err),
                     STATUS_INVALID);
}
END_TEST

/* Checks that everything accepted is inside the given body. */
static void check_inside(const char *body, size_t len)
{
    struct result_frame r;
    if (result_frame_get(body, len, &r, NULL) == STATUS_OK) {
        bool is_said = r.outcome >= CLAIMD_DONE && r.outcome <= CLAIMD_OUTCOME_LAST;
        ck_assert(is_said || r.outcome == RESULT_UNSERVED);
        ck_assert(r.id > 0 && r.fence > 0 && r.nonce > 0);
        ck_assert(r.result >= body && r.result + r.result_len <= body + len);
        ck_assert(r.log_tail >= body && r.log_tail + r.log_tail_len <= body + len);
    }
    struct job_frame j;
    if (job_frame_get(body, len, &j, NULL) == STATUS_OK) {
        ck_assert(j.kind_len >= 1 && j.kind_len <= JOB_NAME_MAX);
        ck_assert(j.args >= body && j.args + j.args_len <= body + len);
        ck_assert(j.predecessors_len <= JOB_PREDECESSORS_MAX &&
                  j.predecessors + j.predecessors_len <= body + len);
    }
}

START_TEST(G5_mutated_frames_are_refused_or_stay_inside_their_bytes)
{
    struct rand r;
    rand_seed(&r, 20);
    for (int round = 0; round < 20000; round++) {
        buf_reset(&out);
        ck_assert_int_eq(round % 2 == 0 ? result_frame_put(&out, &RESULT, &err)
                                        : job_frame_put(&out, &JOB, &err),
                         STATUS_OK);
        for (int64_t flips = 1 + rand_below(&r, 4); flips > 0; flips--) {
            buf_at(&out)[rand_below(&r, (int64_t)out.len)] = (char)rand_below(&r, 256);
        }
        /* A copy of the exact size: a sanitizer detects any read beyond it. */
        struct buf exact = BUF_INIT(FRAME_MAX);
        ck_assert_int_eq(buf_append(&exact, buf_at(&out), out.len, &err), STATUS_OK);
        enum frame_type type = FRAME_HELLO;
        const char *body = NULL;
        size_t len = 0;
        size_t size = 0;
        if (frame_take(&exact, &type, &body, &len, &size, NULL) == STATUS_OK) {
            ck_assert_uint_le(size, exact.len);
            check_inside(body, len);
        }
        buf_release(&exact);
    }
}
END_TEST

START_TEST(G5_fields_out_of_range_are_refused)
{
    struct result_frame results[8];
    for (size_t i = 0; i < ARRAY_COUNT(results); i++) {
        results[i] = RESULT;
    }
    results[0].outcome = 0;
    results[1].outcome = CLAIMD_OUTCOME_LAST + 1;
    results[2].id = 0;
    results[3].fence = -1;
    results[4].ran_us = -1;
    results[5].id = INT64_MIN;
    results[6].nonce = 0;
    results[7].retry_after_us = JOB_DELAY_US_MAX + 1;
    for (size_t i = 0; i < ARRAY_COUNT(results); i++) {
        buf_reset(&out);
        ck_assert_int_eq(result_frame_put(&out, &results[i], &err), STATUS_OK);
        struct result_frame got;
        ck_assert_int_eq(
            result_frame_get(buf_at(&out) + FRAME_HEAD, out.len - FRAME_HEAD, &got, NULL),
            STATUS_INVALID);
    }
}
END_TEST

START_TEST(a_nudge_says_whether_its_runner_leaves)
{
    size_t len = 0;
    bool leaving = _i == 0;
    ck_assert_int_eq(nudge_frame_put(&out, _i == 1, &err), STATUS_OK);
    const char *body = body_of(FRAME_NUDGE, &len);
    ck_assert_int_eq(nudge_frame_get(body, len, &leaving, &err), STATUS_OK);
    ck_assert_int_eq(leaving, _i == 1);
    ck_assert_int_eq(nudge_frame_get("\2", 1, &leaving, &err), STATUS_INVALID);
    ck_assert_int_eq(nudge_frame_get("\1\1", 2, &leaving, &err), STATUS_INVALID);
    ck_assert_int_eq(nudge_frame_get("", 0, &leaving, &err), STATUS_INVALID);
}
END_TEST

/* ---- the ring in the page ---- */

START_TEST(what_is_put_into_the_ring_comes_out_in_order_all_the_way_round)
{
    static struct runner_page page;
    autobuf struct buf in = BUF_INIT(RUNNER_RING_BYTES);
    char bytes[1000];
    uint64_t taken = 0;
    memset(&page, 0, sizeof page);
    for (int i = 0; i < 1000; i++) {
        size_t len = 1 + (size_t)(i * 7 % 999);
        memset(bytes, i % 251, sizeof bytes);
        ck_assert(result_ring_put(&page, bytes, len));
        buf_reset(&in);
        ck_assert_int_eq(result_ring_take(&page, &taken, &in, NULL), STATUS_OK);
        ck_assert_uint_eq(in.len, len);
        ck_assert_int_eq(memcmp(buf_at(&in), bytes, len), 0);
    }
}
END_TEST

START_TEST(a_full_ring_takes_nothing_more_and_keeps_what_it_has)
{
    static struct runner_page page;
    static char all[RUNNER_RING_BYTES];
    autobuf struct buf in = BUF_INIT(RUNNER_RING_BYTES);
    uint64_t taken = 0;
    memset(&page, 0, sizeof page);
    memset(all, 'a', sizeof all);
    ck_assert(result_ring_put(&page, all, sizeof all));
    ck_assert(!result_ring_put(&page, "b", 1));
    ck_assert_int_eq(result_ring_take(&page, &taken, &in, NULL), STATUS_OK);
    ck_assert_uint_eq(in.len, sizeof all);
    ck_assert_int_eq(memcmp(buf_at(&in), all, sizeof all), 0);
    ck_assert(result_ring_put(&page, "b", 1));
}
END_TEST

START_TEST(G5_counts_of_the_ring_that_a_handler_wrote_are_refused)
{
    static struct runner_page page;
    autobuf struct buf in = BUF_INIT(RUNNER_RING_BYTES);
    uint64_t taken = 5000;
    memset(&page, 0, sizeof page);
    static const uint64_t forged[] = {4999, 0, 5001 + RUNNER_RING_BYTES, UINT64_MAX};
    for (size_t i = 0; i < ARRAY_COUNT(forged); i++) {
        atomic_store(&page.ring_put, forged[i]);
        ck_assert_int_eq(result_ring_take(&page, &taken, &in, &err), STATUS_INVALID);
        ck_assert_uint_eq(taken, 5000);
        ck_assert_uint_eq(in.len, 0);
    }
}
END_TEST

/* ---- the log in the page ---- */

START_TEST(the_tail_of_a_log_is_its_last_bytes_whatever_was_logged)
{
    static struct runner_page page;
    static char all[600 * 400];
    char line[512];
    char tail[JOB_LOG_TAIL_MAX];
    size_t len = 0;
    run_log_reset(&page);
    ck_assert_uint_eq(run_log_tail(&page, tail), 0);
    for (int i = 0; i < 600; i++) {
        int n = snprintf(line, sizeof line, "%d%*s\n", i, i % 390, "");
        memcpy(all + len, line, (size_t)n);
        len += (size_t)n;
        run_log_append(&page, line, (size_t)n);
        size_t wanted = len < JOB_LOG_TAIL_MAX ? len : JOB_LOG_TAIL_MAX;
        ck_assert_uint_eq(run_log_tail(&page, tail), wanted);
        ck_assert_mem_eq(tail, all + len - wanted, wanted);
    }
    run_log_reset(&page);
    ck_assert_uint_eq(run_log_tail(&page, tail), 0);
}
END_TEST

START_TEST(a_line_that_is_being_written_is_not_in_the_tail_and_harms_none_that_is)
{
    static struct runner_page page;
    char line[RUN_LOG_LINE_MAX];
    char tail[JOB_LOG_TAIL_MAX];
    memset(line, 'a', sizeof line);
    run_log_reset(&page);
    for (int i = 0; i < 50; i++) {
        run_log_append(&page, line, sizeof line);
    }
    int64_t total = atomic_load(&page.log_total);
    memset(line, 'b', sizeof line);
    run_log_append(&page, line, sizeof line);
    atomic_store(&page.log_total, total); /* killed before it could update the total */
    ck_assert_uint_eq(run_log_tail(&page, tail), JOB_LOG_TAIL_MAX);
    ck_assert_ptr_null(memchr(tail, 'b', sizeof tail));
}
END_TEST

START_TEST(G5_whatever_a_runner_says_of_its_log_the_tail_is_bounded)
{
    static const int64_t totals[] = {-1, INT64_MIN, INT64_MAX, 1, RUNNER_PAGE_SIZE};
    static struct runner_page page;
    char tail[JOB_LOG_TAIL_MAX];
    for (size_t i = 0; i < sizeof totals / sizeof totals[0]; i++) {
        atomic_store(&page.log_total, totals[i]);
        size_t n = run_log_tail(&page, tail);
        ck_assert_uint_le(n, sizeof tail);
        ck_assert(totals[i] > 0 || n == 0);
    }
}
END_TEST

START_TEST(prog_every_outcome_has_a_name_and_is_found_by_it)
{
    for (int i = CLAIMD_DONE; i <= CLAIMD_OUTCOME_LAST; i++) {
        ck_assert_ptr_nonnull(outcome_names[i]);
        ck_assert_int_eq(outcome_named(outcome_names[i], strlen(outcome_names[i])), i);
    }
    ck_assert_int_eq(outcome_named("don", 3), 0);
    ck_assert_int_eq(outcome_named("", 0), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("protocol");
    TCase *tc = tcase_create("frames");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, a_job_arrives_as_it_was_sent);
    tcase_add_test(tc, a_result_arrives_as_it_was_sent);
    tcase_add_test(tc, the_bytes_of_a_frame_are_fixed);
    tcase_add_test(tc, frames_come_off_one_after_the_other);
    tcase_add_test(tc, the_largest_job_and_result_fit_and_one_byte_more_does_not);
    tcase_add_loop_test(tc, G5_a_length_beyond_the_bound_is_refused_before_its_body_came, 0, 8);
    tcase_add_test(tc, G5_every_truncated_frame_is_incomplete_and_every_truncated_body_invalid);
    tcase_add_test(tc, G5_a_body_with_bytes_left_over_is_refused);
    tcase_add_test(tc, G5_mutated_frames_are_refused_or_stay_inside_their_bytes);
    tcase_add_test(tc, G5_fields_out_of_range_are_refused);
    tcase_add_loop_test(tc, a_nudge_says_whether_its_runner_leaves, 0, 2);
    tcase_add_test(tc, prog_every_outcome_has_a_name_and_is_found_by_it);
    suite_add_tcase(suite, tc);
    TCase *ring = tcase_create("ring");
    tcase_add_test(ring, what_is_put_into_the_ring_comes_out_in_order_all_the_way_round);
    tcase_add_test(ring, a_full_ring_takes_nothing_more_and_keeps_what_it_has);
    tcase_add_test(ring, G5_counts_of_the_ring_that_a_handler_wrote_are_refused);
    suite_add_tcase(suite, ring);
    TCase *log = tcase_create("log");
    tcase_add_test(log, the_tail_of_a_log_is_its_last_bytes_whatever_was_logged);
    tcase_add_test(log, a_line_that_is_being_written_is_not_in_the_tail_and_harms_none_that_is);
    tcase_add_test(log, G5_whatever_a_runner_says_of_its_log_the_tail_is_bounded);
    suite_add_tcase(suite, log);
    return suite_run(suite);
}
