/* SPDX-License-Identifier: Apache-2.0
 *
 * Two-phase commit: a producer's transaction is prepared, and committed later by another session.
 * The system is idle, so that the leader wants a NOTIFY, which a prepared transaction cannot
 * send. */
#include "support/fleet.h"
#include "support/suite.h"

#include <check.h>
#include <stdio.h>

static struct fleet f;

static void setup(void)
{
    struct err err = {0};
    fleet_start(&f, &(struct fleet_options){.masters = 3});
    sql_run(f.sql, "ALTER SYSTEM SET max_prepared_transactions = 10");
    pg_server_kill(&f.pg);
    ck_assert_msg(pg_server_restart(&f.pg, &err) == STATUS_OK, "%s", err.msg);
    sql_close(f.sql);
    f.sql = sql_open(f.conninfo);
    fleet_start_scheduler(&f, 0);
    fleet_start_worker(&f, 0, NULL);
}

static void teardown(void)
{
    fleet_stop(&f);
}

static bool is_hungry(void)
{
    return sql_number(f.sql, "SELECT hungry::integer FROM claimd.cluster") == 1;
}

static bool is_completed(int64_t id)
{
    return sql_number(f.sql,
                      "SELECT count(*) FROM claimd.job_history WHERE id = %lld AND state ="
                      " 'completed'",
                      (long long)id) == 1;
}

static int64_t open_jobs(const char *condition)
{
    return sql_number(f.sql, "SELECT count(*) FROM claimd.job WHERE %s", condition);
}

START_TEST(a_transaction_that_brings_and_changes_jobs_is_prepared_and_committed_later)
{
    struct sql *producer = sql_open(f.conninfo);
    int64_t before = fleet_enqueue(&f, "noop", "{}", 1);
    ck_assert(WAIT_UNTIL(is_completed(before) && is_hungry(), SOON_US));
    int64_t later =
        sql_number(f.sql, "SELECT claimd.enqueue('noop', scheduled_at => now() + interval"
                          " '1 day', unique_key => 'k', unique_states => 'queued')");
    int64_t running = fleet_enqueue(&f, "sleep", "{\"ms\": 600000}", 1);
    ck_assert(WAIT_UNTIL(open_jobs("state = 'running'") == 1 && is_hungry(), SOON_US));
    sql_run(producer, "SET claimd.notify = off");
    sql_run(producer, "BEGIN");
    int64_t id = sql_number(producer, "SELECT claimd.enqueue('noop')");
    sql_run(producer, "INSERT INTO claimd.job (kind) VALUES ('noop')");
    sql_run(producer, "SELECT claimd.enqueue('noop', unique_key => 'k', on_conflict => 'ignore')");
    sql_run(producer, "SELECT claimd.edit(%lld, '{\"scheduled_at\": null}')", (long long)later);
    sql_run(producer, "SELECT claimd.cancel(%lld)", (long long)running);
    sql_run(producer, "PREPARE TRANSACTION 'brought'");
    sql_close(producer);
    ck_assert_int_eq(open_jobs("true"), 2);
    fleet_enqueue(&f, "noop", "{}", 1); /* moves the feed's cursor past the place of the others */
    ck_assert(WAIT_UNTIL(open_jobs("true") == 2 && is_hungry(), SOON_US));
    sql_run(f.sql, "COMMIT PREPARED 'brought'");
    ck_assert(WAIT_UNTIL(is_completed(id) && is_completed(later), SOON_US));
    ck_assert(WAIT_UNTIL(open_jobs("true") == 0, SOON_US));
    ck_assert_int_eq(sql_number(f.sql, "SELECT count(*) FROM claimd.job_history WHERE state ="
                                       " 'completed'"),
                     5);
}
END_TEST

START_TEST(any_other_value_of_the_setting_is_refused_with_those_that_are_allowed)
{
    ck_assert(WAIT_UNTIL(is_hungry(), SOON_US));
    sql_run(f.sql, "SET claimd.notify = never");
    ASSERT_REFUSED(f.sql, "SELECT claimd.enqueue('noop')", "CL002", "");
    sql_run(f.sql, "SET claimd.notify = on");
    sql_run(f.sql, "SELECT claimd.enqueue('noop')");
    sql_run(f.sql, "RESET claimd.notify");
    sql_run(f.sql, "SELECT claimd.enqueue('noop')");
    ck_assert(WAIT_UNTIL(open_jobs("true") == 0, SOON_US));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("prepared");
    TCase *tests = tcase_create("prepared");
    tcase_set_timeout(tests, 180);
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_test(tests,
                   a_transaction_that_brings_and_changes_jobs_is_prepared_and_committed_later);
    tcase_add_test(tests, any_other_value_of_the_setting_is_refused_with_those_that_are_allowed);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
