/* SPDX-License-Identifier: Apache-2.0
 *
 * Acts of operators on jobs of a working cluster. Full passes, the safety net, run once an hour, so
 * a job that runs was fed because of the act itself. */
#include "operator.h"
#include "support/suite.h"

#include <check.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#define RARE_FULL_PASS "\"scheduler\": {\"full_pass_ms\": 3600000}"

static struct fleet f;

static void setup(void)
{
    fleet_start(&f, &(struct fleet_options){.masters = 3, .more = RARE_FULL_PASS});
    fleet_start_scheduler(&f, 0);
    fleet_start_worker(&f, 0, NULL);
}

static void teardown(void)
{
    fleet_stop(&f);
}

/* Checks that claimctl ends with 0 and prints `part`. */
static void ctl_says(const char *words, const char *part)
{
    autobuf struct buf out = BUF_INIT(OPERATOR_OUTPUT_MAX);
    int code = operator_ctl(&f, "config.json", "", words, &out);
    ck_assert_int_eq(buf_append(&out, "", 1, NULL), STATUS_OK);
    ck_assert_msg(code == 0 && strstr(buf_at(&out), part) != NULL, "%s: exit %d: %.3000s", words,
                  code, buf_at(&out));
}

static int64_t done(const char *kind)
{
    return sql_number(f.sql, "SELECT count(*) FROM claimd.job_history WHERE kind = '%s'", kind);
}

START_TEST(retried_jobs_are_fed_at_once)
{
    fleet_enqueue(&f, "fail", "{}", 300);
    fleet_wait_finished(&f, 300, "discarded", SOON_US);
    ctl_says("jobs retry --kind fail", "300 jobs retried");
    fleet_wait_finished(&f, 600, "discarded", SOON_US);
    ck_assert_int_eq(sql_number(f.sql, "SELECT count(*) FROM claimd.jobs WHERE generation = 1 AND "
                                       "attempt = 1 AND state = 'discarded'"),
                     300);
    ck_assert_int_eq(sql_number(f.sql, "SELECT count(*) FROM claimd.jobs"), 300);
    ctl_says("db verify", "");
}
END_TEST

START_TEST(feat_B29_jobs_that_wait_for_their_time_are_fed_at_once_when_they_are_retried)
{
    sql_run(f.sql, "INSERT INTO claimd.job (kind, scheduled_at) SELECT 'noop', now() + "
                   "interval '1 h' FROM generate_series(1, 3000)");
    ctl_says("jobs retry --state scheduled", "3000 jobs retried");
    fleet_wait_finished(&f, 3000, "completed", SOON_US);
    ctl_says("db verify", "");
}
END_TEST

/* While other jobs wait in its queue, only a full pass finds a job whose hint was dropped, and
 * there is none. */
#define OTHERS 300

START_TEST(a_job_whose_hint_comes_while_its_lock_is_held_runs_once_that_is_gone)
{
    for (size_t i = 0; i < 3; i++) {
        fleet_redis(&f, i, "SET claimd:job:1 somebody PX 1000");
    }
    fleet_enqueue(&f, "noop", "{}", 1);
    fleet_enqueue(&f, "sleep", "{\"ms\": 50}", OTHERS);
    ck_assert(WAIT_UNTIL(done("noop") == 1, SOON_US));
    ck_assert_int_lt(done("sleep"), OTHERS);
}
END_TEST

#define LOST_US (5 * US_PER_S)

START_TEST(jobs_that_are_retried_in_the_very_moment_of_their_end_are_not_lost)
{
    fleet_start_worker(&f, 1, NULL);
    fleet_enqueue(&f, "noop", "{}", 200);
    sql_run(f.sql, "DO $$ DECLARE til timestamptz := clock_timestamp() + interval '10 s'; BEGIN "
                   "WHILE clock_timestamp() < til LOOP PERFORM claimd.retry_many(ARRAY(SELECT id "
                   "FROM claimd.job_history WHERE retried_at IS NULL), true); COMMIT; PERFORM "
                   "pg_sleep(0.001); END LOOP; END $$");
    ck_assert(WAIT_UNTIL(sql_number(f.sql, "SELECT count(*) FROM claimd.job") == 0, SOON_US));
    ck_assert_int_lt(sql_number(f.sql, "SELECT extract(epoch FROM max(attempted_at - ready_at)) * "
                                       "1000000 FROM claimd.job_history"),
                     LOST_US);
}
END_TEST

