/* SPDX-License-Identifier: Apache-2.0
 *
 * Locked rows, lost answers, a server that refuses or goes away: no job is lost, and none is done
 * twice. */
#include "job_store_fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int64_t given_running(int count)
{
    int64_t id = add_jobs(count);
    claim_now(&store_a, id, (size_t)count);
    ck_assert_uint_eq(got.job_count, (size_t)count);
    return id;
}

static void submit_all(size_t from, size_t to)
{
    for (size_t i = from; i < to; i++) {
        struct job_finish f = finish_of(i, FINISH_COMPLETED);
        submit(&store_a, &f);
    }
}

static struct sql *locker_of(int64_t id)
{
    struct sql *locker = sql_open(world.conninfo);
    sql_run(locker, "BEGIN");
    sql_run(locker, "SELECT 1::text FROM claimd.job WHERE id = %lld FOR UPDATE", (long long)id);
    return locker;
}

START_TEST(rule4_a_locked_row_is_put_back_and_the_rest_of_the_claim_goes_on)
{
    int64_t id = add_jobs(500);
    struct sql *locker = locker_of(id + 100);
    claim_now(&store_a, id, 500);
    ck_assert_uint_eq(got.job_count, 499);
    ck_assert_uint_eq(got.refused_count, 1);
    ck_assert_int_eq(refused(id + 100)->why, CLAIM_PUT_BACK);
    ck_assert_uint_eq(job_store_counters(store_a.jobs)->locked_repeats, 1);
    sql_run(locker, "ROLLBACK");
    sql_close(locker);
    claim_now(&store_a, id + 100, 1);
    ck_assert_uint_eq(got.job_count, 500);
}
END_TEST

START_TEST(rule4_a_locked_run_is_kept_and_the_rest_of_the_finishes_go_on)
{
    int64_t id = given_running(500);
    int64_t more = add_jobs(100);
    struct sql *locker = locker_of(id + 100);
    submit_all(0, 500);
    ask(&store_a, more, 100, 100);
    RUN_UNTIL(got.finishes == 499 && got.claims == 2);
    ck_assert_uint_eq(got.job_count, 600);
    ck_assert_uint_eq(job_store_waiting(store_a.jobs), 1);
    ck_assert_int_eq(got.verdicts[FINISH_STALE], 0);
    sql_run(locker, "ROLLBACK");
    RUN_UNTIL(got.finishes == 500);
    ck_assert_int_eq(got.verdicts[FINISH_ACCEPTED], 500);
    sql_close(locker);
}
END_TEST

START_TEST(rule4_a_locked_table_stalls_finishes_but_loses_none)
{
    given_running(50);
    struct sql *locker = sql_open(world.conninfo);
    sql_run(locker, "BEGIN");
    sql_run(locker, "LOCK TABLE claimd.job IN EXCLUSIVE MODE");
    submit_all(0, 50);
    ask(&store_a, 1, 1, 1);
    RUN_UNTIL(got.claims == 2);
    ck_assert_int_eq(got.refused[0].why, CLAIM_NOT_TRIED);
    ck_assert_int_eq(got.finishes, 0);
    sql_run(locker, "ROLLBACK");
    RUN_UNTIL(got.finishes == 50);
    ck_assert_int_eq(got.verdicts[FINISH_ACCEPTED], 50);
    sql_close(locker);
}
END_TEST

START_TEST(a_missing_day_keeps_the_finishes_until_it_is_there)
{
    given_running(20);
    sql_run(side,
            "CREATE TABLE kept AS SELECT 'claimd.' || c.relname AS name FROM pg_class c WHERE "
            "c.relname = 'job_history_' || to_char(now() AT TIME ZONE 'UTC', 'YYYYMMDD')");
    sql_run(side, "DO $$ BEGIN EXECUTE (SELECT 'DROP TABLE ' || name FROM kept); END $$");
    submit_all(0, 20);
    RUN_UNTIL(sql_number(side, "SELECT count(*)::text FROM claimd.job WHERE state = 'running'") ==
              20);
    RUN_UNTIL(job_store_trouble(store_a.jobs) != NULL);
    ck_assert_str_eq(job_store_trouble(store_a.jobs)->code, "23514");
    ck_assert_int_eq(got.finishes, 0);
    sql_run(side, "SELECT claimd.ensure_days(1)");
    RUN_UNTIL(got.finishes == 20);
    ck_assert_ptr_null(job_store_trouble(store_a.jobs));
    ck_assert_int_eq(got.verdicts[FINISH_ACCEPTED], 20);
}
END_TEST

