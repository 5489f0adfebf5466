/* SPDX-License-Identifier: Apache-2.0
 *
 * Limits over the fleet, through real daemons: never exceeded, and what waits for one goes on at
 * once when it is freed. Full passes are rare here where a test says nothing else: nothing that it
 * waits for may need one. */
#include "support/fleet.h"
#include "support/suite.h"

#include <check.h>
#include <signal.h>
#include <stdio.h>

#define SOON_US (90 * US_PER_S)

static struct fleet fleet;

/* Every run of a job, by PostgreSQL's clock, which also decided about them. */
#define RUNS                                                                                 \
    "(SELECT j.queue, j.exclusive_key AS key, r.* FROM claimd.jobs j JOIN ("                 \
    "SELECT id, fence, attempted_at AS began, finalized_at AS ended FROM claimd.job_history" \
    " WHERE state = 'completed' UNION ALL"                                                   \
    " SELECT job_id, fence, started_at, ended_at FROM claimd.job_attempt) r USING (id)) AS runs"

/* The most runs at once of any `column`: a sweep over their beginnings and ends. */
static int64_t most_at_once(const char *column)
{
    return sql_i64(fleet.sql,
                   "SELECT COALESCE(max(n), 0) FROM (SELECT sum(step) OVER (PARTITION BY %s ORDER"
                   " BY at, step) AS n FROM (SELECT %s, began AS at, 1 AS step FROM " RUNS
                   " UNION ALL SELECT %s, ended, -1 FROM " RUNS ") AS steps) AS sweep",
                   column, column, column);
}

static void enqueue(const char *kind, const char *args, const char *key, int count)
{
    sql_run(fleet.sql,
            "SELECT claimd.enqueue_many((SELECT jsonb_agg(jsonb_build_object('kind', '%s', 'args',"
            " '%s'::jsonb, 'exclusive_key', %s)) FROM generate_series(1, %d) n))",
            kind, args, key, count);
}

START_TEST(a_chain_of_a_hundred_jobs_with_one_key_runs_back_to_back)
{
    char gap[64];
    enqueue("noop", "{}", "'chain'", 100);
    fleet_wait_finished(&fleet, 100, "completed", SOON_US);
    ck_assert_int_eq(most_at_once("key"), 1);
    sql_text(fleet.sql, gap, sizeof gap,
             "SELECT round(1000 * percentile_disc(0.5) WITHIN GROUP (ORDER BY extract(epoch FROM"
             " gap))::numeric, 2) || ' ms' FROM (SELECT began - lag(ended) OVER (ORDER BY began) AS"
             " gap FROM " RUNS ") AS gaps");
    (void)printf("from the end of a run to the claim of the next, p50: %s\n", gap);
}
END_TEST

START_TEST(keys_do_not_wait_for_each_other_nor_jobs_without_one)
{
    enqueue("sleep", "{\"ms\": 60000}", "'slow'", 3);
    enqueue("noop", "{}", "'key' || n % 7", 70);
    (void)fleet_enqueue(&fleet, "noop", "{}", 50);
    ck_assert(
        WAIT_UNTIL(sql_i64(fleet.sql, "SELECT count(*) FROM claimd.job_history") == 120, SOON_US));
    ck_assert_int_eq(sql_i64(fleet.sql, "SELECT count(*) FROM claimd.exclusive"), 1);
    ck_assert_int_eq(most_at_once("key"), 50); /* those without a key; of each other: 1 */
    sql_run(fleet.sql, "DELETE FROM claimd.job_history WHERE exclusive_key IS NULL");
    ck_assert_int_eq(most_at_once("key"), 1);
}
END_TEST

START_TEST(feat_B15_the_cancel_of_a_run_lets_the_next_of_its_key_start)
{
    enqueue("wait_cancel", "{\"as\": \"cancel\"}", "'k'", 5);
    for (int i = 1; i <= 5; i++) {
        ck_assert(WAIT_UNTIL(
            sql_i64(fleet.sql, "SELECT count(*) FROM claimd.job WHERE state = 'running'") == 1,
            SOON_US));
        sql_run(fleet.sql, "SELECT claimd.cancel(id) FROM claimd.job WHERE state = 'running'");
        ck_assert(WAIT_UNTIL(sql_i64(fleet.sql, "SELECT count(*) FROM claimd.job_history") == i,
                             SOON_US));
    }
    ck_assert_int_eq(most_at_once("key"), 1);
}
END_TEST

