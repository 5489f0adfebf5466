/* SPDX-License-Identifier: Apache-2.0
 *
 * Errors that prevent a worker from starting, and services that it can start without. One fleet
 * without a scheduler: hints are pushed by hand. */
#include "base/buf.h"
#include "support/fleet.h"
#include "support/suite.h"

#include <check.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>

#define WORKER "claimd-worker"

static struct fleet f;

static void setup(void)
{
    fleet_start(&f, &(struct fleet_options){0});
}

static void teardown(void)
{
    fleet_stop(&f);
}

/* Starts worker i, whose log must contain `text` when it has ended. Returns its exit code. */
static int end_of_launch(size_t i, const char *const *env, const char *text)
{
    fleet_launch_worker(&f, i, env);
    int code = fleet_wait_end(&f, &f.workers[i]);
    ck_assert_msg(fleet_log_count(&f, WORKER, i, text) > 0, "worker %zu's log lacks \"%s\"", i,
                  text);
    return code;
}

static void drain(size_t i)
{
    fleet_signal(f.workers[i], SIGTERM);
    ck_assert_int_eq(fleet_wait_end(&f, &f.workers[i]), 0);
}

START_TEST(a_worker_refuses_the_state_directory_of_another)
{
    char state[SERVER_PATH_MAX + 64];
    fleet_start_worker(&f, 0, NULL);
    (void)snprintf(state, sizeof state, "CLAIMD_WORKER_STATE_DIR=%s/state-0", f.dir);
    ck_assert_int_eq(end_of_launch(1, (const char *const[]){state, NULL}, "another worker uses it"),
                     2);
    ck_assert(fleet_is_registered(&f, 0));
    drain(0);
}
END_TEST

/* Checks that the daemon ends with 2 and logs `reason`. */
static void refused_with_file(const char *daemon, const char *text, const char *reason)
{
    char path[SERVER_PATH_MAX + 64];
    char program[SERVER_PATH_MAX + 64];
    struct err err = {0};
    int code = -1;
    autobuf struct buf out = BUF_INIT(65536);
    (void)snprintf(path, sizeof path, "%s/refused.json", f.dir);
    (void)snprintf(program, sizeof program, "%s/%s", getenv("CLAIMD_BIN_DIR"), daemon);
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    (void)fputs(text, file);
    ck_assert_int_eq(fclose(file), 0);
    const char *argv[] = {program, "--config", path, NULL};
    ck_assert_msg(program_run(argv, NULL, SOON_US, &out, &code, &err) == STATUS_OK, "%s", err.msg);
    ck_assert_int_eq(code, 2);
    ck_assert(memmem(buf_at(&out), out.len, reason, strlen(reason)) != NULL);
}

START_TEST(a_worker_refuses_a_configuration_with_an_unknown_key)
{
    refused_with_file(WORKER, "{\"worker\": {\"slotz\": 2}}\n", "slotz");
}
END_TEST

START_TEST(a_daemon_refuses_a_configuration_without_lock_nodes)
{
    refused_with_file(WORKER, "{}\n", "lock.nodes: is empty");
    refused_with_file("claimd-scheduler", "{}\n", "lock.nodes: is empty");
}
END_TEST

static const char *const no_postgres[] = {"CLAIMD_POSTGRES_CONNINFO=host=/nowhere dbname=claimd",
                                          "CLAIMD_POSTGRES_TIMEOUT_MS=500", NULL};

START_TEST(a_worker_without_postgresql_at_its_start_ends_after_two_timeouts)
{
    int64_t began_us = clock_boot_us();
    ck_assert_int_eq(end_of_launch(2, no_postgres, "event=start_failed"), 3);
    ck_assert_int_ge(clock_boot_us() - began_us, US_PER_S);
}
END_TEST

START_TEST(A8_a_worker_that_waits_for_postgresql_ends_at_a_signal)
{
    fleet_launch_worker(
        &f, 3, (const char *const[]){no_postgres[0], "CLAIMD_POSTGRES_TIMEOUT_MS=60000", NULL});
    ck_assert(WAIT_UNTIL(fleet_log_count(&f, WORKER, 3, "event=postgres_down") > 0, SOON_US));
    drain(3);
}
END_TEST

