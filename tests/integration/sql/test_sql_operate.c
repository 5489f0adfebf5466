/* SPDX-License-Identifier: Apache-2.0
 *
 * What operators do to jobs, in SQL. */
#include "support/pg_fixture.h"

#include <stdio.h>

static struct pg *db;

static void setup(void)
{
    world_setup();
    db = side_open(NULL);
}

static void teardown(void)
{
    pg_close(db);
    world_teardown();
}

static int64_t number(const char *sql)
{
    return side_number(db, sql);
}

/* A finished job, as its worker leaves it; its id. */
static int64_t finished(const char *state)
{
    char sql[128];
    int64_t id = number("SELECT claimd.enqueue('a')::text");
    (void)side_run(db, "SELECT claimd.cancel(max(id)) FROM claimd.job");
    (void)snprintf(sql, sizeof sql, "UPDATE claimd.job_history SET state = '%s' WHERE id = %lld",
                   state, (long long)id);
    (void)side_run(db, sql);
    return id;
}

/* ---- retry ---- */

START_TEST(a_retry_brings_all_columns_of_a_job_back)
{
    (void)side_run(
        db, "INSERT INTO claimd.job (kind, queue, args, priority, share, scheduled_at, attempt, "
            "crashes, generation, fence, attempted_at, worker_id, max_attempts, timeout, tags, "
            "metadata, flags, version, unique_key, backoff, exclusive_key) VALUES ('all', 'q', "
            "'{\"a\": 1}', 7, 5, "
            "now() + interval '1 h', 3, 2, 1, 77, now(), gen_random_uuid(), 9, '1 min', '{x,y}', "
            "'{\"m\": 1}', 2, 5, 'u', 'fixed:5s', 'e')");
    (void)side_run(db, "CREATE TABLE before AS SELECT to_jsonb(j) AS row FROM claimd.job j");
    ck_assert_msg(number("SELECT count(*)::text FROM before WHERE row = jsonb_strip_nulls(row)") ==
                      1,
                  "give each column of the job above a value");
    (void)side_run(db, "SELECT claimd.cancel(id) FROM claimd.job");
    ck_assert_int_eq(number("SELECT claimd.retry(id)::text FROM claimd.jobs"), 1);
    /* All but what begins anew. */
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
        (void)side_run(db, "SELECT claimd.retry(max(id))::text FROM claimd.jobs");
        ck_assert_int_eq(number("SELECT count(*)::text FROM claimd.jobs WHERE state = 'available'"),
                         1);
        (void)side_run(db, "SELECT claimd.cancel(max(id)) FROM claimd.job");
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
    (void)side_run(db, "SELECT claimd.enqueue('a')::text");
    ASSERT_REFUSED(db, "SELECT claimd.retry(1)", "CL003", "job 1 is available: only a finished");
    (void)side_run(db, "UPDATE claimd.job SET state = 'running'");
    ASSERT_REFUSED(db, "SELECT claimd.retry(1)", "CL003", "job 1 is running: only a finished");
    ASSERT_REFUSED(db, "SELECT claimd.retry(77)", "CL003", "job 77 not found");
    ASSERT_REFUSED(db, "SELECT claimd.retry(NULL)", "CL002", "id: must not be NULL");
    ASSERT_REFUSED(db, "SELECT claimd.retry(1, NULL)", "CL002", "even_completed: must be");
    (void)side_run(db, "UPDATE claimd.job SET state = 'available'");
    (void)side_run(db, "SELECT claimd.cancel(1)");
    (void)side_run(db, "UPDATE claimd.job_history SET state = 'completed'");
    ASSERT_REFUSED(db, "SELECT claimd.retry(1)", "CL003",
                   "job 1 is completed: only even_completed");
    ck_assert_int_eq(number("SELECT claimd.retry(1, even_completed => true)::text"), 1);
    ASSERT_REFUSED(db, "SELECT claimd.retry(1, true)", "CL003", "job 1 is available");
}
END_TEST

START_TEST(of_two_retries_at_once_one_is_refused)
{
    struct pg *other = side_open(NULL);
    (void)finished("discarded");
    (void)side_run(db, "BEGIN");
    (void)side_run(db, "SELECT claimd.retry(1)::text");
    (void)side_run(other, "SET lock_timeout = '200ms'");
    ASSERT_REFUSED(other, "SELECT claimd.retry(1)", "55P03", "lock timeout");
    (void)side_run(db, "COMMIT");
    ASSERT_REFUSED(other, "SELECT claimd.retry(1)", "CL003", "job 1 is available");
    pg_close(other);
}
END_TEST

/* ---- pause ---- */