START_TEST(what_may_start_once_starts_once_more_when_it_is_retried)
{
    int64_t id = fleet_enqueue(&f, "once", "{\"crash\": true}", 1);
    char words[64];
    fleet_wait_finished(&f, 1, "discarded", SOON_US);
    (void)snprintf(words, sizeof words, "jobs retry %lld", (long long)id);
    ctl_says(words, "available");
    fleet_wait_finished(&f, 2, "discarded", SOON_US);
    ck_assert_int_eq(sql_number(f.sql, "SELECT count(*) FROM claimd.job_attempt"), 2);
    ctl_says("db verify", "");
}
END_TEST

/* ---- pauses ---- */

/* True if the worker has published that it serves the kind now. */
static bool serves(const char *kind)
{
    return sql_number(f.sql,
                      "SELECT count(*) FROM claimd.worker WHERE NOT stopped AND '%s' = "
                      "ANY (kinds)",
                      kind) > 0;
}

/* Waits until a heartbeat that was sent after this call has been answered. */
static void await_heartbeat(void)
{
    for (int i = 0; i < 2; i++) {
        int64_t before =
            sql_number(f.sql, "SELECT (extract(epoch FROM max(beat_at)) * 1000000)::int8 "
                              "FROM claimd.worker");
        ck_assert(WAIT_UNTIL(sql_number(f.sql, "SELECT (extract(epoch FROM max(beat_at)) * "
                                               "1000000)::int8 FROM claimd.worker") > before,
                             SOON_US));
    }
}

START_TEST(a_paused_kind_is_left_alone_until_it_is_resumed)
{
    ck_assert(WAIT_UNTIL(serves("noop"), SOON_US));
    ctl_says("kinds pause noop", "yes");
    ck_assert(WAIT_UNTIL(!serves("noop"), SOON_US));
    fleet_enqueue(&f, "noop", "{}", 100);
    fleet_enqueue(&f, "sleep", "{\"ms\": 1}", 100);
    ck_assert(WAIT_UNTIL(done("sleep") == 100, SOON_US));
    ctl_says("jobs list --state available --limit 1", "noop");
    fleet_start_worker(&f, 1, NULL); /* a new worker learns of the pause before it asks for jobs */
    await_heartbeat();
    ck_assert_int_eq(done("noop"), 0);
    ctl_says("kinds resume noop", "no");
    fleet_wait_finished(&f, 200, "completed", SOON_US);
}
END_TEST

START_TEST(a_paused_queue_is_left_alone_until_it_is_resumed)
{
    ctl_says("queues pause default", "yes");
    await_heartbeat();
    fleet_enqueue(&f, "noop", "{}", 100);
    await_heartbeat();
    ck_assert_int_eq(done("noop"), 0);
    ctl_says("queues resume default", "no");
    fleet_wait_finished(&f, 100, "completed", SOON_US);
}
END_TEST

START_TEST(what_runs_when_its_kind_is_paused_is_ended)
{
    fleet_enqueue(&f, "sleep", "{\"ms\": 3000}", 1);
    ck_assert(WAIT_UNTIL(
        sql_number(f.sql, "SELECT count(*) FROM claimd.job WHERE state = 'running'") == 1,
        SOON_US));
    ctl_says("kinds pause sleep", "yes");
    ck_assert(WAIT_UNTIL(!serves("sleep"), SOON_US));
    fleet_wait_finished(&f, 1, "completed", SOON_US);
    ck_assert_int_eq(sql_number(f.sql, "SELECT max(attempt) FROM claimd.job_history"), 1);
}
END_TEST

/* ---- edits ---- */

#define EDITED 500

/* FEATURES A4: an accepted edit came before the claim, a refused one after it. */
START_TEST(A4_each_job_runs_with_what_it_is_when_it_is_claimed)
{
    for (size_t i = 1; i < 4; i++) {
        fleet_start_worker(&f, i, NULL);
    }
    sql_run(f.sql, "CREATE FUNCTION public.try_edit(id bigint) RETURNS int LANGUAGE plpgsql AS $$ "
                   "BEGIN RETURN claimd.edit(id, '{\"args\": {\"v\": 2}}'); "
                   "EXCEPTION WHEN SQLSTATE 'CL003' THEN RETURN -1; END $$");
    fleet_enqueue(&f, "echo", "{\"v\": 1}", 2 * EDITED);
    int64_t edited = 0;
    for (int64_t n = 0; n < EDITED; n++) { /* every second job, in scattered order */
        int64_t id = 2 * (n * 7919 % EDITED + 1);
        edited += sql_number(f.sql, "SELECT public.try_edit(%lld)", (long long)id) == 2;
    }
    fleet_wait_finished(&f, 2 * EDITED, "completed", SOON_US);
    ck_assert_int_gt(edited, 0);
    ck_assert_int_eq(sql_number(f.sql, "SELECT count(*) FROM claimd.job_edit"), edited);
    ck_assert_int_eq(
        sql_number(f.sql,
                   "SELECT count(*) FROM claimd.job_history h LEFT JOIN claimd.job_edit e ON "
                   "e.job_id = h.id WHERE h.result <> COALESCE(e.after -> 'args', '{\"v\": 1}') "
                   "OR h.args <> h.result OR h.version <> COALESCE(e.version, 1)"),
        0);
    ck_assert_int_eq(sql_number(f.sql, "SELECT max(attempt) FROM claimd.job_history"), 1);
}
END_TEST