START_TEST(a_worker_refuses_a_schema_of_another_version_and_says_which)
{
    int64_t version = sql_number(f.sql, "SELECT schema_version FROM claimd.cluster");
    char text[128];
    sql_run(f.sql, "UPDATE claimd.cluster SET schema_version = schema_version - 1");
    (void)snprintf(text, sizeof text, "needs %lld: run `claimctl db migrate`", (long long)version);
    int code = end_of_launch(4, NULL, text);
    sql_run(f.sql, "UPDATE claimd.cluster SET schema_version = schema_version + 2, "
                   "oldest_program = schema_version + 2");
    (void)snprintf(text, sizeof text, "this build knows %lld", (long long)version);
    int newer = end_of_launch(5, NULL, text);
    sql_run(f.sql, "UPDATE claimd.cluster SET schema_version = schema_version - 1, "
                   "oldest_program = schema_version - 1");
    ck_assert_int_eq(code, 5);
    ck_assert_int_eq(newer, 5);
}
END_TEST

START_TEST(lock_N8_a_worker_refuses_lock_nodes_that_differ_from_the_clusters)
{
    char nodes[4 * SERVER_PATH_MAX];
    fleet_start_worker(&f, 0, NULL);
    drain(0);
    (void)snprintf(nodes, sizeof nodes, "CLAIMD_LOCK_NODES=unix:%s,unix:%s,unix:%s",
                   f.masters[0].path, f.masters[1].path, f.masters[2].path);
    ck_assert_int_eq(end_of_launch(1, (const char *const[]){nodes, NULL}, "event=start_failed"), 2);
}
END_TEST

/* ---- ready ---- */

START_TEST(the_ready_line_says_what_a_daemon_is_connected_to_and_serves)
{
    char text[128];
    const char *version =
        sql_text(f.sql, "SELECT split_part(current_setting('server_version'), ' ', 1)");
    (void)snprintf(text, sizeof text, " postgres=%s redis=\"5 of 5 voting\" redis_versions=\"",
                   version);
    fleet_start_scheduler(&f, 0);
    fleet_launch_worker(&f, 0, (const char *const[]){"CLAIMD_WORKER_QUEUES=default,images", NULL});
    ck_assert(WAIT_UNTIL(fleet_log_count(&f, "claimd-scheduler", 0, "event=ready") > 0, SOON_US));
    ck_assert(WAIT_UNTIL(fleet_is_registered(&f, 0), SOON_US));
    ck_assert(WAIT_UNTIL(fleet_log_count(&f, WORKER, 0, "queues=default,images kind_count=") > 0,
                         SOON_US));
    ck_assert_int_eq(fleet_log_count(&f, "claimd-scheduler", 0, text), 1);
    ck_assert_int_gt(fleet_log_count(&f, WORKER, 0, text), 0);
    drain(0);
    fleet_signal(f.schedulers[0], SIGTERM);
    ck_assert_int_eq(fleet_wait_end(&f, &f.schedulers[0]), 0);
}
END_TEST

START_TEST(daemons_are_known_by_the_host_that_they_are_told)
{
    static const char *const env[] = {"CLAIMD_HOST=rack-7", NULL};
    fleet_start_worker_with(&f, 2, env);
    ck_assert_int_eq(sql_number(f.sql, "SELECT count(*) FROM claimd.worker WHERE host = 'rack-7'"),
                     1);
    fleet_launch_scheduler(&f, 0, env);
    ck_assert(WAIT_UNTIL(
        sql_number(f.sql, "SELECT count(*) FROM claimd.scheduler WHERE host = 'rack-7'") == 1,
        SOON_US));
    drain(2);
    fleet_signal(f.schedulers[0], SIGTERM);
    ck_assert_int_eq(fleet_wait_end(&f, &f.schedulers[0]), 0);
}
END_TEST

