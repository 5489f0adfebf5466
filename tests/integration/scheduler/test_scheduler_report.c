/* SPDX-License-Identifier: Apache-2.0
 *
 * The schedulers' own reports in PostgreSQL, for doctor. */
#include "scheduler_world.h"
#include "support/suite.h"

#include <signal.h>
#include <stdio.h>

static void setup(void)
{
    world_start(NULL);
    given_worker(1, "default", "noop");
}

static void teardown(void)
{
    world_stop();
}

static int64_t count_where(const char *what)
{
    return sql_number(fleet.sql, "SELECT count(*) FROM claimd.scheduler WHERE %s", what);
}

START_TEST(a_leader_says_that_it_leads_feeds_and_has_its_nodes)
{
    start_leader(0);
    ck_assert(
        WAIT_UNTIL(count_where("leader_since IS NOT NULL AND last_pass_at > clock_timestamp() "
                               "- interval '5 s' AND lock_nodes = 3 AND lock_nodes_voting = "
                               "3 AND stale_at > clock_timestamp() AND host <> ''") == 1,
                   SOON_US));
    ck_assert_int_eq(sql_number(fleet.sql, "SELECT pid FROM claimd.scheduler"),
                     fleet.schedulers[0]);
    ck_assert_int_eq(count_where("abs(clock_ahead_us) < 5000000 AND clock_step_us = 0"), 1);
    sql_run(fleet.sql, "UPDATE claimd.scheduler SET beat_at = 'epoch'");
    ck_assert(WAIT_UNTIL(count_where("beat_at > 'epoch'") == 1, SOON_US));
    ck_assert_int_eq(count_where("true"), 1);
}
END_TEST

START_TEST(a_standby_says_that_it_does_not_lead)
{
    start_leader(0);
    fleet_start_scheduler(&fleet, 1);
    ck_assert(WAIT_UNTIL(count_where("leader_since IS NULL AND last_pass_at IS NULL") == 1 &&
                             count_where("leader_since IS NOT NULL") == 1,
                         SOON_US));
}
END_TEST

/* The last statement may be lost with its connection; then the row goes stale, like that of a
 * killed scheduler. */
START_TEST(a_scheduler_that_ends_takes_its_row_away_and_a_killed_one_goes_stale)
{
    start_leader(0);
    ck_assert(WAIT_UNTIL(count_where("true") == 1, SOON_US));
    fleet_signal(fleet.schedulers[0], SIGTERM);
    ck_assert_int_eq(fleet_wait_end(&fleet, &fleet.schedulers[0]), 0);
    ck_assert(WAIT_UNTIL(count_where("stale_at > clock_timestamp()") == 0, SOON_US));
    start_leader(0);
    ck_assert(WAIT_UNTIL(count_where("stale_at > clock_timestamp()") == 1, SOON_US));
    fleet_signal(fleet.schedulers[0], SIGKILL);
    ck_assert_int_eq(fleet_wait_end(&fleet, &fleet.schedulers[0]), 128 + SIGKILL);
    ck_assert_int_ge(count_where("true"), 1);
    ck_assert(WAIT_UNTIL(count_where("stale_at > clock_timestamp()") == 0, SOON_US));
}
END_TEST

START_TEST(rows_of_long_gone_processes_are_removed)
{
    sql_run(fleet.sql, "INSERT INTO claimd.scheduler (scheduler_id, stale_at, beat_at, pid, host, "
                       "version, lock_nodes, lock_nodes_voting) SELECT gen_random_uuid(), now(), "
                       "now() - n * interval '50 min', 1, 'gone', '1', 5, 5 FROM "
                       "generate_series(1, 2) AS n");
    start_leader(0);
    ck_assert(WAIT_UNTIL(count_where("host = 'gone'") == 1, SOON_US));
}
END_TEST

START_TEST(N8_a_scheduler_ends_when_the_cluster_has_other_lock_nodes_by_now)
{
    start_leader(0);
    ck_assert(WAIT_UNTIL(count_where("true") == 1, SOON_US));
    sql_run(fleet.sql, "UPDATE claimd.cluster SET lock_nodes = 'elsewhere:6379'");
    ck_assert_int_eq(fleet_wait_end(&fleet, &fleet.schedulers[0]), 2);
    ck_assert_int_eq(fleet_log_count(&fleet, "claimd-scheduler", 0, "event=lock_nodes_changed"), 1);
}
END_TEST

START_TEST(N8_a_scheduler_that_reports_during_a_change_of_lock_nodes_waits_for_its_end)
{
    start_leader(0);
    ck_assert(WAIT_UNTIL(count_where("true") == 1, SOON_US));
    struct sql *admin = sql_open(fleet.conninfo);
    sql_run(admin, "BEGIN");
    sql_run(admin, "SELECT lock_nodes FROM claimd.cluster FOR UPDATE");
    ck_assert(WAIT_UNTIL(sql_number(fleet.sql, "SELECT count(*) FROM pg_stat_activity WHERE "
                                               "wait_event_type = 'Lock' AND query LIKE "
                                               "'%%INSERT INTO claimd.scheduler%%'") == 1,
                         SOON_US));
    sql_run(admin, "UPDATE claimd.cluster SET lock_nodes = 'elsewhere:6379'");
    sql_run(admin, "COMMIT");
    sql_close(admin);
    ck_assert_int_eq(fleet_wait_end(&fleet, &fleet.schedulers[0]), 2);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("scheduler report");
    TCase *tests = tcase_create("report");
    tcase_add_unchecked_fixture(tests, fleet_share_pg, fleet_unshare_pg);
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_set_timeout(tests, 120);
    tcase_add_test(tests, a_leader_says_that_it_leads_feeds_and_has_its_nodes);
    tcase_add_test(tests, a_standby_says_that_it_does_not_lead);
    tcase_add_test(tests, a_scheduler_that_ends_takes_its_row_away_and_a_killed_one_goes_stale);
    tcase_add_test(tests, rows_of_long_gone_processes_are_removed);
    tcase_add_test(tests, N8_a_scheduler_ends_when_the_cluster_has_other_lock_nodes_by_now);
    tcase_add_test(tests,
                   N8_a_scheduler_that_reports_during_a_change_of_lock_nodes_waits_for_its_end);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
