/* SPDX-License-Identifier: Apache-2.0
 *
 * A real scheduler feeds: at once, on time, every job, and again when hints were lost. There is no
 * full pass here, so each row must be found by the feed itself. */
#include "scheduler_world.h"
#include "support/suite.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#define NO_FULL_PASS "\"scheduler\": {\"full_pass_ms\": 3600000, \"look_ahead\": 1000}"
#define TICK_US ((int64_t)(SCALE * US_PER_S))

static struct sql *other; /* a second session */

static void setup(void)
{
    world_start(NO_FULL_PASS);
    other = sql_open(fleet.conninfo);
}

static void teardown(void)
{
    sql_close(other);
    world_stop();
}

static bool is_hungry(void)
{
    return sql_number(fleet.sql, "SELECT hungry::int FROM claimd.cluster") == 1;
}

static void given_leader(void)
{
    given_worker(1, "default", "noop");
    start_leader(0);
    ck_assert(WAIT_UNTIL(is_hungry(), SOON_US));
}

static bool is_fed(int64_t id)
{
    return has_hint("default", id);
}

static void fed_one(void)
{
    int64_t id = fleet_enqueue(&fleet, "noop", "{}", 1);
    ck_assert(WAIT_UNTIL(is_fed(id), SOON_US));
}

static int by_number(const void *a, const void *b)
{
    const int64_t *x = a;
    const int64_t *y = b;
    return (*x > *y) - (*x < *y);
}

/* Returns the median. Each row is inserted just after a pass, so that the next tick is a whole one
 * away. */
static int64_t feeding_us(void)
{
    int64_t took_us[11];
    for (size_t i = 0; i < ARRAY_COUNT(took_us); i++) {
        int64_t id = fleet_enqueue(&fleet, "noop", "{}", 1);
        int64_t start_us = clock_boot_us();
        ck_assert(WAIT_UNTIL(is_fed(id), SOON_US));
        took_us[i] = clock_boot_us() - start_us;
    }
    qsort(took_us, ARRAY_COUNT(took_us), sizeof took_us[0], by_number);
    return took_us[ARRAY_COUNT(took_us) / 2];
}

#define ROUNDS 10

/* One of a few rounds must succeed, since other load on the machine delays both ways. NOTIFY must
 * at least halve the time, which does not happen by chance. */
START_TEST(a_hungry_leader_feeds_at_once_on_notify)
{
    int round = 0;
    int64_t told_us = 0;
    int64_t untold_us = 0;
    given_leader();
    do {
        ck_assert_msg(round++ < ROUNDS, "%lld us with NOTIFY, %lld us without", (long long)told_us,
                      (long long)untold_us);
        sql_run(fleet.sql, "ALTER TABLE claimd.job ENABLE TRIGGER job_inserted");
        told_us = feeding_us();
        sql_run(fleet.sql, "ALTER TABLE claimd.job DISABLE TRIGGER job_inserted");
        untold_us = feeding_us();
    } while (2 * told_us > untold_us);
}
END_TEST

START_TEST(a_delayed_job_is_fed_when_it_is_due)
{
    given_leader();
    int64_t id = sql_number(fleet.sql, "INSERT INTO claimd.job (kind, scheduled_at) VALUES ('noop',"
                                       " now() + interval '900 ms') RETURNING id");
    ck_assert(WAIT_UNTIL(is_fed(id), SOON_US));
    int64_t late_ms =
        sql_number(fleet.sql,
                   "SELECT (EXTRACT(EPOCH FROM clock_timestamp() - ready_at) * 1000)::int8"
                   " FROM claimd.job WHERE id = %lld",
                   (long long)id);
    ck_assert_int_ge(late_ms, 0);
    ck_assert_int_le(late_ms, 5000);
}
END_TEST

START_TEST(rows_with_past_times_are_fed_now)
{
    given_leader();
    sql_run(fleet.sql,
            "INSERT INTO claimd.job (kind, scheduled_at) SELECT 'noop',"
            " timestamptz '2001-01-01' + n * interval '1 day' FROM generate_series(1, 50) n");
    ck_assert(WAIT_UNTIL(hints_in("default") == 50, SOON_US));
}
END_TEST

/* redteam 1: when they are committed, all of them are behind the cursor. */
START_TEST(rows_of_a_long_transaction_behind_the_cursor_are_fed)
{
    enum { BEHIND = 20000 };
    given_leader();
    sql_run(fleet.sql, "SELECT pg_advisory_lock(1)"); /* held until it may commit */
    sql_send(other,
             "BEGIN; INSERT INTO claimd.job (kind) SELECT 'noop' FROM"
             " generate_series(1, %d); SELECT pg_advisory_lock(1); COMMIT",
             BEHIND);
    ck_assert(WAIT_UNTIL(sql_number(fleet.sql, "SELECT count(*) FROM pg_stat_activity"
                                               " WHERE wait_event = 'advisory'") == 1,
                         SOON_US));
    for (int i = 0; i < 5; i++) {
        fed_one();
    }
    ck_assert(drain_hints("default", 5));
    sql_run(fleet.sql, "SELECT pg_advisory_unlock(1)");
    sql_wait(other);
    ck_assert_msg(drain_hints("default", BEHIND), "%lld rows were never fed",
                  (long long)sql_number(fleet.sql, "SELECT count(*) FROM claimd.job"));
}
END_TEST

