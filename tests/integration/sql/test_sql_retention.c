/* SPDX-License-Identifier: Apache-2.0
 *
 * How long finished jobs are kept (feat.B20): which rule wins, and what is deleted from a past
 * day. */
#include "support/pg_fixture.h"

#include <stdio.h>

static struct sql *db;

static void run(const char *sql)
{
    sql_run(db, "%s", sql);
}

static void setup(void)
{
    world_setup();
    db = sql_open(world.conninfo);
    run("INSERT INTO claimd.kind (name) VALUES ('a'), ('b'), ('c')");
    run("CREATE FUNCTION given_day(n integer) RETURNS void LANGUAGE plpgsql AS $$ DECLARE day date "
        ":= (clock_timestamp() AT TIME ZONE 'UTC')::date - n; name text := 'job_history_' || "
        "to_char(day, 'YYYYMMDD'); BEGIN EXECUTE format('CREATE TABLE claimd.%I (LIKE "
        "claimd.job_history INCLUDING ALL)', name); EXECUTE format('ALTER TABLE claimd.%I OWNER TO "
        "claimd_scheduler', name); EXECUTE format('ALTER TABLE claimd.job_history ATTACH PARTITION "
        "claimd.%I FOR VALUES FROM (%L) TO (%L)', name, day::timestamp AT TIME ZONE 'UTC', (day + "
        "1)::timestamp AT TIME ZONE 'UTC'); END $$");
    /* Adds jobs of every kind, queue and end; ids from 1000 · n on. */
    run("CREATE FUNCTION given_jobs(n integer) RETURNS void LANGUAGE sql AS $$ INSERT INTO "
        "claimd.job_history (id, fence, created_at, scheduled_at, ready_at, attempted_at, "
        "finalized_at, worker_id, attempt, crashes, generation, priority, share, state, queue, "
        "kind, args) SELECT 1000 * n + row_number() OVER (), 1000 * n + row_number() OVER (), t, "
        "t, "
        "t, t, t, gen_random_uuid(), 1, 0, 0, 4, 0, state, queue, kind, '{}' FROM "
        "unnest('{a,b,c}'::text[]) kind, unnest('{q,r}'::text[]) queue, "
        "unnest('{completed,discarded,cancelled}'::text[]) state, (SELECT ((clock_timestamp() AT "
        "TIME ZONE 'UTC')::date - n)::timestamp AT TIME ZONE 'UTC' + interval '1 hour' AS t) x $$");
    /* Sweeps as the leader does, with 14 days for jobs without a rule; returns the number of
     * days. */
    run("CREATE FUNCTION sweep(usual integer) RETURNS integer LANGUAGE plpgsql AS $$ DECLARE d "
        "record; s record; n integer := 0; p bigint; rest bigint; BEGIN LOOP SELECT * INTO d FROM "
        "claimd.day_to_sweep(usual); EXIT WHEN d.day IS NULL; n := n + 1; p := 0; rest := 0; WHILE "
        "p IS NOT NULL LOOP SELECT * INTO s FROM claimd.sweep_day(d.day, d.age, usual, p, 1); p := "
        "s.next_page; rest := rest + s.left_over; END LOOP; PERFORM claimd.day_swept(d.day, d.age, "
        "d.rules, rest = 0); END LOOP; RETURN n; END $$");
}

static void teardown(void)
{
    sql_close(db);
    world_teardown();
}

/* Returns the kept jobs of `days` days ago, as "kind queue state*count". */
static const char *kept(int days)
{
    return sql_text(db,
                    "SELECT COALESCE(string_agg(line, ' ' ORDER BY line), '') FROM (SELECT kind || "
                    "':' || string_agg(DISTINCT queue, '+') || ':' || string_agg(DISTINCT state, "
                    "'+') AS line FROM claimd.job_history WHERE id / 1000 = %d GROUP BY kind) x",
                    days);
}

#define ALL "cancelled+completed+discarded"

