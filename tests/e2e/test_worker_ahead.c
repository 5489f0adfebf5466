/* SPDX-License-Identifier: Apache-2.0
 *
 * Short jobs are sent to a runner many at a time (docs/decisions/0019): what happens to those that
 * wait there if something happens to the running one. One worker with two runners serves all
 * tests. */
#include "support/fleet.h"
#include "support/suite.h"

#include <check.h>
#include <signal.h>
#include <stdio.h>

#define WARM_UP 600 /* number of jobs after which their mean duration is short */
#define SHORT 300
#define STOPS 200

static struct fleet f;

static void setup(void)
{
    fleet_start(&f, &(struct fleet_options){.slots = 2});
    fleet_start_scheduler(&f, 0);
    fleet_start_worker(&f, 0, NULL);
}

static void teardown(void)
{
    fleet_stop(&f);
}

/* `ms`: how long the first one runs; `more`: further args for it. All jobs have one kind and are
 * committed in one transaction, so that the worker receives them together. Returns the id of the
 * first. */
static int64_t insert(int ms, const char *more, int count)
{
    char path[SERVER_PATH_MAX];
    fleet_ledger_path(&f, path, sizeof path);
    return sql_number(f.sql,
                      "WITH added AS (INSERT INTO claimd.job (kind, args) SELECT 'ledger',"
                      " jsonb_build_object('path', '%s', 'ms', CASE n WHEN 1 THEN %d ELSE 0 END)"
                      " || CASE n WHEN 1 THEN '{%s}'::jsonb ELSE '{}' END"
                      " FROM generate_series(1, %d) AS n RETURNING id) SELECT min(id) FROM added",
                      path, ms, more, count);
}

static int64_t completed(int64_t first, int64_t last)
{
    return sql_number(f.sql,
                      "SELECT count(*) FROM claimd.job_history"
                      " WHERE id BETWEEN %lld AND %lld AND state = 'completed'",
                      (long long)first, (long long)last);
}

static void warm_up(void)
{
    int64_t first = insert(0, "", WARM_UP);
    ck_assert(WAIT_UNTIL(completed(first, first + WARM_UP - 1) == WARM_UP, SOON_US));
}

static bool is_running(int64_t id)
{
    return sql_number(f.sql,
                      "SELECT count(*) FROM claimd.job WHERE id = %lld AND state = 'running'",
                      (long long)id) == 1;
}

/* Starts jobs that keep a runner busy for long; the first one runs when this returns. */
static int64_t start_slow(int ms, int count)
{
    int before = fleet_ledger_count(&f, " start");
    int64_t slow = insert(ms, "", count);
    ck_assert(WAIT_UNTIL(fleet_ledger_count(&f, " start") > before, SOON_US));
    return slow;
}

START_TEST(no_job_waits_behind_a_slow_one)
{
    warm_up();
    int64_t slow = insert(600000, "", 1 + SHORT);
    ck_assert(WAIT_UNTIL(completed(slow + 1, slow + SHORT) == SHORT, SOON_US));
    ck_assert(is_running(slow));
    ck_assert_int_eq(
        sql_number(f.sql, "SELECT count(*) FROM claimd.job_history WHERE attempt <> 1"), 0);
    sql_run(f.sql, "SELECT claimd.cancel(%lld)", (long long)slow);
    ck_assert(WAIT_UNTIL(!is_running(slow), SOON_US));
}
END_TEST

/* Starts in the time in which the worker can give no runner a job. */
static int starts_without_worker(void)
{
    fleet_signal(f.workers[0], SIGSTOP);
    int before = fleet_ledger_count(&f, " start");
    (void)WAIT_UNTIL(fleet_ledger_count(&f, " start") > before + 2, 50 * US_PER_MS);
    int starts = fleet_ledger_count(&f, " start") - before;
    fleet_signal(f.workers[0], SIGCONT);
    return starts;
}

/* A job that was sent just before the worker was stopped is one start for each runner. */
START_TEST(runners_have_some_jobs_ahead_where_each_takes_a_millisecond)
{
    char path[SERVER_PATH_MAX];
    fleet_ledger_path(&f, path, sizeof path);
    sql_run(f.sql,
            "INSERT INTO claimd.job (kind, args) SELECT 'ledger', jsonb_build_object('path', '%s',"
            " 'ms', 1) FROM generate_series(1, 20000)",
            path);
    ck_assert(WAIT_UNTIL(fleet_ledger_count(&f, " end") > 100, SOON_US));
    int most = 0;
    for (int i = 0; i < STOPS && most <= 2; i++) {
        int starts = starts_without_worker();
        most = starts > most ? starts : most;
        int ends = fleet_ledger_count(&f, " end");
        ck_assert(WAIT_UNTIL(fleet_ledger_count(&f, " end") > ends + 10, SOON_US));
    }
    ck_assert_int_gt(most, 2);
}
END_TEST