START_TEST(one_row_of_a_transaction_that_works_on_is_fed_after_its_commit)
{
    given_leader();
    sql_run(other, "BEGIN");
    int64_t id = sql_number(other, "INSERT INTO claimd.job (kind) VALUES ('noop') RETURNING id");
    sql_send(other, "SELECT pg_sleep(1.5)");
    fed_one();
    ck_assert(drain_hints("default", 1)); /* reading behind the cursor may push it once more */
    sql_wait(other);
    ck_assert(!is_fed(id));
    sql_run(other, "COMMIT");
    ck_assert(WAIT_UNTIL(is_fed(id), SOON_US));
}
END_TEST

/* Its latest notification is four ticks old when it reads it. */
START_TEST(rows_that_were_committed_while_the_leader_was_stopped_are_fed)
{
    given_leader();
    sql_run(other, "BEGIN; INSERT INTO claimd.job (kind) VALUES ('noop')");
    fed_one();
    (void)WAIT_UNTIL(false, 3 * TICK_US); /* it knows that a transaction is writing */
    fleet_signal(fleet.schedulers[0], SIGSTOP);
    sql_run(other, "COMMIT; BEGIN; INSERT INTO claimd.job (kind) VALUES ('noop')");
    (void)fleet_enqueue(&fleet, "noop", "{}", 1);
    sql_run(other, "COMMIT");
    (void)WAIT_UNTIL(false, 4 * TICK_US);
    fleet_signal(fleet.schedulers[0], SIGCONT);
    ck_assert(WAIT_UNTIL(hints_in("default") == 4, SOON_US));
}
END_TEST

/* They are late by less than the look-behind, so the feed finds them when it reads the recent rows
 * again. */
START_TEST(rows_that_commit_out_of_order_are_fed_at_once)
{
    given_leader();
    for (int i = 0; i < 10; i++) {
        sql_run(other, "BEGIN; INSERT INTO claimd.job (kind) VALUES ('noop')");
        fed_one();
        sql_run(other, "COMMIT");
        int64_t start_us = clock_boot_us();
        ck_assert(drain_hints("default", 2));
        ck_assert_int_lt(clock_boot_us() - start_us, 5 * US_PER_S);
    }
}
END_TEST

START_TEST(hints_are_bounded_by_look_ahead_and_filled_up)
{
    given_leader();
    (void)fleet_enqueue(&fleet, "noop", "{}", 20000);
    ck_assert(WAIT_UNTIL(hints_in("default") == 1000, SOON_US));
    ck_assert(drain_hints("default", 20000));
}
END_TEST

/* The hints are full of the other tenant's jobs, and no worker pops any. */
START_TEST(feat_B28_a_tenants_first_job_is_fed_ahead_of_anothers_thousand)
{
    given_leader();
    sql_run(fleet.sql, "INSERT INTO claimd.job (kind, share) SELECT 'noop', 1"
                       " FROM generate_series(1, 20000)");
    ck_assert(WAIT_UNTIL(hints_in("default") == 1000, SOON_US));
    int64_t id = sql_number(fleet.sql, "INSERT INTO claimd.job (kind, share) VALUES ('noop', 2)"
                                       " RETURNING id");
    ck_assert(WAIT_UNTIL(is_fed(id), SOON_US));
    char number[24];
    (void)snprintf(number, sizeof number, "%lld", (long long)id);
    ck_assert_int_lt(CLI(0, "ZRANK", PREFIX ":hints:default", number), 10);
}
END_TEST

START_TEST(rule2_a_kind_that_nobody_serves_is_fed_when_somebody_does)
{
    given_leader();
    (void)fleet_enqueue(&fleet, "other", "{}", 7);
    (void)fleet_enqueue(&fleet, "noop", "{}", 3);
    ck_assert(WAIT_UNTIL(hints_in("default") == 3, SOON_US));
    given_worker(2, "default", "noop,other");
    ck_assert(WAIT_UNTIL(hints_in("default:other") == 7, SOON_US));
    ck_assert_int_eq(hints_in("default"), 3);
}
END_TEST

START_TEST(a_queue_is_fed_again_when_its_pause_ends)
{
    given_leader();
    sql_run(fleet.sql, "INSERT INTO claimd.queue (name, paused) VALUES ('default', true)");
    ck_assert(WAIT_UNTIL(is_hungry(), SOON_US));
    int64_t id = fleet_enqueue(&fleet, "noop", "{}", 1);
    (void)WAIT_UNTIL(is_fed(id), 2 * TICK_US); /* at most one tick late: a pause is not instant */
    pop_hints("default", 10);
    ck_assert(!WAIT_UNTIL(is_fed(id), 3 * TICK_US));
    sql_run(fleet.sql, "UPDATE claimd.queue SET paused = false");
    ck_assert(WAIT_UNTIL(is_fed(id), SOON_US));
}
END_TEST

