/* SPDX-License-Identifier: Apache-2.0
 *
 * deploy/redis/claimd.acl and deploy/postgres/roles.sql give the daemons the rights that they need,
 * and no others (fault.J2, fault.J3, lock.C5). One fleet serves all tests of this program. */
#include "base/buf.h"
#include "cluster/child.h"
#include "support/fleet.h"
#include "support/suite.h"

#include <check.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>

#define OUTPUT_MAX ((size_t)1 << 20)
#define PATH_SIZE (SERVER_PATH_MAX + 64)
#define WORDS_MAX 12
#define REFUSED "42501"
#define SCRIPT_REFUSED "executing the script can't|ACL failure in script" /* Redis 7.0|later */

static struct fleet fleet;
static char secrets[SERVER_PATH_MAX]; /* a file for each user's password */
static char conf[2 * PATH_SIZE];

#define OK(call)                                                      \
    do {                                                              \
        struct err err = {0};                                         \
        ck_assert_msg((call) == STATUS_OK, "%s: %s", #call, err.msg); \
    } while (0)

/* ---- the files of deploy/ ---- */

static void write_file(const char *path, const char *text, mode_t mode)
{
    struct err err = {0};
    autoclose int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, mode);
    ck_assert_msg(fd >= 0, "%s", path);
    ck_assert_int_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    ck_assert_msg(child_user_owns(path, &err) == STATUS_OK, "%s", err.msg);
}

static const char *password_file(const char *name)
{
    static char path[PATH_SIZE];
    (void)snprintf(path, sizeof path, "%s/%s", secrets, name);
    return path;
}

static void make_passwords(void)
{
    static const char *const names[] = {"claimd_scheduler",    "claimd_worker",
                                        "claimd_ctl",          "claimd_scheduler_login",
                                        "claimd_worker_login", "claimd_producer_login"};
    OK(dir_make(secrets, sizeof secrets, &err));
    for (size_t i = 0; i < ARRAY_COUNT(names); i++) {
        char line[64];
        (void)snprintf(line, sizeof line, "pw of '%s'\n", names[i]);
        write_file(password_file(names[i]), line, 0600);
    }
}

static void run(const char *const *argv, struct buf *out)
{
    int code = -1;
    OK(program_run(argv, NULL, SOON_US, out, &code, &err));
    OK(buf_append(out, "", 1, &err));
    ck_assert_msg(code == 0, "%s: exit %d: %s", argv[0], code, buf_at(out));
}

/* Writes the shipped users, and an operator of the test who may read everything. */
static void make_acl(void)
{
    char script[PATH_SIZE];
    char users[3][2 * PATH_SIZE];
    char path[PATH_SIZE];
    static const char *const names[] = {"claimd_scheduler", "claimd_worker", "claimd_ctl"};
    autobuf struct buf out = BUF_INIT(OUTPUT_MAX);
    (void)snprintf(script, sizeof script, "%s/deploy/redis/make-acl.sh",
                   getenv("CLAIMD_SOURCE_DIR"));
    for (size_t i = 0; i < ARRAY_COUNT(names); i++) {
        (void)snprintf(users[i], sizeof users[i], "%s=%s", names[i], password_file(names[i]));
    }
    run((const char *const[]){script, users[0], users[1], users[2], NULL}, &out);
    (void)snprintf(path, sizeof path, "%s/users.acl", secrets);
    write_file(path, buf_at(&out), 0644);
    write_file(path, "user operator on >op ~* &* +@all\n", 0644);
    (void)snprintf(conf, sizeof conf, "aclfile %s", path);
}

static void psql_roles(void)
{
    char text[4 * PATH_SIZE];
    char path[PATH_SIZE];
    autobuf struct buf out = BUF_INIT(OUTPUT_MAX);
    (void)snprintf(text, sizeof text,
                   "\\set scheduler_password `cat '%s/claimd_scheduler_login'`\n"
                   "\\set worker_password `cat '%s/claimd_worker_login'`\n"
                   "\\set producer_password `cat '%s/claimd_producer_login'`\n"
                   "\\i '%s/deploy/postgres/roles.sql'\n",
                   secrets, secrets, secrets, getenv("CLAIMD_SOURCE_DIR"));
    (void)snprintf(path, sizeof path, "%s/roles.psql", secrets);
    write_file(path, text, 0600);
    run((const char *const[]){"psql", "-X", "-d", fleet.conninfo, "-f", path, NULL}, &out);
    ck_assert_str_eq(buf_at(&out),
                     "claimd_scheduler_login\nclaimd_worker_login\nclaimd_producer_login\n");
}