START_TEST(A2_a_crash_charges_the_job_that_had_begun_and_no_other)
{
    warm_up();
    int64_t bad = insert(0, "\"crash\": true", 1 + SHORT);
    ck_assert(WAIT_UNTIL(completed(bad + 1, bad + SHORT) == SHORT, SOON_US));
    ck_assert_int_eq(sql_number(f.sql,
                                "SELECT count(*) FROM claimd.job_history WHERE id BETWEEN %lld AND"
                                " %lld AND (attempt <> 1 OR crashes <> 0)",
                                (long long)bad + 1, (long long)bad + SHORT),
                     0);
    ck_assert(WAIT_UNTIL(sql_number(f.sql,
                                    "SELECT count(*) FROM claimd.jobs WHERE id = %lld AND"
                                    " crashes > 0",
                                    (long long)bad) == 1,
                         SOON_US));
}
END_TEST

START_TEST(a_cancel_reaches_a_job_that_waits_in_a_runner_and_not_the_one_that_runs)
{
    warm_up();
    int64_t slow = start_slow(600000, 1);
    int64_t second = start_slow(600000, 1); /* no runner is free now */
    ck_assert_int_eq(insert(0, "", SHORT), second + 1);
    /* For the moment in which they are claimed. */
    (void)WAIT_UNTIL(is_running(second + 1), 2 * US_PER_S);
    sql_run(f.sql, "SELECT claimd.cancel(id) FROM generate_series(%lld, %lld) AS id",
            (long long)second + 1, (long long)second + SHORT);
    ck_assert(WAIT_UNTIL(sql_number(f.sql,
                                    "SELECT count(*) FROM claimd.job_history WHERE id BETWEEN"
                                    " %lld AND %lld AND state = 'cancelled'",
                                    (long long)second + 1, (long long)second + SHORT) == SHORT,
                         SOON_US));
    ck_assert(is_running(slow) && is_running(second));
    sql_run(f.sql, "SELECT claimd.cancel(id) FROM generate_series(%lld, %lld) AS id",
            (long long)slow, (long long)second);
    ck_assert(WAIT_UNTIL(!is_running(slow) && !is_running(second), SOON_US));
}
END_TEST

START_TEST(rule3_a_drain_gives_back_what_waits_in_runners_uncharged)
{
    warm_up();
    int64_t slow = start_slow(5000, 1);
    int64_t second = start_slow(5000, 1 + SHORT);
    fleet_signal(f.workers[0], SIGTERM);
    ck_assert_int_eq(fleet_wait_end(&f, &f.workers[0]), 0);
    ck_assert_int_eq(sql_number(f.sql, "SELECT count(*) FROM claimd.job WHERE state = 'running'"),
                     0);
    ck_assert_int_eq(sql_number(f.sql, "SELECT count(*) FROM claimd.job WHERE attempt > 0"), 0);
    fleet_start_worker(&f, 0, NULL);
    ck_assert(WAIT_UNTIL(completed(slow, second + SHORT) == second + SHORT - slow + 1, SOON_US));
    ck_assert_int_eq(fleet_ledger_count(&f, " end"), fleet_ledger_count(&f, " start"));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("worker_ahead");
    TCase *c = tcase_create("ahead");
    tcase_set_timeout(c, 200);
    tcase_add_unchecked_fixture(c, fleet_share_pg, fleet_unshare_pg);
    tcase_add_checked_fixture(c, setup, teardown);
    tcase_add_test(c, no_job_waits_behind_a_slow_one);
    tcase_add_test(c, runners_have_some_jobs_ahead_where_each_takes_a_millisecond);
    tcase_add_test(c, A2_a_crash_charges_the_job_that_had_begun_and_no_other);
    tcase_add_test(c, a_cancel_reaches_a_job_that_waits_in_a_runner_and_not_the_one_that_runs);
    tcase_add_test(c, rule3_a_drain_gives_back_what_waits_in_runners_uncharged);
    suite_add_tcase(suite, c);
    return suite_run(suite);
}
