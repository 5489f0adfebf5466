/* SPDX-License-Identifier: Apache-2.0
 *
 * The safety net of the feed, with a real scheduler: whatever put a due row behind the cursors, and
 * whatever was away meanwhile, the row is fed; and the scheduler ends when asked to. */
#include "scheduler_world.h"
#include "support/suite.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define TICK_US ((int64_t)(SCALE * US_PER_S))
#define FULL_PASSES "\"scheduler\": {\"full_pass_ms\": 2000}"
#define CPU_SHARE_MAX \
    20 /* percent: a busy loop takes a whole core, or half of one on a busy machine */

static struct sql *other; /* a second session */

static void setup(void)
{
    world_start(FULL_PASSES);
    other = sql_open(fleet.conninfo);
}

static void teardown(void)
{
    sql_close(other);
    world_stop();
}

static bool is_fed(int64_t id)
{
    return has_hint("default", id);
}

/* Counts each row once; a row that is gone may have left a hint behind. */
static bool is_fed_to(const char *queue, int64_t count)
{
    return rows_with_hints(queue) == count;
}

/* Starts a leader and waits until its cursor has passed every row. */
static void given_fed_leader(void)
{
    given_worker(1, "default,zz", "noop");
    start_leader(0);
    int64_t id = fleet_enqueue(&fleet, "noop", "{}", 10);
    ck_assert(WAIT_UNTIL(is_fed(id), SOON_US));
    ck_assert(drain_hints("default", 10));
}

static void must_end_in_good_order(void)
{
    fleet_signal(fleet.schedulers[0], SIGTERM);
    ck_assert_int_eq(fleet_wait_end(&fleet, &fleet.schedulers[0]), 0);
}