/* Ends the store's session from outside; its socket notices at once. */
static void cut(void)
{
    sql_run(side, "SELECT pg_terminate_backend(pid)::text FROM pg_stat_activity WHERE "
                  "application_name = 'store'");
}

/* Lets the store send, and waits until its backend waits for the lock. */
static void wait_for_blocked_backend(void)
{
    RUN_UNTIL(sql_number(side, "SELECT count(*)::text FROM pg_stat_activity WHERE application_name "
                               "= 'store' AND wait_event_type = 'Lock'") == 1);
}

START_TEST(an_abandoned_claim_is_ended_read_back_and_never_doubled)
{
    int64_t id = add_jobs(10);
    struct sql *locker = locker_of(id + 5);
    ask(&store_a, id, 10, 10);
    wait_for_blocked_backend();
    cut();
    RUN_UNTIL(store_a.downs >= 1);
    sql_run(locker, "COMMIT");
    RUN_UNTIL(got.claims == 1);
    ck_assert_uint_eq(got.job_count + got.refused_count, 10);
    /* Whatever answer it got, it must match the rows. */
    char sql[256];
    (void)snprintf(sql, sizeof sql,
                   "SELECT count(*)::text FROM claimd.job WHERE state = 'running' AND worker_id = "
                   "'%s'",
                   WORKER_A);
    ASSERT_NUMBER(sql, (int64_t)got.job_count);
    ASSERT_NUMBER("SELECT COALESCE(max(attempt), 0)::text FROM claimd.job", got.job_count > 0);
    sql_close(locker);
}
END_TEST

/* Losing only the answer would need a trigger on commit. Instead the test commits the row in the
 * state in which the lost claim would have left it, and the store learns that the outcome is
 * unknown. */
START_TEST(a_claim_that_committed_unseen_is_adopted)
{
    int64_t id = add_jobs(3);
    struct sql *locker = locker_of(id + 2);
    ask(&store_a, id, 3, 3);
    wait_for_blocked_backend();
    cut();
    /* Before the store is back: what its commit would have done to two of the three. */
    sql_run(
        side,
        "UPDATE claimd.job SET state = 'running', attempt = 1, fence = nextval('claimd.fence'), "
        "worker_id = '%s', attempted_at = clock_timestamp() WHERE id >= %lld AND id < %lld",
        WORKER_A, (long long)id, (long long)id + 2);
    sql_run(locker, "COMMIT");
    RUN_UNTIL(got.claims == 1);
    ck_assert_uint_eq(got.job_count, 2);
    ck_assert(claimed(id) != NULL && claimed(id + 1) != NULL);
    ck_assert_int_eq(refused(id + 2)->why, CLAIM_PUT_BACK);
    ck_assert_uint_eq(job_store_counters(store_a.jobs)->unknown_outcomes, 1);
    sql_close(locker);
}
END_TEST

START_TEST(a_run_that_we_know_already_is_not_adopted_again)
{
    int64_t id = given_running(1);
    int64_t other = add_jobs(1);
    struct sql *locker = locker_of(other);
    ask(&store_a, id, 2, 2); /* ids are consecutive: the one that runs here, and a locked one */
    wait_for_blocked_backend();
    cut();
    sql_run(locker, "COMMIT");
    RUN_UNTIL(got.claims == 2);
    ck_assert_uint_eq(got.job_count, 1);
    ck_assert_int_eq(refused(id)->why, CLAIM_GONE);
    ck_assert(refused(other) != NULL || claimed(other) != NULL);
    sql_close(locker);
}
END_TEST

START_TEST(a_finish_whose_answer_was_lost_is_found_done)
{
    int64_t id = given_running(3);
    struct sql *locker = locker_of(id + 2);
    submit_all(0, 3);
    wait_for_blocked_backend();
    cut();
    sql_run(side,
            "WITH d AS (DELETE FROM claimd.job WHERE id = %lld RETURNING *) INSERT INTO "
            "claimd.job_history (id, fence, created_at, scheduled_at, ready_at, attempted_at, "
            "worker_id, attempt, crashes, generation, priority, share, queue, kind, args, state) "
            "SELECT id, fence, created_at, scheduled_at, ready_at, attempted_at, worker_id, "
            "attempt, crashes, generation, priority, share, queue, kind, args, 'completed' FROM d",
            (long long)id);
    sql_run(locker, "COMMIT");
    RUN_UNTIL(got.finishes == 3);
    ck_assert_int_eq(got.verdicts[FINISH_ALREADY], 1);
    ck_assert_int_eq(got.verdicts[FINISH_ACCEPTED], 2);
    ASSERT_NUMBER("SELECT count(*)::text FROM claimd.job_history", 3);
    sql_close(locker);
}
END_TEST

