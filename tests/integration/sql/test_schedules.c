/* SPDX-License-Identifier: Apache-2.0
 *
 * Schedules through their functions: set, pause, run, next, and how fire_schedules() handles
 * ticks. */
#include "support/pg_fixture.h"

#include <stdio.h>

static struct sql *db;

static void setup(void)
{
    world_setup();
    db = sql_open(world.conninfo);
    sql_run(db, "SELECT set_config('TimeZone', 'UTC', false)");
}

static void teardown(void)
{
    sql_close(db);
    world_teardown();
}

static int64_t jobs_of(const char *kind)
{
    return sql_number(db, "SELECT count(*)::text FROM claimd.job WHERE kind = '%s'", kind);
}

/* Moves the schedule into the past, so that it was not looked at for `time`. */
static void let_pass(const char *name, const char *time)
{
    sql_run(db,
            "UPDATE claimd.schedule SET start_at = start_at - interval '%s', next_at = "
            "date_trunc('minute', clock_timestamp()) - interval '%s', wake_at = clock_timestamp() "
            "- interval '%s' WHERE name = '%s'",
            time, time, time, name);
}

/* Fires until no tick is due; returns the events as "outcome*count", ordered by name. */
static const char *fire(void)
{
    sql_run(db, "CREATE TEMP TABLE IF NOT EXISTS events (schedule text, due_at timestamptz, "
                "outcome text, job_id bigint, error text)");
    sql_run(db, "TRUNCATE events");
    bool is_over = false;
    for (int i = 0; i < 1000 && !is_over; i++) {
        sql_run(db, "INSERT INTO events SELECT * FROM claimd.fire_schedules(100)");
        is_over = sql_number(db, "SELECT count(*)::text FROM claimd.schedule WHERE NOT paused AND "
                                 "wake_at <= clock_timestamp()") == 0;
    }
    ck_assert_msg(is_over, "something is due for ever");
    return sql_text(
        db,
        "SELECT COALESCE(string_agg(outcome || '*' || n, ' ' ORDER BY outcome), '') FROM (SELECT "
        "outcome, count(*) AS n FROM events WHERE outcome <> 'next' GROUP BY outcome) x");
}

/* ---- set ---- */

START_TEST(a_schedule_is_stored_as_it_is_given)
{
    sql_run(db,
            "SELECT claimd.schedule_set('nightly.backup-1', 'backup', '30 2 * * *', '{\"db\": 1}', "
            "'slow', 2, 'europe/berlin', 3, '1 h', '{a}', '{\"m\": 1}', 'all', '2 days', 'skip')");
    ck_assert_str_eq(
        sql_text(db, "SELECT concat_ws(' ', kind, cron, args, queue, priority, zone, max_attempts, "
                     "timeout, tags, metadata, missed, missed_window, overlap, paused, next_at = "
                     "claimd.cron_next(cron, zone), wake_at = next_at) FROM claimd.schedule"),
        "backup 30 2 * * * {\"db\": 1} slow 2 Europe/Berlin 3 01:00:00 {a} {\"m\": 1} all 2 days "
        "skip f t t");
}
END_TEST

START_TEST(setting_the_same_again_leaves_its_ticks_alone)
{
    sql_run(db, "SELECT claimd.schedule_set('a', 'x', 'every 1h')");
    sql_run(db, "UPDATE claimd.schedule SET start_at = start_at - interval '7 min', next_at = "
                "next_at - interval '7 min', wake_at = wake_at - interval '7 min'");
    sql_run(db, "CREATE TEMP TABLE before AS SELECT next_at FROM claimd.schedule");
    sql_run(db, "SELECT claimd.schedule_pause('a')");
    sql_run(db, "SELECT claimd.schedule_set('a', 'y', 'every 1h', '{\"n\": 2}')");
    ck_assert_str_eq(sql_text(db, "SELECT concat_ws(' ', kind, args, paused, s.next_at = "
                                  "b.next_at) FROM claimd.schedule s, before b"),
                     "y {\"n\": 2} t t");
    sql_run(db, "SELECT claimd.schedule_set('a', 'y', 'every 2h', '{\"n\": 2}')");
    ck_assert_str_eq(sql_text(db, "SELECT (s.next_at > b.next_at + interval '1 h' AND s.start_at "
                                  "<= now())::text FROM claimd.schedule s, before b"),
                     "true");
}
END_TEST