static int64_t hints_of(const char *queue)
{
    char command[64];
    int64_t hints = 0;
    (void)snprintf(command, sizeof command, "ZCARD claimd:hints:%s", queue);
    for (size_t i = 0; i < f.options.masters; i++) {
        hints += fleet_redis_i64(&f, i, command);
    }
    return hints;
}

/* Their hints are unchanged: the worker claims them by these, and hands them back. */
START_TEST(a_job_that_gets_another_queue_runs_there_and_nowhere_else)
{
    /* Occupy both slots until they are cancelled. */
    fleet_enqueue(&f, "sleep", "{\"ms\": 600000}", 2);
    ck_assert(WAIT_UNTIL(
        sql_number(f.sql, "SELECT count(*) FROM claimd.job WHERE state = 'running'") == 2,
        SOON_US));
    int64_t id = fleet_enqueue(&f, "noop", "{}", 20);
    ck_assert(WAIT_UNTIL(hints_of("default") == 20, SOON_US));
    for (int64_t n = id - 19; n <= id; n++) {
        sql_run(f.sql, "SELECT claimd.edit(%lld, '{\"queue\": \"other\"}')", (long long)n);
    }
    sql_run(f.sql, "SELECT claimd.cancel(id) FROM claimd.job WHERE kind = 'sleep'");
    ck_assert(WAIT_UNTIL(done("sleep") == 2, SOON_US));
    fleet_enqueue(&f, "echo", "1", 20); /* behind the others */
    ck_assert(WAIT_UNTIL(done("echo") == 20, SOON_US));
    ck_assert_int_eq(sql_number(f.sql, "SELECT count(*) FROM claimd.job WHERE queue = 'other' AND "
                                       "attempt = 0"),
                     20);
    fleet_start_worker_with(&f, 1, (const char *const[]){"CLAIMD_WORKER_QUEUES=other", NULL});
    fleet_wait_finished(&f, 40, "completed", SOON_US);
    ck_assert_int_eq(sql_number(f.sql, "SELECT count(DISTINCT worker_id) FROM claimd.job_history "
                                       "WHERE queue = 'other'"),
                     1);
}
END_TEST

START_TEST(a_job_that_gets_another_tenant_has_the_turn_of_that_one)
{
    int64_t last =
        sql_number(f.sql, "SELECT max(claimd.enqueue('sleep', '{\"ms\": 50}', share_key => "
                          "'anna')) FROM generate_series(1, 300)");
    /* Its hint is in Redis, behind the others. */
    ck_assert(WAIT_UNTIL(done("sleep") > 10, SOON_US));
    sql_run(f.sql, "SELECT claimd.edit(%lld, '{\"share_key\": \"bob\"}')", (long long)last);
    ck_assert(
        WAIT_UNTIL(sql_number(f.sql, "SELECT count(*) FROM claimd.job_history WHERE id = %lld",
                              (long long)last) == 1,
                   SOON_US));
    ck_assert_int_lt(done("sleep"), 250);
}
END_TEST

START_TEST(a_job_that_is_edited_to_run_now_does)
{
    int64_t id = sql_number(f.sql, "SELECT claimd.enqueue('echo', scheduled_at => now() + interval "
                                   "'1 day')");
    char words[128];
    (void)snprintf(words, sizeof words, "jobs edit %lld --delay 0 --priority 0", (long long)id);
    ctl_says(words, "version 2");
    fleet_wait_finished(&f, 1, "completed", SOON_US);
}
END_TEST

/* ---- workers ---- */

START_TEST(a_worker_that_is_asked_to_drain_ends_what_runs_and_then_itself)
{
    char words[128];
    fleet_start_worker(&f, 1, NULL);
    fleet_enqueue(&f, "sleep", "{\"ms\": 2000}", 4);
    ck_assert(WAIT_UNTIL(
        sql_number(f.sql, "SELECT count(*) FROM claimd.job WHERE state = 'running'") == 4,
        SOON_US));
    const char *id =
        sql_text(f.sql, "SELECT worker_id::text FROM claimd.worker ORDER BY started_at "
                        "LIMIT 1");
    (void)snprintf(words, sizeof words, "workers drain %s", id);
    ctl_says(words, id);
    ck_assert_int_eq(fleet_wait_end(&f, &f.workers[0]), 0);
    fleet_wait_finished(&f, 4, "completed", SOON_US);
    ck_assert_int_eq(sql_number(f.sql, "SELECT max(attempt) FROM claimd.job_history"), 1);
    ctl_says("workers --all", "stopped");
}
END_TEST

