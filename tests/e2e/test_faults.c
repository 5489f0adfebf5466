/* SPDX-License-Identifier: Apache-2.0
 *
 * Faults of the servers and processes around a job: pauses, deaths, lost memory. */
#include "support/fleet.h"
#include "support/suite.h"

#include <check.h>
#include <signal.h>
#include <stdio.h>

#define SCALE 0.25

static struct fleet f;

static int64_t ledger_job(int ms, int count)
{
    char args[SERVER_PATH_MAX + 64];
    char path[SERVER_PATH_MAX];
    fleet_ledger_path(&f, path, sizeof path);
    (void)snprintf(args, sizeof args, "{\"path\": \"%s\", \"ms\": %d}", path, ms);
    return fleet_enqueue(&f, "ledger", args, count);
}

static bool is_state(int64_t id, const char *state)
{
    return sql_number(f.sql, "SELECT count(*) FROM claimd.jobs WHERE id = %lld AND state = '%s'",
                      (long long)id, state) == 1;
}

static int64_t running(void)
{
    return sql_number(f.sql, "SELECT count(*) FROM claimd.job WHERE state = 'running'");
}

static void setup(void)
{
    fleet_start(&f, &(struct fleet_options){.time_scale = SCALE});
    fleet_start_scheduler(&f, 0);
}

static void teardown(void)
{
    fleet_stop(&f);
}

START_TEST(lock_F3_A3_a_paused_worker_was_rescued_and_its_late_result_is_refused)
{
    fleet_start_worker(&f, 0, NULL);
    int64_t id = ledger_job(300, 1);
    ck_assert(
        WAIT_UNTIL(is_state(id, "running") && fleet_ledger_count(&f, " start") == 1, SOON_US));
    fleet_signal(f.workers[0], SIGSTOP);
    fleet_start_worker(&f, 1, NULL);
    ck_assert(WAIT_UNTIL(is_state(id, "completed"), SOON_US));
    ck_assert_int_eq(
        sql_number(f.sql, "SELECT attempt FROM claimd.job_history WHERE id = %lld", (long long)id),
        2);
    fleet_signal(f.workers[0], SIGCONT);
    ck_assert(WAIT_UNTIL(fleet_log_count(&f, "claimd-worker", 0, "verdict=stale") == 1, SOON_US));
    ck_assert_int_eq(
        sql_number(f.sql, "SELECT attempt FROM claimd.job_history WHERE id = %lld", (long long)id),
        2);
}
END_TEST

START_TEST(A4_the_runner_of_a_paused_worker_ends_itself)
{
    fleet_start_worker(&f, 0, NULL);
    int64_t id = ledger_job(60000, 1);
    ck_assert(WAIT_UNTIL(fleet_ledger_count(&f, " start") == 1, SOON_US));
    fleet_signal(f.workers[0], SIGSTOP);
    fleet_start_worker(&f, 1, NULL);
    ck_assert(WAIT_UNTIL(fleet_ledger_count(&f, " start") == 2, SOON_US));
    fleet_signal(f.workers[0], SIGCONT);
    ck_assert(WAIT_UNTIL(fleet_log_count(&f, "claimd-worker", 0, "verdict=stale") == 1, SOON_US));
    ck_assert_int_eq(fleet_ledger_count(&f, " end"), 0);
    ck_assert(is_state(id, "running"));
}
END_TEST

START_TEST(lock_F3_a_handler_that_ended_before_danger_is_accepted_when_nobody_rescued_it)
{
    fleet_start_worker(&f, 0, NULL);
    int64_t id = ledger_job(300, 1);
    ck_assert(WAIT_UNTIL(fleet_ledger_count(&f, " start") == 1, SOON_US));
    fleet_signal(f.schedulers[0], SIGSTOP); /* so that there is no rescue */
    fleet_signal(f.workers[0], SIGSTOP);
    ck_assert(WAIT_UNTIL(
        sql_number(f.sql, "SELECT count(*) FROM claimd.worker WHERE stale_at + interval '1 s' < "
                          "clock_timestamp()") == 1,
        SOON_US));
    ck_assert(WAIT_UNTIL(fleet_lock_keys(&f) == 0, SOON_US));
    fleet_signal(f.workers[0], SIGCONT);
    ck_assert(WAIT_UNTIL(is_state(id, "completed"), SOON_US));
    ck_assert_int_eq(
        sql_number(f.sql, "SELECT attempt FROM claimd.job_history WHERE id = %lld", (long long)id),
        1);
    fleet_signal(f.schedulers[0], SIGCONT);
}
END_TEST

