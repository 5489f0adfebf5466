/* SPDX-License-Identifier: Apache-2.0
 *
 * PostgreSQL's clock moves by days (crash.X2): the history has a day for every job that ends, and
 * no day is dropped that must still be kept. */
#include "scheduler_world.h"
#include "support/suite.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#define DAY_US (86400 * US_PER_S)
#define STEP_LIMIT_US (120 * US_PER_S)

static char dir[SERVER_PATH_MAX];
static char preload[SERVER_PATH_MAX + 32];
static char clock_file[SERVER_PATH_MAX + 32];
static const char *const pg_env[] = {preload, clock_file, NULL};

static void step_clock_to(int64_t offset_us)
{
    autoclose int fd = open(strchr(clock_file, '=') + 1, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(pwrite(fd, &offset_us, sizeof offset_us, 0), sizeof offset_us);
}

/* The library that fakes the clock is copied to where the server's user can read it. */
static void setup(void)
{
    struct err err = {0};
    autobuf struct buf out = BUF_INIT(4096);
    int code = -1;
    ck_assert_int_eq(dir_make(dir, sizeof dir, &err), STATUS_OK);
    (void)snprintf(preload, sizeof preload, "LD_PRELOAD=%s/shim.so", dir);
    (void)snprintf(clock_file, sizeof clock_file, "CLOCK_SHIM_FILE=%s/clock", dir);
    const char *const argv[] = {"cp", CLOCK_SHIM, strchr(preload, '=') + 1, NULL};
    ck_assert_int_eq(program_run(argv, NULL, STEP_LIMIT_US, &out, &code, &err), STATUS_OK);
    ck_assert_int_eq(code, 0);
    step_clock_to(0);
    fleet_start(&fleet, &(struct fleet_options){.masters = 3,
                                                .time_scale = SCALE,
                                                .more = "\"scheduler\": {\"history_days\": 14}",
                                                .pg_env = pg_env});
    given_worker(1, "default", "noop");
}

static void teardown(void)
{
    world_stop();
    dir_remove(dir);
}

static bool said(const char *text)
{
    return fleet_log_count(&fleet, "claimd-scheduler", 0, text) > 0;
}

static bool has_dropped(int days_ago)
{
    return sql_number(
               fleet.sql,
               "SELECT (to_regclass('claimd.job_history_' || to_char(to_timestamp(%lld) AT TIME"
               " ZONE 'UTC', 'YYYYMMDD')) IS NULL)::int",
               (long long)((clock_wall_us() - days_ago * DAY_US) / US_PER_S)) == 1;
}

/* True if a job can end now, by PostgreSQL's clock. */
static bool can_end(void)
{
    int64_t id = fleet_enqueue(&fleet, "noop", "{}", 1);
    const char *why = sql_refusal(fleet.sql, "SELECT claimd.cancel(%lld)", (long long)id);
    ck_assert_msg(why[0] == '\0' || strncmp(why, "23514", 5) == 0, "%s", why); /* no partition */
    return why[0] == '\0';
}

/* Waits until the leader has checked the days once: it has dropped one that is old by any clock. */
static void start_leader_that_has_looked(void)
{
    given_past_day(20);
    start_leader(0);
    ck_assert(WAIT_UNTIL(has_dropped(20), STEP_LIMIT_US));
}

static bool is_indexing(void)
{
    return sql_number(fleet.sql, "SELECT count(*) FROM pg_stat_activity WHERE application_name = "
                                 "'claimd-scheduler history' AND query LIKE 'CREATE INDEX CONC%%'"
                                 " AND wait_event_type = 'Lock'") > 0;
}

START_TEST(X2_jobs_end_within_seconds_after_the_clock_was_stepped_by_days)
{
    start_leader_that_has_looked();
    ck_assert(can_end());
    step_clock_to(30 * DAY_US);
    ck_assert(WAIT_UNTIL(can_end(), STEP_LIMIT_US));
    step_clock_to(-30 * DAY_US);
    ck_assert(WAIT_UNTIL(can_end(), STEP_LIMIT_US));
}
END_TEST

START_TEST(X2_days_are_made_beside_an_index_that_waits_for_a_transaction)
{
    struct sql *reader = sql_open(fleet.conninfo);
    given_past_day(3);
    sql_run(reader, "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM claimd.job");
    start_leader(0);
    ck_assert(WAIT_UNTIL(is_indexing(), STEP_LIMIT_US));
    step_clock_to(30 * DAY_US);
    ck_assert(WAIT_UNTIL(can_end(), STEP_LIMIT_US));
    ck_assert(is_indexing());
    sql_close(reader);
}
END_TEST

START_TEST(X2_a_day_that_somebody_dropped_is_made_again_within_seconds)
{
    start_leader_that_has_looked();
    sql_run(fleet.sql, "DO $$ BEGIN EXECUTE 'DROP TABLE claimd.job_history_' || "
                       "to_char(clock_timestamp() AT TIME ZONE 'UTC', 'YYYYMMDD'); END $$");
    ck_assert(WAIT_UNTIL(can_end(), STEP_LIMIT_US));
}
END_TEST

START_TEST(X2_a_leader_that_starts_with_a_clock_400_days_ahead_deletes_nothing)
{
    given_past_day(2);
    given_past_day(5);
    step_clock_to(400 * DAY_US);
    start_leader(0);
    ck_assert(WAIT_UNTIL(said("event=history_held"), STEP_LIMIT_US));
    ck_assert(WAIT_UNTIL(can_end(), STEP_LIMIT_US));
    ck_assert(!has_dropped(2) && !has_dropped(5));
    sql_run(fleet.sql, "SELECT claimd.trust_clock()");
    ck_assert(WAIT_UNTIL(has_dropped(2) && has_dropped(5), STEP_LIMIT_US));
    ck_assert(said("event=history_released"));
}
END_TEST

START_TEST(X2_a_clock_that_steps_ahead_beneath_a_leader_deletes_nothing)
{
    given_past_day(2);
    start_leader_that_has_looked();
    ck_assert(!said("event=history_held"));
    step_clock_to(20 * DAY_US);
    ck_assert(WAIT_UNTIL(said("event=history_held"), STEP_LIMIT_US));
    ck_assert(!has_dropped(2));
}
END_TEST

/* The leader that made the days died before it had checked the clock. */
START_TEST(X2_what_ends_by_a_clock_that_has_gone_back_is_kept_when_that_is_right_again)
{
    start_leader_that_has_looked();
    fleet_signal(fleet.schedulers[0], SIGKILL);
    await_death(0);
    step_clock_to(-26 * DAY_US);
    sql_run(fleet.sql, "SELECT claimd.ensure_days()");
    ck_assert(can_end());
    step_clock_to(0);
    start_leader(0);
    ck_assert(WAIT_UNTIL(said("event=history_held"), STEP_LIMIT_US));
    ck_assert(!has_dropped(26));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("scheduler clock");
    TCase *c = tcase_create("clock");
    tcase_set_timeout(c, 240);
    tcase_add_checked_fixture(c, setup, teardown);
    tcase_add_test(c, X2_jobs_end_within_seconds_after_the_clock_was_stepped_by_days);
    tcase_add_test(c, X2_days_are_made_beside_an_index_that_waits_for_a_transaction);
    tcase_add_test(c, X2_a_day_that_somebody_dropped_is_made_again_within_seconds);
    tcase_add_test(c, X2_a_leader_that_starts_with_a_clock_400_days_ahead_deletes_nothing);
    tcase_add_test(c, X2_a_clock_that_steps_ahead_beneath_a_leader_deletes_nothing);
    tcase_add_test(c, X2_what_ends_by_a_clock_that_has_gone_back_is_kept_when_that_is_right_again);
    suite_add_tcase(suite, c);
    return suite_run(suite);
}
