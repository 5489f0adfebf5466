/* SPDX-License-Identifier: Apache-2.0
 *
 * Reports of a handler, and what can be sent to it, with real daemons. Full passes are rare here:
 * nothing that these tests wait for may need one. */
#include "support/fleet.h"
#include "support/suite.h"

#include <check.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

static struct fleet fleet;

#define ASSERT_SQL(expected, ...) ck_assert_str_eq(sql_text(fleet.sql, __VA_ARGS__), (expected))

static int64_t enqueue_nap(const char *kind, int times)
{
    static int files;
    char args[SERVER_PATH_MAX + 64];
    (void)snprintf(args, sizeof args, "{\"path\": \"%s/nap%d\", \"times\": %d, \"ms\": 0}",
                   fleet.dir, files++, times);
    return fleet_enqueue(&fleet, kind, args, 1);
}

/* ---- snooze and cancel ---- */

START_TEST(feat_B13_a_snoozed_job_comes_back_after_a_second_and_uncharged)
{
    long long id = enqueue_nap("snooze", 3);
    fleet_wait_state(&fleet, id, "completed");
    ASSERT_SQL("1", "SELECT attempt FROM claimd.jobs WHERE id = %lld", id);
    ASSERT_SQL("1 snoozed nap 1,1 snoozed nap 2,1 snoozed nap 3",
               "SELECT string_agg(concat_ws(' ', attempt, outcome, error), ',' ORDER BY fence)"
               " FROM claimd.job_attempt WHERE job_id = %lld",
               id);
    ASSERT_SQL("3",
               "SELECT count(*) FROM (SELECT ended_at, lead(started_at, 1, (SELECT attempted_at"
               " FROM claimd.jobs WHERE id = job_id)) OVER (ORDER BY fence) AS next"
               " FROM claimd.job_attempt WHERE job_id = %lld) t WHERE next >= ended_at + '0.9 s'",
               id);
}
END_TEST

START_TEST(rule3_a_started_at_most_once_job_that_snoozes_is_charged)
{
    long long id = enqueue_nap("snooze_once", 1);
    fleet_wait_state(&fleet, id, "completed");
    ASSERT_SQL("2", "SELECT attempt FROM claimd.jobs WHERE id = %lld", id);
    ASSERT_SQL("1 failed charged, a job of an at_most_once kind can't snooze: nap 1",
               "SELECT concat_ws(' ', attempt, outcome, error) FROM claimd.job_attempt"
               " WHERE job_id = %lld",
               id);
}
END_TEST

START_TEST(a_handler_that_gives_up_ends_its_job_as_cancelled)
{
    long long id = fleet_enqueue(&fleet, "give_up", "{}", 1);
    fleet_wait_state(&fleet, id, "cancelled");
    ASSERT_SQL("order 7 is void", "SELECT error FROM claimd.jobs WHERE id = %lld", id);
    ASSERT_SQL("cancelled order 7 is void nobody waits for it\n",
               "SELECT concat_ws(' ', outcome, error, log_tail) FROM claimd.job_attempt"
               " WHERE job_id = %lld",
               id);
}
END_TEST

/* ---- backoff ---- */

static const char *const backoffs[][2] = {{"NULL", "2:00"}, {"'fixed:5h'", "5:00"}};

START_TEST(feat_B11_a_failed_attempt_waits_as_its_job_or_its_kind_says)
{
    long long id =
        sql_number(fleet.sql, "SELECT claimd.enqueue('tired', backoff => %s)", backoffs[_i][0]);
    fleet_wait_state(&fleet, id, "retryable");
    ASSERT_SQL(backoffs[_i][1],
               "SELECT to_char(date_trunc('minute', j.ready_at - a.ended_at + '30 s'), 'FMHH24:MI')"
               " FROM claimd.jobs j JOIN claimd.job_attempt a ON a.job_id = j.id WHERE j.id = %lld",
               id);
}
END_TEST

/* ---- progress, checkpoints, and the information for a handler ---- */

static const char *const step_ends[] = {"retry", "crash"};

