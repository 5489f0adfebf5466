/* SPDX-License-Identifier: Apache-2.0
 *
 * Schedules through their functions: ticks whose jobs have keys or are delayed, and schedules that
 * wait beyond their next tick. */
#include "sql_db.h"

#include <stdio.h>

static void setup_utc(void)
{
    setup();
    run("SELECT set_config('TimeZone', 'UTC', false)");
}

static void assert_text(const char *sql, const char *text)
{
    ck_assert_str_eq(sql_text(db, "%s", sql), text);
}

/* Makes a tick of the current minute due and fires it; returns the outcome. */
static const char *fire(const char *name)
{
    sql_run(db,
            "UPDATE claimd.schedule SET start_at = start_at - interval '1 h', next_at = "
            "COALESCE((SELECT max(due_at) + interval '1 s' FROM claimd.schedule_fire WHERE due_at "
            "= date_trunc('second', due_at)), date_trunc('second', now()) - interval '30 s'), "
            "wake_at = now() WHERE name = '%s'",
            name);
    /* Fires exactly one tick. */
    return sql_text(db,
                    "SELECT string_agg(concat_ws(' ', f.outcome, f.error), ',') FROM "
                    "claimd.schedule s, claimd.fire_schedule(s, s.next_at) f WHERE name = '%s'",
                    name);
}

/* ---- the parameters of enqueue ---- */

START_TEST(feat_B29_a_schedule_takes_what_enqueue_takes)
{
    run("SELECT claimd.schedule_set('s', 'a', '* * * * * *', exclusive_key => 'e', "
        "share_key => 't', backoff => 'fixed:30s', unique_by => '{kind,queue}', "
        "unique_for => '1 h', unique_states => 'completed', on_conflict => "
        "'replace_args', jitter => '90 s', second_key => 'f')");
    assert_text("SELECT concat_ws(' ', exclusive_key, second_key, share_key, backoff, unique_by, "
                "unique_for, "
                "unique_states, on_conflict, jitter) FROM claimd.schedule",
                "e f t fixed:30s {kind,queue} 01:00:00 completed replace_args 00:01:30");
    ck_assert_str_eq(fire("s"), "fired");
    assert_text(
        "SELECT concat_ws(' ', exclusive_key, second_key, share_key, share = claimd.share_of('t'), "
        "backoff, unique_key, (SELECT concat(states, ' ', expires_at - clock_timestamp() "
        "BETWEEN '59 min' AND '1 h') FROM claimd.job_key)) FROM claimd.job",
        "e f t t fixed:30s {\"kind\": \"a\", \"queue\": \"default\"} completed t");
    /* A parameter that is omitted next time returns to its default. */
    run("SELECT claimd.schedule_set('s', 'a', '* * * * * *')");
    assert_text(
        "SELECT num_nulls(exclusive_key, second_key, share_key, backoff, unique_key, unique_by, "
        "unique_for, unique_states, jitter) || on_conflict FROM claimd.schedule",
        "9ignore");
}
END_TEST

START_TEST(feat_B29_what_is_wrong_is_named_with_what_is_allowed)
{
    static const char *const wrong[][2] = {
        {"exclusive_key => ''", "exclusive_key: must have 1 to 512 bytes"},
        {"share_key => ''", "share_key: must have 1 to 512 bytes"},
        {"backoff => 'soon'", "backoff: must be exponential:15s:1h"},
        {"unique_key => ''", "unique_key: must have 1 to 512 bytes"},
        {"unique_by => '{tags}'", "unique_by: must be a list of kind, queue, args and args.NAME"},
        {"unique_key => 'k', unique_by => '{args}'", "unique_by: together with unique_key"},
        {"unique_for => '1 h'", "unique_for: needs unique_key or unique_by"},
        {"unique_states => 'open'", "unique_states: needs unique_key or unique_by"},
        {"unique_key => 'k', unique_for => '0'", "unique_for: must be more than 0"},
        {"unique_key => 'k', unique_states => 'done'", "unique_states: must be queued, open"},
        {"unique_key => 'k', unique_states => 'all'", "unique_states: all needs unique_for"},
        {"on_conflict => NULL", "on_conflict: must be ignore, replace_args, reschedule or replace"},
        {"on_conflict => 'error'",
         "on_conflict: must be ignore, replace_args, reschedule or replace"},
        {"jitter => '-1 s'", "jitter: must be 0 to 1 day"},
        {"jitter => '86401 s'", "jitter: must be 0 to 1 day, or NULL for none"},
    };
    for (size_t i = 0; i < ARRAY_COUNT(wrong); i++) {
        char sql[256];
        (void)snprintf(sql, sizeof sql, "SELECT claimd.schedule_set('s', 'a', '@daily', %s)",
                       wrong[i][0]);
        ASSERT_REFUSED(db, sql, "CL002", wrong[i][1]);
    }
    ck_assert_int_eq(sql_number(db, "SELECT count(*)::text FROM claimd.schedule"), 0);
}
END_TEST

