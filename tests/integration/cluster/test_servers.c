/* SPDX-License-Identifier: Apache-2.0 */
#include "base/buf.h"
#include "base/clock.h"
#include "cluster/servers.h"
#include "support/suite.h"

#include <check.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

static char dir[SERVER_PATH_MAX];
static struct pg_server pg;
static struct redis_server redis;

#define WAIT_US (30 * US_PER_S)

#define assert_ok(expr)                                             \
    do {                                                            \
        struct err err_ = {0};                                      \
        struct err *err = &err_;                                    \
        enum status st_ = (expr);                                   \
        ck_assert_msg(st_ == STATUS_OK, "%s: %s", #expr, err->msg); \
    } while (0)

/* Runs a query with one row and one column. */
static void query(const char *conninfo, const char *sql, struct buf *out)
{
    const char *const argv[] = {"psql", "-XqAt", "-d", conninfo, "-c", sql, NULL};
    int code = -1;
    buf_reset(out);
    assert_ok(program_run(argv, NULL, WAIT_US, out, &code, err));
    ck_assert_msg(code == 0, "psql: %s", buf_at(out));
}

static void redis_cli(const char *command, const char *key, const char *value, struct buf *out)
{
    const char *const words[] = {command, key, value, NULL};
    buf_reset(out);
    assert_ok(redis_server_ask(&redis, words, out, err));
}

START_TEST(a_killed_postgres_comes_back_with_its_data)
{
    autobuf struct buf out = BUF_INIT(65536);
    query(pg.conninfo, "CREATE TABLE IF NOT EXISTS t AS SELECT 42 AS n; CHECKPOINT", &out);
    pg_server_kill(&pg);
    assert_ok(pg_server_restart(&pg, err));
    query(pg.conninfo, "SELECT n FROM t", &out);
    ck_assert_str_eq(buf_at(&out), "42\n");
    pg_server_stop(&pg);
}
END_TEST

START_TEST(a_database_is_made_from_a_template)
{
    char first[SERVER_PATH_MAX];
    char second[SERVER_PATH_MAX];
    autobuf struct buf out = BUF_INIT(65536);
    assert_ok(pg_server_create_db(&pg, "tpl", NULL, first, sizeof first, err));
    query(first, "CREATE TABLE from_template AS SELECT 7 AS n", &out);
    assert_ok(pg_server_create_db(&pg, "copy", "tpl", second, sizeof second, err));
    query(second, "SELECT n FROM from_template", &out);
    ck_assert_str_eq(buf_at(&out), "7\n");
}
END_TEST

START_TEST(a_database_with_a_bad_name_is_refused)
{
    char conninfo[SERVER_PATH_MAX];
    ck_assert_int_eq(pg_server_create_db(&pg, "x\"; DROP", NULL, conninfo, sizeof conninfo, NULL),
                     STATUS_INVALID);
}
END_TEST

/* Commits of the primary while the standby is cut off are lost with the primary, and nothing else
 * is. */
START_TEST(a_promoted_standby_has_what_was_streamed_to_it_and_takes_writes)
{
    char first[SERVER_PATH_MAX + 16];
    char second[SERVER_PATH_MAX + 16];
    char both[SERVER_PATH_MAX * 2];
    struct pg_server primary;
    struct pg_server standby;
    autobuf struct buf out = BUF_INIT(65536);
    (void)snprintf(first, sizeof first, "%s/primary", dir);
    (void)snprintf(second, sizeof second, "%s/standby", dir);
    assert_ok(pg_server_start(first, false, &primary, err));
    query(primary.conninfo, "CREATE TABLE streamed AS SELECT 1 AS n", &out);
    assert_ok(pg_standby_start(second, &primary, &standby, err));
    assert_ok(pg_standby_conninfo(&standby, &primary, "postgres", both, sizeof both, err));
    assert_ok(pg_standby_set_sync(&primary, true, err));
    query(both, "INSERT INTO streamed VALUES (2) RETURNING current_setting('data_directory')",
          &out);
    ck_assert_ptr_null(strstr(buf_at(&out), "standby"));
    assert_ok(pg_standby_set_sync(&primary, false, err));
    query(primary.conninfo, "INSERT INTO streamed VALUES (3)", &out);
    assert_ok(pg_standby_catch_up(&standby, &primary, err));
    assert_ok(pg_standby_cut(&standby, err));
    query(primary.conninfo, "INSERT INTO streamed VALUES (4)", &out);
    pg_server_kill(&primary);
    assert_ok(pg_standby_promote(&standby, err));
    query(both, "INSERT INTO streamed VALUES (5)", &out);
    query(both, "SELECT string_agg(n::text, ' ' ORDER BY n) FROM streamed", &out);
    ck_assert_str_eq(buf_at(&out), "1 2 3 5\n");
    pg_server_stop(&standby);
}
END_TEST

START_TEST(a_restarted_redis_is_empty)
{
    autobuf struct buf out = BUF_INIT(65536);
    redis_cli("SET", "k", "v", &out);
    ck_assert_str_eq(buf_at(&out), "OK\n");
    redis_server_kill(&redis);
    assert_ok(redis_server_restart(&redis, err));
    redis_cli("EXISTS", "k", NULL, &out);
    ck_assert_str_eq(buf_at(&out), "0\n");
    redis_server_stop(&redis);
}
END_TEST

START_TEST(a_program_reports_its_exit_code_or_signal)
{
    const char *const fails[] = {"/bin/sh", "-c", "exit $CODE", NULL};
    const char *const env[] = {"CODE=5", NULL};
    const char *const dies[] = {"/bin/sh", "-c", "kill -9 $$", NULL};
    const char *const absent[] = {"/does/not/exist", NULL};
    pid_t pid = 0;
    int code = -1;
    assert_ok(program_start(fails, env, NULL, &pid, err));
    assert_ok(program_wait(pid, WAIT_US, &code, err));
    ck_assert_int_eq(code, 5);
    assert_ok(program_start(dies, NULL, NULL, &pid, err));
    assert_ok(program_wait(pid, WAIT_US, &code, err));
    ck_assert_int_eq(code, 128 + SIGKILL);
    ck_assert_int_eq(program_start(absent, NULL, NULL, &pid, NULL), STATUS_UNAVAILABLE);
}
END_TEST

START_TEST(a_program_that_takes_too_long_is_killed)
{
    const char *const argv[] = {"sleep", "60", NULL};
    autobuf struct buf out = BUF_INIT(1024);
    int code = -1;
    ck_assert_int_eq(program_run(argv, NULL, 50 * US_PER_MS, &out, &code, NULL), STATUS_TIMEOUT);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("servers");
    TCase *t = tcase_create("servers");
    struct err err = {0};
    char redis_dir[SERVER_PATH_MAX + 16];
    if (dir_make(dir, sizeof dir, &err) != STATUS_OK ||
        pg_server_start(dir, false, &pg, &err) != STATUS_OK ||
        snprintf(redis_dir, sizeof redis_dir, "%s/r0", dir) < 0 ||
        redis_server_start(redis_dir, NULL, &redis, &err) != STATUS_OK) {
        (void)fprintf(stderr, "%s\n", err.msg);
        return EXIT_FAILURE;
    }
    tcase_set_timeout(t, 30);
    tcase_add_test(t, a_database_is_made_from_a_template);
    tcase_add_test(t, a_database_with_a_bad_name_is_refused);
    tcase_add_test(t, a_promoted_standby_has_what_was_streamed_to_it_and_takes_writes);
    tcase_add_test(t, a_program_reports_its_exit_code_or_signal);
    tcase_add_test(t, a_program_that_takes_too_long_is_killed);
    tcase_add_test(t, a_restarted_redis_is_empty); /* these two end the shared servers */
    tcase_add_test(t, a_killed_postgres_comes_back_with_its_data);
    suite_add_tcase(s, t);
    int code = suite_run(s);
    redis_server_stop(&redis);
    pg_server_stop(&pg);
    dir_remove(dir);
    return code;
}