START_TEST(of_the_snoozes_of_a_job_the_last_twenty_are_kept_and_no_day_full_of_them)
{
#define ATTEMPTS(outcome, first, last)                                                            \
    "INSERT INTO claimd.job_attempt (job_id, fence, attempt, generation, worker_id, started_at, " \
    "outcome) SELECT 1, f, 1, f / 1000, gen_random_uuid(), now(), '" outcome                      \
    "' FROM generate_series(" first ", " last ") AS f"
    run(ATTEMPTS("failed", "1", "30"));
    for (int i = 0; i < 10; i++) { /* 500 of the first generation, a few of the next */
        char sql[512];
        (void)snprintf(sql, sizeof sql, ATTEMPTS("snoozed", "%d", "%d"), 31 + 50 * i, 80 + 50 * i);
        run(sql);
    }
    run(ATTEMPTS("snoozed", "1000", "1004"));
    ck_assert_int_eq(
        sql_number(db, "SELECT count(*)::text FROM claimd.job_attempt WHERE outcome = 'failed'"),
        30);
    ck_assert_int_eq(sql_number(db, "SELECT count(*)::text FROM claimd.job_attempt WHERE outcome = "
                                    "'snoozed' AND (fence BETWEEN 511 AND 530 OR fence >= 1000)"),
                     25);
    ck_assert_int_le(
        sql_number(db, "SELECT count(*)::text FROM claimd.job_attempt WHERE outcome = 'snoozed'"),
        100);
}
END_TEST

START_TEST(feat_B20_without_a_rule_no_job_of_a_kept_day_is_deleted)
{
    run("SELECT given_day(5)");
    run("SELECT given_jobs(5)");
    ck_assert_int_eq(sql_number(db, "SELECT sweep(14)::text"), 0);
    ck_assert_str_eq(kept(5), "a:q+r:" ALL " b:q+r:" ALL " c:q+r:" ALL);
}
END_TEST

START_TEST(feat_B20_the_rule_of_a_kind_wins_over_that_of_a_queue_and_one_of_an_end_over_one_of_any)
{
    run("SELECT given_day(5)");
    run("SELECT given_jobs(5)");
    run("SELECT claimd.retain_queue('q', '3 days')");
    run("SELECT claimd.retain_queue('q', '10 days', 'discarded')");
    run("SELECT claimd.retain_kind('a', '4 days')");
    run("SELECT claimd.retain_kind('b', '20 days')");
    run("SELECT claimd.retain_kind('b', '1 day', 'cancelled')");
    ck_assert_int_eq(sql_number(db, "SELECT sweep(14)::text"), 1);
    /* a: 4 days, whatever the queue says; b: 20 days, cancelled 1; c in q: 3, discarded 10. */
    ck_assert_str_eq(kept(5), "b:q+r:completed+discarded c:q+r:" ALL);
    ck_assert_int_eq(
        sql_number(
            db, "SELECT count(*)::text FROM claimd.job_history WHERE kind = 'c' AND queue = 'q'"),
        1);
    ck_assert_int_eq(sql_number(db, "SELECT sweep(14)::text"), 0);
}
END_TEST

START_TEST(feat_B20_a_day_is_kept_for_its_longest_rule_and_what_has_none_goes_before)
{
    run("SELECT given_day(16)");
    run("SELECT given_jobs(16)");
    run("SELECT claimd.retain_kind('a', '30 days', 'discarded')");
    ck_assert_int_eq(sql_number(db, "SELECT claimd.longest_days(14)::text"), 30);
    ck_assert_int_eq(sql_number(db, "SELECT sweep(14)::text"), 1);
    ck_assert_str_eq(kept(16), "a:q+r:discarded");
    ck_assert_int_eq(
        sql_number(db, "SELECT count(*)::text FROM claimd.history_day WHERE NOT is_empty"), 1);
    run("SELECT claimd.retain_kind('a', NULL)");
    ck_assert_int_eq(sql_number(db, "SELECT claimd.longest_days(14)::text"), 14);
}
END_TEST