static void submit_unkept(size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct job_finish f = finish_of(i, FINISH_COMPLETED);
        f.is_unkept = true;
        submit(&store_a, &f);
    }
}

/* As our own commit would have done, had its answer been lost. */
START_TEST(W8_a_finish_that_leaves_nothing_behind_counts_as_done_when_its_answer_was_lost)
{
    int64_t id = given_running(3);
    struct sql *locker = locker_of(id + 2);
    submit_unkept(3);
    wait_for_blocked_backend();
    cut();
    sql_run(side, "DELETE FROM claimd.job WHERE id = %lld", (long long)id);
    sql_run(locker, "COMMIT");
    RUN_UNTIL(got.finishes == 3);
    ck_assert_int_eq(got.verdicts[FINISH_ALREADY], 1);
    ck_assert_int_eq(got.verdicts[FINISH_ACCEPTED], 2);
    ASSERT_NUMBER("SELECT sum(jobs)::text FROM claimd.completed_count", 2);
    sql_close(locker);
}
END_TEST

START_TEST(W8_a_finish_whose_answer_was_lost_is_stale_when_its_job_was_rescued_or_ended_otherwise)
{
    int64_t id = given_running(3);
    struct sql *locker = locker_of(id + 2);
    submit_unkept(3);
    wait_for_blocked_backend();
    cut();
    sql_run(side,
            "UPDATE claimd.job SET fence = nextval('claimd.fence'), worker_id = gen_random_uuid() "
            "WHERE id = %lld",
            (long long)id);
    sql_run(side,
            "WITH d AS (DELETE FROM claimd.job WHERE id = %lld RETURNING *) INSERT INTO "
            "claimd.job_history (id, fence, created_at, scheduled_at, ready_at, attempted_at, "
            "worker_id, attempt, crashes, generation, priority, share, queue, kind, args, state) "
            "SELECT id, fence, created_at, scheduled_at, ready_at, attempted_at, worker_id, "
            "attempt, crashes, generation, priority, share, queue, kind, args, 'cancelled' FROM d",
            (long long)id + 1);
    sql_run(locker, "COMMIT");
    RUN_UNTIL(got.finishes == 3);
    ck_assert_int_eq(got.verdicts[FINISH_STALE], 2);
    ck_assert_int_eq(got.verdicts[FINISH_ACCEPTED], 1);
    ASSERT_NUMBER("SELECT sum(jobs)::text FROM claimd.completed_count", 1);
    sql_close(locker);
}
END_TEST

START_TEST(a_locked_job_that_is_not_kept_waits_and_holds_up_no_other)
{
    int64_t id = given_running(3);
    struct sql *locker = locker_of(id + 2);
    submit_unkept(3);
    RUN_UNTIL(got.finishes == 2);
    ck_assert_int_eq(got.verdicts[FINISH_ACCEPTED], 2);
    sql_run(locker, "COMMIT");
    RUN_UNTIL(got.finishes == 3);
    ck_assert_int_eq(got.verdicts[FINISH_ACCEPTED], 3);
    ASSERT_NUMBER("SELECT sum(jobs)::text FROM claimd.completed_count", 3);
    sql_close(locker);
}
END_TEST

/* Submits two runs, the first to be retried, the second completed. Both wait for a row that the
 * returned session has locked, and are cut off. */
static struct sql *given_lost_retry(void)
{
    int64_t id = given_running(2);
    struct sql *locker = locker_of(id + 1);
    for (size_t i = 0; i < 2; i++) {
        struct job_finish f = finish_of(i, i == 0 ? FINISH_RETRY : FINISH_COMPLETED);
        f.delay_us = 3600 * US_PER_S;
        submit(&store_a, &f);
    }
    wait_for_blocked_backend();
    cut();
    return locker;
}

static void settle_lost_retry(struct sql *locker, const char *meanwhile)
{
    sql_run(side, "%s", meanwhile);
    sql_run(locker, "COMMIT");
    RUN_UNTIL(got.finishes == 2);
    sql_close(locker);
}