START_TEST(a_wrong_argument_is_named_and_nothing_is_stored)
{
    static const char *const wrong[][2] = {
        {"NULL, 'x', '@daily'", "name: must match"},
        {"'A', 'x', '@daily'", "name: must match"},
        {"'', 'x', '@daily'", "name: must match"},
        {"repeat('a', 65), 'x', '@daily'", "name: must match"},
        {"'a', 'X', '@daily'", "kind: must match"},
        {"'a', NULL, '@daily'", "kind: must match"},
        {"'a', 'x', 'daily'", "cron: 'daily': must be five fields"},
        {"'a', 'x', NULL", "cron: NULL: must be five fields"},
        {"'a', 'x', '0 0 30 2 *'", "cron: no day ever matches"},
        {"'a', 'x', '@daily', NULL", "args: must be"},
        {"'a', 'x', '@daily', to_jsonb(repeat('x', 1048575))", "args: at most 1048576"},
        {"'a', 'x', '@daily', queue => 'No'", "queue: must match"},
        {"'a', 'x', '@daily', priority => 10", "priority: must be 0"},
        {"'a', 'x', '@daily', priority => NULL", "priority: must be 0"},
        {"'a', 'x', '@daily', zone => 'Mars'", "zone: 'Mars' is not in pg_timezone_names"},
        {"'a', 'x', '@daily', zone => NULL", "zone: NULL is not in"},
        {"'a', 'x', '@daily', max_attempts => 0", "max_attempts: must be"},
        {"'a', 'x', '@daily', timeout => '0'", "timeout: must be"},
        {"'a', 'x', '@daily', tags => array_fill('tag'::text, '{2000}')", "tags: at most"},
        {"'a', 'x', '@daily', metadata => to_jsonb(repeat('x', 70000))", "metadata: at most"},
        {"'a', 'x', '@daily', metadata => '5'", "metadata: must be a JSON object"},
        {"'a', 'x', '@daily', tags => '{NULL}'", "tags: must be a list of texts, without"},
        {"'a', 'x', '@daily', tags => '{\"\"}'", "tags: must be a list of texts, none of them"},
        {"'a', 'x', '@daily', missed => 'some'", "missed: must be none, latest or all"},
        {"'a', 'x', '@daily', missed => NULL", "missed: must be none, latest or all"},
        {"'a', 'x', '@daily', missed_window => '0'", "missed_window: must be more than 0"},
        {"'a', 'x', '@daily', missed_window => '10 years'", "missed_window: must be more than 0"},
        {"'a', 'x', '@daily', overlap => 'queue'", "overlap: must be run or skip"},
    };
    for (size_t i = 0; i < ARRAY_COUNT(wrong); i++) {
        char sql[256];
        (void)snprintf(sql, sizeof sql, "SELECT claimd.schedule_set(%s)", wrong[i][0]);
        ASSERT_REFUSED(db, sql, "CL002", wrong[i][1]);
    }
    ASSERT_REFUSED(db, "SELECT claimd.schedule_set('a', 'x', '@daily', '{')", "22P02", "json");
    ck_assert_int_eq(sql_number(db, "SELECT count(*)::text FROM claimd.schedule"), 0);
}
END_TEST

START_TEST(a_schedule_that_is_not_there_is_named)
{
    static const char *const calls[] = {
        "SELECT claimd.schedule_pause('no')",       "SELECT claimd.schedule_resume('no')",
        "SELECT claimd.schedule_run('no')",         "SELECT claimd.schedule_delete('no')",
        "SELECT * FROM claimd.schedule_next('no')",
    };
    for (size_t i = 0; i < ARRAY_COUNT(calls); i++) {
        ASSERT_REFUSED(db, calls[i], "CL003", "schedule 'no' not found");
    }
    ASSERT_REFUSED(db, "SELECT claimd.schedule_delete(NULL)", "CL003", "schedule NULL not found");
    ASSERT_REFUSED(db, "SELECT * FROM claimd.schedule_next('no', 0)", "CL002", "n: must be 1");
    ASSERT_REFUSED(db, "SELECT * FROM claimd.fire_schedules(0)", "CL002", "at_most: must be 1");
}
END_TEST

