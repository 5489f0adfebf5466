/* SPDX-License-Identifier: Apache-2.0
 *
 * The leader's gauges: what a survey of the queues reports, and how the values are published. */
#include "base/buf.h"
#include "scheduler/survey.h"
#include "support/pg_fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TEXT_MAX ((size_t)1 << 20)
#define EVERY_US (20 * US_PER_MS)
#define NEXT_US \
    (50 * US_PER_S) /* until the next survey: 50 times what a busy machine takes for one */

/* Like RUN_UNTIL(), for values that only the next survey changes. */
#define RUN_ON_UNTIL(expr)                                     \
    do {                                                       \
        int64_t stop_ = clock_boot_us() + NEXT_US;             \
        while (!(expr) && clock_boot_us() < stop_) {           \
            world_turn();                                      \
        }                                                      \
        ck_assert_msg((expr), "never became true: %s", #expr); \
    } while (0)

static struct sql *side;
static struct metrics *registry;
static struct survey *survey;
static struct buf text;

static void start(int64_t limit_us)
{
    const struct survey_options options = {.loop = &world.loop,
                                           .registry = registry,
                                           .conninfo = world.conninfo,
                                           .timeout_us = LIMIT_US,
                                           .every_us = EVERY_US,
                                           .limit_us = limit_us};
    struct err err = {0};
    ck_assert_msg(survey_start(&options, &survey, &err) == STATUS_OK, "%s", err.msg);
}

static void setup(void)
{
    world_setup();
    side = sql_open(world.conninfo);
    buf_init(&text, TEXT_MAX);
    ck_assert_int_eq(metrics_open(&registry, NULL), STATUS_OK);
    survey_metrics_init(registry);
}

static void teardown(void)
{
    survey_stop(TAKE(survey));
    sql_close(side);
    world_teardown();
    metrics_close(registry);
    buf_release(&text);
}

static bool says(const char *part)
{
    buf_reset(&text);
    ck_assert_int_eq(metrics_render(registry, &text, NULL), STATUS_OK);
    return strstr(buf_at(&text), part) != NULL;
}

#define ASSERT_SAYS(part) ck_assert_msg(says(part), "no '%s' in\n%s", (part), buf_at(&text))

static void given_worker(int n, const char *queues, const char *kinds, const char *stale_in)
{
    sql_run(side,
            "INSERT INTO claimd.worker (worker_id, stale_at, pid, slots, host, state_dir, "
            "token_prefix, version, queues, kinds) VALUES ('00000000-0000-0000-0000-%012d', now() "
            "+ interval '%s', 1, 1, 'h', '', '', '1', '%s', '%s')",
            n, stale_in, queues, kinds);
}

START_TEST(queues_are_counted_by_state_and_workers_by_theirs)
{
    sql_run(side,
            "INSERT INTO claimd.job (kind, scheduled_at, attempt, state) VALUES ('noop', now(), 0, "
            "'available'), ('noop', now(), 3, 'available'), ('noop', now() + interval '1 h', 0, "
            "'available'), ('noop', now() + interval '1 h', 1, 'available'), ('noop', now(), 1, "
            "'running'), ('noop', now(), 1, 'running'), ('noop', now(), 1, 'running')");
    sql_run(side, "UPDATE claimd.job SET created_at = now() - interval '100 s', scheduled_at = "
                  "now() - interval '100 s' WHERE attempt = 3");
    sql_run(
        side,
        "UPDATE claimd.job SET attempted_at = now() - interval '200 s' WHERE state = 'running'");
    sql_run(side, "INSERT INTO claimd.queue VALUES ('halted', true), ('set', false)");
    given_worker(1, "{default,idle}", "{noop}", "1 h");
    given_worker(2, "{default}", "{noop}", "-1 s");
    start(LIMIT_US);
    RUN_UNTIL(says("claimd_jobs{"));
    ASSERT_SAYS("\nclaimd_jobs{queue=\"default\",state=\"available\"} 2\n");
    ASSERT_SAYS("\nclaimd_jobs{queue=\"default\",state=\"scheduled\"} 1\n");
    ASSERT_SAYS("\nclaimd_jobs{queue=\"default\",state=\"retryable\"} 1\n");
    ASSERT_SAYS("\nclaimd_jobs{queue=\"default\",state=\"running\"} 3\n");
    ASSERT_SAYS("\nclaimd_jobs{queue=\"idle\",state=\"available\"} 0\n");
    ASSERT_SAYS("\nclaimd_queue_oldest_due_seconds{queue=\"default\"} 10");
    ASSERT_SAYS("\nclaimd_queue_oldest_due_seconds{queue=\"idle\"} 0\n");
    ASSERT_SAYS("\nclaimd_queue_oldest_running_seconds{queue=\"default\"} 20");
    ASSERT_SAYS("\nclaimd_queue_oldest_running_seconds{queue=\"idle\"} 0\n");
    ASSERT_SAYS("\nclaimd_queue_paused{queue=\"halted\"} 1\n");
    ASSERT_SAYS("\nclaimd_queue_paused{queue=\"set\"} 0\n");
    ASSERT_SAYS("\nclaimd_queue_paused{queue=\"default\"} 0\n");
    ASSERT_SAYS("\nclaimd_workers{state=\"live\"} 1\n");
    ASSERT_SAYS("\nclaimd_workers{state=\"stale\"} 1\n");
    ASSERT_SAYS("\nclaimd_history_partitions_ahead 14\n");
    ck_assert(!says("claimd_jobs_unserved{"));
}
END_TEST

static double number_of(const char *name)
{
    const char *found = says(name) ? strstr(buf_at(&text), name) : NULL;
    return found == NULL ? -1 : strtod(found + strlen(name), NULL);
}

START_TEST(size_dead_rows_and_inserts_of_the_open_jobs_are_told)
{
    sql_run(side, "INSERT INTO claimd.job (kind) SELECT 'noop' FROM generate_series(1, 500)");
    sql_run(side, "DELETE FROM claimd.job WHERE id %% 2 = 0");
    /* A session reports its statistics when it ends, otherwise within ten seconds. */
    sql_close(side);
    side = sql_open(world.conninfo);
    start(LIMIT_US);
    RUN_UNTIL(number_of("\nclaimd_jobs_enqueued_total ") == 500);
    RUN_UNTIL(number_of("\nclaimd_job_table_dead_rows ") == 250);
    ck_assert_double_ge(number_of("\nclaimd_job_table_bytes "), 8192);
}
END_TEST

START_TEST(due_jobs_that_no_live_worker_serves_are_told_by_kind)
{
    sql_run(side, "INSERT INTO claimd.job (kind, queue, scheduled_at) VALUES ('noop', 'default', "
                  "now()), ('noop', 'other_one', now()), ('mail', 'default', now()), ('mail', "
                  "'default', now()), ('late', 'default', now() + interval '1 h')");
    given_worker(1, "{default}", "{noop}", "1 h");
    given_worker(2, "{default}", "{mail}", "-1 s");
    start(LIMIT_US);
    RUN_UNTIL(says("claimd_jobs{"));
    ASSERT_SAYS("\nclaimd_jobs_unserved{queue=\"default\",kind=\"mail\"} 2\n");
    ASSERT_SAYS("\nclaimd_jobs_unserved{queue=\"other_one\",kind=\"noop\"} 1\n");
    ck_assert(!says("kind=\"late\"") && !says("queue=\"default\",kind=\"noop\""));
    sql_run(side, "DELETE FROM claimd.job WHERE kind = 'mail'");
    RUN_ON_UNTIL(!says("kind=\"mail\"")); /* a value that has disappeared is not kept */
}
END_TEST

#define IDLE(queue) "\nclaimd_idle_beside_due_seconds{queue=\"" queue "\"} "

/* The state of `b` must not be reported for another queue in the same survey. */
START_TEST(L9_a_due_job_beside_an_idle_slot_is_told_once_two_surveys_have_seen_it)
{
    sql_run(
        side,
        "INSERT INTO claimd.job (kind, queue, created_at, scheduled_at) SELECT 'noop', q, now() - "
        "interval '1 h', now() - interval '1 h' FROM unnest('{full,paused,busy,b}'::text[]) AS q");
    sql_run(side, "SELECT claimd.limit_queue('full', 1)");
    sql_run(side, "INSERT INTO claimd.queue (name, paused) VALUES ('paused', true)");
    given_worker(1, "{full,paused,b}", "{noop}", "1 h");
    given_worker(2, "{busy}", "{noop}", "1 h");
    sql_run(side, "UPDATE claimd.worker SET spare_least = 1, spare_since = now() - interval '1 h' "
                  "WHERE 'b' = ANY (queues)");
    start(LIMIT_US);
    RUN_UNTIL(says(IDLE("b")));
    ASSERT_SAYS(IDLE("b") "0\n"); /* seen once: the job may have become available just now */
    RUN_ON_UNTIL(number_of(IDLE("b")) > 0);
    ck_assert_double_lt(number_of(IDLE("b")), 3000);
    ASSERT_SAYS(IDLE("full") "0\n");
    ASSERT_SAYS(IDLE("paused") "0\n");
    ASSERT_SAYS(IDLE("busy") "0\n");
    sql_run(side, "UPDATE claimd.job SET version = version + 1");
    double before = number_of(IDLE("b"));
    RUN_ON_UNTIL(number_of(IDLE("b")) < before); /* the job has changed: its wait begins again */
    sql_run(side, "UPDATE claimd.worker SET spare_since = NULL");
    RUN_ON_UNTIL(number_of(IDLE("b")) == 0);
}
END_TEST

START_TEST(L9_a_claimed_job_that_waits_beside_another_workers_idle_slot_is_told)
{
    given_worker(1, "{a,b}", "{mail,noop}", "1 h");
    given_worker(2, "{b}", "{noop}", "1 h");
    given_worker(3, "{c}", "{noop}", "1 h");
    sql_run(side, "UPDATE claimd.worker SET ready_oldest = '7 s'");
    start(LIMIT_US);
    RUN_UNTIL(says(IDLE("b")));
    ASSERT_SAYS(IDLE("b") "0\n");
    sql_run(side, "UPDATE claimd.worker SET spare_least = 1, spare_since = now() - interval '1 h' "
                  "WHERE 'a' = ANY (queues)");
    RUN_ON_UNTIL(number_of(IDLE("b")) == 7);
    ASSERT_SAYS(IDLE("a") "0\n");
    ASSERT_SAYS(IDLE("c") "0\n");
}
END_TEST

START_TEST(of_more_queues_than_have_names_the_shortest_are_one)
{
    sql_run(side, "INSERT INTO claimd.job (kind, queue) SELECT 'noop', 'q' || q FROM "
                  "generate_series(1, 60) q, generate_series(1, q) n");
    start(LIMIT_US);
    RUN_UNTIL(says("claimd_jobs{"));
    ASSERT_SAYS("\nclaimd_jobs{queue=\"q60\",state=\"available\"} 60\n");
    ASSERT_SAYS("\nclaimd_jobs{queue=\"q22\",state=\"available\"} 22\n");
    ASSERT_SAYS("\nclaimd_jobs{queue=\"other\",state=\"available\"} 231\n"); /* 1 + … + 21 */
    ck_assert(!says("claimd_jobs{queue=\"q21\""));
}
END_TEST

START_TEST(rows_of_maps_are_counted_by_state)
{
    sql_run(side,
            "SELECT claimd.map_begin('m', 'SELECT', 'id', 'noop', NULL, 'default', 2, NULL, NULL)");
    sql_run(side, "SELECT claimd.map_load(1, NULL, '{a,b,c}', ARRAY['{}', '{}', '{}'], true)");
    sql_run(side, "UPDATE claimd.map_count SET failed = 1");
    start(LIMIT_US);
    RUN_UNTIL(says("claimd_map_rows{"));
    ASSERT_SAYS("\nclaimd_map_rows{map=\"m\",state=\"open\"} 2\n");
    ASSERT_SAYS("\nclaimd_map_rows{map=\"m\",state=\"completed\"} 0\n");
    ASSERT_SAYS("\nclaimd_map_rows{map=\"m\",state=\"failed\"} 1\n");
}
END_TEST

START_TEST(a_survey_that_is_cut_off_is_counted_and_the_values_stay)
{
    sql_run(side, "INSERT INTO claimd.job (kind) VALUES ('noop')");
    start(3 * US_PER_S);
    RUN_ON_UNTIL(says("claimd_jobs{"));
    ASSERT_SAYS("claimd_surveys_failed_total 0\n");
    struct sql *locker = sql_open(world.conninfo);
    sql_run(locker, "BEGIN");
    sql_run(locker, "LOCK TABLE claimd.job IN ACCESS EXCLUSIVE MODE");
    RUN_ON_UNTIL(!says("claimd_surveys_failed_total 0\n"));
    ASSERT_SAYS("\nclaimd_jobs{queue=\"default\",state=\"available\"} 1\n");
    sql_close(locker);
}
END_TEST

START_TEST(who_no_longer_leads_forgets_the_gauges)
{
    sql_run(side, "INSERT INTO claimd.job (kind) VALUES ('noop')");
    start(LIMIT_US);
    RUN_UNTIL(says("claimd_jobs{"));
    survey_stop(TAKE(survey));
    ck_assert(!says("claimd_jobs") && !says("claimd_workers") && !says("claimd_history"));
    ASSERT_SAYS("claimd_surveys_failed_total 0\n");
}
END_TEST

START_TEST(surveys_take_a_fiftieth_of_the_time_at_most)
{
    ck_assert_int_eq(survey_wait_us(US_PER_MS, 15 * US_PER_S), 15 * US_PER_S);
    ck_assert_int_eq(survey_wait_us(2 * US_PER_S, 15 * US_PER_S), 100 * US_PER_S);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("metrics_survey");
    TCase *tests = tcase_create("survey");
    tcase_set_timeout(tests, 120);
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_test(tests, queues_are_counted_by_state_and_workers_by_theirs);
    tcase_add_test(tests, size_dead_rows_and_inserts_of_the_open_jobs_are_told);
    tcase_add_test(tests, due_jobs_that_no_live_worker_serves_are_told_by_kind);
    tcase_add_test(tests, L9_a_due_job_beside_an_idle_slot_is_told_once_two_surveys_have_seen_it);
    tcase_add_test(tests, L9_a_claimed_job_that_waits_beside_another_workers_idle_slot_is_told);
    tcase_add_test(tests, of_more_queues_than_have_names_the_shortest_are_one);
    tcase_add_test(tests, rows_of_maps_are_counted_by_state);
    tcase_add_test(tests, a_survey_that_is_cut_off_is_counted_and_the_values_stay);
    tcase_add_test(tests, who_no_longer_leads_forgets_the_gauges);
    tcase_add_test(tests, surveys_take_a_fiftieth_of_the_time_at_most);
    suite_add_tcase(suite, tests);
    return world_run(suite);
}
