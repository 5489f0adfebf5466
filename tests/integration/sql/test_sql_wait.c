/* SPDX-License-Identifier: Apache-2.0
 *
 * The functions by which a producer learns about its job: claimd.job_status and claimd.wait. */
#include "support/pg_fixture.h"

static struct sql *db;
static struct sql *producer;

static void setup(void)
{
    world_setup();
    db = sql_open(world.conninfo);
    producer = sql_open(world.conninfo);
    sql_run(producer, "SET ROLE claimd_producer");
    sql_run(producer, "SELECT claimd.enqueue('a')::text");
}

static void teardown(void)
{
    sql_close(producer);
    sql_close(db);
    world_teardown();
}

/* Completes the job as a worker does. */
static void complete(void)
{
    sql_run(db, "UPDATE claimd.job SET state = 'running', fence = 7, attempt = 1");
    sql_run(db, "SELECT claimd.complete_in_tx(1, 7, '{\"n\": 3}')::text");
}

#define STATUS "SELECT concat_ws(' ', state, attempt, result, finalized_at IS NOT NULL) FROM "

START_TEST(a_producer_may_ask_for_its_job_by_id_and_read_nothing_else)
{
    ck_assert_str_eq(sql_text(producer, STATUS "claimd.job_status(1)"), "available 0 f");
    complete();
    ck_assert_str_eq(sql_text(producer, STATUS "claimd.job_status(1)"), "completed 1 {\"n\": 3} t");
    ck_assert_int_eq(sql_number(producer, "SELECT count(*)::text FROM claimd.job_status(2)"), 0);
    ASSERT_REFUSED(producer, "SELECT result FROM claimd.job_history", "42501", "");
}
END_TEST

#define ERRORS                                                                                 \
    "SELECT concat_ws(' ', state, s.error, w.error, (SELECT v.error FROM claimd.jobs v WHERE " \
    "v.id "                                                                                    \
    "= 1)) FROM claimd.job_status(1) s JOIN claimd.wait(1, '0 s') w USING (state)"

START_TEST(feat_B29_the_last_error_of_a_job_that_is_tried_again_is_told)
{
    ck_assert_str_eq(sql_text(db, ERRORS), "available");
    sql_run(db, "INSERT INTO claimd.job_attempt (job_id, fence, attempt, generation, worker_id, "
                "started_at, outcome, error) SELECT 1, n, n, n / 4, gen_random_uuid(), now(), "
                "(ARRAY['failed', 'failed', 'snoozed', 'failed'])[n], 'e' || n FROM "
                "generate_series(1, 4) AS n");
    ck_assert_str_eq(sql_text(db, ERRORS), "available"); /* not tried yet in this generation */
    sql_run(db,
            "UPDATE claimd.job SET attempt = 2, fence = 3, scheduled_at = now() + interval '1 h'");
    ck_assert_str_eq(sql_text(db, ERRORS), "retryable e2 e2 e2");
    sql_run(db, "UPDATE claimd.job SET generation = 1, attempt = 1, fence = 4");
    ck_assert_str_eq(sql_text(db, ERRORS), "retryable e4 e4 e4");
    sql_run(db, "UPDATE claimd.job SET generation = 2, attempt = 1");
    ck_assert_str_eq(sql_text(db, ERRORS), "retryable");
}
END_TEST

START_TEST(a_wait_ends_with_the_job)
{
    sql_send(producer, STATUS "claimd.wait(1, '60 s')");
    RUN_UNTIL(sql_number(db,
                         "SELECT count(*)::text FROM pg_stat_activity WHERE state = 'active' "
                         "AND query LIKE '%%claimd.wait(1%%' AND pid <> pg_backend_pid()") == 1);
    complete();
    ck_assert_str_eq(sql_wait(producer), "completed 1 {\"n\": 3} t");
}
END_TEST

START_TEST(a_wait_whose_time_is_over_tells_where_the_job_is)
{
    ck_assert_str_eq(sql_text(producer, STATUS "claimd.wait(1, '10 ms')"), "available 0 f");
    ck_assert_str_eq(sql_text(producer, STATUS "claimd.wait(1, '0')"), "available 0 f");
}
END_TEST

START_TEST(a_wait_that_could_not_end_is_refused_with_the_reason)
{
    ASSERT_REFUSED(producer, "SELECT claimd.wait(2)", "CL003", "job 2 not found");
    ASSERT_REFUSED(producer, "SELECT claimd.wait(NULL)", "CL003", "job NULL not found");
    ASSERT_REFUSED(producer, "SELECT claimd.wait(1, '61 s')", "CL002", "timeout: must be 0 to 60");
    ASSERT_REFUSED(producer, "SELECT claimd.wait(1, '300000 years')", "CL002", "timeout: must be");
    ASSERT_REFUSED(producer, "SELECT claimd.wait(1, NULL)", "CL002", "timeout: must be");
    sql_run(producer, "BEGIN");
    sql_run(producer, "SELECT claimd.enqueue('a')::text");
    ASSERT_REFUSED(producer, "SELECT claimd.wait(2)", "CL003", "commit first");
    sql_run(producer, "ROLLBACK");
    sql_run(producer, "BEGIN ISOLATION LEVEL REPEATABLE READ");
    ASSERT_REFUSED(producer, "SELECT claimd.wait(1)", "CL003", "READ COMMITTED");
    sql_run(producer, "ROLLBACK");
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