START_TEST(a_worker_is_ready_without_two_of_five_nodes)
{
    struct err err = {0};
    redis_server_kill(&f.masters[3]);
    redis_server_kill(&f.masters[4]);
    fleet_start_worker(&f, 0, NULL);
    ck_assert(WAIT_UNTIL(fleet_log_count(&f, WORKER, 0, "redis=\"3 of 5 voting\"") > 0, SOON_US));
    drain(0);
    for (size_t i = 3; i < 5; i++) {
        ck_assert_int_eq(redis_server_restart(&f.masters[i], &err), STATUS_OK);
    }
}
END_TEST

/* Returns the first line of worker 3's log that contains `text`; 0 = none. No other test writes
 * that log. */
static int line_of(const char *text)
{
    char path[SERVER_PATH_MAX + 64];
    char line[4096];
    int n = 0;
    (void)snprintf(path, sizeof path, "%s/%s-3.log", f.dir, WORKER);
    FILE *file = fopen(path, "re");
    ck_assert_ptr_nonnull(file);
    bool is_found = false;
    while (!is_found && fgets(line, sizeof line, file) != NULL) {
        n++;
        is_found = strstr(line, text) != NULL;
    }
    (void)fclose(file);
    return is_found ? n : 0;
}

START_TEST(a_worker_that_starts_without_a_majority_says_so_after_it_is_ready_not_before)
{
    for (size_t i = 0; i < 3; i++) {
        fleet_signal(f.masters[i].pid, SIGSTOP);
    }
    fleet_start_worker(&f, 3, NULL);
    ck_assert(WAIT_UNTIL(line_of("event=quorum_lost") > 0, SOON_US));
    ck_assert_int_gt(line_of("event=ready"), 0);
    ck_assert_int_lt(line_of("event=ready"), line_of("event=quorum_lost"));
    for (size_t i = 0; i < 3; i++) {
        fleet_signal(f.masters[i].pid, SIGCONT);
    }
    drain(3);
}
END_TEST

/* ---- trouble and its end ---- */

START_TEST(an_absence_of_postgresql_is_told_at_growing_distance_and_its_end_once)
{
    struct err err = {0};
    fleet_start_scheduler(&f, 0);
    fleet_start_worker(&f, 0, NULL);
    ck_assert(WAIT_UNTIL(fleet_log_count(&f, "claimd-scheduler", 0, "event=ready") > 0, SOON_US));
    int64_t began_us = clock_boot_us();
    pg_server_kill(&f.pg);
    static const char *const programs[] = {WORKER, "claimd-scheduler"};
    for (size_t i = 0; i < ARRAY_COUNT(programs); i++) {
        ck_assert(WAIT_UNTIL(fleet_log_count(&f, programs[i], 0, "event=postgres_down") >= 2,
                             SOON_US)); /* the second line comes after a second */
    }
    ck_assert_int_ge(clock_boot_us() - began_us, US_PER_S / 2);
    ck_assert_msg(pg_server_restart(&f.pg, &err) == STATUS_OK, "%s", err.msg);
    for (size_t i = 0; i < ARRAY_COUNT(programs); i++) {
        ck_assert(WAIT_UNTIL(fleet_log_count(&f, programs[i], 0, "event=postgres_up after=") == 1,
                             SOON_US));
        ck_assert_int_le(fleet_log_count(&f, programs[i], 0, "event=postgres_down"), 6);
    }
    sql_close(f.sql);
    f.sql = sql_open(f.conninfo);
    drain(0);
    fleet_signal(f.schedulers[0], SIGTERM);
    ck_assert_int_eq(fleet_wait_end(&f, &f.schedulers[0]), 0);
}
END_TEST

/* ---- plugins ---- */