START_TEST(A16_with_two_of_five_masters_stopped_work_goes_on)
{
    fleet_start_worker(&f, 0, NULL);
    redis_server_kill(&f.masters[0]);
    redis_server_kill(&f.masters[3]);
    (void)fleet_enqueue(&f, "noop", "{}", 100);
    fleet_wait_finished(&f, 100, "completed", SOON_US);
}
END_TEST

START_TEST(B2_without_a_majority_nothing_is_claimed_handlers_finish_and_work_resumes)
{
    fleet_start_worker(&f, 0, NULL);
    int64_t id = ledger_job(1500, 1);
    ck_assert(WAIT_UNTIL(fleet_ledger_count(&f, " start") == 1, SOON_US));
    for (size_t i = 2; i < 5; i++) {
        redis_server_kill(&f.masters[i]);
    }
    (void)fleet_enqueue(&f, "noop", "{}", 50);
    ck_assert(WAIT_UNTIL(is_state(id, "completed"), SOON_US));
    ck_assert_int_eq(fleet_ledger_count(&f, " start"), 1);
    ck_assert_int_eq(sql_number(f.sql, "SELECT sum(attempt) FROM claimd.job"), 0);
    ck_assert_int_eq(fleet_log_count(&f, "claimd-worker", 0, "event=quorum_lost voting=2"), 1);
    for (size_t i = 2; i < 5; i++) {
        struct err err = {0};
        ck_assert_msg(redis_server_restart(&f.masters[i], &err) == STATUS_OK, "%s", err.msg);
    }
    fleet_wait_finished(&f, 51, "completed", SOON_US);
    ck_assert_int_ge(fleet_log_count(&f, "claimd-worker", 0, "event=quorum_back"), 1);
}
END_TEST

START_TEST(rule12_flushall_everywhere_kills_no_handler_and_the_queue_is_rebuilt)
{
    fleet_start_worker(&f, 0, NULL);
    (void)ledger_job(3000, 2);
    ck_assert(WAIT_UNTIL(fleet_ledger_count(&f, " start") == 2, SOON_US));
    (void)fleet_enqueue(&f, "noop", "{}", 300);
    for (size_t i = 0; i < 5; i++) {
        fleet_redis(&f, i, "FLUSHALL");
    }
    fleet_wait_finished(&f, 302, "completed", SOON_US);
    ck_assert_int_eq(fleet_ledger_count(&f, " start"), 2);
    ck_assert_int_eq(fleet_ledger_count(&f, " end"), 2);
    ck_assert_int_eq(
        sql_number(f.sql, "SELECT count(*) FROM claimd.job_history WHERE attempt <> 1"), 0);
}
END_TEST

START_TEST(D3_postgresql_is_killed_and_restarted_and_nothing_is_lost)
{
    fleet_start_worker(&f, 0, NULL);
    (void)ledger_job(700, 2);
    (void)fleet_enqueue(&f, "noop", "{}", 500);
    ck_assert(WAIT_UNTIL(fleet_ledger_count(&f, " start") == 2, SOON_US));
    struct err err = {0};
    pg_server_kill(&f.pg);
    ck_assert_msg(pg_server_restart(&f.pg, &err) == STATUS_OK, "%s", err.msg);
    sql_close(f.sql);
    f.sql = sql_open(f.conninfo);
    fleet_wait_finished(&f, 502, "completed", SOON_US);
}
END_TEST

START_TEST(A6_the_leader_is_killed_and_the_other_scheduler_takes_over)
{
    fleet_start_worker(&f, 0, NULL);
    ck_assert(WAIT_UNTIL(fleet_log_count(&f, "claimd-scheduler", 0, "leader_won") == 1, SOON_US));
    fleet_start_scheduler(&f, 1);
    (void)fleet_enqueue(&f, "noop", "{}", 100);
    fleet_signal(f.schedulers[0], SIGKILL);
    (void)fleet_wait_end(&f, &f.schedulers[0]);
    (void)fleet_enqueue(&f, "noop", "{}", 100);
    fleet_wait_finished(&f, 200, "completed", SOON_US);
    ck_assert_int_eq(fleet_log_count(&f, "claimd-scheduler", 1, "leader_won"), 1);
}
END_TEST