/* As in SECURITY.md, "A database of its own". */
static void close_the_database(void)
{
    sql_run(fleet.sql, "REVOKE ALL ON DATABASE claimd FROM PUBLIC");
    sql_run(fleet.sql, "GRANT CONNECT ON DATABASE claimd TO claimd_admin, claimd_scheduler, "
                       "claimd_worker, claimd_producer, claimd_reader");
    sql_run(fleet.sql, "REVOKE CREATE ON SCHEMA public FROM PUBLIC");
}

/* From now on every user except the superuser needs a password. */
static void ask_for_passwords(void)
{
    static const char load_time[] = "SELECT extract(epoch FROM pg_conf_load_time()) * 1000000";
    char path[PATH_SIZE];
    (void)snprintf(path, sizeof path, "%s/data/pg_hba.conf", fleet.pg.dir);
    ck_assert_int_eq(truncate(path, 0), 0);
    write_file(path, "local all postgres trust\nlocal all all scram-sha-256\n", 0600);
    int64_t before = sql_number(fleet.sql, load_time);
    sql_run(fleet.sql, "SELECT pg_reload_conf()");
    ck_assert(WAIT_UNTIL(sql_number(fleet.sql, load_time) != before, SOON_US));
}

/* ---- daemons as their users ---- */

struct login {
    char conninfo[2 * SERVER_PATH_MAX];
    char pg_password[PATH_SIZE];
    char redis_user[64];
    char redis_password[PATH_SIZE];
    const char *env[6];
};

static const char *const *login_env(struct login *l, const char *role)
{
    (void)snprintf(l->conninfo, sizeof l->conninfo,
                   "CLAIMD_POSTGRES_CONNINFO=%s user=claimd_%s_login", fleet.conninfo, role);
    (void)snprintf(l->pg_password, sizeof l->pg_password,
                   "CLAIMD_POSTGRES_PASSWORD_FILE=%s/claimd_%s_login", secrets, role);
    (void)snprintf(l->redis_user, sizeof l->redis_user, "CLAIMD_REDIS_USER=claimd_%s", role);
    (void)snprintf(l->redis_password, sizeof l->redis_password,
                   "CLAIMD_REDIS_PASSWORD_FILE=%s/claimd_%s", secrets, role);
    l->env[0] = l->conninfo;
    l->env[1] = l->pg_password;
    l->env[2] = l->redis_user;
    l->env[3] = l->redis_password;
    return l->env;
}

static void start_worker(size_t i)
{
    struct login l = {0};
    fleet_start_worker_with(&fleet, i, login_env(&l, "worker"));
}

static void setup(void)
{
    struct login l = {0};
    make_passwords();
    make_acl();
    fleet_start(&fleet, &(struct fleet_options){.masters = 3, .redis_conf = conf});
    psql_roles();
    close_the_database();
    ask_for_passwords();
    fleet_launch_scheduler(&fleet, 0, login_env(&l, "scheduler"));
    start_worker(0);
}

static void teardown(void)
{
    fleet_stop(&fleet);
    dir_remove(secrets);
}

static int complaints(const char *text)
{
    return fleet_log_count(&fleet, "claimd-worker", 0, text) +
           fleet_log_count(&fleet, "claimd-worker", 1, text) +
           fleet_log_count(&fleet, "claimd-scheduler", 0, text);
}

static void as_user(size_t master, const char *user, const char *password, const char *command,
                    struct buf *out)
{
    const char *words[WORDS_MAX + 8] = {"--no-auth-warning"};
    char text[1024];
    char *rest = NULL;
    size_t n = 1;
    if (user != NULL) {
        words[n++] = "--user";
        words[n++] = user;
        words[n++] = "--pass";
        words[n++] = password;
    }
    (void)snprintf(text, sizeof text, "%s", command);
    for (char *word = strtok_r(text, " ", &rest); word != NULL; word = strtok_r(NULL, " ", &rest)) {
        ck_assert_uint_lt(n, ARRAY_COUNT(words) - 1);
        words[n++] = word;
    }
    OK(redis_server_ask(&fleet.masters[master], words, out, &err));
    OK(buf_append(out, "", 1, &err));
}

