/* SPDX-License-Identifier: Apache-2.0
 *
 * Workers whose jobs have been short claim ahead, but must not hold long jobs for which other
 * workers have idle runners (docs/decisions/0024). The tests count how often a job was handed back,
 * not how long it took. */
#include "support/fleet.h"
#include "support/suite.h"

#include <check.h>
#include <signal.h>
#include <stdio.h>

#define WORKERS 4
#define SLOTS 4
#define LONG (WORKERS * SLOTS)
#define MASTERS 3
#define MANY 14
#define MANY_SHORT 5000 /* jobs that keep all workers busy for a while */

static struct fleet fleet;

static void enqueue(const char *kind, const char *args, const char *queue, int count)
{
    sql_run(fleet.sql,
            "INSERT INTO claimd.job (kind, args, queue) SELECT '%s', '%s', '%s' FROM"
            " generate_series(1, %d)",
            kind, args, queue, count);
}

static bool are_finished(const char *kind, int64_t count)
{
    return sql_number(fleet.sql, "SELECT count(*) FROM claimd.job_history WHERE kind = '%s'",
                      kind) == count;
}

/* Makes each worker claim ahead shortly before the test. */
static void drain_short(void)
{
    int rounds = 0;
    int64_t workers = 0;
    for (int64_t count = 2000; workers < WORKERS; count += 2000) {
        enqueue("noop", "{}", "default", 2000);
        ck_assert(WAIT_UNTIL(are_finished("noop", count), SOON_US));
        workers =
            sql_number(fleet.sql, "SELECT count(*) FROM (SELECT worker_id FROM"
                                  " claimd.job_history GROUP BY 1 HAVING count(*) > 100) AS w");
        ck_assert_int_lt(++rounds, 50);
    }
}

/* In the workers' logs: counts how often jobs were handed back … */
static int handed_back(void)
{
    int count = 0;
    for (size_t i = 0; i < WORKERS; i++) {
        count += fleet_log_count(&fleet, "claimd-worker", i, "state=handed_back");
    }
    return count;
}

/* … and how often one worker handed back the same job, at most. */
static int most_of_one(int64_t first, int64_t last)
{
    int most = 0;
    for (size_t i = 0; i < WORKERS; i++) {
        for (int64_t id = first; id <= last; id++) {
            char text[64];
            (void)snprintf(text, sizeof text, "job=%lld kind=sleep attempt=1 ", (long long)id);
            int count = fleet_log_count(&fleet, "claimd-worker", i, text);
            most = count > most ? count : most;
        }
    }
    return most;
}

static int64_t id_of(const char *which)
{
    return sql_number(fleet.sql, "SELECT %s(id) FROM claimd.jobs WHERE kind = 'sleep'", which);
}

static int64_t running(void)
{
    return sql_number(fleet.sql, "SELECT count(*) FROM claimd.job WHERE state = 'running'");
}

START_TEST(long_jobs_after_short_ones_go_to_the_idle_runners_of_others_at_once)
{
    drain_short();
    int before = handed_back();
    enqueue("sleep", "{\"ms\": 600000}", "default", LONG);
    ck_assert(WAIT_UNTIL(running() == LONG && handed_back() - before > 0, SOON_US));
    ck_assert(
        WAIT_UNTIL(sql_number(fleet.sql, "SELECT min(n) FROM (SELECT count(*) AS n FROM claimd.job"
                                         " GROUP BY worker_id) AS w") == SLOTS,
                   SOON_US));
    int first_wave = handed_back() - before;
    (void)printf("%d long jobs on %d runners: handed back %d times\n", LONG, LONG, first_wave);
    ck_assert_int_le(most_of_one(id_of("min"), id_of("max")), 1);
    ck_assert_int_le(first_wave, LONG - SLOTS);
    sql_run(fleet.sql, "SELECT claimd.cancel(id) FROM claimd.job");
    ck_assert(WAIT_UNTIL(running() == 0, SOON_US));
}
END_TEST