START_TEST(feat_B16_a_checkpoint_survives_the_end_of_its_attempt)
{
    char crashes[2] = {(char)('0' + _i), '\0'};
    char expected[256];
    (void)snprintf(expected, sizeof expected,
                   "{\"at\": 3} default [\"t\", \"u v\"] {\"m\": 1} %s 0 1", crashes);
    long long id =
        sql_number(fleet.sql,
                   "SELECT claimd.enqueue('steps', '{\"end\": \"%s\"}', tags => '{t,u v}',"
                   " metadata => '{\"m\": 1}')",
                   step_ends[_i]);
    fleet_wait_state(&fleet, id, "completed");
    ASSERT_SQL(expected,
               "SELECT concat_ws(' ', result->'from', result->>'queue', result->'tags',"
               " result->'metadata', result->'crashes', result->'generation', result->'is_old')"
               " FROM claimd.jobs WHERE id = %lld",
               id);
    ASSERT_SQL("0", "SELECT count(*) FROM claimd.job_live WHERE id = %lld", id);
}
END_TEST

START_TEST(feat_B16_progress_is_seen_while_the_job_runs_and_gone_with_it)
{
    long long id = fleet_enqueue(&fleet, "steps", "{\"end\": \"wait\"}", 1);
    ck_assert(
        WAIT_UNTIL(sql_number(fleet.sql,
                              "SELECT count(*) FROM claimd.job_live WHERE id = %lld AND"
                              " percent = 60 AND progress = 'step €' AND checkpoint->>'at' = '3'",
                              id) == 1,
                   SOON_US));
    ASSERT_SQL("cancelling", "SELECT claimd.cancel(%lld)", id);
    fleet_wait_state(&fleet, id, "cancelled");
    ASSERT_SQL("0", "SELECT count(*) FROM claimd.job_live WHERE id = %lld", id);
}
END_TEST

START_TEST(feat_B17_the_end_of_the_log_is_seen_while_the_job_runs_and_gone_with_it)
{
    long long id = fleet_enqueue(&fleet, "talk_on", "{}", 1);
    ck_assert(WAIT_UNTIL(sql_number(fleet.sql,
                                    "SELECT count(*) FROM claimd.job_live WHERE id = %lld AND"
                                    " octet_length(log) BETWEEN 4000 AND 4096 AND"
                                    " log LIKE '%%line 299 € \xef\xbf\xbd <script>%%'",
                                    id) == 1,
                         SOON_US));
    ASSERT_SQL("cancelling", "SELECT claimd.cancel(%lld)", id);
    fleet_wait_state(&fleet, id, "cancelled");
    ASSERT_SQL("0", "SELECT count(*) FROM claimd.job_live WHERE id = %lld", id);
    ASSERT_SQL("t",
               "SELECT octet_length(log_tail) > 4096 FROM claimd.job_attempt WHERE job_id = %lld",
               id);
}
END_TEST

/* Else each job would cost a row more. */
START_TEST(the_log_of_a_job_of_less_than_a_second_is_not_written_while_it_runs)
{
    sql_run(fleet.sql,
            "CREATE TABLE public.logged (n int);"
            " CREATE FUNCTION public.note_log() RETURNS trigger LANGUAGE plpgsql SECURITY"
            " DEFINER AS 'BEGIN INSERT INTO public.logged VALUES (1); RETURN NULL; END';"
            " CREATE TRIGGER note_log AFTER INSERT OR UPDATE ON claimd.job_live FOR EACH ROW"
            " EXECUTE FUNCTION public.note_log()");
    long long last = fleet_enqueue(&fleet, "tell", "{}", 50);
    for (long long id = last - 49; id <= last; id++) {
        fleet_wait_state(&fleet, id, "completed");
    }
    sql_run(fleet.sql, "DROP TRIGGER note_log ON claimd.job_live");
    ASSERT_SQL("t",
               "SELECT (SELECT count(*) FROM public.logged) <= count(*) FROM claimd.jobs WHERE id >"
               " %lld AND finalized_at > attempted_at + '1 s'",
               last - 50);
}
END_TEST

#define SCRIBBLERS 3