/* True if `where` contains one of `texts`, which are separated by '|'. */
static bool has_one_of(const char *where, const char *texts)
{
    char copy[128];
    char *rest = NULL;
    (void)snprintf(copy, sizeof copy, "%s", texts);
    for (char *text = strtok_r(copy, "|", &rest); text != NULL; text = strtok_r(NULL, "|", &rest)) {
        if (strstr(where, text) != NULL) {
            return true;
        }
    }
    return false;
}

/* `command`: words separated by single spaces. */
static void redis_says(const char *user, const char *command, const char *expected)
{
    char password[64] = "op";
    autobuf struct buf out = BUF_INIT(OUTPUT_MAX);
    if (user != NULL && strcmp(user, "operator") != 0) {
        (void)snprintf(password, sizeof password, "pw of '%s'", user);
    }
    as_user(0, user, password, command, &out);
    ck_assert_msg(has_one_of(buf_at(&out), expected), "%s: %s: %s", user, command, buf_at(&out));
}

static bool redis_is_empty(size_t master, const char *command)
{
    autobuf struct buf out = BUF_INIT(OUTPUT_MAX);
    as_user(master, "operator", "op", command, &out);
    return strspn(buf_at(&out), "\n") == strlen(buf_at(&out));
}

/* Returns how often a master refused to block for hints. */
static int64_t refused_pops(size_t master)
{
    static const char name[] = "cmdstat_bzmpop:";
    static const char count[] = "rejected_calls=";
    autobuf struct buf out = BUF_INIT(OUTPUT_MAX);
    as_user(master, "operator", "op", "INFO commandstats", &out);
    const char *at = strstr(buf_at(&out), name);
    at = at == NULL ? NULL : strstr(at, count);
    return at == NULL ? 0 : strtoll(at + strlen(count), NULL, 10);
}

static bool no_lock_is_left(void)
{
    return redis_is_empty(0, "KEYS claimd:job:[0-9]*") &&
           redis_is_empty(1, "KEYS claimd:job:[0-9]*") &&
           redis_is_empty(2, "KEYS claimd:job:[0-9]*");
}

/* ---- what must work ---- */

static int64_t finished(const char *state)
{
    return sql_number(fleet.sql, "SELECT count(*) FROM claimd.job_history WHERE state = '%s'",
                      state);
}

static bool two_run(void)
{
    return sql_number(fleet.sql, "SELECT count(*) FROM claimd.job WHERE state = 'running'") == 2;
}

/* Kills worker 0 while it runs two jobs. */
static void given_death_at_work(void)
{
    fleet_enqueue(&fleet, "sleep", "{\"ms\": 3000}", 2);
    ck_assert(WAIT_UNTIL(two_run(), SOON_US));
    fleet_signal(fleet.workers[0], SIGKILL);
    (void)fleet_wait_end(&fleet, &fleet.workers[0]);
}

START_TEST(P1_C5_the_least_rights_are_enough_for_jobs_and_their_rescue)
{
    fleet_enqueue(&fleet, "noop", "{}", 300);
    fleet_enqueue(&fleet, "fail", "{}", 1);
    fleet_wait_finished(&fleet, 300, "completed", SOON_US);
    ck_assert_int_eq(finished("discarded"), 1);
    /* A restarted worker hands back its predecessor's jobs; the scheduler moves the jobs of a
     * worker that does not return. They last longer than a lease, so leases are extended as
     * well. */
    given_death_at_work();
    start_worker(0);
    ck_assert(WAIT_UNTIL(finished("completed") == 302, SOON_US));
    given_death_at_work();
    start_worker(1);
    ck_assert(WAIT_UNTIL(finished("completed") == 304, SOON_US));
    ck_assert(WAIT_UNTIL(no_lock_is_left(), SOON_US));
    ck_assert_int_ge(fleet_log_count(&fleet, "claimd-worker", 0, "event=predecessor_ended"), 1);
    ck_assert_int_ge(fleet_log_count(&fleet, "claimd-scheduler", 0, "event=rescued"), 1);
    for (size_t i = 0; i < fleet.options.masters; i++) {
        ck_assert(redis_is_empty(i, "ACL LOG")); /* no command was refused, in scripts either */
    }
    ck_assert_int_eq(complaints("permission denied"), 0);
}
END_TEST