/* Counts on all masters: hints go to the first one that answers in time. */
static int64_t hints_in(const char *set)
{
    int64_t hints = 0;
    for (size_t i = 0; i < MASTERS; i++) {
        char command[80];
        (void)snprintf(command, sizeof command, "ZCARD claimd:hints:%s", set);
        hints += fleet_redis_i64(&fleet, i, command);
    }
    return hints;
}

static int64_t passed_on(void)
{
    return hints_in("default:sleep");
}

static void quiet_all_but_the_first(void)
{
    for (size_t i = 1; i < WORKERS; i++) {
        fleet_signal(fleet.workers[i], SIGUSR1);
        ck_assert(
            WAIT_UNTIL(fleet_log_count(&fleet, "claimd-worker", i, "event=quiet") == 1, SOON_US));
    }
}

/* The other workers take nothing, so hints that are passed on stay where all others could find
 * them. */
START_TEST(what_is_passed_on_goes_to_the_set_of_its_kind_and_no_further)
{
    drain_short();
    int before = handed_back();
    quiet_all_but_the_first();
    enqueue("sleep", "{\"ms\": 600000}", "default", LONG);
    ck_assert(WAIT_UNTIL(passed_on() >= LONG - SLOTS, SOON_US));
    ck_assert_int_eq(running(), SLOTS);
    ck_assert_int_eq(handed_back() - before, LONG - SLOTS);
    ck_assert_int_eq(most_of_one(id_of("min"), id_of("max")), 1);
    ck_assert_int_eq(sql_number(fleet.sql,
                                "SELECT count(*) FROM claimd.job WHERE state = 'available'"
                                " AND attempt > 0"),
                     0);
    sql_run(fleet.sql, "SELECT claimd.cancel(id) FROM claimd.job");
    ck_assert(WAIT_UNTIL(running() == 0, SOON_US));
}
END_TEST

START_TEST(a_backlog_of_long_jobs_is_handed_back_once_at_the_most)
{
    drain_short();
    int before = handed_back();
    enqueue("sleep", "{\"ms\": 300}", "default", 8 * LONG);
    ck_assert(WAIT_UNTIL(are_finished("sleep", 8 * LONG), SOON_US));
    int count = handed_back() - before;
    (void)printf("%d long jobs on %d runners: handed back %d times\n", 8 * LONG, LONG, count);
    ck_assert_int_le(count, 8 * LONG * WORKERS);
    ck_assert_int_le(most_of_one(id_of("min"), id_of("max")), 2); /* … and then it was completed */
}
END_TEST

static void start_workers(const char *queues)
{
    char text[96];
    (void)snprintf(text, sizeof text, "CLAIMD_WORKER_QUEUES=%s", queues);
    const char *const env[] = {text, NULL};
    fleet_start(&fleet,
                &(struct fleet_options){.slots = SLOTS,
                                        .masters = MASTERS,
                                        .time_scale = 1,
                                        .more = "\"scheduler\": {\"full_pass_ms\": 3600000}"});
    fleet_start_scheduler(&fleet, 0);
    for (size_t i = 0; i < WORKERS; i++) {
        fleet_start_worker_with(&fleet, i, env);
    }
}

static void setup(void)
{
    start_workers("default");
}

static void setup_two_queues(void)
{
    start_workers("default,other");
}

static void setup_many_queues(void)
{
    start_workers("q0,q1,q2,q3,q4,q5,q6,q7,q8,q9,q10,q11,q12,q13");
}

START_TEST(long_jobs_of_one_queue_leave_the_others_queue_claimed_ahead)
{
    drain_short();
    int64_t drained = sql_number(fleet.sql, "SELECT count(*) FROM claimd.job_history");
    enqueue("sleep", "{\"ms\": 100}", "other", 100 * LONG);
    ck_assert(
        WAIT_UNTIL(sql_number(fleet.sql, "SELECT count(*) FROM claimd.job_history WHERE queue ="
                                         " 'other'") >= LONG,
                   SOON_US));
    enqueue("noop", "{}", "default", MANY_SHORT);
    ck_assert(WAIT_UNTIL(sql_number(fleet.sql, "SELECT count(*) FROM claimd.job WHERE kind = 'noop'"
                                               " AND state = 'running'") > 2 * LONG,
                         SOON_US));
    ck_assert(WAIT_UNTIL(are_finished("noop", drained + MANY_SHORT), SOON_US));
}
END_TEST

