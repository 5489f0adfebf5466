/* SPDX-License-Identifier: Apache-2.0
 *
 * PostgreSQL is killed and restarted under the job store; the answer to a commit is lost. Each test
 * starts its own durable server on the same data. */
#include "job_store_fixture.h"
#include "store/migrate.h"
#include "support/suite.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define TEMPLATE "claimd_template"

/* Called by main(): makes a data directory from which each test starts its server, one after the
 * other. */
static enum status make_data(struct err *err)
{
    char conninfo[SERVER_PATH_MAX];
    struct pg_server server = {0};
    enum status st = dir_make(world.dir, sizeof world.dir, err);
    st = st != STATUS_OK ? st : pg_server_start(world.dir, true, &server, err);
    st = st != STATUS_OK
             ? st
             : pg_server_create_db(&server, TEMPLATE, NULL, conninfo, sizeof conninfo, err);
    st = st != STATUS_OK ? st : migrate_up(conninfo, LIMIT_US, NULL, NULL, err);
    pg_server_stop(&server);
    return st;
}

static void server_setup(void)
{
    struct err err = {0};
    char name[64];
    memset(&got, 0, sizeof got);
    (void)snprintf(name, sizeof name, "test_%d", (int)getpid());
    enum status st = pg_server_start(world.dir, true, &world.server, &err);
    st = st != STATUS_OK ? st
                         : pg_server_create_db(&world.server, name, TEMPLATE, world.conninfo,
                                               sizeof world.conninfo, &err);
    ck_assert_msg(st == STATUS_OK, "%s", err.msg);
    ck_assert_int_eq(uv_loop_init(&world.loop), 0);
    side = sql_open(world.conninfo);
    store_start(&store_a, WORKER_A);
}

static void server_teardown(void)
{
    jobs_teardown();
    pg_server_stop(&world.server);
}

static void given_running(int count)
{
    int64_t id = add_jobs(count);
    claim_now(&store_a, id, (size_t)count);
    ck_assert_uint_eq(got.job_count, (size_t)count);
}

static void submit_all(size_t from, size_t to)
{
    for (size_t i = from; i < to; i++) {
        struct job_finish f = finish_of(i, FINISH_COMPLETED);
        submit(&store_a, &f);
    }
}

START_TEST(claims_are_answered_while_postgresql_is_away_and_finishes_kept_until_it_is_back)
{
    given_running(300);
    sql_close(side);
    pg_server_kill(&world.server);
    RUN_UNTIL(store_a.downs >= 1);
    submit_all(0, 300);
    ask(&store_a, 1, 1, 1);
    RUN_UNTIL(got.claims == 2);
    ck_assert_int_eq(got.refused[0].why, CLAIM_NOT_TRIED);
    ck_assert_uint_eq(job_store_waiting(store_a.jobs), 300);
    struct err err = {0};
    ck_assert_msg(pg_server_restart(&world.server, &err) == STATUS_OK, "%s", err.msg);
    RUN_UNTIL(got.finishes == 300);
    ck_assert_int_eq(got.verdicts[FINISH_ACCEPTED], 300);
    side = sql_open(world.conninfo);
    ASSERT_NUMBER("SELECT count(*)::text FROM claimd.job_history WHERE state = 'completed'", 300);
}
END_TEST

START_TEST(a_kill_with_finishes_in_flight_settles_each_once)
{
    given_running(500);
    submit_all(0, 500);
    (void)uv_run(&world.loop, UV_RUN_NOWAIT); /* sent */
    sql_close(side);
    pg_server_kill(&world.server);
    struct err err = {0};
    ck_assert_msg(pg_server_restart(&world.server, &err) == STATUS_OK, "%s", err.msg);
    RUN_UNTIL(got.finishes == 500);
    ck_assert_int_eq(got.verdicts[FINISH_ACCEPTED] + got.verdicts[FINISH_ALREADY], 500);
    side = sql_open(world.conninfo);
    ASSERT_NUMBER("SELECT count(*)::text FROM claimd.job_history", 500);
    ASSERT_NUMBER("SELECT count(*)::text FROM claimd.job", 0);
}
END_TEST

static void set_and_reload(const char *set, const char *show, const char *value)
{
    sql_run(side, "%s", set);
    sql_run(side, "SELECT pg_reload_conf()::text");
    RUN_UNTIL(strcmp(world_ask(store_a.pg, show), value) == 0);
}

/* Makes commits wait. The checkpointer decides that, and it is the last process that the postmaster
 * notifies of a reload: it has its signal once the next reload is visible, and has read the setting
 * between two checkpoints. */
static void given_commits_that_wait(void)
{
    set_and_reload("ALTER SYSTEM SET synchronous_standby_names = 'nobody'",
                   "SHOW synchronous_standby_names", "nobody");
    set_and_reload("ALTER SYSTEM SET deadlock_timeout = '1001ms'", "SHOW deadlock_timeout",
                   "1001ms");
    sql_run(side, "CHECKPOINT");
    sql_run(side, "CHECKPOINT");
}

/* A commit that waits for a standby that never comes is complete on this server; when its backend
 * ends, the answer is lost. */
START_TEST(W8_a_commit_whose_answer_was_lost_is_settled_once)
{
    given_running(300);
    int64_t more = add_jobs(200);
    given_commits_that_wait();
    submit_all(0, 300);
    ask(&store_a, more, 200, 200);
    RUN_UNTIL(sql_number(side, "SELECT count(*)::text FROM pg_stat_activity WHERE application_name "
                               "= 'store' AND wait_event = 'SyncRep'") == 1);
    sql_run(side, "SELECT pg_terminate_backend(pid)::text FROM pg_stat_activity WHERE "
                  "application_name = 'store'");
    RUN_UNTIL(got.finishes == 300 && got.claims == 2);
    ck_assert_uint_eq(job_store_counters(store_a.jobs)->unknown_outcomes, 1);
    ck_assert_int_eq(got.verdicts[FINISH_ALREADY], 300);
    ck_assert_uint_eq(got.job_count, 500);
    ASSERT_NUMBER("SELECT count(*)::text FROM claimd.job WHERE attempt = 1 AND state = 'running'",
                  200);
    ASSERT_NUMBER("SELECT count(*)::text FROM claimd.job_history", 300);
    sql_run(side, "ALTER SYSTEM RESET ALL");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("job_store_restart");
    TCase *tests = tcase_create("restart");
    tcase_set_timeout(tests, 40);
    tcase_add_checked_fixture(tests, server_setup, server_teardown);
    tcase_add_test(tests,
                   claims_are_answered_while_postgresql_is_away_and_finishes_kept_until_it_is_back);
    tcase_add_test(tests, a_kill_with_finishes_in_flight_settles_each_once);
    tcase_add_test(tests, W8_a_commit_whose_answer_was_lost_is_settled_once);
    suite_add_tcase(suite, tests);
    struct err err = {0};
    int code = EXIT_FAILURE;
    if (make_data(&err) == STATUS_OK) {
        code = suite_run(suite);
    } else {
        (void)fprintf(stderr, "no PostgreSQL: %s\n", err.msg);
    }
    dir_remove(world.dir);
    return code;
}