START_TEST(C5_doctor_is_content_with_its_user)
{
    static const char env[] = "CLAIMD_REDIS_USER=claimd_ctl";
    char claimctl[PATH_SIZE];
    char config[PATH_SIZE];
    char password[PATH_SIZE];
    autobuf struct buf out = BUF_INIT(OUTPUT_MAX);
    int code = -1;
    (void)snprintf(claimctl, sizeof claimctl, "%s/claimctl", getenv("CLAIMD_BIN_DIR"));
    (void)snprintf(config, sizeof config, "%s/config.json", fleet.dir);
    (void)snprintf(password, sizeof password, "CLAIMD_REDIS_PASSWORD_FILE=%s/claimd_ctl", secrets);
    const char *argv[] = {claimctl, "--config", config, "doctor", NULL};
    OK(program_run(argv, (const char *const[]){env, password, NULL}, SOON_US, &out, &code, &err));
    OK(buf_append(&out, "", 1, &err));
    ck_assert_msg(code == 0 && strstr(buf_at(&out), "3 of 3") != NULL &&
                      strstr(buf_at(&out), "one leads") != NULL,
                  "exit %d: %s", code, buf_at(&out));
}
END_TEST

/* ---- what must be refused ---- */

static struct sql *login(const char *role)
{
    char conninfo[2 * SERVER_PATH_MAX];
    (void)snprintf(conninfo, sizeof conninfo,
                   "%s user=claimd_%s_login password='pw of \\'claimd_%s_login\\''", fleet.conninfo,
                   role, role);
    return sql_open(conninfo);
}

static void refuses(const char *role, const char *const *statements, size_t count)
{
    struct sql *s = login(role);
    for (size_t i = 0; i < count; i++) {
        const char *why = sql_refusal(s, "%s", statements[i]);
        ck_assert_msg(strncmp(why, REFUSED, 5) == 0, "%s: %s: '%s'", role, statements[i], why);
    }
    sql_close(s);
}

START_TEST(J2_the_workers_login_can_not_put_jobs_in_change_them_or_touch_the_schema)
{
    static const char *const statements[] = {
        "INSERT INTO claimd.job (kind) VALUES ('noop')",
        "SELECT claimd.enqueue('noop')",
        "UPDATE claimd.job SET args = '{}'",
        "UPDATE claimd.job SET kind = 'sleep', priority = 0",
        "UPDATE claimd.job_history SET state = 'completed'",
        "DELETE FROM claimd.job_history",
        "CREATE TABLE claimd.mine (x int)",
        "CREATE TABLE public.mine (x int)",
        "CREATE TEMPORARY TABLE mine (x int)",
        "ALTER TABLE claimd.job ADD COLUMN mine int",
        "DROP TABLE claimd.job",
        "TRUNCATE claimd.job",
        "SELECT setval('claimd.fence', 1)",
        "COPY claimd.queue FROM PROGRAM 'id'",
        "COPY claimd.cluster TO '/tmp/claimd_least_rights'",
        "SELECT pg_read_file('/etc/hostname')",
        "CREATE ROLE mine",
        "ALTER ROLE claimd_worker_login SUPERUSER",
        "GRANT claimd_worker TO claimd_producer_login",
        "SET ROLE claimd_scheduler",
        "SET SESSION AUTHORIZATION claimd_scheduler_login",
        "SELECT rolpassword FROM pg_authid",
        "SELECT pg_reload_conf()",
        ("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = "
         "'claimd_scheduler_login'"),
    };
    refuses("worker", statements, ARRAY_COUNT(statements));
}
END_TEST

/* Runs psql with variables; -v shows passwords to every user, but these are not real ones. */
static int psql_says(const char *variable, const char *expected)
{
    char script[PATH_SIZE];
    autobuf struct buf out = BUF_INIT(OUTPUT_MAX);
    int code = -1;
    (void)snprintf(script, sizeof script, "%s/deploy/postgres/roles.sql",
                   getenv("CLAIMD_SOURCE_DIR"));
    const char *argv[] = {"psql", "-X", "-d", fleet.conninfo, "-v", variable, "-f", script, NULL};
    OK(program_run(argv, NULL, SOON_US, &out, &code, &err));
    OK(buf_append(&out, "", 1, &err));
    ck_assert_msg(strstr(buf_at(&out), expected) != NULL, "%s: %s", variable, buf_at(&out));
    return code;
}

