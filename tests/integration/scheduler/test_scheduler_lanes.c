/* SPDX-License-Identifier: Apache-2.0
 *
 * More lanes than the feed has room for, and lanes that no worker serves: neither starves a queue
 * that has a worker (inv.L1). There are no full passes here, so each row must be found by the
 * feed. */
#include "scheduler_world.h"
#include "support/suite.h"

#include <stdio.h>

#define NO_FULL_PASS "\"scheduler\": {\"full_pass_ms\": 3600000, \"look_ahead\": 1000}"
#define SHARES 12000 /* of each of three priorities: more than the feed can hold lanes */
#define FED_US (20 * US_PER_S)

static void setup(void)
{
    world_start(NO_FULL_PASS);
}

static void teardown(void)
{
    world_stop();
}

static void given_flood(int first_share, int shares)
{
    sql_run(fleet.sql,
            "INSERT INTO claimd.job (kind, queue, priority, share) SELECT 'noop', 'flood', p, s"
            " FROM generate_series(3, 5) p, generate_series(%d, %d) s",
            first_share, first_share + shares - 1);
}

static bool said(const char *text)
{
    return fleet_log_count(&fleet, "claimd-scheduler", 0, text) > 0;
}

/* True if a job in an unknown lane gets its hint. */
static bool is_fed(const char *queue)
{
    int64_t id = sql_number(fleet.sql,
                            "INSERT INTO claimd.job (kind, queue, priority, share) VALUES ('noop',"
                            " '%s', 8, 16000) RETURNING id",
                            queue);
    return WAIT_UNTIL(has_hint(queue, id), FED_US);
}

START_TEST(L1_a_queue_with_more_lanes_than_there_is_room_for_does_not_starve_others)
{
    given_worker(1, "flood", "noop");
    given_worker(2, "a,b", "noop");
    given_flood(1, SHARES);
    start_leader(0);
    ck_assert(WAIT_UNTIL(said("event=lanes_crowded"), SOON_US));
    ck_assert(is_fed("a"));
    ck_assert(is_fed("b"));
    ck_assert(said("event=laps_begun"));
}
END_TEST

/* Adds more waiting jobs of a tenant than a lap reads, and behind them one that does not wait. */
static int64_t given_job_behind_those_that_wait_for_their_key(void)
{
    sql_run(
        fleet.sql,
        "INSERT INTO claimd.job (kind, queue, priority, share, flags, exclusive_key, scheduled_at) "
        "SELECT 'noop', 'flood', 7, 9, 2, 'key', now() - interval '1 hour' FROM "
        "generate_series(1, 100);"
        "INSERT INTO claimd.key_waiting (key, priority, ready_at, job_id) SELECT exclusive_key,"
        " priority, ready_at, id FROM claimd.job WHERE exclusive_key = 'key'");
    return sql_number(fleet.sql, "INSERT INTO claimd.job (kind, queue, priority, share) VALUES "
                                 "('noop', 'flood', 7, 9) RETURNING id");
}

START_TEST(L1_jobs_that_wait_for_their_key_do_not_stand_before_others_in_a_lap)
{
    given_worker(1, "flood", "noop");
    given_flood(1, SHARES);
    start_leader(0);
    ck_assert(WAIT_UNTIL(said("event=laps_begun"), SOON_US));
    int64_t id = given_job_behind_those_that_wait_for_their_key();
    ck_assert(WAIT_UNTIL(has_hint("flood", id), FED_US));
    ck_assert(
        WAIT_UNTIL(sql_number(fleet.sql, "SELECT count(*) FROM claimd.scheduler WHERE lap_queue "
                                         "= 'flood' AND lanes > 0 AND lap_us > 0") == 1,
                   SOON_US));
}
END_TEST

START_TEST(L1_every_tenant_of_a_queue_that_is_walked_in_laps_is_fed)
{
    given_worker(1, "flood", "noop");
    given_flood(1, SHARES);
    sql_run(fleet.sql, "INSERT INTO claimd.job (kind, queue, share) SELECT 'noop', 'flood', 7 "
                       "FROM generate_series(1, 100)");
    start_leader(0);
    ck_assert(WAIT_UNTIL(said("event=laps_begun"), SOON_US));
    ck_assert(drain_hints("flood", 3 * SHARES + 100));
    ck_assert(WAIT_UNTIL(said("event=laps_ended"), SOON_US));
    ck_assert(is_fed("flood"));
}
END_TEST

START_TEST(L1_thousands_of_queues_that_nobody_serves_hold_up_no_new_lane)
{
    given_worker(1, "default", "noop");
    sql_run(fleet.sql, "INSERT INTO claimd.job (kind, queue, priority) SELECT 'noop', 'junk' || n,"
                       " n %% 10 FROM generate_series(1, 15000) n");
    start_leader(0);
    (void)fleet_enqueue(&fleet, "noop", "{}", 1);
    ck_assert(WAIT_UNTIL(hints_in("default") == 1, SOON_US));
    int64_t start_us = clock_boot_us();
    ck_assert(is_fed("default"));
    ck_assert_msg(clock_boot_us() - start_us < 5 * US_PER_S, "it took %lld ms",
                  (long long)((clock_boot_us() - start_us) / US_PER_MS));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("scheduler lanes");
    TCase *c = tcase_create("lanes");
    tcase_set_timeout(c, 280);
    tcase_add_unchecked_fixture(c, fleet_share_pg, fleet_unshare_pg);
    tcase_add_checked_fixture(c, setup, teardown);
    tcase_add_test(c, L1_a_queue_with_more_lanes_than_there_is_room_for_does_not_starve_others);
    tcase_add_test(c, L1_every_tenant_of_a_queue_that_is_walked_in_laps_is_fed);
    tcase_add_test(c, L1_jobs_that_wait_for_their_key_do_not_stand_before_others_in_a_lap);
    tcase_add_test(c, L1_thousands_of_queues_that_nobody_serves_hold_up_no_new_lane);
    suite_add_tcase(suite, c);
    return suite_run(suite);
}