/* In one batch with them, if the worker has all of them when it looks. */
START_TEST(G5_a_checkpoint_that_is_none_costs_the_others_nothing)
{
    long long first = fleet_enqueue(&fleet, "scribble", "{}", SCRIBBLERS) - SCRIBBLERS + 1;
    long long id = fleet_enqueue(&fleet, "steps", "{\"end\": \"wait\"}", 1);
    ck_assert(WAIT_UNTIL(sql_number(fleet.sql,
                                    "SELECT count(*) FROM claimd.job_live WHERE id = %lld AND"
                                    " checkpoint->>'at' = '3'",
                                    id) == 1,
                         SOON_US));
    sql_run(fleet.sql, "SELECT claimd.cancel(id) FROM claimd.job WHERE id BETWEEN %lld AND %lld",
            first, id);
    for (long long at = first; at <= id; at++) {
        fleet_wait_state(&fleet, at, "cancelled");
    }
    ASSERT_SQL("0", "SELECT count(*) FROM claimd.job_live WHERE id BETWEEN %lld AND %lld", first,
               id);
}
END_TEST

START_TEST(progress_that_changes_all_the_time_is_written_once_a_second)
{
    sql_run(fleet.sql,
            "CREATE TABLE public.written (n int);"
            " CREATE FUNCTION public.note() RETURNS trigger LANGUAGE plpgsql SECURITY"
            " DEFINER AS 'BEGIN INSERT INTO public.written VALUES (1); RETURN NULL; END';"
            " CREATE TRIGGER note AFTER INSERT OR UPDATE ON claimd.job_live FOR EACH ROW"
            " EXECUTE FUNCTION public.note()");
    long long id = fleet_enqueue(&fleet, "busy", "{\"ms\": 2500}", 1);
    fleet_wait_state(&fleet, id, "completed");
    sql_run(fleet.sql, "DROP TRIGGER note ON claimd.job_live");
    ASSERT_SQL("t",
               "SELECT (SELECT count(*) FROM public.written) BETWEEN 2 AND 1 + ceil(extract(epoch"
               " FROM finalized_at - attempted_at)) FROM claimd.jobs WHERE id = %lld",
               id);
}
END_TEST

START_TEST(a_handler_that_is_done_after_its_timeout_is_told_so_in_the_history)
{
    long long id = fleet_enqueue(&fleet, "late", "{}", 1);
    fleet_wait_state(&fleet, id, "completed");
    ASSERT_SQL("overran done after its timeout, before it was killed late\n",
               "SELECT concat_ws(' ', outcome, error, log_tail) FROM claimd.job_attempt"
               " WHERE job_id = %lld",
               id);
}
END_TEST

/* Each takes 3 s to clean up; lock.guard_ms is 2 s. */
START_TEST(feat_B29_a_handler_has_its_own_grace_or_that_of_its_kind_to_clean_up)
{
    long long patient = fleet_enqueue(&fleet, "clean_up", "{}", 1);
    sql_run(fleet.sql, "SELECT claimd.enqueue('clean_fast', max_attempts => 1)");
    long long hasty = sql_number(fleet.sql, "SELECT max(id) FROM claimd.jobs");
    sql_run(fleet.sql, "SELECT claimd.enqueue('clean_fast', max_attempts => 1, grace => '1 min')");
    fleet_wait_state(&fleet, patient, "completed");
    fleet_wait_state(&fleet, hasty, "discarded");
    fleet_wait_state(&fleet, hasty + 1, "completed");
    ASSERT_SQL("timeout: the handler did not stop",
               "SELECT error FROM claimd.job_attempt WHERE job_id = %lld", hasty);
    sql_run(fleet.sql, "SELECT claimd.set_kind('clean_fast', '{\"grace\": \"1 min\"}')");
    ASSERT_SQL("00:01:00", "SELECT grace FROM claimd.kind WHERE name = 'clean_fast'");
    bool is_completed = false;
    for (int i = 0; i < 20 && !is_completed; i++) { /* its worker learns the setting within 10 s */
        sql_run(fleet.sql, "SELECT claimd.enqueue('clean_fast', max_attempts => 1)");
        ck_assert(WAIT_UNTIL(sql_number(fleet.sql, "SELECT count(*) FROM claimd.job WHERE kind = "
                                                   "'clean_fast'") == 0,
                             SOON_US));
        is_completed = sql_number(fleet.sql, "SELECT count(*) FROM claimd.job_history WHERE kind = "
                                             "'clean_fast' AND state = 'completed'") > 0;
    }
    ck_assert(is_completed);
}
END_TEST

