/* SPDX-License-Identifier: Apache-2.0
 *
 * Plans and batching under load: statements are prepared on 20 rows, then a million rows arrive. */
#include "job_store_fixture.h"

#include <stdio.h>

#define BATCH 500

static void submit_batch(void)
{
    for (size_t i = 0; i < got.job_count; i++) {
        struct job_finish f = finish_of(i, FINISH_COMPLETED);
        submit(&store_a, &f);
    }
    got.finishes = 0;
}

static void run_batch(int64_t id)
{
    got.job_count = 0;
    claim_now(&store_a, id, BATCH);
    ck_assert_uint_eq(got.job_count, BATCH);
    submit_batch();
    RUN_UNTIL(got.finishes == BATCH);
}

/* Rows of `job` that all sessions have read so far, with or without an index. */
#define ROWS_READ                                                          \
    "SELECT (seq_tup_read + idx_tup_fetch)::text FROM pg_stat_user_tables" \
    " WHERE relid = 'claimd.job'::regclass"
#define ROWS_DELETED \
    "SELECT n_tup_del::text FROM pg_stat_user_tables WHERE relid = 'claimd.job'::regclass"

START_TEST(plans_do_not_depend_on_how_large_the_table_was_when_they_were_made)
{
    enum { BATCHES = 4, ROWS = 200000 };
    int64_t id = add_jobs(20);
    sql_run(side, "ANALYZE claimd.job");
    claim_now(&store_a, id, 20);
    submit_batch();
    RUN_UNTIL(got.finishes == 20);
    sql_run(side, "ALTER TABLE claimd.job SET (autovacuum_enabled = off)");
    id = add_jobs(ROWS);
    sql_run(side, "SELECT pg_stat_force_next_flush()");
    int64_t before = sql_number(side, ROWS_READ);
    for (int i = 0; i < BATCHES; i++) {
        run_batch(id + (int64_t)i * (ROWS / BATCHES));
    }
    pg_close(store_a.pg); /* the statistics of a session are complete when it has ended */
    store_a.pg = NULL;
    RUN_UNTIL(sql_number(side, ROWS_DELETED) == 20 + BATCHES * BATCH);
    int64_t read = sql_number(side, ROWS_READ) - before;
    ck_assert_int_lt(read, 10 * BATCHES * BATCH); /* ARCHITECTURE §3; one scan reads ROWS */
}
END_TEST

START_TEST(a_loaded_store_commits_once_for_hundreds_of_jobs)
{
    enum { JOBS = 20000 };
    int64_t id = add_jobs(JOBS);
    uint64_t before = job_store_counters(store_a.jobs)->commits;
    for (int64_t at = 0; at < JOBS; at += BATCH) {
        got.job_count = 0;
        claim_now(&store_a, id + at, BATCH);
        submit_batch(); /* sent with the next claim */
    }
    RUN_UNTIL(job_store_waiting(store_a.jobs) == 0);
    uint64_t commits = job_store_counters(store_a.jobs)->commits - before;
    ck_assert_uint_le(commits, JOBS / BATCH + 2);
    ASSERT_NUMBER("SELECT count(*)::text FROM claimd.job_history", JOBS);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("job_store_plans");
    TCase *tests = tcase_create("plans");
    tcase_set_timeout(tests, 50);
    tcase_add_checked_fixture(tests, jobs_setup, jobs_teardown);
    tcase_add_test(tests, plans_do_not_depend_on_how_large_the_table_was_when_they_were_made);
    tcase_add_test(tests, a_loaded_store_commits_once_for_hundreds_of_jobs);
    suite_add_tcase(suite, tests);
    return world_run(suite);
}
