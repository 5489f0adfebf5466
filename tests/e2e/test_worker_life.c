/* SPDX-License-Identifier: Apache-2.0
 *
 * The work of a worker besides running jobs: which jobs it takes and which it leaves, its leases,
 * its row, its drain. One fleet with a scheduler serves all tests; each starts the workers that it
 * needs. */
#include "support/fleet.h"
#include "support/suite.h"

#include <check.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>

#define WORKER "claimd-worker"

static struct fleet f;

static void setup(void)
{
    fleet_start(&f, &(struct fleet_options){0});
    fleet_start_scheduler(&f, 0);
    ck_assert(WAIT_UNTIL(fleet_log_count(&f, "claimd-scheduler", 0, "leader_won") == 1, SOON_US));
}

static void teardown(void)
{
    fleet_stop(&f);
}

/* Removes what a test left: kills its workers and deletes its jobs. */
static void clean(void)
{
    for (size_t i = 0; i < FLEET_WORKERS_MAX; i++) {
        if (f.workers[i] > 0) {
            (void)kill(f.workers[i], SIGKILL);
            (void)fleet_wait_end(&f, &f.workers[i]);
        }
    }
    sql_run(f.sql, "UPDATE claimd.worker SET stopped = true");
    sql_run(f.sql, "DELETE FROM claimd.job");
    for (size_t i = 0; i < f.options.masters; i++) {
        fleet_redis(&f, i, "DEL claimd:hints:default");
    }
}

static void drain(size_t i)
{
    fleet_signal(f.workers[i], SIGTERM);
    ck_assert_int_eq(fleet_wait_end(&f, &f.workers[i]), 0);
}

static bool is_state(int64_t id, const char *state)
{
    return sql_number(f.sql, "SELECT count(*) FROM claimd.jobs WHERE id = %lld AND state = '%s'",
                      (long long)id, state) == 1;
}

static bool is_logged(size_t i, const char *event)
{
    char text[64];
    (void)snprintf(text, sizeof text, "event=%s ", event);
    return fleet_log_count(&f, WORKER, i, text) > 0;
}

static int64_t finished(int64_t first, int64_t last)
{
    return sql_number(f.sql,
                      "SELECT count(*) FROM claimd.job_history WHERE id BETWEEN %lld AND %lld AND "
                      "state = 'completed'",
                      (long long)first, (long long)last);
}

static int64_t ledger_jobs(int ms, int count)
{
    char args[SERVER_PATH_MAX + 64];
    char path[SERVER_PATH_MAX];
    fleet_ledger_path(&f, path, sizeof path);
    (void)snprintf(args, sizeof args, "{\"path\": \"%s\", \"ms\": %d}", path, ms);
    return fleet_enqueue(&f, "ledger", args, count);
}

/* ---- popping ---- */

START_TEST(S19_ids_hinted_on_every_master_at_once_run_once)
{
    enum { JOBS = 30 };
    char command[128];
    int before = fleet_ledger_count(&f, " start");
    fleet_start_worker(&f, 0, NULL);
    fleet_start_worker(&f, 1, NULL);
    int64_t last = ledger_jobs(20, JOBS);
    for (int64_t id = last - JOBS + 1; id <= last; id++) {
        for (size_t i = 0; i < f.options.masters; i++) {
            (void)snprintf(command, sizeof command, "ZADD claimd:hints:default 40000000000000 %lld",
                           (long long)id);
            fleet_redis(&f, i, command);
        }
    }
    ck_assert(WAIT_UNTIL(finished(last - JOBS + 1, last) == JOBS, SOON_US));
    ck_assert_int_eq(fleet_ledger_count(&f, " start") - before, JOBS);
    ck_assert_int_eq(sql_number(f.sql,
                                "SELECT count(*) FROM claimd.job_history WHERE id > %lld AND "
                                "attempt <> 1",
                                (long long)last - JOBS),
                     0);
    drain(0);
    drain(1);
    ck_assert(WAIT_UNTIL(fleet_lock_keys(&f) == 0, SOON_US));
}
END_TEST