START_TEST(lock_F4_A8_a_drain_finishes_what_runs_and_gives_the_rest_back_uncharged)
{
    fleet_start_worker(&f, 0, NULL);
    (void)ledger_job(600, 6);
    ck_assert(WAIT_UNTIL(fleet_ledger_count(&f, " start") == 2, SOON_US));
    fleet_signal(f.workers[0], SIGTERM);
    ck_assert_int_eq(fleet_wait_end(&f, &f.workers[0]), 0);
    ck_assert_int_eq(fleet_ledger_count(&f, " end"), 2);
    ck_assert_int_eq(running(), 0);
    ck_assert_int_eq(sql_number(f.sql, "SELECT count(*) FROM claimd.job WHERE attempt = 0"), 4);
    ck_assert_int_eq(fleet_lock_keys(&f), 0);
}
END_TEST

START_TEST(A8_a_second_signal_stops_now_and_gives_running_jobs_back)
{
    fleet_start_worker(&f, 0, NULL);
    (void)ledger_job(60000, 2);
    ck_assert(WAIT_UNTIL(fleet_ledger_count(&f, " start") == 2, SOON_US));
    fleet_signal(f.workers[0], SIGTERM);
    ck_assert(WAIT_UNTIL(fleet_log_count(&f, "claimd-worker", 0, "event=draining") == 1, SOON_US));
    fleet_signal(f.workers[0], SIGTERM);
    ck_assert_int_eq(fleet_wait_end(&f, &f.workers[0]), 0);
    ck_assert_int_eq(
        sql_number(f.sql,
                   "SELECT count(*) FROM claimd.job WHERE attempt = 0 AND state = 'available'"),
        2);
}
END_TEST

START_TEST(a_worker_restarted_in_its_state_directory_hands_its_predecessors_jobs_back_at_once)
{
    fleet_start_worker(&f, 0, NULL);
    (void)ledger_job(200, 2);
    ck_assert(WAIT_UNTIL(fleet_ledger_count(&f, " start") == 2, SOON_US));
    fleet_signal(f.schedulers[0], SIGSTOP); /* so that only the restarted worker hands them back */
    fleet_signal(f.workers[0], SIGKILL);
    (void)fleet_wait_end(&f, &f.workers[0]);
    fleet_start_worker(&f, 0, NULL);
    fleet_wait_finished(&f, 2, "completed", SOON_US);
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("faults");
    TCase *c = tcase_create("faults");
    tcase_set_timeout(c, 60);
    tcase_add_unchecked_fixture(c, fleet_share_pg, fleet_unshare_pg);
    tcase_add_checked_fixture(c, setup, teardown);
    tcase_add_test(c, lock_F3_A3_a_paused_worker_was_rescued_and_its_late_result_is_refused);
    tcase_add_test(c, A4_the_runner_of_a_paused_worker_ends_itself);
    tcase_add_test(c,
                   lock_F3_a_handler_that_ended_before_danger_is_accepted_when_nobody_rescued_it);
    tcase_add_test(c, A16_with_two_of_five_masters_stopped_work_goes_on);
    tcase_add_test(c, B2_without_a_majority_nothing_is_claimed_handlers_finish_and_work_resumes);
    tcase_add_test(c, rule12_flushall_everywhere_kills_no_handler_and_the_queue_is_rebuilt);
    tcase_add_test(c, D3_postgresql_is_killed_and_restarted_and_nothing_is_lost);
    tcase_add_test(c, A6_the_leader_is_killed_and_the_other_scheduler_takes_over);
    tcase_add_test(c, lock_F4_A8_a_drain_finishes_what_runs_and_gives_the_rest_back_uncharged);
    tcase_add_test(c, A8_a_second_signal_stops_now_and_gives_running_jobs_back);
    tcase_add_test(
        c, a_worker_restarted_in_its_state_directory_hands_its_predecessors_jobs_back_at_once);
    suite_add_tcase(s, c);
    return s;
}

int main(void)
{
    return suite_run(suite());
}