START_TEST(a_worker_that_was_killed_is_told_from_one_that_stopped)
{
    fleet_start_worker(&f, 1, NULL);
    fleet_enqueue(&f, "sleep", "{\"ms\": 2000}", 4);
    ck_assert(WAIT_UNTIL(
        sql_number(f.sql, "SELECT count(*) FROM claimd.job WHERE state = 'running'") == 4,
        SOON_US));
    fleet_signal(f.workers[0], SIGKILL);
    (void)fleet_wait_end(&f, &f.workers[0]);
    fleet_wait_finished(&f, 4, "completed", SOON_US);
    ck_assert(WAIT_UNTIL(
        sql_number(f.sql, "SELECT count(*) FROM claimd.worker WHERE dead AND stopped") == 1,
        SOON_US));
    ctl_says("workers --all", "rescued");
    ctl_says("workers --all", "live");
}
END_TEST

/* Makes the only worker quiet, then adds ten jobs. Returns the worker's id. */
static const char *given_jobs_for_a_quiet_worker(void)
{
    char words[128];
    const char *id = sql_text(f.sql, "SELECT worker_id::text FROM claimd.worker");
    (void)snprintf(words, sizeof words, "workers quiet %s", id);
    ctl_says(words, id);
    ck_assert(WAIT_UNTIL(sql_number(f.sql, "SELECT count(*) FROM claimd.worker WHERE quiet") == 1,
                         SOON_US));
    fleet_enqueue(&f, "noop", "{}", 10);
    return id;
}

START_TEST(a_worker_that_is_asked_to_be_quiet_takes_nothing_new)
{
    (void)given_jobs_for_a_quiet_worker();
    await_heartbeat();
    ck_assert_int_eq(done("noop"), 0);
    fleet_start_worker(&f, 1, NULL);
    fleet_wait_finished(&f, 10, "completed", SOON_US);
}
END_TEST

START_TEST(feat_B29_a_quiet_worker_goes_on_when_it_is_asked_to)
{
    char words[128];
    const char *id = given_jobs_for_a_quiet_worker();
    (void)snprintf(words, sizeof words, "workers resume %s", id);
    ctl_says(words, id);
    fleet_wait_finished(&f, 10, "completed", SOON_US);
    ck_assert(WAIT_UNTIL(sql_number(f.sql, "SELECT count(*) FROM claimd.worker WHERE quiet") == 0,
                         SOON_US));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("operating");
    TCase *tests = tcase_create("operating");
    tcase_add_unchecked_fixture(tests, fleet_share_pg, fleet_unshare_pg);
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_set_timeout(tests, 120);
    tcase_add_test(tests, retried_jobs_are_fed_at_once);
    tcase_add_test(tests,
                   feat_B29_jobs_that_wait_for_their_time_are_fed_at_once_when_they_are_retried);
    tcase_add_test(tests, a_job_whose_hint_comes_while_its_lock_is_held_runs_once_that_is_gone);
    tcase_add_test(tests, jobs_that_are_retried_in_the_very_moment_of_their_end_are_not_lost);
    tcase_add_test(tests, what_may_start_once_starts_once_more_when_it_is_retried);
    tcase_add_test(tests, a_paused_kind_is_left_alone_until_it_is_resumed);
    tcase_add_test(tests, a_paused_queue_is_left_alone_until_it_is_resumed);
    tcase_add_test(tests, what_runs_when_its_kind_is_paused_is_ended);
    tcase_add_test(tests, A4_each_job_runs_with_what_it_is_when_it_is_claimed);
    tcase_add_test(tests, a_job_that_gets_another_queue_runs_there_and_nowhere_else);
    tcase_add_test(tests, a_job_that_gets_another_tenant_has_the_turn_of_that_one);
    tcase_add_test(tests, a_job_that_is_edited_to_run_now_does);
    tcase_add_test(tests, a_worker_that_is_asked_to_drain_ends_what_runs_and_then_itself);
    tcase_add_test(tests, a_worker_that_was_killed_is_told_from_one_that_stopped);
    tcase_add_test(tests, a_worker_that_is_asked_to_be_quiet_takes_nothing_new);
    tcase_add_test(tests, feat_B29_a_quiet_worker_goes_on_when_it_is_asked_to);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