/* ---- unique ---- */

START_TEST(feat_B29_a_tick_is_skipped_while_its_unique_job_stands_in_the_way)
{
    run("SELECT claimd.enqueue('b', unique_key => 'k')");
    run("SELECT claimd.schedule_set('s', 'a', '* * * * * *', unique_key => 'k')");
    ck_assert_str_eq(fire("s"), "skipped unique_key: job 1 has this key and waits");
    ck_assert_str_eq(fire("s"), "skipped unique_key: job 1 has this key and waits");
    assert_text("SELECT concat_ws(' ', count(*), count(job_id), min(outcome), max(outcome)) FROM "
                "claimd.schedule_fire",
                "2 0 skipped skipped");
    assert_text("SELECT concat_ws(' ', failures, error IS NULL, fired_at IS NULL) FROM "
                "claimd.schedule",
                "0 t t");
    run("SELECT claimd.cancel(1)");
    ck_assert_str_eq(fire("s"), "fired");
    ck_assert_str_eq(fire("s"), "skipped unique_key: job 4 has this key and waits");
    ck_assert_int_eq(sql_number(db, "SELECT count(*)::text FROM claimd.job"), 1);
    ck_assert_int_eq(sql_number(db, "SELECT count(*)::text FROM claimd.job_promise"), 0);
}
END_TEST

START_TEST(feat_B29_a_skipped_tick_may_change_the_job_that_waits)
{
    run("SELECT claimd.enqueue('a', '{\"n\": 1}', unique_key => 'k', scheduled_at "
        "=> now() + interval '1 day')");
    run("SELECT claimd.schedule_set('s', 'a', '* * * * * *', '{\"n\": 2}', "
        "unique_key => 'k', on_conflict => 'replace_args')");
    ck_assert_str_eq(fire("s"), "skipped unique_key: job 1 has this key and was changed");
    assert_text("SELECT args->>'n' FROM claimd.job", "2");
    run("SELECT claimd.schedule_set('s', 'a', '* * * * * *', unique_key => 'k', "
        "on_conflict => 'reschedule')");
    ck_assert_str_eq(fire("s"), "skipped unique_key: job 1 has this key and was changed");
    assert_text("SELECT (scheduled_at <= clock_timestamp())::text FROM claimd.job", "true");
    run("SELECT claimd.edit(1, '{\"scheduled_at\": null}')");
    run("UPDATE claimd.job SET state = 'running', attempt = 1, attempted_at = "
        "now(), fence = 1, worker_id = gen_random_uuid()");
    ck_assert_str_eq(fire("s"), "skipped unique_key: job 1 has this key and runs: only one that "
                                "waits can be changed");
}
END_TEST

START_TEST(feat_B29_a_run_by_hand_says_which_job_stands_in_the_way)
{
    run("SELECT claimd.schedule_set('s', 'a', '@yearly', unique_key => 'k', jitter "
        "=> '1 day')");
    assert_text("SELECT claimd.schedule_run('s')::text", "1");
    assert_text("SELECT (ready_at <= clock_timestamp())::text FROM claimd.job", "true");
    ASSERT_REFUSED(db, "SELECT claimd.schedule_run('s')", "CL004", "job 1 has this key and waits");
    ck_assert_int_eq(sql_number(db, "SELECT count(*)::text FROM claimd.schedule_fire"), 1);
}
END_TEST

START_TEST(feat_B29_a_key_in_an_open_transaction_keeps_no_other_schedule_waiting)
{
    struct sql *other = sql_open(world.conninfo);
    run("SELECT claimd.schedule_set('held', 'a', '* * * * * *', unique_key => 'k')");
    run("SELECT claimd.schedule_set('good', 'b', '* * * * * *')");
    sql_run(other, "BEGIN");
    sql_run(other, "SELECT claimd.enqueue('a', unique_key => 'k')");
    run("UPDATE claimd.schedule SET next_at = date_trunc('second', now()), wake_at "
        "= now()");
    assert_text("SELECT string_agg(schedule || ' ' || outcome, ', ' ORDER BY schedule) FROM "
                "(SELECT DISTINCT schedule, outcome FROM claimd.fire_schedules() WHERE outcome <> "
                "'next') x",
                "good fired, held failed");
    assert_text("SELECT error FROM claimd.schedule WHERE name = 'held'",
                "an open transaction holds its unique_key, or the room in its queue");
    sql_run(other, "ROLLBACK");
    run("UPDATE claimd.schedule SET wake_at = now() WHERE name = 'held'");
    ck_assert_int_eq(sql_number(db, "SELECT count(*)::text FROM claimd.fire_schedules() WHERE "
                                    "(schedule, outcome) = ('held', 'fired')"),
                     1);
    sql_close(other);
}
END_TEST