START_TEST(the_next_ticks_are_shown_in_the_zone)
{
    sql_run(db, "SELECT claimd.schedule_set('a', 'x', '30 2 * * *', zone => 'Europe/Berlin')");
    sql_run(db, "UPDATE claimd.schedule SET next_at = '2026-10-24 00:30+00'");
    ck_assert_str_eq(sql_text(db, "SELECT string_agg(local_time || ' = ' || due_at, ', ' ORDER BY "
                                  "due_at) FROM claimd.schedule_next('a', 3)"),
                     "2026-10-24 02:30:00+02:00 = 2026-10-24 00:30:00+00, 2026-10-25 "
                     "02:30:00+02:00 = 2026-10-25 00:30:00+00, 2026-10-26 02:30:00+01:00 = "
                     "2026-10-26 01:30:00+00");
    sql_run(db, "SELECT claimd.schedule_set('b', 'x', '@daily', zone => 'America/St_Johns')");
    ck_assert_str_eq(
        sql_text(db, "SELECT string_agg(DISTINCT right(local_time, 14), ',') FROM "
                     "claimd.schedule_next('b', 2) WHERE due_at < now() + interval '200 days'"),
        sql_text(
            db,
            "SELECT string_agg(DISTINCT CASE WHEN EXTRACT(hour FROM due_at) = 2 THEN "
            "'00:00:00-02:30' ELSE '00:00:00-03:30' END, ',') FROM claimd.schedule_next('b', 2)"));
    ck_assert_int_eq(sql_number(db, "SELECT count(*)::text FROM claimd.schedule_next('a')"), 5);
}
END_TEST

/* ---- fire ---- */

START_TEST(a_tick_makes_one_job_with_what_the_schedule_says)
{
    sql_run(db, "SELECT claimd.schedule_set('a', 'x', '* * * * *', '{\"n\": 1}', 'q', 7, 'UTC', 3, "
                "'90 s', '{t}', '{\"m\": 1}')");
    ck_assert_str_eq(fire(), "");
    sql_run(db,
            "UPDATE claimd.schedule SET next_at = date_trunc('minute', now()), wake_at = now()");
    ck_assert_str_eq(fire(), "fired*1");
    ck_assert_str_eq(fire(), "");
    ck_assert_str_eq(
        sql_text(db, "SELECT concat_ws(' ', j.kind, j.args, j.queue, j.priority, j.max_attempts, "
                     "j.timeout, j.tags, j.metadata, j.scheduled_at = f.due_at, f.due_at = "
                     "date_trunc('minute', f.due_at), f.outcome, s.next_at = f.due_at + interval "
                     "'1 min', s.fired_at >= f.due_at) FROM claimd.job j JOIN claimd.schedule_fire "
                     "f ON f.job_id = j.id JOIN claimd.schedule s ON s.name = f.schedule"),
        "x {\"n\": 1} q 7 3 00:01:30 {t} {\"m\": 1} t t fired t t");
}
END_TEST

/* The second safeguard, behind next_at: for example against a leader whose clock was put back. */
START_TEST(a_tick_that_fired_never_fires_again)
{
    sql_run(db, "SELECT claimd.schedule_set('a', 'x', '* * * * *')");
    let_pass("a", "0 s");
    ck_assert_str_eq(fire(), "fired*1");
    let_pass("a", "0 s");
    ck_assert_str_eq(fire(), "");
    ck_assert_int_eq(jobs_of("x"), 1);
}
END_TEST

START_TEST(missed_ticks_none_fires_only_what_is_in_time)
{
    sql_run(db, "SELECT claimd.schedule_set('a', 'x', '0 0 * * *', missed => 'none')");
    let_pass("a", "10 days");
    ck_assert_str_eq(fire(), "missed*1");
    sql_run(db, "SELECT claimd.schedule_set('a', 'x', '* * * * *', missed => 'none')");
    let_pass("a", "10 minutes");
    ck_assert_str_eq(fire(), "fired*1 missed*1");
    ck_assert_int_eq(jobs_of("x"), 1);
}
END_TEST