START_TEST(feat_B17_the_log_of_a_completed_attempt_is_kept_where_its_kind_asks_for_it)
{
    long long ids[] = {fleet_enqueue(&fleet, "tell", "{}", 1),
                       fleet_enqueue(&fleet, "tell_all", "{}", 1)};
    fleet_wait_state(&fleet, ids[0], "completed");
    fleet_wait_state(&fleet, ids[1], "completed");
    ASSERT_SQL("tell_all completed all is well\n",
               "SELECT string_agg(concat_ws(' ', h.kind, a.outcome, a.error, a.log_tail), ',')"
               " FROM claimd.job_attempt a JOIN claimd.job_history h ON h.id = a.job_id"
               " WHERE a.job_id BETWEEN %lld AND %lld",
               ids[0], ids[1]);
}
END_TEST

/* ---- cancels of running jobs ---- */

static int64_t run_wait_cancel(const char *as)
{
    char args[64];
    (void)snprintf(args, sizeof args, "{\"as\": \"%s\"}", as);
    int64_t id = fleet_enqueue(&fleet, "wait_cancel", args, 1);
    /* A claimed job has not started yet: if it is cancelled in between, it never starts. */
    ck_assert(WAIT_UNTIL(sql_number(fleet.sql,
                                    "SELECT count(*) FROM claimd.job_live WHERE id = %lld AND "
                                    "progress = 'waiting'",
                                    (long long)id) == 1,
                         SOON_US));
    return id;
}

static const struct cancel_case {
    const char *as;
    const char *state;
    const char *attempt; /* outcome and error of the attempt */
} cancels[] = {
    {"cancel", "cancelled", "cancelled as you like"},
    {"retry", "cancelled", "cancelled told to stop 1"},
    {"fail", "cancelled", "cancelled never mind"},
    {"deaf", "cancelled",
     "cancelled cancelled while it ran: the handler did not stop and was killed"},
    {"done", "completed", ""},
};

START_TEST(feat_B15_a_running_job_that_is_cancelled_ends_so_unless_it_is_done)
{
    const struct cancel_case *c = &cancels[_i];
    long long id = run_wait_cancel(c->as);
    ASSERT_SQL("cancelling", "SELECT claimd.cancel(%lld)", id);
    fleet_wait_state(&fleet, id, c->state);
    ASSERT_SQL(c->attempt,
               "SELECT COALESCE((SELECT concat_ws(' ', outcome, error) FROM claimd.job_attempt"
               " WHERE job_id = %lld), '')",
               id);
    ASSERT_SQL("0", "SELECT count(*) FROM claimd.job_live WHERE id = %lld", id);
}
END_TEST

START_TEST(a_cancel_whose_NOTIFY_was_lost_is_found_by_a_heartbeat)
{
    long long id = run_wait_cancel("cancel");
    sql_run(fleet.sql,
            "INSERT INTO claimd.job_live (id, fence, cancel_requested) SELECT id, fence, true FROM"
            " claimd.job WHERE id = %lld"
            " ON CONFLICT (id) DO UPDATE SET fence = excluded.fence, cancel_requested = true",
            id);
    fleet_wait_state(&fleet, id, "cancelled");
}
END_TEST

START_TEST(a_cancel_of_an_earlier_run_and_a_forged_NOTIFY_end_nothing)
{
    long long id = run_wait_cancel("done");
    sql_run(fleet.sql,
            "INSERT INTO claimd.job_live (id, fence, cancel_requested) SELECT id, fence - 1, true"
            " FROM claimd.job WHERE id = %lld"
            " ON CONFLICT (id) DO UPDATE SET fence = excluded.fence, cancel_requested = true",
            id);
    sql_run(fleet.sql,
            "SELECT pg_notify('claimd_cancel', p) FROM (VALUES ('%lld'), (''), ('x'))"
            " AS v(p)",
            id);
    ASSERT_SQL("t", "SELECT pg_sleep(2) IS NOT NULL"); /* several heartbeats */
    fleet_wait_state(&fleet, id, "running");
    ASSERT_SQL("cancelling", "SELECT claimd.cancel(%lld)", id);
    fleet_wait_state(&fleet, id, "completed");
}
END_TEST

/* ---- a fleet in which only a NOTIFY is fast, and one whose worker dies ---- */

#define WORKERS 3
#define SLOTS 4
#define ROUNDS 4

static void start_worker_with_rare_heartbeats(size_t i)
{
    static const char *const env[] = {"CLAIMD_WORKER_BEAT_MS=60000",
                                      "CLAIMD_WORKER_STALE_MS=240000", NULL};
    fleet_start_worker_with(&fleet, i, env);
}

