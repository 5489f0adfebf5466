/* SPDX-License-Identifier: Apache-2.0
 *
 * Daemons behind PgBouncer: in session mode they work; in transaction mode, where prepared
 * statements, settings and LISTEN apply to whichever client comes next, they refuse to start
 * (INTERFACES rule 8), even with a hostile search_path (fault.J1). Skipped if pgbouncer is not
 * installed. */
#include "base/buf.h"
#include "support/fleet.h"
#include "support/suite.h"

#include <check.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>

#define ENDS_WITH_USAGE 2
#define TEXT_MAX 65536

static struct fleet f;
static const char *const modes[] = {"session", "transaction"};
static pid_t poolers[ARRAY_COUNT(modes)];
static char conninfo[ARRAY_COUNT(modes)][SERVER_PATH_MAX + 128];

#define OK(call)                                                      \
    do {                                                              \
        struct err err = {0};                                         \
        ck_assert_msg((call) == STATUS_OK, "%s: %s", #call, err.msg); \
    } while (0)

static FILE *open_file(const char *dir, const char *name)
{
    char path[SERVER_PATH_MAX + 64];
    (void)snprintf(path, sizeof path, "%s/%s", dir, name);
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    return file;
}

static void write_settings(const char *dir, const char *mode, int port)
{
    FILE *users = open_file(dir, "users.txt");
    (void)fprintf(users, "\"fleet_worker\" \"\"\n\"fleet_scheduler\" \"\"\n");
    ck_assert_int_eq(fclose(users), 0);
    FILE *settings = open_file(dir, "pgbouncer.ini");
    (void)fprintf(settings,
                  "[databases]\n* = host=%s port=5432\n"
                  "[pgbouncer]\nlisten_addr =\nlisten_port = %d\nunix_socket_dir = %s\n"
                  "auth_type = trust\nauth_file = %s/users.txt\npool_mode = %s\n",
                  f.pg.dir, port, dir, dir, mode);
    ck_assert_int_eq(fclose(settings), 0);
}

static void start_pooler(size_t i)
{
    char dir[SERVER_PATH_MAX + 32];
    char settings[SERVER_PATH_MAX + 64];
    char log[SERVER_PATH_MAX + 64];
    char socket[SERVER_PATH_MAX + 64];
    int port = 6432 + (int)i;
    (void)snprintf(dir, sizeof dir, "%s/%s", f.dir, modes[i]);
    (void)snprintf(settings, sizeof settings, "%s/pgbouncer.ini", dir);
    (void)snprintf(log, sizeof log, "%s/pgbouncer.log", dir);
    (void)snprintf(socket, sizeof socket, "%s/.s.PGSQL.%d", dir, port);
    (void)snprintf(conninfo[i], sizeof conninfo[i],
                   "CLAIMD_POSTGRES_CONNINFO=host=%s port=%d dbname=claimd", dir, port);
    ck_assert_int_eq(mkdir(dir, 0777), 0);
    ck_assert_int_eq(chmod(dir, 0777), 0); /* the pooler's user makes its socket there */
    write_settings(dir, modes[i], port);
    const char *const argv[] = {"pgbouncer", settings, NULL};
    OK(program_start(argv, NULL, log, &poolers[i], &err));
    ck_assert_msg(WAIT_UNTIL(access(socket, F_OK) == 0, SOON_US), "see %s", log);
}

/* With a search_path that a DBA may have set for the users, in which PostgreSQL's own schema comes
 * last, the check for a pooler would call this function. */
static void plant(void)
{
    sql_run(f.sql, "CREATE SEQUENCE public.runs");
    sql_run(f.sql, "GRANT USAGE ON SEQUENCE public.runs TO PUBLIC");
    sql_run(f.sql, "CREATE FUNCTION public.pg_backend_pid() RETURNS integer LANGUAGE sql AS "
                   "$$SELECT nextval('public.runs')::integer$$");
    sql_run(f.sql, "ALTER ROLE fleet_worker SET search_path = public, pg_catalog");
    sql_run(f.sql, "ALTER ROLE fleet_scheduler SET search_path = public, pg_catalog");
}

static void assert_none_was_run(void)
{
    ck_assert_int_eq(
        sql_number(f.sql, "SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM public.runs"),
        0);
}

static void setup(void)
{
    fleet_start(&f, &(struct fleet_options){.masters = 3});
    plant();
    for (size_t i = 0; i < ARRAY_COUNT(modes); i++) {
        start_pooler(i);
    }
}

static void teardown(void)
{
    for (size_t i = 0; i < ARRAY_COUNT(modes); i++) {
        program_kill(poolers[i]);
    }
    fleet_stop(&f);
}

static void with_user(size_t mode, const char *user, char *ret, size_t size)
{
    (void)snprintf(ret, size, "%s user=%s", conninfo[mode], user);
}

START_TEST(rule8_daemons_work_behind_a_pooler_in_session_mode)
{
    char worker[SERVER_PATH_MAX + 192];
    char scheduler[SERVER_PATH_MAX + 192];
    with_user(0, "fleet_worker", worker, sizeof worker);
    with_user(0, "fleet_scheduler", scheduler, sizeof scheduler);
    fleet_launch_scheduler(&f, 0, (const char *const[]){scheduler, NULL});
    fleet_launch_worker(&f, 0, (const char *const[]){worker, NULL});
    (void)fleet_enqueue(&f, "noop", "{}", 100);
    fleet_wait_finished(&f, 100, "completed", SOON_US);
    fleet_signal(f.workers[0], SIGTERM);
    fleet_signal(f.schedulers[0], SIGTERM);
    ck_assert_int_eq(fleet_wait_end(&f, &f.workers[0]), 0);
    ck_assert_int_eq(fleet_wait_end(&f, &f.schedulers[0]), 0);
    assert_none_was_run();
}
END_TEST

START_TEST(rule8_daemons_refuse_a_pooler_in_transaction_mode)
{
    char worker[SERVER_PATH_MAX + 192];
    char scheduler[SERVER_PATH_MAX + 192];
    with_user(1, "fleet_worker", worker, sizeof worker);
    with_user(1, "fleet_scheduler", scheduler, sizeof scheduler);
    fleet_launch_worker(&f, 1, (const char *const[]){worker, NULL});
    ck_assert_int_eq(fleet_wait_end(&f, &f.workers[1]), ENDS_WITH_USAGE);
    fleet_launch_scheduler(&f, 1, (const char *const[]){scheduler, NULL});
    ck_assert_int_eq(fleet_wait_end(&f, &f.schedulers[1]), ENDS_WITH_USAGE);
    const char *why = "a pooler in transaction mode";
    ck_assert_int_gt(fleet_log_count(&f, "claimd-worker", 1, why), 0);
    ck_assert_int_gt(fleet_log_count(&f, "claimd-scheduler", 1, why), 0);
    assert_none_was_run();
}
END_TEST

static bool is_pgbouncer_there(void)
{
    const char *const argv[] = {"pgbouncer", "--version", NULL};
    autobuf struct buf out = BUF_INIT(TEXT_MAX);
    int code = -1;
    return program_run(argv, NULL, SOON_US, &out, &code, NULL) == STATUS_OK && code == 0;
}

int main(void)
{
    Suite *s = suite_create("pooler");
    TCase *c = tcase_create("pooler");
    if (!is_pgbouncer_there()) {
        return getenv("CLAIMD_REQUIRE_SERVICES") != NULL ? EXIT_FAILURE : 77;
    }
    tcase_set_timeout(c, 120);
    tcase_add_unchecked_fixture(c, setup, teardown);
    tcase_add_test(c, rule8_daemons_work_behind_a_pooler_in_session_mode);
    tcase_add_test(c, rule8_daemons_refuse_a_pooler_in_transaction_mode);
    suite_add_tcase(s, c);
    return suite_run_in_one(s);
}
