/* SPDX-License-Identifier: Apache-2.0
 *
 * The leader fires the ticks of schedules when they are due, whatever else is wrong. */
#include "scheduler/cron.h"
#include "scheduler_world.h"
#include "support/suite.h"

#include <signal.h>
#include <stdio.h>

static void setup(void)
{
    world_start("\"scheduler\": {\"history_days\": 3}");
}

static void teardown(void)
{
    world_stop();
}

static int said(size_t i, const char *text)
{
    return fleet_log_count(&fleet, "claimd-scheduler", i, text);
}

static int64_t jobs_of(const char *kind)
{
    return sql_number(fleet.sql, "SELECT count(*) FROM claimd.job WHERE kind = '%s'", kind);
}

/* ---- the wait ---- */

START_TEST(the_wait_ends_with_the_next_tick_but_a_second_at_most)
{
    ck_assert_int_eq(cron_wait_us(-US_PER_S / 2, false, US_PER_S), US_PER_S / 2);
    ck_assert_int_eq(cron_wait_us(-3600 * US_PER_S, true, US_PER_S), US_PER_S);
    ck_assert_int_eq(cron_wait_us(5 * US_PER_S, true, US_PER_S), 0);
    /* Due, but nothing fired, because another session holds the schedule. An immediate retry would
     * be a busy loop. */
    ck_assert_int_eq(cron_wait_us(5 * US_PER_S, false, US_PER_S), US_PER_S / 10);
}
END_TEST

START_TEST(failures_are_repeated_at_growing_intervals)
{
    ck_assert_int_eq(cron_backoff_us(1, US_PER_S), US_PER_S);
    ck_assert_int_eq(cron_backoff_us(3, US_PER_S), 4 * US_PER_S);
    ck_assert_int_eq(cron_backoff_us(1000, US_PER_S), 32 * US_PER_S);
}
END_TEST

/* ---- with a real leader ---- */

START_TEST(a_schedule_that_is_set_while_the_leader_waits_fires_at_its_time)
{
    start_leader(0);
    sql_run(fleet.sql, "SELECT claimd.schedule_set('far', 'far', '@yearly')");
    sql_run(fleet.sql, "SELECT claimd.schedule_set('s', 'noop', '* * * * * *')");
    ck_assert(WAIT_UNTIL(jobs_of("noop") >= 5, SOON_US));
    sql_run(fleet.sql, "SELECT claimd.schedule_pause('s')");
    ck_assert_int_eq(sql_number(fleet.sql,
                                "SELECT count(*) FROM claimd.schedule_fire WHERE fired_at "
                                "NOT BETWEEN due_at AND due_at + interval '10 s'"),
                     0);
    ck_assert_int_eq(sql_number(fleet.sql,
                                "SELECT (EXTRACT(epoch FROM max(due_at) - min(due_at)) + 1 - "
                                "count(*))::int8 FROM claimd.schedule_fire"),
                     0);
    ck_assert_int_eq(jobs_of("noop"),
                     sql_number(fleet.sql, "SELECT count(*) FROM claimd.schedule_fire"));
    ck_assert_int_eq(jobs_of("far"), 0);
    ck_assert(WAIT_UNTIL(said(0, "event=schedule_fired schedule=s due=20") >= 5, SOON_US));
    sql_run(fleet.sql, "SELECT claimd.schedule_resume('s')");
    int64_t before = jobs_of("noop");
    ck_assert(WAIT_UNTIL(jobs_of("noop") > before, SOON_US));
}
END_TEST

START_TEST(a_bad_schedule_is_named_and_the_others_go_on)
{
    start_leader(0);
    sql_run(fleet.sql, "ALTER TABLE claimd.job ADD CONSTRAINT no_bad CHECK (kind <> 'bad')");
    sql_run(fleet.sql, "SELECT claimd.schedule_set('bad', 'bad', '* * * * * *')");
    sql_run(fleet.sql, "SELECT claimd.schedule_set('good', 'good', '* * * * * *')");
    ck_assert(WAIT_UNTIL(said(0, "event=schedule_failed schedule=bad") >= 2, SOON_US));
    ck_assert(WAIT_UNTIL(jobs_of("good") >= 3, SOON_US));
    sql_run(fleet.sql, "ALTER TABLE claimd.job DROP CONSTRAINT no_bad");
    ck_assert(WAIT_UNTIL(jobs_of("bad") >= 1, SOON_US));
    ck_assert_int_eq(
        sql_number(fleet.sql, "SELECT failures FROM claimd.schedule WHERE name = 'bad'"), 0);
}
END_TEST