START_TEST(feat_B20_a_new_rule_holds_for_days_that_were_looked_through_before)
{
    run("SELECT given_day(5)");
    run("SELECT given_jobs(5)");
    run("SELECT claimd.retain_kind('a', '1 day')");
    ck_assert_int_eq(sql_number(db, "SELECT sweep(14)::text"), 1);
    run("SELECT claimd.retain_kind('b', '1 day')");
    run("SELECT claimd.retain_kind('c', '1 day')");
    ck_assert_int_eq(sql_number(db, "SELECT sweep(14)::text"), 1);
    ck_assert_str_eq(kept(5), "");
    ck_assert_int_eq(sql_number(db, "SELECT count(*)::text FROM claimd.history_day WHERE is_empty"),
                     1);
}
END_TEST

START_TEST(feat_B20_a_day_is_looked_through_again_when_the_next_rule_is_over)
{
    run("SELECT given_day(5)");
    run("SELECT given_jobs(5)");
    run("SELECT claimd.retain_kind('a', '1 day')");
    run("SELECT claimd.retain_kind('b', '4 days')");
    ck_assert_int_eq(sql_number(db, "SELECT sweep(14)::text"), 1);
    run("UPDATE claimd.history_day SET age = 4"); /* simulates that this sweep was yesterday */
    ck_assert_int_eq(sql_number(db, "SELECT sweep(14)::text"), 1);
    run("UPDATE claimd.history_day SET age = 5");
    ck_assert_int_eq(sql_number(db, "SELECT sweep(14)::text"), 0);
}
END_TEST

START_TEST(feat_B20_today_and_yesterday_are_left_alone)
{
    run("SELECT given_day(1)");
    run("SELECT given_jobs(1)");
    run("SELECT given_jobs(0)");
    run("SELECT claimd.retain_kind('a', '1 day')");
    ck_assert_int_eq(sql_number(db, "SELECT sweep(14)::text"), 0);
    ck_assert_int_eq(sql_number(db, "SELECT count(*)::text FROM claimd.job_history"), 36);
}
END_TEST

START_TEST(feat_B20_failed_attempts_edits_and_keys_go_with_their_job_and_no_others)
{
    run("SELECT given_day(5)");
    run("SELECT given_jobs(5)");
    run("INSERT INTO claimd.job_attempt (job_id, fence, attempt, generation, worker_id, "
        "started_at, "
        "outcome) SELECT id, fence - 1, 1, g, worker_id, now(), 'failed' FROM claimd.job_history, "
        "generate_series(0, 1) g WHERE g = 0 OR id % 2 = 0 ON CONFLICT DO NOTHING");
    run("INSERT INTO claimd.job_edit (job_id, version, generation, before, after) SELECT id, 2, 0, "
        "'{}', '{}' FROM claimd.job_history");
    run("UPDATE claimd.job_history SET unique_key = 'k' || id");
    run("INSERT INTO claimd.job_key (key, job_id, states, expires_at) SELECT unique_key, id, "
        "'completed', now() + interval '1 day' FROM claimd.job_history");
    run("SELECT claimd.retain_kind('a', '2 days')");
    ck_assert_int_eq(sql_number(db, "SELECT sweep(14)::text"), 1);
    ck_assert_int_eq(sql_number(db, "SELECT count(*)::text FROM claimd.job_attempt"), 12);
    ck_assert_int_eq(sql_number(db, "SELECT count(*)::text FROM claimd.job_edit"), 12);
    /* The key of a completed job continues to refuse others. */
    ck_assert_int_eq(sql_number(db, "SELECT count(*)::text FROM claimd.job_key"), 14);
}
END_TEST

START_TEST(feat_B20_a_day_of_many_pages_is_looked_through_in_steps_that_may_be_repeated)
{
    run("SELECT given_day(5)");
    run("SELECT given_jobs(5) FROM generate_series(1, 100)");
    run("SELECT claimd.retain_kind('a', '2 days', 'completed')");
    ck_assert_int_gt(sql_number(db, "SELECT deleted::text FROM claimd.day_to_sweep(14) d, "
                                    "claimd.sweep_day(d.day, d.age, 14, 3, 1)"),
                     0);
    ck_assert_int_eq(sql_number(db, "SELECT deleted::text FROM claimd.day_to_sweep(14) d, "
                                    "claimd.sweep_day(d.day, d.age, 14, 3, 1)"),
                     0);
    ck_assert_int_eq(sql_number(db, "SELECT sweep(14)::text"), 1);
    ck_assert_int_eq(sql_number(db, "SELECT count(*)::text FROM claimd.job_history"), 1600);
}
END_TEST

