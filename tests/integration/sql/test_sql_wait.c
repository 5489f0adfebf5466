/* SPDX-License-Identifier: Apache-2.0
 *
 * The functions by which a producer learns about its job: claimd.job_status and claimd.wait. */
#include "support/pg_fixture.h"

static struct pg *db;
static struct pg *producer;

static void setup(void)
{
    world_setup();
    db = side_open(NULL);
    producer = side_open("claimd_producer");
    (void)side_run(producer, "SELECT claimd.enqueue('a')::text");
}

static void teardown(void)
{
    pg_close(producer);
    pg_close(db);
    world_teardown();
}

/* Completes the job as a worker does. */
static void complete(void)
{
    (void)side_run(db, "UPDATE claimd.job SET state = 'running', fence = 7, attempt = 1");
    (void)side_run(db, "SELECT claimd.complete_in_tx(1, 7, '{\"n\": 3}')::text");
}

#define STATUS "SELECT concat_ws(' ', state, attempt, result, finalized_at IS NOT NULL) FROM "

START_TEST(a_producer_may_ask_for_its_job_by_id_and_read_nothing_else)
{
    ck_assert_str_eq(side_run(producer, STATUS "claimd.job_status(1)").text, "available 0 f");
    complete();
    ck_assert_str_eq(side_run(producer, STATUS "claimd.job_status(1)").text,
                     "completed 1 {\"n\": 3} t");
    ck_assert_int_eq(side_number(producer, "SELECT count(*)::text FROM claimd.job_status(2)"), 0);
    ck_assert_str_eq(side_try(producer, "SELECT result FROM claimd.job_history").code, "42501");
}
END_TEST

#define ERRORS                                                                                 \
    "SELECT concat_ws(' ', state, s.error, w.error, (SELECT v.error FROM claimd.jobs v WHERE " \
    "v.id "                                                                                    \
    "= 1)) FROM claimd.job_status(1) s JOIN claimd.wait(1, '0 s') w USING (state)"

START_TEST(feat_B29_the_last_error_of_a_job_that_is_tried_again_is_told)
{
    ck_assert_str_eq(side_run(db, ERRORS).text, "available");
    (void)side_run(db, "INSERT INTO claimd.job_attempt (job_id, fence, attempt, generation, "
                       "worker_id, started_at, outcome, error) SELECT 1, n, n, n / 4, "
                       "gen_random_uuid(), now(), (ARRAY['failed', 'failed', 'snoozed', 'failed'])"
                       "[n], 'e' || n FROM generate_series(1, 4) AS n");
    ck_assert_str_eq(side_run(db, ERRORS).text, "available"); /* not tried yet in this generation */
    (void)side_run(db, "UPDATE claimd.job SET attempt = 2, fence = 3, scheduled_at = now() + "
                       "interval '1 h'");
    ck_assert_str_eq(side_run(db, ERRORS).text, "retryable e2 e2 e2");
    (void)side_run(db, "UPDATE claimd.job SET generation = 1, attempt = 1, fence = 4");
    ck_assert_str_eq(side_run(db, ERRORS).text, "retryable e4 e4 e4");
    (void)side_run(db, "UPDATE claimd.job SET generation = 2, attempt = 1");
    ck_assert_str_eq(side_run(db, ERRORS).text, "retryable");
}
END_TEST

struct answer {
    bool has_come;
    char text[256];
};

static void on_answer(void *ctx, enum status st, const struct pg_result *const *results,
                      const struct err *err)
{
    struct answer *a = ctx;
    ck_assert_msg(st == STATUS_OK, "%s", err->msg);
    (void)snprintf(a->text, sizeof a->text, "%s", pg_text(results[0], 0, 0, NULL));
    a->has_come = true;
}

START_TEST(a_wait_ends_with_the_job)
{
    static const struct pg_statement wait = {.name = "", .sql = STATUS "claimd.wait(1, '60 s')"};
    struct answer answer = {0};
    ck_assert_int_eq(pg_send_one(producer, &wait, NULL, on_answer, &answer, NULL), STATUS_OK);
    RUN_UNTIL(side_number(db, "SELECT count(*)::text FROM pg_stat_activity WHERE state = 'active' "
                              "AND query LIKE '%claimd.wait(1%' AND pid <> pg_backend_pid()") == 1);
    ck_assert(!answer.has_come);
    complete();
    RUN_UNTIL(answer.has_come);
    ck_assert_str_eq(answer.text, "completed 1 {\"n\": 3} t");
}
END_TEST

START_TEST(a_wait_whose_time_is_over_tells_where_the_job_is)
{
    ck_assert_str_eq(side_run(producer, STATUS "claimd.wait(1, '10 ms')").text, "available 0 f");
    ck_assert_str_eq(side_run(producer, STATUS "claimd.wait(1, '0')").text, "available 0 f");
}
END_TEST

START_TEST(a_wait_that_could_not_end_is_refused_with_the_reason)
{
    ASSERT_REFUSED(producer, "SELECT claimd.wait(2)", "CL003", "job 2 not found");
    ASSERT_REFUSED(producer, "SELECT claimd.wait(NULL)", "CL003", "job NULL not found");
    ASSERT_REFUSED(producer, "SELECT claimd.wait(1, '61 s')", "CL002", "timeout: must be 0 to 60");
    ASSERT_REFUSED(producer, "SELECT claimd.wait(1, '300000 years')", "CL002", "timeout: must be");
    ASSERT_REFUSED(producer, "SELECT claimd.wait(1, NULL)", "CL002", "timeout: must be");
    (void)side_run(producer, "BEGIN");
    (void)side_run(producer, "SELECT claimd.enqueue('a')::text");
    ASSERT_REFUSED(producer, "SELECT claimd.wait(2)", "CL003", "commit first");
    (void)side_run(producer, "ROLLBACK");
    (void)side_run(producer, "BEGIN ISOLATION LEVEL REPEATABLE READ");
    ASSERT_REFUSED(producer, "SELECT claimd.wait(1)", "CL003", "READ COMMITTED");
    (void)side_run(producer, "ROLLBACK");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("wait");
    TCase *tc = tcase_create("wait");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_set_timeout(tc, 30);
    tcase_add_test(tc, a_producer_may_ask_for_its_job_by_id_and_read_nothing_else);
    tcase_add_test(tc, feat_B29_the_last_error_of_a_job_that_is_tried_again_is_told);
    tcase_add_test(tc, a_wait_ends_with_the_job);
    tcase_add_test(tc, a_wait_whose_time_is_over_tells_where_the_job_is);
    tcase_add_test(tc, a_wait_that_could_not_end_is_refused_with_the_reason);
    suite_add_tcase(suite, tc);
    return world_run(suite);
}
