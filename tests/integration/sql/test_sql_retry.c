/* SPDX-License-Identifier: Apache-2.0
 *
 * retry() and retry_many(): jobs that run again, or before their time. */
#include "sql_db.h"
#include "whole_job.h"

#include <stdio.h>

static int64_t number(const char *sql)
{
    return sql_number(db, "%s", sql);
}

/* Adds a finished job, as its worker leaves it; returns its id. */
static int64_t finished(const char *state)
{
    int64_t id = number("SELECT claimd.enqueue('a')::text");
    sql_run(db, "SELECT claimd.cancel(max(id)) FROM claimd.job");
    sql_run(db, "UPDATE claimd.job_history SET state = '%s' WHERE id = %lld", state, (long long)id);
    return id;
}

START_TEST(a_retry_brings_all_columns_of_a_job_back)
{
    put_whole_job(db);
    sql_run(db, "SELECT claimd.cancel(id) FROM claimd.job");
    ck_assert_int_eq(number("SELECT claimd.retry(id)::text FROM claimd.jobs"), 1);
    /* All columns except those that begin again. */
    ck_assert_int_eq(number("SELECT count(*)::text FROM claimd.job j, before b "
                            "WHERE to_jsonb(j) @> (b.row - 'attempt' - 'crashes' - 'generation' - "
                            "'scheduled_at' - 'ready_at' - 'attempted_at' - 'worker_id')"),
                     1);
    ck_assert_int_eq(number("SELECT count(*)::text FROM claimd.jobs WHERE state = 'available' AND "
                            "attempt = 0 AND crashes = 0 AND generation = 2 AND worker_id IS NULL "
                            "AND attempted_at IS NULL AND ready_at > now() - interval '1 min'"),
                     1);
}
END_TEST

START_TEST(the_view_has_one_row_of_a_job_whatever_its_generation)
{
    int64_t id = finished("discarded");
    for (int generation = 1; generation <= 3; generation++) {
        sql_run(db, "SELECT claimd.retry(max(id))::text FROM claimd.jobs");
        ck_assert_int_eq(number("SELECT count(*)::text FROM claimd.jobs WHERE state = 'available'"),
                         1);
        sql_run(db, "SELECT claimd.cancel(max(id)) FROM claimd.job");
        ck_assert_int_eq(number("SELECT count(*)::text FROM claimd.jobs WHERE state = 'cancelled'"),
                         1);
        ck_assert_int_eq(number("SELECT max(generation)::text FROM claimd.jobs"), generation);
    }
    ck_assert_int_eq(number("SELECT id::text FROM claimd.jobs"), id);
    ck_assert_int_eq(number("SELECT count(*)::text FROM claimd.job_history"), 4);
}
END_TEST

START_TEST(retry_says_why_it_can_not)
{
    sql_run(db, "SELECT claimd.enqueue('a')::text");
    sql_run(db, "UPDATE claimd.job SET state = 'running'");
    ASSERT_REFUSED(db, "SELECT claimd.retry(1)", "CL003",
                   "job 1 is running: only a finished, retryable or scheduled job can be retried");
    ASSERT_REFUSED(db, "SELECT claimd.retry(77)", "CL003", "job 77 not found");
    ASSERT_REFUSED(db, "SELECT claimd.retry(NULL)", "CL002", "id: must not be NULL");
    ASSERT_REFUSED(db, "SELECT claimd.retry(1, NULL)", "CL002", "even_completed: must be");
    sql_run(db, "UPDATE claimd.job SET state = 'available'");
    sql_run(db, "SELECT claimd.cancel(1)");
    sql_run(db, "UPDATE claimd.job_history SET state = 'completed'");
    ASSERT_REFUSED(db, "SELECT claimd.retry(1)", "CL003",
                   "job 1 is completed: only even_completed");
    ck_assert_int_eq(number("SELECT claimd.retry(1, even_completed => true)::text"), 1);
    sql_run(db, "SELECT claimd.after(claimd.enqueue('a'), '{1}')::text");
    ASSERT_REFUSED(db, "SELECT claimd.retry(2)", "CL003",
                   "job 2 is waiting for other jobs: only a finished, retryable or scheduled job");
}
END_TEST

START_TEST(feat_B29_a_job_that_waits_for_its_time_is_due_once_it_is_retried)
{
    sql_run(db, "SELECT claimd.enqueue('a', scheduled_at => now() + interval '1 h', unique_key => "
                "'k' || n, exclusive_key => 'x')::text FROM generate_series(1, 3) AS n");
    sql_run(db, "UPDATE claimd.job SET attempt = 2, crashes = 1, fence = 7 WHERE id = 2");
    sql_run(
        db,
        "CREATE TABLE before AS SELECT id, to_jsonb(j) - '{scheduled_at,ready_at,version}'::text[] "
        "AS row, clock_timestamp() AS at FROM claimd.job j");
    ck_assert_int_eq(number("SELECT claimd.retry(1)::text"), 1);
    ck_assert_int_eq(number("SELECT claimd.retry_many('{2,3,2}')::text"), 2);
    ck_assert_int_eq(number("SELECT count(*)::text FROM claimd.jobs WHERE state = 'available'"), 3);
    ck_assert_int_eq(/* after the feed's cursor, which may be anywhere before now */
                     number("SELECT count(*)::text FROM claimd.job j JOIN before b USING (id) "
                            "WHERE to_jsonb(j) @> b.row AND j.ready_at > b.at AND j.version = 2"),
                     3);
    ck_assert_int_eq(number("SELECT count(*)::text FROM claimd.job_edit WHERE edited_by = "
                            "session_user AND before ? 'scheduled_at' AND applied_at IS NOT NULL"),
                     3);
    ck_assert_int_eq(number("SELECT count(*)::text FROM claimd.job_key"), 3);
    ck_assert_int_eq(number("SELECT claimd.retry(1)::text"), 1); /* already due: nothing changes */
    ck_assert_int_eq(number("SELECT count(*)::text FROM claimd.job_edit"), 3);
}
END_TEST