START_TEST(rule2_a_kind_that_nobody_serves_waits_for_a_worker_that_does)
{
    char dir[SERVER_PATH_MAX + 16];
    char env[SERVER_PATH_MAX + 64];
    char from[SERVER_PATH_MAX + 32];
    char to[SERVER_PATH_MAX + 32];
    (void)snprintf(dir, sizeof dir, "%s/only-noop", f.dir);
    ck_assert_int_eq(mkdir(dir, 0755), 0);
    (void)snprintf(from, sizeof from, "%s/plugins/noop.so", f.dir);
    (void)snprintf(to, sizeof to, "%s/noop.so", dir);
    ck_assert_int_eq(link(from, to), 0);
    (void)snprintf(env, sizeof env, "CLAIMD_WORKER_PLUGIN_DIR=%s", dir);
    fleet_start_worker_with(&f, 0, (const char *const[]){env, NULL});
    int64_t waits = fleet_enqueue(&f, "sleep", "{\"ms\": 1}", 1);
    int64_t runs = fleet_enqueue(&f, "noop", "{}", 1);
    ck_assert(WAIT_UNTIL(is_state(runs, "completed"), SOON_US));
    ck_assert_int_eq(
        sql_number(f.sql,
                   "SELECT count(*) FROM claimd.job WHERE id = %lld AND state = 'available' "
                   "AND attempt = 0",
                   (long long)waits),
        1);
    fleet_start_worker(&f, 1, NULL);
    ck_assert(WAIT_UNTIL(is_state(waits, "completed"), SOON_US));
}
END_TEST

static int64_t hinted(void)
{
    int64_t count = 0;
    for (size_t i = 0; i < f.options.masters; i++) {
        count += fleet_redis_i64(&f, i, "ZCARD claimd:hints:default");
    }
    return count;
}

START_TEST(USR1_quiet_takes_no_new_jobs_not_even_by_a_pop_under_way)
{
    fleet_start_worker(&f, 0, NULL);
    int64_t warm = fleet_enqueue(&f, "noop", "{}", 1);
    ck_assert(WAIT_UNTIL(is_state(warm, "completed"), SOON_US));
    fleet_signal(f.workers[0], SIGUSR1);
    ck_assert(WAIT_UNTIL(is_logged(0, "quiet"), SOON_US));
    int64_t last = fleet_enqueue(&f, "noop", "{}", 10);
    ck_assert(WAIT_UNTIL(hinted() == 10, SOON_US));
    fleet_start_worker(&f, 1, NULL);
    ck_assert(WAIT_UNTIL(finished(last - 9, last) == 10, SOON_US));
    ck_assert_int_eq(sql_number(f.sql,
                                "SELECT count(*) FROM claimd.job_history h JOIN claimd.worker w "
                                "USING (worker_id) WHERE h.id > %lld AND w.pid = %d",
                                (long long)last - 10, (int)f.workers[0]),
                     0);
    drain(0);
}
END_TEST

/* The pop that was blocked when the worker was stopped took the hint, which no other process knows
 * of. */
START_TEST(W0_a_hint_that_came_while_a_worker_was_told_to_drain_is_not_lost)
{
    fleet_start_worker(&f, 0, NULL);
    int64_t warm = fleet_enqueue(&f, "noop", "{}", 1);
    ck_assert(WAIT_UNTIL(is_state(warm, "completed"), SOON_US));
    fleet_signal(f.workers[0], SIGSTOP);
    int64_t id = fleet_enqueue(&f, "noop", "{}", 1);
    fleet_start_worker(&f, 1, NULL);
    int64_t began_us = clock_boot_us();
    fleet_signal(f.workers[0], SIGTERM);
    fleet_signal(f.workers[0], SIGCONT);
    ck_assert_int_eq(fleet_wait_end(&f, &f.workers[0]), 0);
    ck_assert(WAIT_UNTIL(is_state(id, "completed"), SOON_US));
    ck_assert_int_lt(clock_boot_us() - began_us, 5 * US_PER_S); /* before the next full pass */
}
END_TEST

/* ---- how runs end ---- */