START_TEST(bad_input_to_roles_sql_changes_nothing)
{
    ck_assert_int_eq(psql_says("nothing=", "no password is given: set scheduler_password"), 3);
    ck_assert_int_eq(psql_says("reader_password=", "claimd_reader_login: its password is empty"),
                     3);
    sql_run(fleet.sql, "CREATE ROLE claimd_reader_login CREATEDB");
    ck_assert_int_eq(psql_says("reader_password=x", "may do more than a program of claimd needs"),
                     3);
    ck_assert_int_eq(sql_number(fleet.sql, "SELECT count(*) FROM pg_auth_members WHERE member = "
                                           "'claimd_reader_login'::regrole"),
                     0);
    sql_run(fleet.sql, "ALTER ROLE claimd_reader_login NOCREATEDB");
    ck_assert_int_eq(psql_says("reader_password=pw of 'claimd_reader_login'", "_reader_login"), 0);
    sql_close(login("reader"));
}
END_TEST

START_TEST(J2_the_schedulers_login_rules_its_schema_and_no_more)
{
    static const char *const statements[] = {
        "CREATE SCHEMA mine",
        "CREATE ROLE mine",
        "GRANT claimd_admin TO claimd_scheduler_login",
        "SET ROLE postgres",
        "COPY claimd.queue FROM PROGRAM 'id'",
        "SELECT pg_read_file('/etc/hostname')",
        "ALTER SYSTEM SET fsync = off",
        "SELECT rolpassword FROM pg_authid",
    };
    refuses("scheduler", statements, ARRAY_COUNT(statements));
}
END_TEST

START_TEST(J2_the_producers_login_puts_jobs_in_and_sees_none)
{
    static const char *const statements[] = {
        "SELECT args FROM claimd.job", "SELECT * FROM claimd.jobs", "DELETE FROM claimd.job",
        "SELECT * FROM claimd.worker", "SET ROLE claimd_worker",
    };
    refuses("producer", statements, ARRAY_COUNT(statements));
    struct sql *s = login("producer");
    int64_t id =
        sql_number(s, "SELECT claimd.enqueue('noop', scheduled_at => now() + interval '1 h')");
    sql_run(s, "SELECT claimd.cancel(%lld)", (long long)id);
    sql_close(s);
}
END_TEST

/* Refused to the scheduler and to the worker. */
static const char *const nobodys_commands[] = {
    "FLUSHALL",
    "FLUSHDB",
    "CONFIG GET *",
    "CONFIG SET maxmemory 1",
    "KEYS *",
    "SCAN 0",
    "RANDOMKEY",
    "DBSIZE",
    "ACL LIST",
    "ACL SETUSER claimd_worker allkeys",
    "CLIENT LIST",
    "CLIENT PAUSE 1000",
    "SHUTDOWN",
    "MONITOR",
    "SAVE",
    "REPLICAOF 127.0.0.1 1",
    "MODULE LIST",
    "FUNCTION LIST",
    "SCRIPT FLUSH",
    "SCRIPT KILL",
    "SUBSCRIBE foreign",
    "PUBLISH foreign x",
    "RENAME claimd:job:1 foreign",
    "EXPIRE claimd:job:1 1",
    "MIGRATE 127.0.0.1 1 claimd:job:1 0 1",
    "SWAPDB 0 1",
    "SELECT 1",
};

static const char *const foreign_keys[] = {
    "GET foreign",
    "SET foreign x",
    "DEL foreign",
    "MGET claimd:job:1 foreign",
    "PEXPIRE foreign 1",
    "SET claimd:other x",
    "SET claimd:hints:default x",
    "DEL claimd:hints:default",
    "ZADD claimd:job:1 1 1",
    "ZADD foreign 1 1",
    "EVAL return(1) 1 foreign",
};

/* A script has its caller's rights. */
static const char *const scripts[] = {
    "EVAL return(redis.call('FLUSHALL')) 0",
    "EVAL return(redis.call('RANDOMKEY')) 0",
    "EVAL return(redis.call('KEYS','*')) 0",
    "EVAL return(redis.call('GET','foreign')) 0",
    "EVAL return(redis.call('SET','foreign','x')) 0",
    "EVAL return(redis.call('ZADD','foreign',1,1)) 0",
};

