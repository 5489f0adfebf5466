/* SPDX-License-Identifier: Apache-2.0
 *
 * Kinds that keep no completed jobs, with real daemons: each job is counted once, whatever happens
 * to workers and connections, and its limits are free again. */
#include "support/fleet.h"
#include "support/suite.h"

#include <check.h>
#include <signal.h>

#define WORKERS 3

static struct fleet fleet;

static void setup(void)
{
    fleet_start(&fleet, &(struct fleet_options){.masters = 3, .slots = 8});
    sql_run(fleet.sql, "INSERT INTO claimd.retention (scope, name, state, days) SELECT 'kind', n, "
                       "'completed', 0 FROM unnest('{noop,sleep}'::text[]) n");
    fleet_start_scheduler(&fleet, 0);
    for (size_t i = 0; i < WORKERS; i++) {
        fleet_start_worker(&fleet, i, NULL);
    }
}

static void teardown(void)
{
    fleet_stop(&fleet);
}

static int64_t counted(void)
{
    return sql_number(fleet.sql,
                      "SELECT COALESCE(sum(jobs), 0)::bigint FROM claimd.completed_count");
}

static int64_t open_jobs(void)
{
    return sql_number(fleet.sql, "SELECT count(*) FROM claimd.job");
}

START_TEST(inv_S2_each_job_is_counted_once_while_workers_and_sessions_are_killed)
{
    (void)fleet_enqueue(&fleet, "sleep", "{\"ms\": 20}", 3000);
    for (size_t i = 0; i < 2; i++) {
        ck_assert(WAIT_UNTIL(counted() > 300 * ((int64_t)i + 1), SOON_US));
        fleet_signal(fleet.workers[i], SIGKILL);
        (void)fleet_wait_end(&fleet, &fleet.workers[i]);
        fleet_start_worker(&fleet, i, NULL);
        for (int n = 0; n < 5; n++) {
            sql_run(fleet.sql, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE "
                               "application_name LIKE 'claimd-worker%%'");
            wait_step();
        }
    }
    ck_assert(WAIT_UNTIL(open_jobs() == 0, SOON_US));
    ck_assert_int_eq(counted(), 3000);
    ck_assert_int_eq(sql_number(fleet.sql, "SELECT count(*) FROM claimd.job_history"), 0);
}
END_TEST

START_TEST(feat_B20_limits_hold_and_are_free_again_and_a_batch_is_over)
{
    sql_run(fleet.sql, "SELECT claimd.limit_queue('default', 5)");
    sql_run(fleet.sql, "SELECT claimd.enqueue('noop', exclusive_key => 'k' || n %% 3) FROM "
                       "generate_series(1, 100) n");
    sql_run(fleet.sql, "SELECT claimd.batch_open('b', '{\"kind\": \"noop\"}')");
    sql_run(fleet.sql, "SELECT claimd.batch_add(1, claimd.enqueue('noop')) FROM "
                       "generate_series(1, 20)");
    sql_run(fleet.sql, "SELECT claimd.batch_close(1)");
    ck_assert(WAIT_UNTIL(sql_number(fleet.sql, "SELECT count(*) FROM claimd.batches WHERE state = "
                                               "'over' AND succeeded = 20") == 1,
                         SOON_US));
    ck_assert(WAIT_UNTIL(open_jobs() == 0, SOON_US));
    ck_assert_int_eq(counted(), 101); /* the follow-up, too */
    ck_assert_int_eq(sql_number(fleet.sql, "SELECT count(*) FROM claimd.job_history"), 20);
    ck_assert_int_eq(sql_number(fleet.sql, "SELECT count(*) FROM claimd.exclusive"), 0);
    ck_assert_int_eq(sql_number(fleet.sql, "SELECT count(*) FROM claimd.slot WHERE fence = 0"), 5);
}
END_TEST

START_TEST(feat_B20_wait_says_gone_and_what_fails_is_kept)
{
    int64_t id = fleet_enqueue(&fleet, "noop", "{}", 1);
    ck_assert(WAIT_UNTIL(open_jobs() == 0, SOON_US));
    const char *state = sql_text(fleet.sql, "SELECT state FROM claimd.wait(%lld)", (long long)id);
    ck_assert_str_eq(state, "gone");
    sql_run(fleet.sql, "SELECT claimd.enqueue('sleep', '{\"ms\": \"bad\"}', max_attempts => 1)");
    ck_assert(WAIT_UNTIL(open_jobs() == 0, SOON_US));
    ck_assert_int_eq(sql_number(fleet.sql, "SELECT count(*) FROM claimd.job_history WHERE state = "
                                           "'discarded'"),
                     1);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("unkept");
    TCase *c = tcase_create("unkept");
    tcase_set_timeout(c, 300);
    tcase_add_unchecked_fixture(c, fleet_share_pg, fleet_unshare_pg);
    tcase_add_checked_fixture(c, setup, teardown);
    tcase_add_test(c, inv_S2_each_job_is_counted_once_while_workers_and_sessions_are_killed);
    tcase_add_test(c, feat_B20_limits_hold_and_are_free_again_and_a_batch_is_over);
    tcase_add_test(c, feat_B20_wait_says_gone_and_what_fails_is_kept);
    suite_add_tcase(suite, c);
    return suite_run(suite);
}