/* Returns the CPU time of the scheduler so far, in µs. */
static int64_t cpu_us(void)
{
    char path[64];
    unsigned long user = 0;
    unsigned long system = 0;
    (void)snprintf(path, sizeof path, "/proc/%d/stat", (int)fleet.schedulers[0]);
    FILE *f = fopen(path, "r");
    ck_assert_ptr_nonnull(f);
    int got =
        fscanf(f, "%*d %*s %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user, &system);
    (void)fclose(f);
    ck_assert_int_eq(got, 2);
    return (int64_t)(user + system) * US_PER_S / sysconf(_SC_CLK_TCK);
}

static void must_not_spin_for(int64_t us)
{
    int64_t start_us = clock_boot_us();
    int64_t cpu_start_us = cpu_us();
    (void)WAIT_UNTIL(false, us);
    int64_t share = 100 * (cpu_us() - cpu_start_us) / (clock_boot_us() - start_us);
    ck_assert_msg(share < CPU_SHARE_MAX, "%lld %% of a core while nothing could be fed",
                  (long long)share);
}

/* The job was running when the cursor passed it, and is given back by a statement that sends no
 * notification. */
START_TEST(rule13_a_row_that_comes_back_behind_the_cursor_is_fed_though_nobody_says_so)
{
    given_worker(1, "default,zz", "noop");
    int64_t id = given_running(1, "noop", 1);
    start_leader(0);
    int64_t later = fleet_enqueue(&fleet, "noop", "{}", 10);
    ck_assert(WAIT_UNTIL(is_fed(later), SOON_US));
    ck_assert(drain_hints("default", 10));
    (void)WAIT_UNTIL(false, 8 * TICK_US); /* long enough for any cursor to be saved past it */
    sql_run(fleet.sql, "UPDATE claimd.job SET state = 'available' WHERE state = 'running'");
    ck_assert(WAIT_UNTIL(is_fed(id), SOON_US));
}
END_TEST

START_TEST(rule13_a_new_leader_feeds_what_the_old_one_never_would_have)
{
    given_fed_leader();
    int64_t id = given_running(1, "noop", 1);
    int64_t later = fleet_enqueue(&fleet, "noop", "{}", 1);
    ck_assert(WAIT_UNTIL(is_fed(later), SOON_US));
    fleet_signal(fleet.schedulers[0], SIGKILL);
    ck_assert_int_eq(fleet_wait_end(&fleet, &fleet.schedulers[0]), 128 + SIGKILL);
    sql_run(fleet.sql, "UPDATE claimd.job SET state = 'available' WHERE state = 'running'");
    start_leader(1);
    ck_assert(WAIT_UNTIL(is_fed(id), SOON_US));
}
END_TEST

/* For the cursors, a clock that went back by a minute only means rows that are a minute older. */
START_TEST(rule13_rows_of_a_clock_that_went_back_are_fed)
{
    given_fed_leader();
    sql_run(fleet.sql, "INSERT INTO claimd.job (kind, created_at, scheduled_at) SELECT 'noop',"
                       " now() - interval '1 minute', now() - interval '1 minute'"
                       " FROM generate_series(1, 100)");
    ck_assert(WAIT_UNTIL(is_fed_to("default", 100), SOON_US));
}
END_TEST

START_TEST(X1_hints_that_vanish_one_by_one_are_fed_again)
{
    given_fed_leader();
    (void)fleet_enqueue(&fleet, "noop", "{}", 100);
    ck_assert(WAIT_UNTIL(is_fed_to("default", 100), SOON_US));
    pop_hints("default", 50); /* hints that a reader took and then lost */
    ck_assert(WAIT_UNTIL(is_fed_to("default", 100), SOON_US));
}
END_TEST

START_TEST(L9_the_full_pass_feeds_jobs_that_wait_for_a_key_only_if_that_is_free)
{
    given_fed_leader();
    struct queued q = given_waiting();
    ck_assert(WAIT_UNTIL(is_fed(q.beside), SOON_US));
    for (int i = 0; i < 2; i++) { /* the second time it is the full pass that feeds again */
        pop_hints("default", 1);
        ck_assert(WAIT_UNTIL(is_fed(q.beside), SOON_US));
        ck_assert(!is_fed(q.waiting));
    }
    sql_run(fleet.sql, "DELETE FROM claimd.job WHERE state = 'running'");
    ck_assert(WAIT_UNTIL(is_fed(q.waiting), SOON_US));
}
END_TEST

/* The transaction began and ended while no tick could find out which ones are writing. */
START_TEST(rows_of_a_transaction_that_ends_while_the_ticks_fail_are_fed)
{
    given_fed_leader();
    struct sql *locker = sql_open(fleet.conninfo);
    sql_run(other, "BEGIN; INSERT INTO claimd.job (kind) VALUES ('noop')");
    int64_t id = sql_number(other, "SELECT max(id) FROM claimd.job");
    int64_t later = fleet_enqueue(&fleet, "noop", "{}", 1);
    ck_assert(WAIT_UNTIL(is_fed(later), SOON_US));
    sql_run(locker, "BEGIN; LOCK TABLE claimd.worker IN ACCESS EXCLUSIVE MODE");
    ck_assert(WAIT_UNTIL(scheduler_said("event=cluster_poll_failed"), SOON_US));
    (void)WAIT_UNTIL(false, 10 * TICK_US);
    sql_run(other, "COMMIT");
    (void)WAIT_UNTIL(false, 2 * TICK_US);
    sql_run(locker, "COMMIT");
    ck_assert(WAIT_UNTIL(is_fed(id), SOON_US));
    ck_assert(WAIT_UNTIL(scheduler_said("event=cluster_poll_recovered"), SOON_US));
    sql_close(locker);
}
END_TEST

/* A producer that puts each row into its own queue delays no other queue. */
START_TEST(a_queue_that_sorts_after_thousands_of_unserved_ones_is_fed)
{
    given_fed_leader();
    sql_run(fleet.sql, "INSERT INTO claimd.job (kind, queue) SELECT 'noop', 'junk' || n"
                       " FROM generate_series(1, 33500) n");
    int64_t start_us = clock_boot_us();
    sql_run(fleet.sql, "INSERT INTO claimd.job (kind, queue) VALUES ('noop', 'zz')");
    ck_assert(WAIT_UNTIL(is_fed_to("zz", 1), SOON_US));
    ck_assert_int_lt(clock_boot_us() - start_us, 30 * US_PER_S);
    ck_assert(!scheduler_said("event=lanes_crowded"));
}
END_TEST

static void masters_away(int64_t us)
{
    masters_kill();
    int64_t id = fleet_enqueue(&fleet, "noop", "{}", 1);
    must_not_spin_for(us);
    masters_restart();
    ck_assert(WAIT_UNTIL(is_fed(id), SOON_US));
}

/* True if a recovery was logged without a failure since the lead was lost. Other recoveries are
 * correct: the first full pass of the new lead may fail as well. */
static bool counts_failures_before_the_lead(void)
{
    char path[SERVER_PATH_MAX + 64];
    char line[8192];
    bool has_failed = false;
    bool is_counted = false;
    (void)snprintf(path, sizeof path, "%s/claimd-scheduler-0.log", fleet.dir);
    FILE *f = fopen(path, "re");
    ck_assert_ptr_nonnull(f);
    while (fgets(line, sizeof line, f) != NULL) {
        if (strstr(line, "event=leader_lost") != NULL) {
            has_failed = false;
        } else if (strstr(line, "event=full_pass_failed") != NULL) {
            has_failed = true;
        } else if (strstr(line, "event=full_pass_recovered") != NULL) {
            is_counted = is_counted || !has_failed;
            has_failed = false;
        }
    }
    (void)fclose(f);
    return is_counted;
}

/* leader_lost has ended that series of failures. */
START_TEST(a_scheduler_that_leads_again_does_not_count_the_full_passes_that_failed_before)
{
    given_fed_leader();
    masters_kill();
    ck_assert(WAIT_UNTIL(scheduler_said("event=full_pass_failed"), SOON_US));
    ck_assert(WAIT_UNTIL(scheduler_said("event=leader_lost"), SOON_US));
    masters_restart();
    (void)fleet_enqueue(&fleet, "noop", "{}", 100);
    ck_assert(WAIT_UNTIL(is_fed_to("default", 100), SOON_US));
    pop_hints("default", 50); /* only a full pass can find out */
    ck_assert(WAIT_UNTIL(is_fed_to("default", 100), SOON_US));
    ck_assert(!counts_failures_before_the_lead());
}
END_TEST

START_TEST(a_leader_without_any_redis_for_3_s_does_not_spin_and_feeds_again)
{
    given_fed_leader();
    masters_away(3 * US_PER_S);
    must_end_in_good_order();
}
END_TEST

START_TEST(a_leader_without_postgresql_while_a_row_falls_due_does_not_spin_and_feeds_again)
{
    struct err err = {0};
    given_fed_leader();
    int64_t id = sql_number(fleet.sql, "INSERT INTO claimd.job (kind, scheduled_at) VALUES ('noop',"
                                       " now() + interval '1 s') RETURNING id");
    (void)WAIT_UNTIL(false, 2 * TICK_US); /* the leader has seen it */
    sql_close(other);
    sql_close(fleet.sql);
    pg_server_kill(&fleet.pg);
    must_not_spin_for(3 * US_PER_S);
    ck_assert_msg(pg_server_restart(&fleet.pg, &err) == STATUS_OK, "%s", err.msg);
    fleet.sql = sql_open(fleet.conninfo);
    other = sql_open(fleet.conninfo);
    ck_assert(WAIT_UNTIL(is_fed(id), SOON_US));
    must_end_in_good_order();
}
END_TEST

/* Another program has written a string under the key of a hint set. */
START_TEST(H3_a_key_of_another_type_in_place_of_the_hints_stops_nobody)
{
    given_fed_leader();
    for (size_t i = 0; i < fleet.options.masters; i++) {
        (void)CLI(i, "SET", PREFIX ":hints:default", "x");
    }
    int64_t id = fleet_enqueue(&fleet, "noop", "{}", 1);
    must_not_spin_for(2 * US_PER_S);
    ck_assert(WAIT_UNTIL(is_fed(id), SOON_US));
    must_end_in_good_order();
}
END_TEST

/* Redis refuses writes because it has no memory left. */
START_TEST(a_leader_whose_hints_are_refused_does_not_spin_and_feeds_when_they_are_taken)
{
    given_fed_leader();
    for (size_t i = 0; i < fleet.options.masters; i++) {
        (void)CLI(i, "CONFIG", "SET", "maxmemory", "1");
    }
    int64_t id = fleet_enqueue(&fleet, "noop", "{}", 2000);
    must_not_spin_for(3 * US_PER_S);
    for (size_t i = 0; i < fleet.options.masters; i++) {
        (void)CLI(i, "CONFIG", "SET", "maxmemory", "0");
    }
    ck_assert(WAIT_UNTIL(is_fed(id), SOON_US));
    must_end_in_good_order();
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("scheduler full pass");
    TCase *c = tcase_create("full pass");
    tcase_set_timeout(c, 120);
    tcase_add_unchecked_fixture(c, fleet_share_pg, fleet_unshare_pg);
    tcase_add_checked_fixture(c, setup, teardown);
    tcase_add_test(c, rule13_a_row_that_comes_back_behind_the_cursor_is_fed_though_nobody_says_so);
    tcase_add_test(c, rule13_a_new_leader_feeds_what_the_old_one_never_would_have);
    tcase_add_test(c, rule13_rows_of_a_clock_that_went_back_are_fed);
    tcase_add_test(c, X1_hints_that_vanish_one_by_one_are_fed_again);
    tcase_add_test(c, L9_the_full_pass_feeds_jobs_that_wait_for_a_key_only_if_that_is_free);
    tcase_add_test(c, rows_of_a_transaction_that_ends_while_the_ticks_fail_are_fed);
    tcase_add_test(c, a_queue_that_sorts_after_thousands_of_unserved_ones_is_fed);
    tcase_add_test(c, a_leader_without_any_redis_for_3_s_does_not_spin_and_feeds_again);
    tcase_add_test(c,
                   a_leader_without_postgresql_while_a_row_falls_due_does_not_spin_and_feeds_again);
    tcase_add_test(c, H3_a_key_of_another_type_in_place_of_the_hints_stops_nobody);
    tcase_add_test(c, a_leader_whose_hints_are_refused_does_not_spin_and_feeds_when_they_are_taken);
    tcase_add_test(c,
                   a_scheduler_that_leads_again_does_not_count_the_full_passes_that_failed_before);
    suite_add_tcase(suite, c);
    return suite_run(suite);
}