START_TEST(J3_the_daemons_redis_users_can_not_look_configure_flush_or_touch_foreign_keys)
{
    const char *user = _i == 0 ? "claimd_worker" : "claimd_scheduler";
    redis_says("operator", "SET foreign precious", "OK");
    for (size_t i = 0; i < ARRAY_COUNT(nobodys_commands); i++) {
        redis_says(user, nobodys_commands[i], "NOPERM");
    }
    for (size_t i = 0; i < ARRAY_COUNT(foreign_keys); i++) {
        redis_says(user, foreign_keys[i], "NOPERM");
    }
    for (size_t i = 0; i < ARRAY_COUNT(scripts); i++) {
        redis_says(user, scripts[i], SCRIPT_REFUSED);
    }
    redis_says("operator", "GET foreign", "precious");
}
END_TEST

START_TEST(J3_a_user_of_one_program_can_not_do_what_the_other_does)
{
    redis_says("claimd_worker", "SET claimd:leader x", "NOPERM");
    redis_says("claimd_worker", "DEL claimd:leader", "NOPERM");
    redis_says("claimd_scheduler", "BZMPOP 1 1 claimd:hints:default MIN", "NOPERM");
    redis_says("claimd_ctl", "SET claimd:leader x", "NOPERM");
    redis_says("claimd_ctl", "GET claimd:job:1", "NOPERM");
    redis_says("claimd_ctl", "SET claimd:job:1 x", "NOPERM");
    redis_says("claimd_ctl", "EXISTS claimd:job:1", "0");
    redis_says("claimd_ctl", "ZCOUNT claimd:hints:nobody 0 1", "0");
    redis_says("claimd_ctl", "ZADD claimd:hints:default 1 1", "NOPERM");
    redis_says("claimd_ctl", "GET claimd:hints:default", "NOPERM");
    redis_says("claimd_ctl", "EVAL return(1) 0", "NOPERM");
    redis_says("claimd_ctl", "FLUSHALL", "NOPERM");
    redis_says("claimd_ctl", "PING", "PONG");
}
END_TEST

START_TEST(C5_a_right_that_is_missing_is_told_and_not_at_every_try)
{
    static const char told[] = "event=hints_down";
    autobuf struct buf out = BUF_INIT(OUTPUT_MAX);
    int64_t before = refused_pops(0);
    as_user(0, "operator", "op", "ACL SETUSER claimd_worker clearselectors", &out);
    ck_assert(WAIT_UNTIL(refused_pops(0) >= before + 6, SOON_US));
    ck_assert_int_ge(fleet_log_count(&fleet, "claimd-worker", 1, told), 1);
    ck_assert_int_ge(fleet_log_count(&fleet, "claimd-worker", 1, "NOPERM"), 1);
    ck_assert_int_le(fleet_log_count(&fleet, "claimd-worker", 1, told), 4);
    ck_assert_int_eq(fleet_log_count(&fleet, "claimd-worker", 1, "event=hints_up"), 0);
    as_user(0, "operator", "op", "ACL LOAD", &out);
    ck_assert(
        WAIT_UNTIL(fleet_log_count(&fleet, "claimd-worker", 1, "event=hints_up") == 1, SOON_US));
}
END_TEST

START_TEST(J3_without_a_password_nothing_is_answered)
{
    redis_says(NULL, "PING", "NOAUTH");
    redis_says(NULL, "SET claimd:job:1 x", "NOAUTH");
    redis_says(NULL, "AUTH claimd_worker guess", "WRONGPASS");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("least rights");
    TCase *c = tcase_create("rights");
    tcase_set_timeout(c, 90);
    tcase_add_unchecked_fixture(c, setup, teardown);
    tcase_add_test(c, P1_C5_the_least_rights_are_enough_for_jobs_and_their_rescue);
    tcase_add_test(c, C5_doctor_is_content_with_its_user);
    tcase_add_test(c, J2_the_workers_login_can_not_put_jobs_in_change_them_or_touch_the_schema);
    tcase_add_test(c, bad_input_to_roles_sql_changes_nothing);
    tcase_add_test(c, J2_the_schedulers_login_rules_its_schema_and_no_more);
    tcase_add_test(c, J2_the_producers_login_puts_jobs_in_and_sees_none);
    tcase_add_loop_test(
        c, J3_the_daemons_redis_users_can_not_look_configure_flush_or_touch_foreign_keys, 0, 2);
    tcase_add_test(c, J3_a_user_of_one_program_can_not_do_what_the_other_does);
    tcase_add_test(c, J3_without_a_password_nothing_is_answered);
    tcase_add_test(c, C5_a_right_that_is_missing_is_told_and_not_at_every_try);
    suite_add_tcase(suite, c);
    return suite_run_in_one(suite);
}
