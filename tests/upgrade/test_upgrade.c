/* SPDX-License-Identifier: Apache-2.0
 *
 * A rolling upgrade, rehearsed with the programs of the release before (B40): they and today's
 * drain one queue while the schema moves below them. */
#include "support/fleet.h"
#include "support/suite.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#define JOBS 400 /* at each stage */
#define JOB_MS 20

/* Schedulers and workers by place: those of the release before, then today's. */
enum { BEFORE_A, BEFORE_B, TODAY_A, TODAY_B };

static struct fleet f;
static char today_bin[SERVER_PATH_MAX];
static int64_t enqueued;

static void use_before(void)
{
    char path[SERVER_PATH_MAX + 32];
    (void)snprintf(path, sizeof path, "%s/bin", getenv("CLAIMD_BEFORE_DIR"));
    ck_assert_int_eq(setenv("CLAIMD_BIN_DIR", path, 1), 0);
}

static void use_today(void)
{
    ck_assert_int_eq(setenv("CLAIMD_BIN_DIR", today_bin, 1), 0);
}

static void setup(void)
{
    char path[SERVER_PATH_MAX + 32];
    const char *before = getenv("CLAIMD_BEFORE_DIR");
    ck_assert_msg(before != NULL, "CLAIMD_BEFORE_DIR is not set: run the test through ctest");
    (void)snprintf(today_bin, sizeof today_bin, "%s", getenv("CLAIMD_BIN_DIR"));
    use_before();
    (void)snprintf(path, sizeof path, "%s/plugins", before);
    ck_assert_int_eq(setenv("CLAIMD_PLUGIN_DIR", path, 1), 0);
    (void)snprintf(path, sizeof path, "%s/test_plugins", before);
    ck_assert_int_eq(setenv("CLAIMD_TEST_PLUGIN_DIR", path, 1), 0);
    fleet_start(&f, &(struct fleet_options){0});
    ck_assert_int_eq(sql_number(f.sql, "SELECT schema_version FROM claimd.cluster"), 1);
}

static void teardown(void)
{
    fleet_stop(&f);
}

static int64_t completed(void)
{
    return sql_number(f.sql, "SELECT count(*) FROM claimd.job_history WHERE state = 'completed'");
}

static int64_t older_schedulers(void)
{
    return sql_number(f.sql,
                      "SELECT count(*) FROM claimd.scheduler, claimd.cluster WHERE built_for < "
                      "schema_version AND stale_at > clock_timestamp()");
}

/* More work, of which some is done when it returns. */
static void stage(void)
{
    char path[SERVER_PATH_MAX + 64];
    char args[SERVER_PATH_MAX + 128];
    int64_t done = completed();
    fleet_ledger_path(&f, path, sizeof path);
    (void)snprintf(args, sizeof args, "{\"path\": \"%s\", \"ms\": %d}", path, JOB_MS);
    (void)fleet_enqueue(&f, "ledger", args, JOBS);
    enqueued += JOBS;
    ck_assert(WAIT_UNTIL(completed() >= done + JOBS / 10, SOON_US));
}

static bool leads(size_t i)
{
    return sql_number(
               f.sql,
               "SELECT count(*) FROM claimd.scheduler WHERE pid = %d AND leader_since IS NOT "
               "NULL AND stale_at > clock_timestamp()",
               (int)f.schedulers[i]) == 1;
}

static void end(pid_t *pid, int number)
{
    fleet_signal(*pid, number);
    int code = fleet_wait_end(&f, pid);
    ck_assert_int_eq(code, number == SIGKILL ? 128 + SIGKILL : 0);
}

/* Jobs that ended on a worker of that age. */
static int64_t ended_on(const char *age)
{
    return sql_number(f.sql,
                      "SELECT count(*) FROM claimd.job_history h JOIN claimd.worker w USING "
                      "(worker_id) WHERE w.built_for %s 1",
                      age);
}

START_TEST(B40_old_and_new_programs_drain_one_queue_while_the_schema_moves)
{
    fleet_start_scheduler(&f, BEFORE_A);
    fleet_start_scheduler(&f, BEFORE_B);
    fleet_start_worker(&f, BEFORE_A, NULL);
    fleet_start_worker(&f, BEFORE_B, NULL);
    stage();

    use_today();
    fleet_migrate(&f);
    stage(); /* the old ones go on, with the statements that they have prepared */
    fleet_start_scheduler(&f, TODAY_A);
    fleet_start_worker(&f, TODAY_A, NULL);
    stage();

    use_before(); /* started again, died, and taken over by today's */
    end(&f.workers[BEFORE_A], SIGTERM);
    fleet_start_worker(&f, BEFORE_A, NULL);
    stage();
    end(&f.workers[BEFORE_B], SIGKILL);
    end(&f.schedulers[BEFORE_A], SIGKILL);
    end(&f.schedulers[BEFORE_B], SIGKILL);
    ck_assert(WAIT_UNTIL(leads(TODAY_A), SOON_US));
    stage();

    fleet_start_scheduler(&f, BEFORE_A); /* and the other way round */
    use_today();
    fleet_start_worker(&f, TODAY_B, NULL);
    end(&f.schedulers[TODAY_A], SIGKILL);
    ck_assert(WAIT_UNTIL(leads(BEFORE_A), SOON_US));
    stage();

    fleet_wait_finished(&f, enqueued, "completed", SOON_US);
    ck_assert_int_gt(ended_on("="), 0);
    ck_assert_int_gt(ended_on(">"), 0);
    ASSERT_REFUSED(f.sql, "SELECT claimd.finish_upgrade()", "CL003", "");
    fleet_start_scheduler(&f, TODAY_A);
    end(&f.workers[BEFORE_A], SIGTERM);
    end(&f.schedulers[BEFORE_A], SIGTERM);
    /* On busy cores its row may outlive it. */
    ck_assert(WAIT_UNTIL(older_schedulers() == 0, SOON_US));
    sql_run(f.sql, "SELECT claimd.finish_upgrade()");
    use_before();
    fleet_launch_worker(&f, BEFORE_A, NULL);
    ck_assert_int_eq(fleet_wait_end(&f, &f.workers[BEFORE_A]), 5);
    fleet_launch_scheduler(&f, BEFORE_A, NULL);
    ck_assert_int_eq(fleet_wait_end(&f, &f.schedulers[BEFORE_A]), 5);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("upgrade");
    TCase *tc = tcase_create("upgrade");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_set_timeout(tc, 240);
    tcase_add_test(tc, B40_old_and_new_programs_drain_one_queue_while_the_schema_moves);
    suite_add_tcase(suite, tc);
    return suite_run(suite);
}