START_TEST(feat_B15_a_cancel_is_seen_within_a_second_on_any_of_three_workers)
{
    double p99_s = 0;
    sql_run(fleet.sql, "CREATE TABLE public.asked (id bigint, at timestamptz)");
    for (int round = 0; round < ROUNDS; round++) {
        (void)fleet_enqueue(&fleet, "wait_cancel", "{}", WORKERS * SLOTS);
        ck_assert(WAIT_UNTIL(
            sql_number(fleet.sql, "SELECT count(*) FROM claimd.job WHERE state = 'running'") ==
                WORKERS * SLOTS,
            SOON_US));
        for (int i = 0; i < WORKERS * SLOTS; i++) {
            sql_run(fleet.sql,
                    "INSERT INTO public.asked SELECT id, clock_timestamp() FROM claimd.job"
                    " WHERE id NOT IN (SELECT id FROM public.asked) ORDER BY random() LIMIT 1");
            sql_run(fleet.sql,
                    "SELECT claimd.cancel(id) FROM public.asked ORDER BY at DESC LIMIT 1");
        }
        fleet_wait_finished(&fleet, (int64_t)(round + 1) * WORKERS * SLOTS, "cancelled", SOON_US);
    }
    const char *text = sql_text(
        fleet.sql, "SELECT extract(epoch FROM percentile_disc(0.99) WITHIN GROUP (ORDER BY"
                   " finalized_at - at))::float8 FROM public.asked JOIN claimd.jobs USING (id)");
    p99_s = strtod(text, NULL);
    (void)printf("from a cancel to its end, p99 of %d: %.3f s\n", WORKERS * SLOTS * ROUNDS, p99_s);
    /* In an idle system it takes some ms; the next heartbeat is 15 s away. */
    ck_assert_double_lt(p99_s, 5);
    ASSERT_SQL("3", "SELECT count(DISTINCT worker_id) FROM claimd.jobs");
}
END_TEST

#define NOTIFIES 1000

static void end(pid_t *daemon)
{
    fleet_signal(*daemon, SIGTERM);
    ck_assert_int_eq(fleet_wait_end(&fleet, daemon), 0);
}

static int64_t commits(void)
{
    sql_run(fleet.sql, "SELECT pg_stat_force_next_flush()");
    return sql_number(fleet.sql, "SELECT xact_commit FROM pg_stat_database"
                                 " WHERE datname = current_database()");
}

/* A listening session runs a transaction for each NOTIFY, or for several that arrive together. */
START_TEST(workers_with_short_runs_are_not_woken_by_a_NOTIFY)
{
    (void)fleet_enqueue(&fleet, "tell", "{}", WORKERS * SLOTS);
    fleet_wait_finished(&fleet, WORKERS * SLOTS, "completed", SOON_US);
    end(&fleet.schedulers[0]); /* it listens to other channels */
    int64_t before = commits();
    for (int i = 0; i < NOTIFIES; i++) {
        sql_run(fleet.sql, "SELECT pg_notify('claimd_cancel', '1')");
    }
    /* The statistics of a session are complete when it has ended. */
    for (size_t i = 0; i < WORKERS; i++) {
        end(&fleet.workers[i]);
    }
    int64_t others = commits() - before - NOTIFIES;
    (void)printf("commits of others during %d NOTIFYs: %lld\n", NOTIFIES, (long long)others);
    ck_assert_int_lt(others, NOTIFIES / 2);
}
END_TEST

START_TEST(a_rescued_job_whose_cancel_was_asked_for_does_not_run_again)
{
    long long id = run_wait_cancel("cancel");
    fleet_signal(fleet.workers[0], SIGSTOP);
    ASSERT_SQL("cancelling", "SELECT claimd.cancel(%lld)", id);
    fleet_signal(fleet.workers[0], SIGKILL);
    (void)fleet_wait_end(&fleet, &fleet.workers[0]);
    fleet_wait_state(&fleet, id, "cancelled");
    ASSERT_SQL("lost cancelled while it ran",
               "SELECT concat_ws(' ', a.outcome, j.error) FROM claimd.jobs j JOIN"
               " claimd.job_attempt a ON a.job_id = j.id WHERE j.id = %lld",
               id);
    ASSERT_SQL("0", "SELECT count(*) FROM claimd.job_live");
}
END_TEST