START_TEST(feat_B29_a_retry_comes_after_an_edit_that_was_kept_for_the_next_attempt)
{
    sql_run(db, "SELECT claimd.enqueue('a')::text");
    sql_run(db, "UPDATE claimd.job SET state = 'running', attempt = 1");
    sql_run(db, "SELECT claimd.edit(1, '{\"scheduled_at\": \"2100-01-01 00:00Z\", \"priority\": "
                "1}', apply => 'next')::text");
    sql_run(db, "UPDATE claimd.job SET state = 'available', scheduled_at = now() + interval '1 h'");
    ck_assert_int_eq(number("SELECT claimd.retry(1)::text"), 1);
    ck_assert_int_eq(number("SELECT count(*)::text FROM claimd.job WHERE priority = 1 AND "
                            "flags & 64 = 0 AND ready_at <= clock_timestamp()"),
                     1);
}
END_TEST

START_TEST(many_are_retried_or_none)
{
    (void)finished("discarded");
    (void)finished("cancelled");
    (void)finished("completed");
    ASSERT_REFUSED(db, "SELECT claimd.retry_many('{1,2,3}')", "CL003", "job 3 is completed: only");
    sql_run(db, "SELECT claimd.enqueue('a', scheduled_at => now() + interval '1 h')::text");
    ASSERT_REFUSED(db, "SELECT claimd.retry_many('{4,77,1}')", "CL003", "job 77 not found");
    ck_assert_int_eq(number("SELECT count(*)::text FROM claimd.jobs WHERE state = 'scheduled'"), 1);
    sql_run(db, "DELETE FROM claimd.job");
    ASSERT_REFUSED(db, "SELECT claimd.retry_many('{2,77,1}')", "CL003", "job 77 not found");
    ASSERT_REFUSED(db, "SELECT claimd.retry_many('{1,NULL}')", "CL002", "id: must not be NULL");
    ASSERT_REFUSED(db, "SELECT claimd.retry_many(NULL)", "CL002", "id: must not be NULL");
    ck_assert_int_eq(number("SELECT count(*)::text FROM claimd.job"), 0);
    ck_assert_int_eq(number("SELECT claimd.retry_many('{}')::text"), 0);
    ck_assert_int_eq(number("SELECT claimd.retry_many('{2,1,2}')::text"), 2);
    ck_assert_int_eq(number("SELECT claimd.retry_many('{3}', true)::text"), 1);
    ck_assert_int_eq(number("SELECT count(*)::text FROM claimd.job WHERE generation = 1"), 3);
    ck_assert_int_eq(
        number("SELECT (a.ready_at < b.ready_at)::int::text FROM claimd.job a, claimd.job "
               "b WHERE a.id = 1 AND b.id = 2"),
        1);
}
END_TEST

START_TEST(of_two_retries_at_once_one_does_it)
{
    struct sql *other = sql_open(world.conninfo);
    (void)finished("discarded");
    sql_run(db, "BEGIN");
    sql_run(db, "SELECT claimd.retry(1)::text");
    sql_run(other, "SET lock_timeout = '200ms'");
    ASSERT_REFUSED(other, "SELECT claimd.retry(1)", "55P03", "lock timeout");
    sql_run(db, "COMMIT");
    ck_assert_int_eq(sql_number(other, "SELECT claimd.retry(1)::text"), 1);
    ck_assert_int_eq(number("SELECT max(generation)::text FROM claimd.jobs"), 1);
    sql_close(other);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("sql retry");
    TCase *tc = tcase_create("retry");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, a_retry_brings_all_columns_of_a_job_back);
    tcase_add_test(tc, the_view_has_one_row_of_a_job_whatever_its_generation);
    tcase_add_test(tc, retry_says_why_it_can_not);
    tcase_add_test(tc, feat_B29_a_job_that_waits_for_its_time_is_due_once_it_is_retried);
    tcase_add_test(tc, feat_B29_a_retry_comes_after_an_edit_that_was_kept_for_the_next_attempt);
    tcase_add_test(tc, many_are_retried_or_none);
    tcase_add_test(tc, of_two_retries_at_once_one_does_it);
    suite_add_tcase(suite, tc);
    return world_run(suite);
}