/* Copies the first `size` bytes of a file; 0 = all. */
static void copy_plugin(const char *from, const char *dir, const char *name, size_t size)
{
    static char bytes[1 << 20];
    char to[SERVER_PATH_MAX + 64];
    (void)snprintf(to, sizeof to, "%s/%s", dir, name);
    autoclose int in = open(from, O_RDONLY | O_CLOEXEC);
    autoclose int out = open(to, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    ck_assert_msg(in >= 0 && out >= 0, "copy %s to %s", from, to);
    ssize_t n = read(in, bytes, size == 0 ? sizeof bytes : size);
    ck_assert_int_gt(n, 0);
    ck_assert_int_eq(write(out, bytes, (size_t)n), n);
}

static void make_mixed_plugins(char *ret_dir, size_t size)
{
    char from[SERVER_PATH_MAX + 64];
    (void)snprintf(ret_dir, size, "%s/mixed", f.dir);
    ck_assert_int_eq(mkdir(ret_dir, 0755), 0);
    (void)snprintf(from, sizeof from, "%s/noop.so", getenv("CLAIMD_PLUGIN_DIR"));
    copy_plugin(from, ret_dir, "noop.so", 0);
    (void)snprintf(from, sizeof from, "%s/sleep.so", getenv("CLAIMD_PLUGIN_DIR"));
    copy_plugin(from, ret_dir, "sleep.so", 3000);
    (void)snprintf(from, sizeof from, "%s_bad/wrong_abi.so", getenv("CLAIMD_TEST_PLUGIN_DIR"));
    copy_plugin(from, ret_dir, "wrong_abi.so", 0);
}

START_TEST(G6_a_plugin_that_cannot_be_loaded_is_told_once_and_the_others_run)
{
    char dir[SERVER_PATH_MAX + 16];
    char env[SERVER_PATH_MAX + 64];
    char command[128];
    make_mixed_plugins(dir, sizeof dir);
    (void)snprintf(env, sizeof env, "CLAIMD_WORKER_PLUGIN_DIR=%s", dir);
    fleet_start_worker_with(&f, 0, (const char *const[]){env, NULL});
    ck_assert_int_eq(
        sql_number(f.sql,
                   "SELECT count(*) FROM claimd.worker WHERE pid = %d AND NOT stopped AND "
                   "kinds = '{noop}'",
                   (int)f.workers[0]),
        1);
    int64_t id = fleet_enqueue(&f, "noop", "{}", 1);
    (void)snprintf(command, sizeof command, "ZADD claimd:hints:default 40000000000000 %lld",
                   (long long)id);
    fleet_redis(&f, 0, command);
    fleet_wait_finished(&f, 1, "completed", SOON_US);
    ck_assert_int_eq(fleet_log_count(&f, WORKER, 0, "event=plugin_refused"), 2);
    ck_assert_int_eq(fleet_log_count(&f, WORKER, 0, "file=wrong_abi.so"), 1);
    drain(0);
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("worker's start");
    TCase *c = tcase_create("start");
    tcase_set_timeout(c, 60);
    tcase_add_unchecked_fixture(c, setup, teardown);
    tcase_add_test(c, a_worker_refuses_the_state_directory_of_another);
    tcase_add_test(c, a_worker_refuses_a_configuration_with_an_unknown_key);
    tcase_add_test(c, a_daemon_refuses_a_configuration_without_lock_nodes);
    tcase_add_test(c, a_worker_without_postgresql_at_its_start_ends_after_two_timeouts);
    tcase_add_test(c, A8_a_worker_that_waits_for_postgresql_ends_at_a_signal);
    tcase_add_test(c, a_worker_refuses_a_schema_of_another_version_and_says_which);
    tcase_add_test(c, lock_N8_a_worker_refuses_lock_nodes_that_differ_from_the_clusters);
    tcase_add_test(c, the_ready_line_says_what_a_daemon_is_connected_to_and_serves);
    tcase_add_test(c, a_worker_is_ready_without_two_of_five_nodes);
    tcase_add_test(c, a_worker_that_starts_without_a_majority_says_so_after_it_is_ready_not_before);
    tcase_add_test(c, an_absence_of_postgresql_is_told_at_growing_distance_and_its_end_once);
    tcase_add_test(c, G6_a_plugin_that_cannot_be_loaded_is_told_once_and_the_others_run);
    tcase_add_test(c, daemons_are_known_by_the_host_that_they_are_told);
    suite_add_tcase(s, c);
    return s;
}

int main(void)
{
    return suite_run_in_one(suite());
}