START_TEST(queues_and_kinds_are_paused_once_and_resumed_once)
{
    (void)side_run(db, "INSERT INTO claimd.kind (name) VALUES ('a')");
    ck_assert_str_eq(side_run(db, "SELECT claimd.pause_queue('q.1')::text").text, "true");
    ck_assert_str_eq(side_run(db, "SELECT claimd.pause_queue('q.1')::text").text, "false");
    ck_assert_int_eq(number("SELECT count(*)::text FROM claimd.queue WHERE paused"), 1);
    ck_assert_str_eq(side_run(db, "SELECT claimd.resume_queue('q.1')::text").text, "true");
    ck_assert_str_eq(side_run(db, "SELECT claimd.resume_queue('q.1')::text").text, "false");
    ck_assert_str_eq(side_run(db, "SELECT claimd.resume_queue('nobody')::text").text, "false");
    ck_assert_str_eq(side_run(db, "SELECT claimd.pause_kind('a')::text").text, "true");
    ck_assert_str_eq(side_run(db, "SELECT claimd.pause_kind('a')::text").text, "false");
    ck_assert_str_eq(side_run(db, "SELECT claimd.resume_kind('a')::text").text, "true");
    ck_assert_str_eq(side_run(db, "SELECT claimd.resume_kind('a')::text").text, "false");
    ASSERT_REFUSED(db, "SELECT claimd.pause_queue('No')", "CL002", "queue: must match");
    ASSERT_REFUSED(db, "SELECT claimd.pause_queue(NULL)", "CL002", "queue: must match");
    ASSERT_REFUSED(db, "SELECT claimd.resume_queue('')", "CL002", "queue: must match");
    ASSERT_REFUSED(db, "SELECT claimd.pause_kind('b')", "CL002", "kind: must be one");
    ASSERT_REFUSED(db, "SELECT claimd.resume_kind(NULL)", "CL002", "kind: must be one");
}
END_TEST

START_TEST(a_kind_is_not_paused_while_programs_may_work_that_would_go_on_with_it)
{
    (void)side_run(db, "INSERT INTO claimd.kind (name) VALUES ('a')");
    (void)side_run(db, "UPDATE claimd.cluster SET oldest_program = 1");
    ASSERT_REFUSED(db, "SELECT claimd.pause_kind('a')", "CL003", "claimctl db finish");
    (void)side_run(db, "SELECT claimd.finish_upgrade()::text");
    ck_assert_str_eq(side_run(db, "SELECT claimd.pause_kind('a')::text").text, "true");
}
END_TEST

#define WORKER "'00000000-0000-0000-0000-0000000000aa'"

START_TEST(a_worker_is_asked_only_if_it_hears)
{
    ASSERT_REFUSED(db, "SELECT claimd.ask_worker(" WORKER ", 'quiet')", "CL003", "not found");
    ASSERT_REFUSED(db, "SELECT claimd.ask_worker(NULL, 'quiet')", "CL003", "not found");
    (void)side_run(db, "UPDATE claimd.cluster SET oldest_program = 1");
    (void)side_run(db, "INSERT INTO claimd.worker (worker_id, stale_at, pid, slots, host, "
                       "state_dir, token_prefix, version, queues, built_for) VALUES (" WORKER
                       ", now() + interval '1 h', 1, 1, 'h', '/s', 'p', '1', '{default}', 1)");
    ASSERT_REFUSED(db, "SELECT claimd.ask_worker(" WORKER ", 'stop')", "CL002", "what: must be");
    ASSERT_REFUSED(db, "SELECT claimd.ask_worker(" WORKER ", 'quiet')", "CL003", "older release");
    (void)side_run(
        db, "UPDATE claimd.worker SET built_for = (SELECT schema_version FROM claimd.cluster)");
    (void)side_run(db, "SELECT claimd.ask_worker(" WORKER ", 'drain')");
    (void)side_run(db, "SELECT claimd.ask_worker(" WORKER ", 'quiet')"); /* draining is more */
    ck_assert_str_eq(side_run(db, "SELECT asked FROM claimd.worker").text, "drain");
    (void)side_run(db, "UPDATE claimd.worker SET stale_at = now()");
    ASSERT_REFUSED(db, "SELECT claimd.ask_worker(" WORKER ", 'quiet')", "CL003", "is silent");
    (void)side_run(db, "UPDATE claimd.worker SET stopped = true");
    ASSERT_REFUSED(db, "SELECT claimd.ask_worker(" WORKER ", 'quiet')", "CL003", "has ended");
}
END_TEST

/* ---- delete ---- */

START_TEST(a_deleted_job_leaves_nothing_behind)
{
    (void)finished("discarded");
    (void)side_run(db, "SELECT claimd.retry(1)::text");
    ASSERT_REFUSED(db, "SELECT claimd.delete_job(1)", "CL003", "job 1 is available: only a");
    (void)side_run(db, "SELECT claimd.cancel(1)");
    (void)side_run(db, "INSERT INTO claimd.job_attempt (job_id, fence, attempt, worker_id, "
                       "started_at, outcome) VALUES (1, 1, 1, " WORKER ", now(), 'failed')");
    ck_assert_str_eq(side_run(db, "SELECT claimd.delete_job(1)").text, "cancelled");
    ck_assert_int_eq(number("SELECT ((SELECT count(*) FROM claimd.job_history) + "
                            "(SELECT count(*) FROM claimd.job_attempt))::text"),
                     0);
    ASSERT_REFUSED(db, "SELECT claimd.delete_job(1)", "CL003", "job 1 not found");
    ASSERT_REFUSED(db, "SELECT claimd.delete_job(NULL)", "CL002", "id: must not be NULL");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("sql operate");
    TCase *tc = tcase_create("operate");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, a_retry_brings_all_columns_of_a_job_back);
    tcase_add_test(tc, the_view_has_one_row_of_a_job_whatever_its_generation);
    tcase_add_test(tc, retry_says_why_it_can_not);
    tcase_add_test(tc, of_two_retries_at_once_one_is_refused);
    tcase_add_test(tc, queues_and_kinds_are_paused_once_and_resumed_once);
    tcase_add_test(tc, a_kind_is_not_paused_while_programs_may_work_that_would_go_on_with_it);
    tcase_add_test(tc, a_worker_is_asked_only_if_it_hears);
    tcase_add_test(tc, a_deleted_job_leaves_nothing_behind);
    suite_add_tcase(suite, tc);
    return world_run(suite);
}