START_TEST(feat_B20_what_can_not_be_a_rule_is_refused_and_nothing_is_stored)
{
    ASSERT_REFUSED(db, "SELECT claimd.retain_queue('Q', '1 day')", "CL002", "queue: must match");
    ASSERT_REFUSED(db, "SELECT claimd.retain_kind('Z', '1 day')", "CL002", "kind: must match");
    ASSERT_REFUSED(db, "SELECT claimd.retain_queue('q', '1 hour')", "CL002",
                   "keep: must be 1 to 3650 whole days, or NULL for the default");
    ASSERT_REFUSED(db, "SELECT claimd.retain_queue('q', '3651 days')", "CL002", "keep: must be");
    ASSERT_REFUSED(db, "SELECT claimd.retain_queue('q', '-1 days')", "CL002", "keep: must be");
    ASSERT_REFUSED(db, "SELECT claimd.retain_queue('q', '0', 'completed')", "CL002",
                   "only completed jobs of a kind may be kept for 0 days");
    ASSERT_REFUSED(db, "SELECT claimd.retain_kind('a', '0')", "CL002", "only completed jobs");
    ASSERT_REFUSED(db, "SELECT claimd.retain_kind('a', '1 day', 'running')", "CL002",
                   "state: must be completed, discarded or cancelled, or NULL for all");
    ck_assert_int_eq(sql_number(db, "SELECT count(*)::text FROM claimd.retention"), 0);
}
END_TEST

/* ---- completed jobs that are not kept ---- */

START_TEST(feat_B20_of_a_job_that_was_not_kept_status_and_wait_say_gone)
{
    run("SELECT claimd.enqueue('a')::text FROM generate_series(1, 2)");
    run("DELETE FROM claimd.job WHERE id = 1");
    ASSERT_REFUSED(db, "SELECT claimd.wait(1, '0')", "CL003", "job 1 not found");
    run("SELECT claimd.retain_kind('a', '0', 'completed')");
    ck_assert_str_eq(sql_text(db, "SELECT state FROM claimd.wait(1)"), "gone");
    ck_assert_str_eq(sql_text(db, "SELECT state FROM claimd.job_status(1)"), "gone");
    ck_assert_str_eq(sql_text(db, "SELECT state FROM claimd.job_status(2)"), "available");
    ck_assert_int_eq(sql_number(db, "SELECT count(*) FROM claimd.job_status(3)"), 0);
    ASSERT_REFUSED(db, "SELECT claimd.wait(3, '0')", "CL003", "job 3 not found");
    ASSERT_REFUSED(db, "SELECT claimd.cancel(1)", "CL003", "job 1 not found");
}
END_TEST

START_TEST(feat_B20_a_job_that_was_kept_all_the_same_goes_after_a_day)
{
    run("SELECT given_day(5)");
    run("SELECT given_jobs(5)");
    run("SELECT claimd.retain_kind('a', '0', 'completed')");
    ck_assert_int_eq(sql_number(db, "SELECT sweep(14)::text"), 1);
    ck_assert_str_eq(kept(5), "a:q+r:cancelled+discarded b:q+r:" ALL " c:q+r:" ALL);
}
END_TEST

START_TEST(feat_B20_a_handlers_own_transaction_keeps_its_job)
{
    run("SELECT claimd.retain_kind('a', '0', 'completed')");
    run("SELECT claimd.enqueue('a')::text");
    run("UPDATE claimd.job SET state = 'running', fence = 1, attempt = 1");
    run("SELECT claimd.complete_in_tx(1, 1)::text");
    ck_assert_str_eq(sql_text(db, "SELECT state FROM claimd.job_status(1)"), "completed");
}
END_TEST