/* Pops that block on the other masters when the last runner is taken return hints later: such a
 * hint goes back, so that any other worker with an idle runner can take it. */
START_TEST(L9_a_short_job_is_not_claimed_behind_long_ones_of_another_queue)
{
    drain_short();
    quiet_all_but_the_first();
    enqueue("sleep", "{\"ms\": 600000}", "other", SLOTS);
    ck_assert(WAIT_UNTIL(running() == SLOTS, SOON_US));
    for (int64_t count = 1; count <= 8; count++) {
        enqueue("noop", "{}", "default", 1);
        ck_assert(WAIT_UNTIL(hints_in("default") == count || running() > SLOTS, SOON_US));
        ck_assert_int_eq(running(), SLOTS);
    }
    sql_run(fleet.sql, "SELECT claimd.cancel(id) FROM claimd.job");
    ck_assert(WAIT_UNTIL(running() == 0, SOON_US));
}
END_TEST

static void enqueue_on_all(const char *kind, const char *args, int count)
{
    sql_run(fleet.sql,
            "INSERT INTO claimd.job (kind, args, queue) SELECT '%s', '%s', 'q' || i %% %d FROM"
            " generate_series(1, %d) AS i",
            kind, args, MANY, count);
}

/* Since the round before, a worker knows that some queues have long jobs. Jobs that it claims ahead
 * from other queues must not take a runner on which a job was placed. */
START_TEST(long_jobs_of_many_queues_do_not_wait_for_each_others_runners)
{
    for (int round = 1; round <= 4; round++) {
        enqueue_on_all("noop", "{}", MANY_SHORT);
        ck_assert(WAIT_UNTIL(are_finished("noop", MANY_SHORT * (int64_t)round), SOON_US));
        enqueue_on_all("sleep", "{\"ms\": 600000}", LONG);
        ck_assert(WAIT_UNTIL(running() == LONG, SOON_US));
        sql_run(fleet.sql, "SELECT claimd.cancel(id) FROM claimd.job");
        ck_assert(WAIT_UNTIL(running() == 0, SOON_US));
    }
    for (size_t i = 0; i < WORKERS; i++) {
        ck_assert_int_eq(fleet_log_count(&fleet, "claimd-worker", i, "event=job_waited"), 0);
    }
}
END_TEST

static void teardown(void)
{
    fleet_stop(&fleet);
}

int main(void)
{
    Suite *s = suite_create("hoarding");
    TCase *c = tcase_create("one queue");
    tcase_set_timeout(c, 300);
    tcase_add_unchecked_fixture(c, fleet_share_pg, fleet_unshare_pg);
    tcase_add_checked_fixture(c, setup, teardown);
    tcase_add_test(c, long_jobs_after_short_ones_go_to_the_idle_runners_of_others_at_once);
    tcase_add_test(c, what_is_passed_on_goes_to_the_set_of_its_kind_and_no_further);
    tcase_add_test(c, a_backlog_of_long_jobs_is_handed_back_once_at_the_most);
    suite_add_tcase(s, c);
    TCase *two = tcase_create("two queues");
    tcase_set_timeout(two, 300);
    tcase_add_unchecked_fixture(two, fleet_share_pg, fleet_unshare_pg);
    tcase_add_checked_fixture(two, setup_two_queues, teardown);
    tcase_add_test(two, long_jobs_of_one_queue_leave_the_others_queue_claimed_ahead);
    tcase_add_test(two, L9_a_short_job_is_not_claimed_behind_long_ones_of_another_queue);
    suite_add_tcase(s, two);
    TCase *many = tcase_create("many queues");
    tcase_set_timeout(many, 300);
    tcase_add_unchecked_fixture(many, fleet_share_pg, fleet_unshare_pg);
    tcase_add_checked_fixture(many, setup_many_queues, teardown);
    tcase_add_test(many, long_jobs_of_many_queues_do_not_wait_for_each_others_runners);
    suite_add_tcase(s, many);
    return suite_run(s);
}
