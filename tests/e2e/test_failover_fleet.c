/* SPDX-License-Identifier: Apache-2.0
 *
 * PostgreSQL fails over under a working fleet (fault.D5): daemons that know both hosts reconnect
 * within seconds, jobs that the standby has are finished, and the work that it lacks is done again.
 * Times are real: heartbeats must outlast the failover. */
#include "support/fleet.h"
#include "support/suite.h"

#include <check.h>
#include <signal.h>
#include <stdio.h>

#define QUICK_PASSES \
    "\"scheduler\": {\"full_pass_ms\": 2000}" /* two of them find jobs without a holder */
#define BACK_US (60 * US_PER_S)
#define WORKERS 2
#define JOBS 300
#define JOB_MS 100
#define SOME 30
#define A_FEW 8

static struct fleet f;
static struct pg_server standby;

#define OK(call)                                                      \
    do {                                                              \
        struct err err = {0};                                         \
        ck_assert_msg((call) == STATUS_OK, "%s: %s", #call, err.msg); \
    } while (0)

static const char *patience; /* a variable for the daemons */

static void launch(size_t i, bool is_worker)
{
    char hosts[SERVER_PATH_MAX * 2];
    char login[SERVER_PATH_MAX * 2 + 64];
    OK(pg_standby_conninfo(&f.pg, &standby, "claimd", hosts, sizeof hosts, &err));
    (void)snprintf(login, sizeof login, "CLAIMD_POSTGRES_CONNINFO=%s user=%s", hosts,
                   is_worker ? "fleet_worker" : "fleet_scheduler");
    const char *const env[] = {login, patience, NULL};
    if (is_worker) {
        fleet_start_worker_with(&f, i, env);
    } else {
        fleet_launch_scheduler(&f, i, env);
    }
}

static void start(void)
{
    char dir[SERVER_PATH_MAX + 16];
    fleet_start(&f, &(struct fleet_options){.masters = 3, .time_scale = 1, .more = QUICK_PASSES});
    (void)snprintf(dir, sizeof dir, "%s/standby", f.dir);
    OK(pg_standby_start(dir, &f.pg, &standby, &err));
    launch(0, false);
    launch(1, false);
    for (size_t i = 0; i < WORKERS; i++) {
        launch(i, true);
    }
}

static void setup(void)
{
    patience = NULL;
    start();
}

static void setup_impatient(void)
{
    patience = "CLAIMD_POSTGRES_TIMEOUT_MS=1000";
    start();
}

static void teardown(void)
{
    fleet_stop(&f);
    pg_server_stop(&standby);
}

static int64_t completed(void)
{
    return sql_number(f.sql, "SELECT count(*) FROM claimd.job_history WHERE state = 'completed'");
}

static void enqueue(void)
{
    char path[SERVER_PATH_MAX + 64];
    char args[SERVER_PATH_MAX + 128];
    fleet_ledger_path(&f, path, sizeof path);
    (void)snprintf(args, sizeof args, "{\"path\": \"%s\", \"ms\": %d}", path, JOB_MS);
    (void)fleet_enqueue(&f, "ledger", args, JOBS);
    ck_assert(WAIT_UNTIL(completed() >= SOME, SOON_US));
}

static bool are_all_back(void)
{
    int count = 0;
    for (size_t i = 0; i < WORKERS; i++) {
        count += fleet_log_count(&f, "claimd-worker", i, "event=postgres_up") > 0;
        count += fleet_log_count(&f, "claimd-scheduler", i, "event=postgres_up") > 0;
    }
    return count == 2 * WORKERS;
}

static void fail_over(void)
{
    char conninfo[SERVER_PATH_MAX];
    sql_close(f.sql);
    f.sql = NULL;
    pg_server_kill(&f.pg);
    OK(pg_standby_promote(&standby, &err));
    ck_assert_msg(WAIT_UNTIL(are_all_back(), BACK_US), "not all daemons are back");
    (void)snprintf(conninfo, sizeof conninfo, "host=%.100s port=5432 user=postgres dbname=claimd",
                   standby.dir);
    f.sql = sql_open(conninfo);
}

static void all_end(void)
{
    fleet_wait_finished(&f, JOBS, "completed", 2 * SOON_US);
    for (size_t i = 0; i < WORKERS; i++) {
        fleet_signal(f.workers[i], SIGTERM);
        ck_assert_int_eq(fleet_wait_end(&f, &f.workers[i]), 0);
    }
}

START_TEST(D5_a_synchronous_standby_takes_over_and_no_job_is_lost_or_run_twice)
{
    OK(pg_standby_set_sync(&f.pg, true, &err));
    enqueue();
    fail_over();
    all_end();
    ck_assert_int_eq(fleet_ledger_count(&f, " start"), JOBS);
    ck_assert_int_eq(fleet_ledger_count(&f, " end"), JOBS);
}
END_TEST

START_TEST(D5_what_an_asynchronous_standby_lacks_runs_again_and_nothing_twice_at_its_end)
{
    enqueue();
    /* Otherwise all jobs may end in the meantime. */
    sql_run(f.sql, "SELECT claimd.pause_queue('default')");
    OK(pg_standby_catch_up(&standby, &f.pg, &err));
    OK(pg_standby_cut(&standby, &err));
    int64_t before = completed();
    sql_run(f.sql, "SELECT claimd.resume_queue('default')");
    ck_assert(WAIT_UNTIL(completed() >= before + SOME, SOON_US));
    fail_over();
    sql_run(f.sql, "SELECT claimd.resume_queue('default')");
    all_end();
    ck_assert_int_ge(fleet_ledger_count(&f, " end"), JOBS + SOME);
    ck_assert_int_eq(
        sql_number(f.sql, "SELECT count(*) - count(DISTINCT id) FROM claimd.job_history"), 0);
    ck_assert_int_gt(sql_number(f.sql, "SELECT max(fence) >> 32 FROM claimd.job_history"), 0);
}
END_TEST

/* Each commit waits for the standby until its session is ended at the deadline of the request; then
 * the commit exists on the primary alone. */
START_TEST(D5_while_the_only_synchronous_standby_is_away_work_goes_on_slowly_on_the_primary)
{
    OK(pg_standby_set_sync(&f.pg, true, &err));
    enqueue();
    pg_server_kill(&standby);
    int64_t before = completed();
    ck_assert(WAIT_UNTIL(completed() >= before + A_FEW, 2 * SOON_US));
    ck_assert_int_ge(fleet_log_count(&f, "claimd-worker", 0, "event=postgres_down"), 1);
    OK(pg_standby_set_sync(&f.pg, false, &err));
    fleet_wait_finished(&f, JOBS, "completed", 2 * SOON_US);
    ck_assert_int_eq(fleet_ledger_count(&f, " end"), JOBS);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("failover of a fleet");
    TCase *c = tcase_create("failover");
    tcase_set_timeout(c, 250);
    tcase_add_checked_fixture(c, setup, teardown);
    tcase_add_test(c, D5_a_synchronous_standby_takes_over_and_no_job_is_lost_or_run_twice);
    tcase_add_test(c,
                   D5_what_an_asynchronous_standby_lacks_runs_again_and_nothing_twice_at_its_end);
    suite_add_tcase(s, c);
    TCase *i = tcase_create("impatient");
    tcase_set_timeout(i, 250);
    tcase_add_checked_fixture(i, setup_impatient, teardown);
    tcase_add_test(
        i, D5_while_the_only_synchronous_standby_is_away_work_goes_on_slowly_on_the_primary);
    suite_add_tcase(s, i);
    return suite_run_in_one(s);
}