START_TEST(a_handler_that_gives_up_when_its_time_is_up_is_charged_with_a_timeout)
{
    fleet_start_worker(&f, 0, NULL);
    int64_t id = sql_number(
        f.sql, "SELECT claimd.enqueue('sleep', '{\"ms\": 60000}', timeout => interval '300 ms')");
    ck_assert(
        WAIT_UNTIL(sql_number(f.sql, "SELECT count(*) FROM claimd.job_attempt WHERE job_id = %lld",
                              (long long)id) == 1,
                   SOON_US));
    const char *text =
        sql_text(f.sql,
                 "SELECT format('%%s %%s %%s', a.outcome, a.attempt, j.attempt) FROM "
                 "claimd.job_attempt a JOIN claimd.job j ON j.id = a.job_id WHERE j.id = %lld",
                 (long long)id);
    ck_assert_str_eq(text, "timeout 1 1");
    ck_assert(WAIT_UNTIL(fleet_log_count(&f, WORKER, 0, "outcome=timeout") > 0, SOON_US));
}
END_TEST

START_TEST(rule3_a_job_that_the_drain_ends_is_given_back_uncharged)
{
    static const char *const args[] = {"{\"ms\": 60000}", "{\"ms\": 60000, \"deaf\": true}"};
    fleet_start_worker_with(&f, 0, (const char *const[]){"CLAIMD_WORKER_DRAIN_MS=2000", NULL});
    int64_t id =
        sql_number(f.sql, "SELECT claimd.enqueue('sleep', '%s', max_attempts => 1)", args[_i]);
    ck_assert(WAIT_UNTIL(is_state(id, "running"), SOON_US));
    drain(0);
    ck_assert_int_eq(
        sql_number(f.sql,
                   "SELECT count(*) FROM claimd.job WHERE id = %lld AND state = 'available' AND "
                   "attempt = 0",
                   (long long)id),
        1);
    ck_assert_int_eq(sql_number(f.sql,
                                "SELECT count(*) FROM claimd.job_attempt WHERE job_id = %lld",
                                (long long)id),
                     0);
    ck_assert_int_eq(fleet_lock_keys(&f), 0);
}
END_TEST

/* Counts the masters that hold the lock of a job now. */
static size_t lock_count(int64_t id)
{
    char command[64];
    size_t count = 0;
    (void)snprintf(command, sizeof command, "PTTL claimd:job:%lld", (long long)id);
    for (size_t i = 0; i < f.options.masters; i++) {
        count += fleet_redis_i64(&f, i, command) > 0;
    }
    return count;
}

/* Returns the recorded runs of the kind, in all queues. */
static int64_t runs_known(const char *kind)
{
    return sql_number(f.sql,
                      "SELECT COALESCE(sum(runs), 0) FROM claimd.run_lengths WHERE kind = '%s' AND "
                      "queue IS NULL",
                      kind);
}

START_TEST(feat_B30_how_long_runs_took_is_known_while_a_worker_lives_and_after_it)
{
    int64_t before = runs_known("sleep");
    fleet_start_worker(&f, 0, NULL);
    (void)fleet_enqueue(&f, "sleep", "{\"ms\": 20}", 30);
    ck_assert(WAIT_UNTIL(runs_known("sleep") == before + 30, SOON_US));
    int64_t last = fleet_enqueue(&f, "sleep", "{\"ms\": 20}", 30);
    ck_assert(WAIT_UNTIL(finished(last - 29, last) == 30, SOON_US));
    drain(0);
    ck_assert_int_eq(runs_known("sleep"), before + 60);
    ck_assert_int_eq(sql_number(f.sql,
                                "SELECT count(*) FROM claimd.run_lengths WHERE kind = 'sleep' "
                                "AND queue = 'default' AND mean_s >= 0.02 AND p95_s >= 0.016"),
                     1);
}
END_TEST

/* The last request may get no answer: its session keeps it for a server that never returns. */
START_TEST(A8_a_worker_ends_though_postgresql_does_not_answer_its_farewell)
{
    fleet_start_worker(&f, 0, NULL);
    pid_t backend = (pid_t)sql_number(f.sql, "SELECT pid FROM pg_stat_activity WHERE "
                                             "application_name = 'claimd-worker'");
    ck_assert_int_eq(kill(backend, SIGSTOP), 0);
    drain(0);
    ck_assert_int_eq(kill(backend, SIGCONT), 0);
}
END_TEST