START_TEST(missed_ticks_latest_fires_the_last_one_within_the_window)
{
    sql_run(db, "SELECT claimd.schedule_set('a', 'x', 'every 1d', missed => 'latest')");
    let_pass("a", "10 days 5 hours");
    sql_run(db, "UPDATE claimd.schedule SET start_at = next_at");
    ck_assert_str_eq(fire(), "fired*1 missed*1");
    ck_assert_str_eq(sql_text(db, "SELECT (due_at BETWEEN now() - interval '6 h' AND now() - "
                                  "interval '4 h')::text FROM claimd.schedule_fire"),
                     "true");
    sql_run(db, "SELECT claimd.schedule_set('a', 'x', 'every 1d', missed => 'latest', "
                "missed_window => '4 h')");
    let_pass("a", "10 days 5 hours");
    sql_run(db, "UPDATE claimd.schedule SET start_at = next_at");
    ck_assert_str_eq(fire(), "missed*1");
    ck_assert_int_eq(jobs_of("x"), 1);
}
END_TEST

START_TEST(missed_ticks_all_fires_each_one_within_the_window)
{
    sql_run(db, "SELECT claimd.schedule_set('a', 'x', 'every 10m', missed => 'all', missed_window "
                "=> '6 h')");
    let_pass("a", "10 days 5 minutes");
    sql_run(db, "UPDATE claimd.schedule SET start_at = next_at");
    ck_assert_str_eq(fire(), "fired*36 missed*1");
    ck_assert_int_eq(jobs_of("x"), 36);
    ck_assert_int_eq(sql_number(db, "SELECT count(DISTINCT due_at)::text FROM claimd.schedule_fire "
                                    "WHERE job_id IS NOT NULL"),
                     36);
}
END_TEST

/* A change of leader takes seconds, and must not count as a missed tick. */
START_TEST(ticks_of_the_last_minute_fire_whatever_the_policy)
{
    static const char *const policies[] = {"none", "latest", "all"};
    for (size_t i = 0; i < ARRAY_COUNT(policies); i++) {
        sql_run(db, "SELECT claimd.schedule_set('s%zu', 'k%zu', '* * * * * *', missed => '%s')", i,
                i, policies[i]);
        sql_run(db,
                "UPDATE claimd.schedule SET next_at = date_trunc('second', clock_timestamp()) - "
                "interval '40 s', wake_at = clock_timestamp() WHERE name = 's%zu'",
                i);
        (void)fire();
        char kind[8];
        (void)snprintf(kind, sizeof kind, "k%zu", i);
        ck_assert_int_ge(jobs_of(kind), 41);
        ck_assert_int_eq(
            sql_number(db, "SELECT count(*)::text FROM events WHERE outcome = 'missed'"), 0);
        sql_run(db, "SELECT claimd.schedule_pause('s%zu')", i);
    }
}
END_TEST

START_TEST(overlap_skip_leaves_a_tick_out_while_a_job_of_it_is_open)
{
    sql_run(
        db,
        "SELECT claimd.schedule_set('a', 'x', 'every 10m', overlap => 'skip', missed => 'all')");
    let_pass("a", "35 minutes");
    sql_run(db, "UPDATE claimd.schedule SET start_at = next_at");
    ck_assert_str_eq(fire(), "fired*1 skipped*3");
    sql_run(db, "SELECT claimd.schedule_run('a')::text");
    sql_run(db, "SELECT claimd.cancel(min(id)) FROM claimd.job");
    let_pass("a", "41 s");
    sql_run(db, "UPDATE claimd.schedule SET start_at = next_at");
    ck_assert_str_eq(fire(), "skipped*1"); /* the job of the manual run is open */
    sql_run(db, "SELECT claimd.cancel(id) FROM claimd.job");
    let_pass("a", "42 s");
    sql_run(db, "UPDATE claimd.schedule SET start_at = next_at");
    ck_assert_str_eq(fire(), "fired*1");
    ck_assert_int_eq(jobs_of("x"), 1);
}
END_TEST

START_TEST(one_bad_schedule_stops_no_other_and_shows_its_error)
{
    sql_run(db, "ALTER TABLE claimd.job ADD CONSTRAINT no_bad CHECK (kind <> 'bad')");
    sql_run(db, "SELECT claimd.schedule_set(n, CASE n WHEN 'b' THEN 'bad' ELSE 'good' END, '* * * "
                "* *') FROM unnest('{a,b,c}'::text[]) n");
    sql_run(db,
            "UPDATE claimd.schedule SET next_at = date_trunc('minute', now()), wake_at = now()");
    ck_assert_str_eq(fire(), "failed*1 fired*2");
    ck_assert_int_eq(jobs_of("good"), 2);
    ck_assert_str_eq(
        sql_text(db, "SELECT concat_ws(' ', failures, error ~ 'no_bad', failed_at < now() + "
                     "interval '1 s', next_at = date_trunc('minute', next_at), wake_at > failed_at "
                     "+ interval '1 s') FROM claimd.schedule WHERE name = 'b'"),
        "1 t t t t");
    /* Once the cause is removed, the failed tick fires. */
    sql_run(db, "ALTER TABLE claimd.job DROP CONSTRAINT no_bad");
    sql_run(db, "UPDATE claimd.schedule SET wake_at = now() WHERE name = 'b'");
    ck_assert_str_eq(fire(), "fired*1");
    ck_assert_str_eq(sql_text(db, "SELECT concat_ws(' ', failures, error IS NULL, failed_at IS "
                                  "NULL) FROM claimd.schedule WHERE name = 'b'"),
                     "0 t t");
}
END_TEST

