/* SPDX-License-Identifier: Apache-2.0
 *
 * A real scheduler rescues jobs that no fresh death points to: found by the full pass, left by a
 * rescuer that died, or silent because PostgreSQL was away. */
#include "scheduler_world.h"
#include "support/suite.h"

#include <stdio.h>

#define CONFIG "\"scheduler\": {\"full_pass_ms\": 2000}"
#define TICK_US ((int64_t)(SCALE * US_PER_S))

static void setup(void)
{
    world_start(CONFIG);
    given_worker(1, "default", "noop");
    given_worker(2, "default", "noop");
}

static void teardown(void)
{
    world_stop();
}

static bool is_available(int64_t id)
{
    return sql_number(fleet.sql,
                      "SELECT count(*) FROM claimd.job WHERE id = %lld AND state = 'available'",
                      (long long)id) == 1;
}

static bool is_dead(int n)
{
    return sql_number(fleet.sql,
                      "SELECT count(*) FROM claimd.worker WHERE worker_id = '%s' AND dead",
                      worker_uuid(n)) == 1;
}

START_TEST(the_full_pass_finds_what_runs_under_an_unknown_worker)
{
    int64_t id = given_running(7, "noop", 1);
    start_leader(0);
    ck_assert(WAIT_UNTIL(is_available(id), SOON_US));
}
END_TEST

/* For instance, the reply of its claim was lost and the worker forgot the job. */
START_TEST(the_full_pass_finds_what_a_live_worker_does_not_know_of)
{
    int64_t held = given_running(1, "noop", 1);
    int64_t unknown = given_running(1, "noop", 1);
    sql_run(fleet.sql, "UPDATE claimd.job SET attempted_at = now() - interval '1 hour'");
    sql_run(fleet.sql,
            "UPDATE claimd.worker SET held_fences = (SELECT array_agg(fence) FROM claimd.job"
            " WHERE id = %lld)",
            (long long)held);
    start_leader(0);
    ck_assert(WAIT_UNTIL(is_available(unknown), SOON_US));
    ck_assert(!is_available(held));
}
END_TEST

START_TEST(R1_a_rescuer_that_died_with_the_leases_only_delays)
{
    int64_t id = given_running(1, "noop", 1);
    start_dying(0, "R1");
    heartbeat_is_stale(1);
    await_death(0);
    ck_assert(!is_available(id));
    ck_assert_int_gt(fleet_lock_keys(&fleet), 0);
    start_leader(1);
    ck_assert(WAIT_UNTIL(is_available(id), SOON_US));
    ck_assert_int_eq(sql_number(fleet.sql, "SELECT attempt FROM claimd.job"), 1);
}
END_TEST

START_TEST(R2_a_rescuer_that_died_before_it_pushed_leaves_it_to_the_feed)
{
    int64_t id = given_running(1, "noop", 1);
    start_dying(0, "R2");
    heartbeat_is_stale(1);
    await_death(0);
    ck_assert(is_available(id));
    start_leader(1);
    ck_assert(WAIT_UNTIL(hints_in("default") == 1, SOON_US));
}
END_TEST

/* An outage of PostgreSQL must not look like the death of all workers. */
START_TEST(silence_counts_only_while_postgresql_was_there)
{
    int64_t id = given_running(1, "noop", 1);
    start_leader(0);
    /* The heartbeat goes stale while no scheduler can read it. */
    sql_run(fleet.sql, "UPDATE claimd.worker SET stale_at = clock_timestamp() + interval '300 ms'");
    sql_close(fleet.sql);
    pg_server_kill(&fleet.pg);
    struct err err = {0};
    ck_assert_int_eq(pg_server_restart(&fleet.pg, &err), STATUS_OK);
    fleet.sql = sql_open(fleet.conninfo);
    int64_t start_us = clock_boot_us();
    ck_assert(WAIT_UNTIL(is_dead(1), SOON_US));
    ck_assert_int_ge(clock_boot_us() - start_us, 6 * TICK_US); /* stale after 8 */
    ck_assert(WAIT_UNTIL(is_available(id), SOON_US));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("scheduler audits");
    TCase *c = tcase_create("audit");
    tcase_set_timeout(c, 120);
    tcase_add_unchecked_fixture(c, fleet_share_pg, fleet_unshare_pg);
    tcase_add_checked_fixture(c, setup, teardown);
    tcase_add_test(c, the_full_pass_finds_what_runs_under_an_unknown_worker);
    tcase_add_test(c, the_full_pass_finds_what_a_live_worker_does_not_know_of);
    tcase_add_test(c, R1_a_rescuer_that_died_with_the_leases_only_delays);
    tcase_add_test(c, R2_a_rescuer_that_died_before_it_pushed_leaves_it_to_the_feed);
    tcase_add_test(c, silence_counts_only_while_postgresql_was_there);
    suite_add_tcase(suite, c);
    return suite_run(suite);
}