static void setup_rare_heartbeats(void)
{
    fleet_start(&fleet, &(struct fleet_options){.slots = SLOTS});
    fleet_start_scheduler(&fleet, 0);
    for (size_t i = 0; i < WORKERS; i++) {
        start_worker_with_rare_heartbeats(i);
    }
}

static void setup_mortal(void)
{
    fleet_start(&fleet, &(struct fleet_options){0});
    fleet_start_scheduler(&fleet, 0);
    fleet_start_worker(&fleet, 0, NULL);
}

static void setup(void)
{
    fleet_start(&fleet, &(struct fleet_options){
                            .slots = 4, .more = "\"scheduler\": {\"full_pass_ms\": 3600000}"});
    fleet_start_scheduler(&fleet, 0);
    fleet_start_worker(&fleet, 0, NULL);
    fleet_start_worker(&fleet, 1, NULL);
}

static void teardown(void)
{
    fleet_stop(&fleet);
}

static Suite *suite(void)
{
    Suite *s = suite_create("what a handler says");
    TCase *c = tcase_create("outcomes");
    tcase_set_timeout(c, 120);
    tcase_add_unchecked_fixture(c, setup, teardown);
    tcase_add_test(c, feat_B13_a_snoozed_job_comes_back_after_a_second_and_uncharged);
    tcase_add_test(c, rule3_a_started_at_most_once_job_that_snoozes_is_charged);
    tcase_add_test(c, a_handler_that_gives_up_ends_its_job_as_cancelled);
    tcase_add_loop_test(c, feat_B15_a_running_job_that_is_cancelled_ends_so_unless_it_is_done, 0,
                        (int)ARRAY_COUNT(cancels));
    tcase_add_loop_test(c, feat_B11_a_failed_attempt_waits_as_its_job_or_its_kind_says, 0,
                        (int)ARRAY_COUNT(backoffs));
    tcase_add_loop_test(c, feat_B16_a_checkpoint_survives_the_end_of_its_attempt, 0,
                        (int)ARRAY_COUNT(step_ends));
    tcase_add_test(c, feat_B16_progress_is_seen_while_the_job_runs_and_gone_with_it);
    tcase_add_test(c, feat_B17_the_end_of_the_log_is_seen_while_the_job_runs_and_gone_with_it);
    tcase_add_test(c, the_log_of_a_job_of_less_than_a_second_is_not_written_while_it_runs);
    tcase_add_test(c, G5_a_checkpoint_that_is_none_costs_the_others_nothing);
    tcase_add_test(c, progress_that_changes_all_the_time_is_written_once_a_second);
    tcase_add_test(c, a_handler_that_is_done_after_its_timeout_is_told_so_in_the_history);
    tcase_add_test(c, feat_B29_a_handler_has_its_own_grace_or_that_of_its_kind_to_clean_up);
    tcase_add_test(c, feat_B17_the_log_of_a_completed_attempt_is_kept_where_its_kind_asks_for_it);
    tcase_add_test(c, a_cancel_whose_NOTIFY_was_lost_is_found_by_a_heartbeat);
    tcase_add_test(c, a_cancel_of_an_earlier_run_and_a_forged_NOTIFY_end_nothing);
    suite_add_tcase(s, c);
    TCase *rare = tcase_create("cancel by NOTIFY");
    tcase_set_timeout(rare, 120);
    tcase_add_unchecked_fixture(rare, setup_rare_heartbeats, teardown);
    tcase_add_test(rare, feat_B15_a_cancel_is_seen_within_a_second_on_any_of_three_workers);
    suite_add_tcase(s, rare);
    TCase *short_runs = tcase_create("no NOTIFY");
    tcase_set_timeout(short_runs, 120);
    tcase_add_unchecked_fixture(short_runs, setup_rare_heartbeats, teardown);
    tcase_add_test(short_runs, workers_with_short_runs_are_not_woken_by_a_NOTIFY);
    suite_add_tcase(s, short_runs);
    TCase *mortal = tcase_create("a worker that dies");
    tcase_set_timeout(mortal, 120);
    tcase_add_unchecked_fixture(mortal, setup_mortal, teardown);
    tcase_add_test(mortal, a_rescued_job_whose_cancel_was_asked_for_does_not_run_again);
    suite_add_tcase(s, mortal);
    return s;
}

int main(void)
{
    return suite_run_in_one(suite());
}