START_TEST(X1_after_flushall_the_hints_are_there_again)
{
    given_leader();
    (void)fleet_enqueue(&fleet, "noop", "{}", 100);
    ck_assert(WAIT_UNTIL(hints_in("default") == 100, SOON_US));
    int64_t start_us = clock_boot_us();
    for (size_t i = 0; i < fleet.options.masters; i++) {
        fleet_redis(&fleet, i, "FLUSHALL");
    }
    ck_assert(WAIT_UNTIL(hints_in("default") == 100, SOON_US));
    ck_assert_int_lt(clock_boot_us() - start_us, 5 * US_PER_S);
}
END_TEST

START_TEST(L9_a_job_that_waits_for_its_key_is_not_fed_again)
{
    given_leader();
    struct queued q = given_waiting();
    ck_assert(WAIT_UNTIL(is_fed(q.beside), SOON_US));
    ck_assert(!is_fed(q.waiting));
    for (size_t i = 0; i < fleet.options.masters; i++) {
        fleet_redis(&fleet, i, "FLUSHALL");
    }
    ck_assert(WAIT_UNTIL(is_fed(q.beside), SOON_US));
    ck_assert(!is_fed(q.waiting));
}
END_TEST

START_TEST(hints_of_a_node_that_died_are_fed_to_the_next)
{
    given_leader();
    (void)fleet_enqueue(&fleet, "noop", "{}", 100);
    ck_assert(WAIT_UNTIL(hints_in("default") == 100, SOON_US));
    redis_server_kill(&fleet.masters[0]);
    ck_assert(WAIT_UNTIL(CLI(1, "ZCARD", PREFIX ":hints:default") == 100, SOON_US));
}
END_TEST

START_TEST(W0_a_lost_pop_that_a_worker_reports_is_fed_again)
{
    given_leader();
    (void)fleet_enqueue(&fleet, "noop", "{}", 100);
    ck_assert(WAIT_UNTIL(hints_in("default") == 100, SOON_US));
    pop_hints("default", 60);
    sql_run(fleet.sql, "UPDATE claimd.worker SET lost_pops = lost_pops + 1");
    ck_assert(WAIT_UNTIL(hints_in("default") == 100, SOON_US));
}
END_TEST

/* Four hundred new tenants: all are found at once, not one per tick. */
START_TEST(lanes_that_are_new_are_all_found_at_once)
{
    given_leader();
    sql_run(fleet.sql,
            "INSERT INTO claimd.job (kind, priority, share) SELECT 'noop', n %% 10, n %% 40"
            " FROM generate_series(0, 199) n");
    ck_assert(WAIT_UNTIL(hints_in("default") == 200, SOON_US));
    int64_t start_us = clock_boot_us();
    sql_run(fleet.sql,
            "INSERT INTO claimd.job (kind, priority, share) SELECT 'noop', n %% 10, n / 10"
            " FROM generate_series(0, 399) n");
    ck_assert(WAIT_UNTIL(hints_in("default") == 600, SOON_US));
    ck_assert_msg(clock_boot_us() - start_us < 5 * US_PER_S, "360 lanes took %lld ms",
                  (long long)((clock_boot_us() - start_us) / US_PER_MS));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("scheduler feeds");
    TCase *c = tcase_create("feed");
    tcase_set_timeout(c, 120);
    tcase_add_unchecked_fixture(c, fleet_share_pg, fleet_unshare_pg);
    tcase_add_checked_fixture(c, setup, teardown);
    tcase_add_test(c, a_hungry_leader_feeds_at_once_on_notify);
    tcase_add_test(c, a_delayed_job_is_fed_when_it_is_due);
    tcase_add_test(c, rows_with_past_times_are_fed_now);
    tcase_add_test(c, rows_of_a_long_transaction_behind_the_cursor_are_fed);
    tcase_add_test(c, one_row_of_a_transaction_that_works_on_is_fed_after_its_commit);
    tcase_add_test(c, rows_that_were_committed_while_the_leader_was_stopped_are_fed);
    tcase_add_test(c, rows_that_commit_out_of_order_are_fed_at_once);
    tcase_add_test(c, hints_are_bounded_by_look_ahead_and_filled_up);
    tcase_add_test(c, feat_B28_a_tenants_first_job_is_fed_ahead_of_anothers_thousand);
    tcase_add_test(c, rule2_a_kind_that_nobody_serves_is_fed_when_somebody_does);
    tcase_add_test(c, a_queue_is_fed_again_when_its_pause_ends);
    tcase_add_test(c, X1_after_flushall_the_hints_are_there_again);
    tcase_add_test(c, L9_a_job_that_waits_for_its_key_is_not_fed_again);
    tcase_add_test(c, hints_of_a_node_that_died_are_fed_to_the_next);
    tcase_add_test(c, W0_a_lost_pop_that_a_worker_reports_is_fed_again);
    tcase_add_test(c, lanes_that_are_new_are_all_found_at_once);
    suite_add_tcase(suite, c);
    return suite_run(suite);
}