START_TEST(a_schedule_that_somebody_has_locked_stalls_no_other)
{
    struct sql *other = sql_open(fleet.conninfo);
    start_leader(0);
    sql_run(fleet.sql, "SELECT claimd.schedule_set('held', 'held', '* * * * * *')");
    sql_run(other, "BEGIN");
    sql_run(other, "SELECT claimd.schedule_set('held', 'held', '* * * * * *')");
    int64_t before = jobs_of("held");
    sql_run(fleet.sql, "SELECT claimd.schedule_set('good', 'good', '* * * * * *')");
    ck_assert(WAIT_UNTIL(jobs_of("good") >= 3, SOON_US));
    ck_assert_int_eq(jobs_of("held"), before);
    sql_run(other, "ROLLBACK");
    ck_assert(WAIT_UNTIL(jobs_of("held") > before + 3, SOON_US));
    sql_close(other);
}
END_TEST

START_TEST(what_PostgreSQL_refuses_is_said_once_and_ends_with_recovered)
{
    start_leader(0);
    sql_run(fleet.sql, "SELECT claimd.schedule_set('s', 'noop', '* * * * * *')");
    ck_assert(WAIT_UNTIL(jobs_of("noop") >= 1, SOON_US));
    sql_run(fleet.sql, "ALTER FUNCTION claimd.fire_schedules RENAME TO gone");
    ck_assert(WAIT_UNTIL(said(0, "event=schedules_failed") >= 1, SOON_US));
    sql_run(fleet.sql, "ALTER FUNCTION claimd.gone RENAME TO fire_schedules");
    ck_assert(WAIT_UNTIL(said(0, "event=schedules_recovered") == 1, SOON_US));
    /* No tick of that time is lost, and none fires twice. */
    ck_assert(WAIT_UNTIL(sql_number(fleet.sql, "SELECT (next_at > clock_timestamp())::int FROM "
                                               "claimd.schedule") == 1,
                         SOON_US));
    sql_run(fleet.sql, "SELECT claimd.schedule_pause('s')");
    ck_assert_int_eq(sql_number(fleet.sql,
                                "SELECT (EXTRACT(epoch FROM max(due_at) - min(due_at)) + 1 - "
                                "count(*))::int8 FROM claimd.schedule_fire"),
                     0);
    ck_assert_int_eq(jobs_of("noop"),
                     sql_number(fleet.sql, "SELECT count(*) FROM claimd.schedule_fire"));
}
END_TEST

/* The old leader wakes up believing that it still leads, and fires the same ticks as the new one:
 * each tick makes one job. */
START_TEST(two_leaders_at_once_make_one_job_per_tick)
{
    start_leader(0);
    fleet_start_scheduler(&fleet, 1);
    ck_assert(WAIT_UNTIL(said(1, "event=ready") > 0, SOON_US));
    sql_run(fleet.sql, "SELECT claimd.schedule_set('s', 'noop', '* * * * * *')");
    for (int i = 0; i < 3; i++) {
        ck_assert(WAIT_UNTIL(leads(0) || leads(1), SOON_US)); /* either may lead */
        size_t first = leads(0) ? 0 : 1;
        int won = said(1 - first, "event=leader_won");
        int lost = said(first, "event=leader_lost");
        fleet_signal(fleet.schedulers[first], SIGSTOP);
        ck_assert(WAIT_UNTIL(said(1 - first, "event=leader_won") > won, SOON_US));
        int64_t before = jobs_of("noop");
        fleet_signal(fleet.schedulers[first], SIGCONT);
        ck_assert(WAIT_UNTIL(
            jobs_of("noop") > before + 2 && said(first, "event=leader_lost") > lost, SOON_US));
    }
    sql_run(fleet.sql, "SELECT claimd.schedule_pause('s')");
    ck_assert_int_eq(sql_number(fleet.sql,
                                "SELECT (EXTRACT(epoch FROM max(due_at) - min(due_at)) + 1 - "
                                "count(*))::int8 FROM claimd.schedule_fire"),
                     0);
    ck_assert_int_eq(sql_number(fleet.sql, "SELECT count(*) - count(DISTINCT scheduled_at) FROM "
                                           "claimd.job"),
                     0);
}
END_TEST

START_TEST(feat_B29_a_tick_whose_unique_job_is_there_is_skipped_and_the_log_says_which)
{
    start_leader(0);
    /* With at least one known kind, a job of an unknown kind raises a NOTICE, which must not reach
     * the log. */
    sql_run(fleet.sql, "INSERT INTO claimd.kind (name) VALUES ('known')");
    sql_run(fleet.sql, "SELECT claimd.schedule_set('s', 'noop', '* * * * * *', unique_key => 'k')");
    ck_assert(WAIT_UNTIL(said(0, "event=schedule_skipped schedule=s") >= 2, SOON_US));
    ck_assert_int_ge(said(0, "why=\"unique_key: job 1 has this key and waits\""), 2);
    ck_assert_int_eq(jobs_of("noop"), 1);
    ck_assert_int_eq(said(0, "event=schedule_fired schedule=s"), 1);
    ck_assert_int_eq(said(0, "no worker has served"), 0);
    ck_assert_int_eq(said(0, "event=schedule_failed"), 0);
}
END_TEST

#define PUT_OFF(name)                                                              \
    "UPDATE claimd.schedule SET next_at = next_at + interval '1 year', wake_at = " \
    "wake_at + interval '1 year' WHERE name = '" name "'"