START_TEST(a_locked_schedule_keeps_nobody_waiting)
{
    struct sql *other = sql_open(world.conninfo);
    sql_run(db, "SELECT claimd.schedule_set(n, n, '* * * * *') FROM unnest('{a,b}'::text[]) n");
    sql_run(db,
            "UPDATE claimd.schedule SET next_at = date_trunc('minute', now()), wake_at = now()");
    sql_run(other, "BEGIN");
    sql_run(other, "SELECT name FROM claimd.schedule WHERE name = 'a' FOR UPDATE");
    sql_run(db, "SELECT outcome FROM claimd.fire_schedules()");
    ck_assert_int_eq(jobs_of("a"), 0);
    ck_assert_int_eq(jobs_of("b"), 1);
    sql_run(other, "ROLLBACK");
    sql_run(db, "SELECT outcome FROM claimd.fire_schedules()");
    ck_assert_int_eq(jobs_of("a"), 1);
    sql_close(other);
}
END_TEST

START_TEST(fire_says_when_there_is_something_to_do_again)
{
    ck_assert_str_eq(
        sql_text(db, "SELECT concat_ws(' ', outcome, due_at IS NULL) FROM claimd.fire_schedules()"),
        "next t");
    sql_run(db, "SELECT claimd.schedule_set('a', 'x', '@yearly')");
    sql_run(db, "SELECT claimd.schedule_set('b', 'x', '@monthly')");
    sql_run(db, "SELECT claimd.schedule_set('c', 'x', '@hourly')");
    sql_run(db, "SELECT claimd.schedule_pause('c')");
    ck_assert_str_eq(
        sql_text(
            db,
            "SELECT (due_at = claimd.cron_next('@monthly'))::text FROM claimd.fire_schedules()"),
        "true");
}
END_TEST

/* ---- manual commands ---- */

START_TEST(pause_and_resume_leave_the_time_between_out)
{
    sql_run(db, "SELECT claimd.schedule_set('a', 'x', '* * * * *', missed => 'all')");
    for (int i = 0; i < 2; i++) {
        sql_run(db, "SELECT claimd.schedule_pause('a')");
    }
    let_pass("a", "10 minutes");
    ck_assert_str_eq(fire(), "");
    ck_assert_str_eq(sql_text(db, "SELECT (claimd.schedule_resume('a') > clock_timestamp())::text"),
                     "true");
    ck_assert_str_eq(fire(), "");
    let_pass("a", "0 s"); /* resuming a schedule that is not paused changes nothing */
    sql_run(db, "SELECT claimd.schedule_resume('a')");
    ck_assert_str_eq(fire(), "fired*1");
}
END_TEST

START_TEST(run_makes_a_job_now_and_leaves_the_ticks_alone)
{
    sql_run(db, "SELECT claimd.schedule_set('a', 'x', '@yearly', '{\"n\": 1}')");
    sql_run(db, "SELECT claimd.schedule_pause('a')");
    int64_t id = sql_number(db, "SELECT claimd.schedule_run('a')::text");
    sql_run(db, "SELECT claimd.schedule_run('a')");
    ck_assert_int_eq(sql_number(db, "SELECT min(id)::text FROM claimd.job WHERE args = '{\"n\": "
                                    "1}' AND ready_at <= clock_timestamp()"),
                     id);
    ck_assert_str_eq(sql_text(db, "SELECT string_agg(outcome, ' ') FROM claimd.schedule_fire"),
                     "run run");
    ck_assert_str_eq(
        sql_text(
            db,
            "SELECT (next_at = claimd.cron_next('@yearly') AND paused)::text FROM claimd.schedule"),
        "true");
}
END_TEST