START_TEST(a_lost_retry_is_not_repeated)
{
    struct sql *locker = given_lost_retry();
    char sql[256];
    (void)snprintf(sql, sizeof sql,
                   "UPDATE claimd.job SET state = 'available', scheduled_at = now() + '1 h' WHERE "
                   "id = %lld",
                   (long long)got.jobs[0].id);
    settle_lost_retry(locker, sql);
    ck_assert_int_eq(got.verdicts[FINISH_ACCEPTED] + got.verdicts[FINISH_ALREADY], 2);
    ASSERT_NUMBER("SELECT count(*)::text FROM claimd.job_attempt", 0);
}
END_TEST

/* The run was recorded with this outcome, and another worker has claimed the job again. */
static void given_lost_retry_and_another_claim(const char *outcome)
{
    struct sql *locker = given_lost_retry();
    long long id = got.jobs[0].id;
    char sql[512];
    (void)snprintf(sql, sizeof sql,
                   "WITH told AS (INSERT INTO claimd.job_attempt (job_id, fence, attempt, "
                   "worker_id, started_at, outcome) SELECT id, fence, attempt, worker_id, "
                   "attempted_at, '%s' FROM claimd.job WHERE id = %lld) UPDATE claimd.job SET "
                   "fence = nextval('claimd.fence'), worker_id = gen_random_uuid() WHERE id = %lld",
                   outcome, id, id);
    settle_lost_retry(locker, sql);
}

START_TEST(W8_a_lost_retry_is_found_done_though_its_job_was_claimed_again)
{
    given_lost_retry_and_another_claim("failed");
    ck_assert_int_eq(got.verdicts[FINISH_ALREADY], 1);
    ck_assert_int_eq(got.verdicts[FINISH_STALE], 0);
}
END_TEST

START_TEST(W8_a_lost_retry_is_stale_when_its_job_was_rescued_and_claimed_again)
{
    given_lost_retry_and_another_claim("lost");
    ck_assert_int_eq(got.verdicts[FINISH_STALE], 1);
    ck_assert_int_eq(got.verdicts[FINISH_ALREADY], 0);
}
END_TEST

START_TEST(closing_calls_nobody_back)
{
    given_running(10);
    submit_all(0, 10);
    ask(&store_a, 1, 5, 5);
    (void)uv_run(&world.loop, UV_RUN_NOWAIT);
    submit_all(0, 5);
    int finishes = got.finishes; /* a fast server may have answered the first ones */
    int claims = got.claims;
    job_store_close(store_a.jobs);
    store_a.jobs = NULL;
    sql_run(side, "SELECT 1::text");
    ck_assert_int_eq(got.finishes, finishes);
    ck_assert_int_eq(got.claims, claims);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("job_store_faults");
    TCase *tests = tcase_create("faults");
    tcase_set_timeout(tests, 30);
    tcase_add_checked_fixture(tests, jobs_setup, jobs_teardown);
    tcase_add_test(tests, rule4_a_locked_row_is_put_back_and_the_rest_of_the_claim_goes_on);
    tcase_add_test(tests, rule4_a_locked_run_is_kept_and_the_rest_of_the_finishes_go_on);
    tcase_add_test(tests, rule4_a_locked_table_stalls_finishes_but_loses_none);
    tcase_add_test(tests, a_missing_day_keeps_the_finishes_until_it_is_there);
    tcase_add_test(tests, an_abandoned_claim_is_ended_read_back_and_never_doubled);
    tcase_add_test(tests, a_claim_that_committed_unseen_is_adopted);
    tcase_add_test(tests, a_run_that_we_know_already_is_not_adopted_again);
    tcase_add_test(tests, a_finish_whose_answer_was_lost_is_found_done);
    tcase_add_test(tests,
                   W8_a_finish_that_leaves_nothing_behind_counts_as_done_when_its_answer_was_lost);
    tcase_add_test(
        tests,
        W8_a_finish_whose_answer_was_lost_is_stale_when_its_job_was_rescued_or_ended_otherwise);
    tcase_add_test(tests, a_locked_job_that_is_not_kept_waits_and_holds_up_no_other);
    tcase_add_test(tests, a_lost_retry_is_not_repeated);
    tcase_add_test(tests, W8_a_lost_retry_is_found_done_though_its_job_was_claimed_again);
    tcase_add_test(tests, W8_a_lost_retry_is_stale_when_its_job_was_rescued_and_claimed_again);
    tcase_add_test(tests, closing_calls_nobody_back);
    suite_add_tcase(suite, tests);
    return world_run(suite);
}