/* The reply to the commit is missing: it is unknown whether the job is done, so its lease stays. */
START_TEST(lock_R7_a_result_without_an_answer_keeps_the_lease_until_the_row_was_read)
{
    char command[64];
    fleet_start_worker(&f, 0, NULL);
    int started = fleet_ledger_count(&f, "start");
    int before = fleet_ledger_count(&f, "end");
    int64_t id = ledger_jobs(300, 1);
    ck_assert(WAIT_UNTIL(fleet_ledger_count(&f, "start") > started, SOON_US));
    pid_t backend = (pid_t)sql_number(f.sql, "SELECT pid FROM pg_stat_activity WHERE "
                                             "application_name = 'claimd-worker'");
    ck_assert_int_eq(kill(backend, SIGSTOP), 0);
    ck_assert(WAIT_UNTIL(fleet_ledger_count(&f, "end") > before, SOON_US));
    (void)snprintf(command, sizeof command, "PTTL claimd:job:%lld", (long long)id);
    int64_t ttl_ms = fleet_redis_i64(&f, 0, command);
    ck_assert(WAIT_UNTIL(fleet_redis_i64(&f, 0, command) < ttl_ms - 100, SOON_US));
    ck_assert(WAIT_UNTIL(fleet_redis_i64(&f, 0, command) >= ttl_ms - 100, SOON_US)); /* extended */
    ck_assert_int_eq(kill(backend, SIGCONT), 0);
    ck_assert(WAIT_UNTIL(is_state(id, "completed"), SOON_US));
    ck_assert(WAIT_UNTIL(fleet_lock_keys(&f) == 0, SOON_US));
    ck_assert_int_eq(fleet_ledger_count(&f, "end"), before + 1);
    drain(0);
}
END_TEST

START_TEST(W1_a_job_longer_than_three_leases_keeps_its_lease_on_every_master)
{
    fleet_start_worker(&f, 0, NULL);
    int64_t id = fleet_enqueue(&f, "sleep", "{\"ms\": 7600}", 1); /* T is 2.5 s here */
    ck_assert(WAIT_UNTIL(is_state(id, "running"), SOON_US));
    int looks = 0;
    while (is_state(id, "running")) {
        size_t count = lock_count(id);
        if (is_state(id, "running")) {
            ck_assert_uint_eq(count, f.options.masters);
            looks++;
        }
        wait_step();
    }
    ck_assert_int_gt(looks, 3);
    ck_assert(WAIT_UNTIL(is_state(id, "completed"), SOON_US));
    ck_assert_int_eq(
        sql_number(f.sql, "SELECT attempt FROM claimd.job_history WHERE id = %lld", (long long)id),
        1);
}
END_TEST

/* ---- the worker's row ---- */

START_TEST(a_worker_that_was_marked_dead_starts_over_under_a_new_id)
{
    fleet_start_worker(&f, 0, NULL);
    const char *before =
        sql_text(f.sql, "SELECT worker_id::text FROM claimd.worker WHERE pid = %d AND NOT stopped",
                 (int)f.workers[0]);
    fleet_signal(f.workers[0], SIGSTOP);
    ck_assert(WAIT_UNTIL(sql_number(f.sql,
                                    "SELECT count(*) FROM claimd.worker WHERE worker_id = '%s' "
                                    "AND dead",
                                    before) == 1,
                         SOON_US));
    fleet_signal(f.workers[0], SIGCONT);
    ck_assert(WAIT_UNTIL(is_logged(0, "worker_marked_dead"), SOON_US));
    ck_assert(WAIT_UNTIL(fleet_is_registered(&f, 0), SOON_US));
    int64_t last = fleet_enqueue(&f, "noop", "{}", 10);
    ck_assert(WAIT_UNTIL(finished(last - 9, last) == 10, SOON_US));
    ck_assert_int_eq(sql_number(f.sql,
                                "SELECT count(*) FROM claimd.job_history WHERE id > %lld AND "
                                "worker_id = '%s'",
                                (long long)last - 10, before),
                     0);
    drain(0);
}
END_TEST

/* ---- log lines and resources ---- */