START_TEST(delete_takes_the_fires_along_and_leaves_the_jobs)
{
    sql_run(db, "SELECT claimd.schedule_set('a', 'x', '@yearly')");
    sql_run(db, "SELECT claimd.schedule_run('a')");
    sql_run(db, "SELECT claimd.schedule_delete('a')");
    ck_assert_int_eq(sql_number(db, "SELECT count(*)::text FROM claimd.schedule_fire"), 0);
    ck_assert_int_eq(jobs_of("x"), 1);
}
END_TEST

START_TEST(only_an_admin_may_change_schedules)
{
    static const char *const calls[] = {
        "SELECT claimd.schedule_set('a', 'x', '@daily')",
        "SELECT claimd.schedule_run('a')",
        "SELECT claimd.schedule_pause('a')",
        "SELECT claimd.schedule_resume('a')",
        "SELECT due_at FROM claimd.schedule_next('a')",
        "SELECT claimd.schedule_delete('a')",
    };
    static const char *const others[] = {"claimd_producer", "claimd_reader", "claimd_worker"};
    struct sql *admin = sql_open(world.conninfo);
    sql_run(admin, "SET ROLE claimd_admin");
    for (size_t i = 0; i < ARRAY_COUNT(calls); i++) {
        sql_run(admin, "%s", calls[i]);
    }
    ASSERT_REFUSED(admin, "SELECT outcome FROM claimd.fire_schedules()", "42501", "denied");
    ASSERT_REFUSED(admin, "UPDATE claimd.schedule SET cron = ''", "42501", "denied");
    ASSERT_REFUSED(admin, "INSERT INTO claimd.schedule_fire (schedule) VALUES ('a')", "42501",
                   "denied");
    sql_close(admin);
    for (size_t r = 0; r < ARRAY_COUNT(others); r++) {
        struct sql *pg = sql_open(world.conninfo);
        sql_run(pg, "SET ROLE %s", others[r]);
        for (size_t i = 0; i < ARRAY_COUNT(calls); i++) {
            ASSERT_REFUSED(pg, calls[i], "42501", "denied");
        }
        sql_close(pg);
    }
    struct sql *reader = sql_open(world.conninfo);
    sql_run(reader, "SET ROLE claimd_reader");
    sql_run(reader, "SELECT count(*)::text FROM claimd.schedule, claimd.schedule_fire");
    sql_run(reader, "SELECT claimd.cron_next('@daily', 'Europe/Berlin')");
    sql_close(reader);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("schedules");
    TCase *tc = tcase_create("schedules");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, a_schedule_is_stored_as_it_is_given);
    tcase_add_test(tc, setting_the_same_again_leaves_its_ticks_alone);
    tcase_add_test(tc, a_wrong_argument_is_named_and_nothing_is_stored);
    tcase_add_test(tc, a_schedule_that_is_not_there_is_named);
    tcase_add_test(tc, the_next_ticks_are_shown_in_the_zone);
    tcase_add_test(tc, a_tick_makes_one_job_with_what_the_schedule_says);
    tcase_add_test(tc, a_tick_that_fired_never_fires_again);
    tcase_add_test(tc, missed_ticks_none_fires_only_what_is_in_time);
    tcase_add_test(tc, missed_ticks_latest_fires_the_last_one_within_the_window);
    tcase_add_test(tc, missed_ticks_all_fires_each_one_within_the_window);
    tcase_add_test(tc, ticks_of_the_last_minute_fire_whatever_the_policy);
    tcase_add_test(tc, overlap_skip_leaves_a_tick_out_while_a_job_of_it_is_open);
    tcase_add_test(tc, one_bad_schedule_stops_no_other_and_shows_its_error);
    tcase_add_test(tc, a_locked_schedule_keeps_nobody_waiting);
    tcase_add_test(tc, fire_says_when_there_is_something_to_do_again);
    tcase_add_test(tc, pause_and_resume_leave_the_time_between_out);
    tcase_add_test(tc, run_makes_a_job_now_and_leaves_the_ticks_alone);
    tcase_add_test(tc, delete_takes_the_fires_along_and_leaves_the_jobs);
    tcase_add_test(tc, only_an_admin_may_change_schedules);
    suite_add_tcase(suite, tc);
    return world_run(suite);
}
