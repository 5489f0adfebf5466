/* SPDX-License-Identifier: Apache-2.0
 *
 * A real scheduler rescues jobs: on two witnesses, never on one (ARCHITECTURE §6). Workers are rows
 * here, and their leases are keys that the test holds. */
#include "scheduler_world.h"
#include "support/suite.h"

#include <stdio.h>

#define TICK_US ((int64_t)(SCALE * US_PER_S))
#define HOLD_MS 60000

static struct sql *other;

static void setup(void)
{
    world_start(NULL);
    other = sql_open(fleet.conninfo);
    given_worker(1, "default", "noop");
    given_worker(2, "default", "noop");
}

static void teardown(void)
{
    sql_close(other);
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

static bool is_swept(int n)
{
    return sql_number(
               fleet.sql,
               "SELECT count(*) FROM claimd.worker WHERE worker_id = '%s' AND dead AND stopped",
               worker_uuid(n)) == 1;
}

static bool is_finished(int64_t id, const char *error)
{
    return sql_number(
               fleet.sql,
               "SELECT count(*) FROM claimd.job_history WHERE id = %lld AND state = 'discarded'"
               " AND error LIKE '%s%%'",
               (long long)id, error) == 1;
}

START_TEST(W6_a_dead_workers_jobs_are_available_again_and_hinted)
{
    int64_t id = given_running(1, "noop", 1);
    int64_t living = given_running(2, "noop", 1);
    lock_job(living, HOLD_MS);
    start_leader(0);
    heartbeat_is_stale(1);
    ck_assert(WAIT_UNTIL(is_available(id), SOON_US));
    ck_assert(WAIT_UNTIL(hints_in("default") == 1, SOON_US));
    ck_assert(WAIT_UNTIL(is_swept(1), SOON_US));
    ck_assert(!is_available(living));
    ck_assert(!is_dead(2));
    ck_assert_int_eq(fleet_lock_keys(&fleet),
                     3); /* the live worker's; the rescuer has released its own */
}
END_TEST

START_TEST(X2_a_worker_that_died_before_the_clock_went_back_is_stale_after_its_usual_time)
{
    int64_t id = given_running(1, "noop", 1);
    sql_run(fleet.sql,
            "UPDATE claimd.worker SET beat_at = now() + interval '1 h',"
            " stale_at = now() + interval '1 h 2 s', held_fences = ARRAY(SELECT fence FROM"
            " claimd.job) WHERE worker_id = '%s'",
            worker_uuid(1));
    start_leader(0);
    ck_assert(WAIT_UNTIL(is_dead(1), SOON_US));
    ck_assert(WAIT_UNTIL(is_available(id), SOON_US));
    ck_assert(!is_dead(2));
}
END_TEST

START_TEST(rule3_death_of_a_worker_charges_the_attempt_and_no_crash)
{
    int64_t id = given_running(1, "noop", 3);
    start_leader(0);
    heartbeat_is_stale(1);
    ck_assert(WAIT_UNTIL(is_available(id), SOON_US));
    ck_assert_int_eq(sql_number(fleet.sql, "SELECT attempt * 10 + crashes FROM claimd.job"), 30);
    ck_assert_int_eq(sql_number(fleet.sql,
                                "SELECT count(*) FROM claimd.job_attempt WHERE job_id = %lld AND"
                                " outcome = 'lost' AND attempt = 3",
                                (long long)id),
                     1);
}
END_TEST

START_TEST(a_job_whose_lease_stands_is_moved_when_it_is_gone)
{
    int64_t id = given_running(1, "noop", 1);
    lock_job(id, HOLD_MS);
    start_leader(0);
    heartbeat_is_stale(1);
    ck_assert(WAIT_UNTIL(is_dead(1), SOON_US));
    ck_assert(!WAIT_UNTIL(is_available(id), 4 * TICK_US));
    ck_assert(!is_swept(1));
    unlock_job(id);
    ck_assert(WAIT_UNTIL(is_available(id), SOON_US));
}
END_TEST

START_TEST(a_job_without_a_lease_stays_while_its_workers_heartbeat_is_fresh)
{
    int64_t id = given_running(1, "noop", 1);
    start_leader(0);
    ck_assert(!WAIT_UNTIL(is_available(id), 6 * TICK_US));
}
END_TEST

START_TEST(S10_a_job_that_may_start_only_once_ends_as_lost)
{
    sql_run(fleet.sql, "INSERT INTO claimd.kind (name, at_most_once) VALUES ('noop', true)");
    int64_t id = given_running(1, "noop", 1);
    start_leader(0);
    heartbeat_is_stale(1);
    ck_assert(WAIT_UNTIL(is_finished(id, "lost"), SOON_US));
    ck_assert_int_eq(hints_in("default"), 0);
}
END_TEST

START_TEST(lock_G5_S7_a_job_without_attempts_left_is_discarded)
{
    int64_t id = given_running(1, "noop", 25);
    start_leader(0);
    heartbeat_is_stale(1);
    ck_assert(WAIT_UNTIL(is_finished(id, "its worker died"), SOON_US));
}
END_TEST

START_TEST(rule4_a_locked_row_holds_up_no_other_and_is_moved_later)
{
    int64_t locked = given_running(1, "noop", 1);
    int64_t id = given_running(1, "noop", 1);
    start_leader(0);
    sql_run(other, "BEGIN; SELECT FROM claimd.job WHERE id = %lld FOR UPDATE", (long long)locked);
    heartbeat_is_stale(1);
    ck_assert(WAIT_UNTIL(is_available(id), SOON_US));
    ck_assert(!is_available(locked));
    sql_run(other, "ROLLBACK");
    ck_assert(WAIT_UNTIL(is_available(locked), SOON_US));
}
END_TEST

START_TEST(many_jobs_of_a_dead_worker_are_all_moved)
{
    sql_run(fleet.sql,
            "INSERT INTO claimd.job (kind, state, attempt, worker_id, fence) SELECT 'noop',"
            " 'running', 1, '%s', nextval('claimd.fence') FROM generate_series(1, 3000)",
            worker_uuid(1));
    start_leader(0);
    heartbeat_is_stale(1);
    ck_assert(WAIT_UNTIL(is_swept(1), SOON_US));
    ck_assert_int_eq(
        sql_number(fleet.sql, "SELECT count(*) FROM claimd.job WHERE state = 'available'"), 3000);
    ck_assert(WAIT_UNTIL(hints_in("default") == 3000, SOON_US));
}
END_TEST

/* The operator's trigger refuses this job in the history, always. */
START_TEST(a_job_that_can_not_be_recorded_holds_up_no_other_rescue)
{
    sql_run(fleet.sql,
            "INSERT INTO claimd.job (kind, state, attempt, worker_id, fence, args) SELECT 'noop',"
            " 'running', 25, '%s', nextval('claimd.fence'), jsonb_build_object('n', n)"
            " FROM generate_series(1, 300) n",
            worker_uuid(1));
    sql_run(fleet.sql,
            "CREATE FUNCTION claimd.refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
            " IF NEW.args->>'n' = '123' THEN RAISE 'never'; END IF;"
            " RETURN NEW; END $$");
    sql_run(fleet.sql, "CREATE TRIGGER refuse BEFORE INSERT ON claimd.job_history FOR EACH ROW"
                       " EXECUTE FUNCTION claimd.refuse()");
    start_leader(0);
    heartbeat_is_stale(1);
    ck_assert(WAIT_UNTIL(sql_number(fleet.sql, "SELECT count(*) FROM claimd.job_history") == 299,
                         SOON_US));
    ck_assert_int_eq(
        sql_number(fleet.sql, "SELECT count(*) FROM claimd.job WHERE args->>'n' = '123'"), 1);
}
END_TEST

/* leader_lost has ended that series of failures. */
START_TEST(a_scheduler_that_leads_again_does_not_count_the_rescues_that_failed_before)
{
    (void)given_running(1, "noop", 25);
    sql_run(fleet.sql, "CREATE FUNCTION claimd.refuse() RETURNS trigger LANGUAGE plpgsql AS $$"
                       " BEGIN RAISE 'never'; END $$");
    sql_run(fleet.sql, "CREATE TRIGGER refuse BEFORE INSERT ON claimd.job_history FOR EACH ROW"
                       " EXECUTE FUNCTION claimd.refuse()");
    start_leader(0);
    heartbeat_is_stale(1);
    ck_assert(WAIT_UNTIL(scheduler_said("event=rescue_failed"), SOON_US));
    masters_kill();
    ck_assert(WAIT_UNTIL(scheduler_said("event=leader_lost"), SOON_US));
    sql_run(fleet.sql, "DROP TRIGGER refuse ON claimd.job_history");
    masters_restart();
    ck_assert(WAIT_UNTIL(scheduler_said("event=rescued"), SOON_US));
    ck_assert(!scheduler_said("event=rescue_recovered"));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("scheduler rescues");
    TCase *c = tcase_create("rescue");
    tcase_set_timeout(c, 120);
    tcase_add_unchecked_fixture(c, fleet_share_pg, fleet_unshare_pg);
    tcase_add_checked_fixture(c, setup, teardown);
    tcase_add_test(c, W6_a_dead_workers_jobs_are_available_again_and_hinted);
    tcase_add_test(c,
                   X2_a_worker_that_died_before_the_clock_went_back_is_stale_after_its_usual_time);
    tcase_add_test(c, rule3_death_of_a_worker_charges_the_attempt_and_no_crash);
    tcase_add_test(c, a_job_whose_lease_stands_is_moved_when_it_is_gone);
    tcase_add_test(c, a_job_without_a_lease_stays_while_its_workers_heartbeat_is_fresh);
    tcase_add_test(c, S10_a_job_that_may_start_only_once_ends_as_lost);
    tcase_add_test(c, lock_G5_S7_a_job_without_attempts_left_is_discarded);
    tcase_add_test(c, rule4_a_locked_row_holds_up_no_other_and_is_moved_later);
    tcase_add_test(c, many_jobs_of_a_dead_worker_are_all_moved);
    tcase_add_test(c, a_job_that_can_not_be_recorded_holds_up_no_other_rescue);
    tcase_add_test(c, a_scheduler_that_leads_again_does_not_count_the_rescues_that_failed_before);
    suite_add_tcase(suite, c);
    return suite_run(suite);
}
