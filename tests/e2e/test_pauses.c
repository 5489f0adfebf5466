/* SPDX-License-Identifier: Apache-2.0
 *
 * A pause and its end reach the workers at once. Heartbeats are 100 s apart here, longer than any
 * test waits, so nothing here depends on a regular heartbeat. */
#include "support/fleet.h"
#include "support/suite.h"

#include <check.h>
#include <stdio.h>

#define WORKERS 2

static struct fleet fleet;

static int64_t finished(const char *queue)
{
    return sql_number(fleet.sql, "SELECT count(*) FROM claimd.job_history WHERE queue = '%s'",
                      queue);
}

static void enqueue(const char *queue, int ms, int count)
{
    sql_run(fleet.sql,
            "INSERT INTO claimd.job (kind, queue, args) SELECT 'sleep', '%s', '{\"ms\": %d}' FROM"
            " generate_series(1, %d)",
            queue, ms, count);
}

/* Pauses a, then c: a worker that sends a heartbeat after the mark, for whatever reason, knows of
 * a. */
static void pause_and_mark(void)
{
    sql_run(fleet.sql, "SELECT claimd.pause_queue('a')");
    sql_run(fleet.sql, "CREATE TABLE public.mark AS SELECT clock_timestamp() AS at");
    sql_run(fleet.sql, "SELECT claimd.pause_queue('c')");
}

/* True if each worker has sent a heartbeat since the mark. */
static bool do_all_know(void)
{
    return sql_number(fleet.sql,
                      "SELECT count(*) FROM claimd.worker, public.mark WHERE beat_at > at") ==
           WORKERS;
}

static void print_delay(const char *what)
{
    (void)printf("%s: known to all workers after %lld ms\n", what,
                 (long long)sql_number(fleet.sql,
                                       "SELECT (1000 * extract(epoch FROM max(beat_at - at)))"
                                       "::bigint FROM claimd.worker, public.mark"));
}

/* Pushes a hint by hand, like a scheduler that does not know of the pause. */
static void push_by_hand(const char *queue)
{
    char command[128];
    int64_t id = sql_number(fleet.sql, "SELECT max(id) FROM claimd.job WHERE queue = '%s'", queue);
    (void)snprintf(command, sizeof command, "ZADD claimd:hints:%s 1 %lld", queue, (long long)id);
    fleet_redis(&fleet, 0, command);
}

static int64_t hints_of(const char *queue)
{
    char command[64];
    (void)snprintf(command, sizeof command, "ZCARD claimd:hints:%s", queue);
    return fleet_redis_i64(&fleet, 0, command);
}

START_TEST(an_idle_worker_leaves_a_paused_queue_and_takes_it_up_again_at_once)
{
    pause_and_mark();
    ck_assert(WAIT_UNTIL(do_all_know(), SOON_US));
    print_delay("idle");
    enqueue("a", 1, 1);
    for (int i = 1; i <= 10; i++) { /* pops that might return the hint */
        push_by_hand("a");
        enqueue("b", 1, 1);
        ck_assert(WAIT_UNTIL(finished("b") == i, SOON_US));
    }
    ck_assert_int_eq(finished("a"), 0);
    ck_assert(WAIT_UNTIL(hints_of("a") == 1, SOON_US));
    sql_run(fleet.sql, "SELECT claimd.resume_queue('a')");
    ck_assert(WAIT_UNTIL(finished("a") == 1, SOON_US));
}
END_TEST

START_TEST(a_busy_worker_hears_of_a_pause_while_it_has_more_to_do_than_it_can)
{
    enqueue("b", 1, 3000);
    ck_assert(WAIT_UNTIL(finished("b") > 100, SOON_US));
    pause_and_mark();
    while (!do_all_know()) {
        ck_assert_int_lt(finished("b"), 400000);
        if (sql_number(fleet.sql, "SELECT count(*) FROM claimd.job") < 3000) {
            enqueue("b", 1, 3000);
        }
    }
    print_delay("busy");
    ck_assert_int_gt(sql_number(fleet.sql, "SELECT count(*) FROM claimd.job"), 0);
    sql_run(fleet.sql, "DELETE FROM claimd.job WHERE state = 'available'");
}
END_TEST

START_TEST(a_worker_without_a_free_slot_hears_of_a_pause_before_it_takes_the_next_job)
{
    enqueue("b", 300, 200);
    ck_assert(WAIT_UNTIL(finished("b") > 0, SOON_US));
    pause_and_mark();
    ck_assert(WAIT_UNTIL(do_all_know(), SOON_US));
    ck_assert_int_lt(finished("b"), 200);
    sql_run(fleet.sql, "DELETE FROM claimd.job WHERE state = 'available'");
}
END_TEST

START_TEST(a_paused_kind_is_withdrawn_and_served_again_at_once)
{
    enqueue("a", 1, 1);
    ck_assert(WAIT_UNTIL(finished("a") == 1, SOON_US));
    sql_run(fleet.sql, "SELECT claimd.pause_kind('sleep')");
    for (size_t i = 0; i < WORKERS; i++) {
        ck_assert(WAIT_UNTIL(fleet_log_count(&fleet, "claimd-worker", i, "event=kind_paused") == 1,
                             SOON_US));
    }
    enqueue("a", 1, 1);
    sql_run(fleet.sql, "SELECT claimd.resume_kind('sleep')");
    ck_assert(WAIT_UNTIL(finished("a") == 2, SOON_US));
}
END_TEST

static void setup(void)
{
    static const char *const env[] = {"CLAIMD_WORKER_QUEUES=a,b,c", "CLAIMD_WORKER_BEAT_MS=100000",
                                      "CLAIMD_WORKER_STALE_MS=400000", NULL};
    fleet_start(&fleet,
                &(struct fleet_options){.slots = 4,
                                        .masters = 3,
                                        .time_scale = 1,
                                        .more = "\"scheduler\": {\"full_pass_ms\": 3600000}"});
    fleet_start_scheduler(&fleet, 0);
    for (size_t i = 0; i < WORKERS; i++) {
        fleet_start_worker_with(&fleet, i, env);
    }
}

static void teardown(void)
{
    fleet_stop(&fleet);
}

int main(void)
{
    Suite *s = suite_create("pauses");
    TCase *c = tcase_create("pauses");
    tcase_set_timeout(c, 240);
    tcase_add_unchecked_fixture(c, fleet_share_pg, fleet_unshare_pg);
    tcase_add_checked_fixture(c, setup, teardown);
    tcase_add_test(c, an_idle_worker_leaves_a_paused_queue_and_takes_it_up_again_at_once);
    tcase_add_test(c, a_busy_worker_hears_of_a_pause_while_it_has_more_to_do_than_it_can);
    tcase_add_test(c, a_worker_without_a_free_slot_hears_of_a_pause_before_it_takes_the_next_job);
    tcase_add_test(c, a_paused_kind_is_withdrawn_and_served_again_at_once);
    suite_add_tcase(s, c);
    return suite_run(s);
}