#define KEYS 5
#define JOBS 400

START_TEST(inv_S18_no_key_runs_twice_at_once_while_workers_are_killed)
{
    enqueue("sleep", "{\"ms\": 20}", "'key' || n % 5", JOBS);
    for (int round = 0; round < 6; round++) {
        size_t i = (size_t)round % 3;
        int64_t before = sql_i64(fleet.sql, "SELECT count(*) FROM claimd.job_history");
        ck_assert(WAIT_UNTIL(
            sql_i64(fleet.sql, "SELECT count(*) FROM claimd.job_history") >= before + 20, SOON_US));
        fleet_signal(fleet.workers[i], SIGKILL);
        (void)fleet_wait_end(&fleet, &fleet.workers[i]);
        fleet_start_worker(&fleet, i, NULL);
    }
    fleet_wait_finished(&fleet, JOBS, "completed", 2 * SOON_US);
    ck_assert_int_eq(most_at_once("key"), 1);
    ck_assert_int_eq(sql_i64(fleet.sql, "SELECT count(*) FROM claimd.exclusive"), 0);
}
END_TEST

START_TEST(a_dead_workers_key_goes_on_elsewhere_without_a_full_pass)
{
    enqueue("sleep", "{\"ms\": 200, \"deaf\": true}", "'k'", 4);
    ck_assert(WAIT_UNTIL(
        sql_i64(fleet.sql, "SELECT count(*) FROM claimd.job WHERE state = 'running'") == 1,
        SOON_US));
    for (size_t i = 0; i < 3; i++) { /* one of them has it */
        if (i != 2) {
            fleet_signal(fleet.workers[i], SIGKILL);
            (void)fleet_wait_end(&fleet, &fleet.workers[i]);
        }
    }
    fleet_wait_finished(&fleet, 4, "completed", SOON_US);
    ck_assert_int_eq(most_at_once("key"), 1);
}
END_TEST

START_TEST(a_full_pass_frees_a_key_that_no_run_holds_and_finds_a_lost_hint)
{
    sql_run(fleet.sql, "INSERT INTO claimd.exclusive (key, job_id, fence) VALUES ('k', 0, 0)");
    enqueue("noop", "{}", "'k'", 3);
    fleet_wait_finished(&fleet, 3, "completed", SOON_US);
    ck_assert_int_eq(sql_i64(fleet.sql, "SELECT count(*) FROM claimd.exclusive"), 0);
}
END_TEST

static void start(const char *more)
{
    fleet_start(&fleet, &(struct fleet_options){.slots = 4, .more = more});
    fleet_start_scheduler(&fleet, 0);
    for (size_t i = 0; i < 3; i++) {
        fleet_start_worker(&fleet, i, NULL);
    }
}

static void setup(void)
{
    start("\"scheduler\": {\"full_pass_ms\": 3600000}");
}

static void setup_full_passes(void)
{
    start(NULL);
}

static void teardown(void)
{
    fleet_stop(&fleet);
}

static Suite *suite(void)
{
    Suite *s = suite_create("limits");
    TCase *c = tcase_create("exclusive keys");
    tcase_set_timeout(c, 240);
    tcase_add_checked_fixture(c, setup, teardown);
    tcase_add_test(c, a_chain_of_a_hundred_jobs_with_one_key_runs_back_to_back);
    tcase_add_test(c, keys_do_not_wait_for_each_other_nor_jobs_without_one);
    tcase_add_test(c, feat_B15_the_cancel_of_a_run_lets_the_next_of_its_key_start);
    tcase_add_test(c, a_dead_workers_key_goes_on_elsewhere_without_a_full_pass);
    suite_add_tcase(s, c);
    TCase *passes = tcase_create("full passes");
    tcase_set_timeout(passes, 240);
    tcase_add_checked_fixture(passes, setup_full_passes, teardown);
    tcase_add_test(passes, inv_S18_no_key_runs_twice_at_once_while_workers_are_killed);
    tcase_add_test(passes, a_full_pass_frees_a_key_that_no_run_holds_and_finds_a_lost_hint);
    suite_add_tcase(s, passes);
    return s;
}

int main(void)
{
    return suite_run_in_one(suite());
}