START_TEST(every_event_of_a_workers_life_has_its_line)
{
    static const char *const all[] = {"started",    "ready",         "node_up",     "job_claimed",
                                      "job_failed", "job_finished",  "runner_died", "node_down",
                                      "lease_lost", "lease_suspect", "draining",    "stopped"};
    fleet_start_worker_with(&f, 0, (const char *const[]){"CLAIMD_LOG_LEVEL=debug", NULL});
    (void)fleet_enqueue(&f, "crash_segv", "{}", 1);
    (void)fleet_enqueue(&f, "noop", "{}", 1);
    int64_t id = fleet_enqueue(&f, "sleep", "{\"ms\": 60000}", 1);
    ck_assert(WAIT_UNTIL(is_state(id, "running") && is_logged(0, "job_failed"), SOON_US));
    for (size_t i = 0; i < 3; i++) {
        redis_server_kill(&f.masters[i]);
    }
    ck_assert(WAIT_UNTIL(is_logged(0, "lease_lost"), SOON_US));
    for (size_t i = 0; i < 3; i++) {
        struct err err = {0};
        ck_assert_msg(redis_server_restart(&f.masters[i], &err) == STATUS_OK, "%s", err.msg);
    }
    ck_assert(WAIT_UNTIL(lock_count(id) >= 3, SOON_US)); /* rule 12: the lease is acquired again */
    fleet_signal(f.workers[0], SIGTERM);
    ck_assert(WAIT_UNTIL(is_logged(0, "draining"), SOON_US));
    drain(0);
    for (size_t i = 0; i < ARRAY_COUNT(all); i++) {
        ck_assert_msg(is_logged(0, all[i]), "no event=%s", all[i]);
    }
    ck_assert_int_eq(
        sql_number(f.sql, "SELECT attempt FROM claimd.job WHERE id = %lld", (long long)id), 0);
}
END_TEST

static long resident_kib(pid_t pid)
{
    char path[64];
    long total = 0;
    long resident = 0;
    (void)snprintf(path, sizeof path, "/proc/%d/statm", (int)pid);
    FILE *file = fopen(path, "r");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_eq(fscanf(file, "%ld %ld", &total, &resident), 2);
    (void)fclose(file);
    return resident * (sysconf(_SC_PAGESIZE) / 1024);
}

START_TEST(R1_twenty_thousand_jobs_leave_a_worker_small)
{
    enum { JOBS = 20000 };
    fleet_start_worker(&f, 0, NULL);
    int64_t last = fleet_enqueue(&f, "noop", "{}", JOBS);
    ck_assert(WAIT_UNTIL(finished(last - JOBS + 1, last) == JOBS, 2 * SOON_US));
#ifndef __SANITIZE_ADDRESS__ /* its shadow memory does not count */
    ck_assert_int_lt(resident_kib(f.workers[0]), 20 * 1024);
#else
    ck_assert_int_gt(resident_kib(f.workers[0]), 0);
#endif
    drain(0);
    ck_assert(WAIT_UNTIL(fleet_lock_keys(&f) == 0, SOON_US));
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("worker's life");
    TCase *c = tcase_create("life");
    tcase_set_timeout(c, 60);
    tcase_add_unchecked_fixture(c, setup, teardown);
    tcase_add_checked_fixture(c, NULL, clean);
    tcase_add_loop_test(c, rule3_a_job_that_the_drain_ends_is_given_back_uncharged, 0, 2);
    tcase_add_test(c, S19_ids_hinted_on_every_master_at_once_run_once);
    tcase_add_test(c, rule2_a_kind_that_nobody_serves_waits_for_a_worker_that_does);
    tcase_add_test(c, USR1_quiet_takes_no_new_jobs_not_even_by_a_pop_under_way);
    tcase_add_test(c, W0_a_hint_that_came_while_a_worker_was_told_to_drain_is_not_lost);
    tcase_add_test(c, a_handler_that_gives_up_when_its_time_is_up_is_charged_with_a_timeout);
    tcase_add_test(c, feat_B30_how_long_runs_took_is_known_while_a_worker_lives_and_after_it);
    tcase_add_test(c, A8_a_worker_ends_though_postgresql_does_not_answer_its_farewell);
    tcase_add_test(c, lock_R7_a_result_without_an_answer_keeps_the_lease_until_the_row_was_read);
    tcase_add_test(c, W1_a_job_longer_than_three_leases_keeps_its_lease_on_every_master);
    tcase_add_test(c, a_worker_that_was_marked_dead_starts_over_under_a_new_id);
    tcase_add_test(c, every_event_of_a_workers_life_has_its_line);
    tcase_add_test(c, R1_twenty_thousand_jobs_leave_a_worker_small);
    suite_add_tcase(s, c);
    return s;
}

int main(void)
{
    return suite_run_in_one(suite());
}