/* ---- jitter ---- */

START_TEST(feat_B29_jitter_puts_a_job_off_by_what_name_and_tick_say)
{
    run("SELECT claimd.schedule_set(n, 'a', '* * * * * *', jitter => '60 s', "
        "missed => 'all') FROM "
        "unnest('{r,s}'::text[]) n");
    run("UPDATE claimd.schedule SET next_at = date_trunc('second', now()) - "
        "interval '50 s', wake_at = now()");
    for (int i = 0; i < 6; i++) {
        run("SELECT outcome FROM claimd.fire_schedules()");
    }
    /* Both have the same ticks, but each has its own times. */
    assert_text("SELECT concat_ws(' ', count(*) >= 100, bool_and(j.scheduled_at - f.due_at BETWEEN "
                "'0' AND '60 s'), max(j.scheduled_at - f.due_at) - min(j.scheduled_at - f.due_at) "
                "> '45 s', count(DISTINCT j.scheduled_at - f.due_at) > 90) FROM "
                "claimd.schedule_fire f JOIN claimd.job j ON j.id = f.job_id",
                "t t t t");
    run("CREATE TEMP TABLE before AS SELECT f.schedule, f.due_at, j.scheduled_at "
        "FROM claimd.schedule_fire f JOIN claimd.job j ON j.id = f.job_id");
    run("DELETE FROM claimd.schedule_fire");
    run("UPDATE claimd.schedule SET next_at = (SELECT min(due_at) FROM before), "
        "wake_at = now()");
    run("SELECT outcome FROM claimd.fire_schedules()");
    assert_text("SELECT concat_ws(' ', count(*) >= 20, bool_and(j.scheduled_at = b.scheduled_at)) "
                "FROM claimd.schedule_fire f JOIN claimd.job j ON j.id = f.job_id JOIN before b ON "
                "(b.schedule, b.due_at) = (f.schedule, f.due_at)",
                "t t");
}
END_TEST

/* ---- mending ---- */

static const char mended[] = "SELECT COALESCE(string_agg(schedule, ',' ORDER BY schedule), '') "
                             "FROM claimd.mend_schedules() WHERE next_at IS NOT NULL";
static const char beyond[] = "SELECT COALESCE(string_agg(schedule, ',' ORDER BY schedule), '') "
                             "FROM claimd.schedules_beyond()";

START_TEST(feat_B29_a_schedule_that_waits_beyond_its_next_tick_is_mended)
{
    static const char *const ways[] = {
        "next_at = next_at + interval '1 year', wake_at = wake_at + interval '1 year'",
        "next_at = 'infinity', wake_at = 'infinity'",
        "next_at = next_at + interval '2 h', wake_at = wake_at + interval '2 h'",
        /* A failure while PostgreSQL's clock was ahead. */
        "wake_at = now() + interval '1 day', failures = 3, error = 'no room'",
        /* The clock was put back to before the schedule was set. */
        ("start_at = start_at + interval '1 day', next_at = next_at + interval '1 day', wake_at = "
         "wake_at + interval '1 day'"),
    };
    run("SELECT claimd.schedule_set('c', 'a', '30 * * * *', zone => "
        "'Europe/Berlin'), claimd.schedule_set('e', 'a', 'every 1h')");
    for (size_t i = 0; i < ARRAY_COUNT(ways); i++) {
        sql_run(db, "UPDATE claimd.schedule SET %s", ways[i]);
        assert_text(beyond, "c,e");
        assert_text(mended, "c,e");
        assert_text(beyond, "");
        assert_text("SELECT string_agg(concat_ws(' ', name, next_at = claimd.cron_next(cron, zone, "
                    "now(), start_at), wake_at = next_at), ', ' ORDER BY name) FROM "
                    "claimd.schedule",
                    "c t t, e t t");
    }
    assert_text(mended, "");
}
END_TEST