/* The schedule that is locked meanwhile is mended the next time, and delays no other. */
START_TEST(feat_B29_a_schedule_that_waits_beyond_its_next_tick_is_mended_and_fires)
{
    struct sql *other = sql_open(fleet.conninfo);
    sql_run(fleet.sql, "SELECT claimd.schedule_set(n, n, CASE n WHEN 'paused' THEN '@hourly' ELSE "
                       "'* * * * * *' END) FROM unnest('{held,paused,s,yearly}'::text[]) n");
    sql_run(fleet.sql, "SELECT claimd.schedule_set('yearly', 'yearly', '@yearly')");
    sql_run(fleet.sql, "SELECT claimd.schedule_pause('paused')");
    sql_run(fleet.sql, PUT_OFF("held"));
    sql_run(fleet.sql, PUT_OFF("paused"));
    sql_run(fleet.sql, PUT_OFF("s"));
    sql_run(other, "BEGIN");
    sql_run(other, "SELECT FROM claimd.schedule WHERE name = 'held' FOR UPDATE");
    start_leader(0);
    ck_assert(WAIT_UNTIL(jobs_of("s") >= 2, SOON_US));
    ck_assert_int_eq(said(0, "event=schedule_mended schedule=s was=20"), 1);
    ck_assert_int_eq(jobs_of("held"), 0);
    sql_run(other, "ROLLBACK");
    ck_assert(WAIT_UNTIL(jobs_of("held") >= 2, SOON_US));
    /* Also while it leads. */
    sql_run(fleet.sql, PUT_OFF("s"));
    ck_assert(WAIT_UNTIL(said(0, "event=schedule_mended schedule=s was=20") == 2, SOON_US));
    ck_assert_int_eq(said(0, "event=schedule_mended schedule=held"), 1);
    ck_assert_int_eq(said(0, "event=schedule_mended"), 3);
    sql_close(other);
}
END_TEST

START_TEST(feat_B29_the_only_schedule_is_mended_even_if_it_waits_for_ever)
{
    sql_run(fleet.sql, "SELECT claimd.schedule_set('s', 's', '* * * * * *')");
    sql_run(fleet.sql, "UPDATE claimd.schedule SET next_at = 'infinity', wake_at = 'infinity'");
    start_leader(0);
    ck_assert(WAIT_UNTIL(jobs_of("s") >= 2, SOON_US));
    ck_assert_int_eq(said(0, "event=schedule_mended schedule=s was=infinity due=20"), 1);
    ck_assert_int_eq(said(0, "event=schedules_failed"), 0);
}
END_TEST

START_TEST(feat_B20_fires_are_kept_no_longer_than_the_history)
{
    sql_run(fleet.sql, "SELECT claimd.schedule_set('s', 'noop', '@yearly')");
    sql_run(fleet.sql, "INSERT INTO claimd.schedule_fire (schedule, due_at, fired_at, outcome) "
                       "SELECT 's', t, t, 'fired' FROM (SELECT now() - n * interval '45 days' "
                       "FROM generate_series(0, 1) n) x(t)");
    start_leader(0);
    ck_assert(WAIT_UNTIL(sql_number(fleet.sql, "SELECT count(*) FROM claimd.schedule_fire") == 1,
                         SOON_US));
    ck_assert_int_eq(sql_number(fleet.sql,
                                "SELECT count(*) FROM claimd.schedule_fire WHERE due_at > "
                                "now() - interval '1 day'"),
                     1);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("scheduler_cron");
    TCase *pure = tcase_create("pure");
    tcase_add_test(pure, the_wait_ends_with_the_next_tick_but_a_second_at_most);
    tcase_add_test(pure, failures_are_repeated_at_growing_intervals);
    suite_add_tcase(suite, pure);
    TCase *tc = tcase_create("scheduler_cron");
    tcase_add_unchecked_fixture(tc, fleet_share_pg, fleet_unshare_pg);
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_set_timeout(tc, 240);
    tcase_add_test(tc, a_schedule_that_is_set_while_the_leader_waits_fires_at_its_time);
    tcase_add_test(tc, a_bad_schedule_is_named_and_the_others_go_on);
    tcase_add_test(tc, a_schedule_that_somebody_has_locked_stalls_no_other);
    tcase_add_test(tc, what_PostgreSQL_refuses_is_said_once_and_ends_with_recovered);
    tcase_add_test(tc, two_leaders_at_once_make_one_job_per_tick);
    tcase_add_test(tc, feat_B29_a_tick_whose_unique_job_is_there_is_skipped_and_the_log_says_which);
    tcase_add_test(tc, feat_B29_a_schedule_that_waits_beyond_its_next_tick_is_mended_and_fires);
    tcase_add_test(tc, feat_B29_the_only_schedule_is_mended_even_if_it_waits_for_ever);
    tcase_add_test(tc, feat_B20_fires_are_kept_no_longer_than_the_history);
    suite_add_tcase(suite, tc);
    return suite_run(suite);
}
