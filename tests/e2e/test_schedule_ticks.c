/* SPDX-License-Identifier: Apache-2.0
 *
 * Three schedulers, whose leader dies at each tick of a schedule: there is one job per tick, none
 * is duplicated, and none is missing (feat A19). CLAIMD_SOAK=1: 60 ticks. */
#include "support/fleet.h"
#include "support/suite.h"

#include <check.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>

#define TICKS 20
#define SOAK_TICKS 60
#define EVERY_S 3 /* about as long as a change of the leader takes here */
#define SCHEDULERS 3

static struct fleet f;

static void setup(void)
{
    fleet_start(&f, &(struct fleet_options){.masters = 3});
    fleet_start_worker(&f, 0, NULL);
}

static void teardown(void)
{
    fleet_stop(&f);
}

static int64_t ticks_wanted(void)
{
    return getenv("CLAIMD_SOAK") != NULL ? SOAK_TICKS : TICKS; /* NOLINT(concurrency-mt-unsafe) */
}

/* Each one kills itself once it has fired a tick; every fourth one does so when it has requested
 * that and may not know the result, if that happens first. */
static void launch(size_t i, bool dies_asking)
{
    char probe[64];
    (void)snprintf(probe, sizeof probe, "CLAIMD_PROBE=%s", dies_asking ? "T1=kill:2" : "T2=kill");
    fleet_launch_scheduler(&f, i, (const char *const[]){probe, NULL});
}

/* True just before every other tick: then the leader dies before it fires the tick, and the next
 * leader is late. */
static bool is_before_a_tick(void)
{
    return sql_number(
               f.sql,
               "SELECT count(*) FROM claimd.schedule WHERE next_at - clock_timestamp() BETWEEN "
               "interval '0' AND interval '150 ms' AND EXTRACT(epoch FROM next_at)::int8 / %d "
               "%% 2 = 0",
               EVERY_S) > 0;
}

/* Finds the leader by the schedulers' own rows; a dead one may still be recorded as the leader. */
static bool kill_the_leader(void)
{
    pid_t leader =
        (pid_t)sql_number(f.sql, "SELECT COALESCE((SELECT pid FROM claimd.scheduler WHERE "
                                 "leader_since IS NOT NULL ORDER BY beat_at DESC LIMIT 1), "
                                 "0)");
    for (size_t i = 0; i < SCHEDULERS; i++) {
        if (leader > 0 && f.schedulers[i] == leader) {
            fleet_signal(leader, SIGKILL);
            (void)fleet_wait_end(&f, &f.schedulers[i]);
            launch(i, false);
            return true;
        }
    }
    return false;
}

static bool is_gone(size_t i)
{
    return f.schedulers[i] > 0 && waitpid(f.schedulers[i], NULL, WNOHANG) == f.schedulers[i];
}

/* Restarts the schedulers that have died; returns how many. */
static int replace_the_dead(int deaths)
{
    int died = 0;
    for (size_t i = 0; i < SCHEDULERS; i++) {
        if (is_gone(i)) {
            f.schedulers[i] = 0;
            died++;
            launch(i, (deaths + died) % 4 == 0);
        }
    }
    return died;
}

static int64_t ticks_fired(void)
{
    return sql_number(f.sql, "SELECT count(*) FROM claimd.schedule_fire");
}

static void end_them_all(void)
{
    for (size_t i = 0; i < SCHEDULERS; i++) {
        fleet_signal(f.schedulers[i], SIGKILL);
        (void)fleet_wait_end(&f, &f.schedulers[i]);
    }
}

START_TEST(A19_the_leader_dies_at_each_tick_and_each_tick_is_one_job)
{
    int64_t wanted = ticks_wanted();
    int deaths = 0;
    int killed = 0; /* number of `deaths` that left a tick undone */
    for (size_t i = 0; i < SCHEDULERS; i++) {
        launch(i, false);
    }
    sql_run(f.sql, "SELECT claimd.schedule_set('s', 'noop', 'every %ds')", EVERY_S);
    int64_t end_us = clock_boot_us() + wanted * EVERY_S * US_PER_S + SOON_US;
    while (ticks_fired() < wanted && clock_boot_us() < end_us) {
        int died = 0;
        bool is_before = false;
        (void)WAIT_UNTIL((died = replace_the_dead(deaths)) > 0 || ticks_fired() >= wanted ||
                             (is_before = is_before_a_tick()),
                         SOON_US);
        deaths += died;
        if (is_before && kill_the_leader()) {
            killed++;
            deaths++;
        }
    }
    sql_run(f.sql, "SELECT claimd.schedule_pause('s')");
    int64_t fired = ticks_fired();
    ck_assert_int_ge(fired, wanted);
    ck_assert_msg(deaths >= wanted / 2 && killed >= wanted / 8,
                  "%d deaths, %d before a tick, in %lld ticks", deaths, killed, (long long)fired);
    /* The ticks follow each other without a gap, and each has its own job. */
    ck_assert_int_eq(
        sql_number(f.sql,
                   "SELECT (EXTRACT(epoch FROM max(due_at) - min(due_at)) / %d + 1)::int8"
                   " FROM claimd.schedule_fire",
                   EVERY_S),
        fired);
    ck_assert_int_eq(sql_number(f.sql,
                                "SELECT count(DISTINCT job_id) FROM claimd.schedule_fire WHERE "
                                "outcome = 'fired'"),
                     fired);
    end_them_all();
    fleet_start_scheduler(&f, 0);
    fleet_wait_finished(&f, fired, "completed", SOON_US);
    ck_assert_int_eq(
        sql_number(f.sql, "SELECT count(DISTINCT scheduled_at) FROM claimd.job_history"), fired);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("schedule ticks");
    TCase *tc = tcase_create("ticks");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_set_timeout(tc, 560);
    tcase_add_test(tc, A19_the_leader_dies_at_each_tick_and_each_tick_is_one_job);
    suite_add_tcase(suite, tc);
    return suite_run(suite);
}