START_TEST(feat_B29_a_schedule_that_waits_for_the_right_time_is_left_alone)
{
    static const char *const crons[] = {"* * * * * *", "* * * * *", "30 2 * * *", "0 0 29 feb *",
                                        "every 1s",    "every 7m",  "every 30d"};
    for (size_t i = 0; i < ARRAY_COUNT(crons); i++) {
        sql_run(db, "SELECT claimd.schedule_set('s%zu', 'a', '%s', zone => 'Europe/Berlin')", i,
                crons[i]);
        assert_text(beyond, "");
    }
    /* Right after a firing, and then with the clock put back by 50 s. */
    run("UPDATE claimd.schedule SET wake_at = now(), next_at = date_trunc('minute', "
        "now()) WHERE cron LIKE '* *'");
    run("SELECT outcome FROM claimd.fire_schedules()");
    assert_text(mended, "");
    run("UPDATE claimd.schedule SET next_at = next_at + interval '50 s', wake_at = "
        "wake_at + interval '50 s' WHERE cron = '* * * * * *'");
    assert_text(mended, "");
    /* A due schedule that fails waits for up to 300 s. */
    run("UPDATE claimd.schedule SET next_at = date_trunc('second', now()), wake_at "
        "= now() + interval '300 s'");
    assert_text(mended, "");
    run("UPDATE claimd.schedule SET paused = true, next_at = next_at + interval '1 "
        "year'");
    assert_text(mended, "");
    assert_text(beyond, "");
}
END_TEST

START_TEST(feat_B29_a_part_of_them_is_looked_at_and_what_is_locked_or_broken_is_left)
{
    struct sql *other = sql_open(world.conninfo);
    run("SELECT claimd.schedule_set(n, 'a', '@hourly') FROM "
        "unnest('{a,b,c,d}'::text[]) n");
    run("UPDATE claimd.schedule SET next_at = now() + interval '1 year', cron = "
        "CASE name WHEN 'b' THEN 'broken' ELSE cron END");
    sql_run(other, "BEGIN");
    sql_run(other, "SELECT name FROM claimd.schedule WHERE name = 'a' FOR UPDATE");
    assert_text("SELECT string_agg(concat_ws(' ', schedule, next_at > now()), ', ') FROM "
                "claimd.mend_schedules('', 3)",
                "c t, c");
    sql_run(other, "ROLLBACK");
    assert_text("SELECT string_agg(concat_ws(' ', schedule, next_at > now()), ', ') FROM "
                "claimd.mend_schedules('c', 3)",
                "d t, ");
    assert_text(mended, "a");
    sql_close(other);
    struct sql *admin = sql_open(world.conninfo);
    sql_run(admin, "SET ROLE claimd_admin");
    ASSERT_REFUSED(admin, "SELECT schedule FROM claimd.mend_schedules()", "42501", "denied");
    sql_run(admin, "SELECT count(*)::text FROM claimd.schedules_beyond()");
    sql_close(admin);
    struct sql *producer = sql_open(world.conninfo);
    sql_run(producer, "SET ROLE claimd_producer");
    ASSERT_REFUSED(producer, "SELECT schedule FROM claimd.schedules_beyond()", "42501", "denied");
    sql_close(producer);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("schedule jobs");
    TCase *tc = tcase_create("schedule jobs");
    tcase_add_checked_fixture(tc, setup_utc, teardown);
    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, feat_B29_a_schedule_takes_what_enqueue_takes);
    tcase_add_test(tc, feat_B29_what_is_wrong_is_named_with_what_is_allowed);
    tcase_add_test(tc, feat_B29_a_tick_is_skipped_while_its_unique_job_stands_in_the_way);
    tcase_add_test(tc, feat_B29_a_skipped_tick_may_change_the_job_that_waits);
    tcase_add_test(tc, feat_B29_a_run_by_hand_says_which_job_stands_in_the_way);
    tcase_add_test(tc, feat_B29_a_key_in_an_open_transaction_keeps_no_other_schedule_waiting);
    tcase_add_test(tc, feat_B29_jitter_puts_a_job_off_by_what_name_and_tick_say);
    tcase_add_test(tc, feat_B29_a_schedule_that_waits_beyond_its_next_tick_is_mended);
    tcase_add_test(tc, feat_B29_a_schedule_that_waits_for_the_right_time_is_left_alone);
    tcase_add_test(tc, feat_B29_a_part_of_them_is_looked_at_and_what_is_locked_or_broken_is_left);
    suite_add_tcase(suite, tc);
    return world_run(suite);
}