START_TEST(feat_B20_minutes_of_counts_become_hours_and_old_ones_go)
{
#define COUNT(age, n)                                                               \
    "INSERT INTO claimd.completed_count (at, worker_id, kind, queue, jobs) VALUES " \
    "(date_trunc('minute', now() - interval '" age "'), gen_random_uuid(), 'a', 'q', " #n ")"
    run(COUNT("20 days", 1));
    run(COUNT("2 days", 2));
    run(COUNT("2 days", 3));
    run(COUNT("10 minutes", 4));
    run("SELECT claimd.fold_counts(14)::text");
    run(COUNT("2 days", 5));
    run("SELECT claimd.fold_counts(14)::text");
    ck_assert_str_eq(
        sql_text(db, "SELECT string_agg(jobs::text, ' ' ORDER BY at) FROM claimd.completed_count"),
        "10 4");
    ck_assert_int_eq(
        sql_number(
            db, "SELECT jobs::int::text FROM claimd.counted_since(now() - interval '15 minutes')"),
        4);
}
END_TEST

START_TEST(feat_B20_a_worker_may_count_and_read_the_rules_and_change_none)
{
    struct sql *worker = sql_open(world.conninfo);
    sql_run(worker, "SET ROLE claimd_worker");
    for (int i = 0; i < 2; i++) {
        sql_run(worker,
                "INSERT INTO claimd.completed_count AS c (at, worker_id, kind, queue, jobs) VALUES "
                "('2026-01-01', '00000000-0000-0000-0000-0000000000aa', 'a', 'q', 2) ON CONFLICT "
                "ON CONSTRAINT completed_count_pkey DO UPDATE SET jobs = c.jobs + excluded.jobs");
    }
    ck_assert_int_eq(sql_number(worker, "SELECT jobs::text FROM claimd.completed_count"), 4);
    ck_assert_int_eq(sql_number(worker, "SELECT count(*)::text FROM claimd.retention"), 0);
    ASSERT_REFUSED(worker, "DELETE FROM claimd.completed_count", "42501", "");
    ASSERT_REFUSED(worker, "SELECT claimd.retain_kind('a', '0', 'completed')", "42501", "");
    sql_close(worker);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("sql_retention");
    TCase *tc = tcase_create("retention");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, of_the_snoozes_of_a_job_the_last_twenty_are_kept_and_no_day_full_of_them);
    tcase_add_test(tc, feat_B20_without_a_rule_no_job_of_a_kept_day_is_deleted);
    tcase_add_test(
        tc,
        feat_B20_the_rule_of_a_kind_wins_over_that_of_a_queue_and_one_of_an_end_over_one_of_any);
    tcase_add_test(tc, feat_B20_a_day_is_kept_for_its_longest_rule_and_what_has_none_goes_before);
    tcase_add_test(tc, feat_B20_a_new_rule_holds_for_days_that_were_looked_through_before);
    tcase_add_test(tc, feat_B20_a_day_is_looked_through_again_when_the_next_rule_is_over);
    tcase_add_test(tc, feat_B20_today_and_yesterday_are_left_alone);
    tcase_add_test(tc, feat_B20_failed_attempts_edits_and_keys_go_with_their_job_and_no_others);
    tcase_add_test(tc,
                   feat_B20_a_day_of_many_pages_is_looked_through_in_steps_that_may_be_repeated);
    tcase_add_test(tc, feat_B20_what_can_not_be_a_rule_is_refused_and_nothing_is_stored);
    tcase_add_test(tc, feat_B20_of_a_job_that_was_not_kept_status_and_wait_say_gone);
    tcase_add_test(tc, feat_B20_a_job_that_was_kept_all_the_same_goes_after_a_day);
    tcase_add_test(tc, feat_B20_a_handlers_own_transaction_keeps_its_job);
    tcase_add_test(tc, feat_B20_minutes_of_counts_become_hours_and_old_ones_go);
    tcase_add_test(tc, feat_B20_a_worker_may_count_and_read_the_rules_and_change_none);
    suite_add_tcase(suite, tc);
    return world_run(suite);
}
