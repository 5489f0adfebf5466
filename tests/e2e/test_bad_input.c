/* SPDX-License-Identifier: Apache-2.0
 *
 * Mistakes of operators with worker, scheduler and claimctl: each must give one line that names the
 * cause and the allowed values, the exit code of the manual, and no half-done work. */
#include "cluster/child.h"
#include "operator.h"
#include "support/suite.h"

#include <check.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>

static struct fleet f;

/* Counts the lines about errors: all except those of the life cycle. */
static int complaints(const char *out)
{
    static const char *const life[] = {"event=started", "event=stopped", "event=draining",
                                       "event=node_", "Try: "};
    int count = 0;
    for (const char *line = out; *line != '\0';) {
        size_t len = strcspn(line, "\n");
        bool is_life = false;
        for (size_t i = 0; i < ARRAY_COUNT(life); i++) {
            is_life = is_life || memmem(line, len, life[i], strlen(life[i])) != NULL;
        }
        count += is_life ? 0 : 1;
        line += len + (line[len] == '\n' ? 1 : 0);
    }
    return count;
}

/* ---- refused before any server is contacted ---- */

static const struct {
    const char *config; /* text of the file; NULL = the fleet's configuration */
    const char *env;
    const char *says;
} usages[] = {
    {NULL, "CLAIMD_POSTGRES_PASSWORD_FILE=@/nowhere",
     "postgres.password_file: cannot read '@/nowhere': No such file or directory"},
    {NULL, "CLAIMD_POSTGRES_PASSWORD_FILE=@/unreadable",
     "postgres.password_file: cannot read '@/unreadable': Permission denied"},
    {NULL, "CLAIMD_REDIS_PASSWORD_FILE=@/empty",
     "redis.password_file: '@/empty' is not a secret; allowed: one line of 1 to 255 bytes"},
    {NULL, "CLAIMD_REDIS_PASSWORD_FILE=@", "redis.password_file: cannot read '@': Is a directory"},
    {NULL, "CLAIMD_WORKER_SLOTS=many",
     "environment CLAIMD_WORKER_SLOTS: worker.slots: many is not allowed; allowed: 0 to 1024"},
    {NULL, "CLAIMD_WORKER_SLOT=3",
     "environment: CLAIMD_WORKER_SLOT: no such key; did you mean CLAIMD_WORKER_SLOTS?"},
    {"{\n// why\n}", "",
     "configuration '@/bad.json': line 2: string or '}' expected near '/': JSON has no comments"},
    {"{\"log_level\": \"info\",\n}", "",
     "line 2: string or '}' expected near '}': is there a comma too many before it?"},
    {"\xEF\xBB\xBF{}", "", ": save the file without a byte order mark"},
    {"{\"log_level\": \"in\tfo\"}", "",
     "line 1: control character 0x9 near '\"in': a tab within a text is written \\t"},
    {"{\"log_level\": \"info\", \"log_level\": \"info\"}", "", "duplicate object key"},
    {"{\"worker\": {\"slotz\": 2}}", "", "worker.slotz: unknown key; known here: queues, slots"},
    {"", "", "configuration '@/bad.json': the file is empty; the smallest configuration is {}"},
    {NULL, "CLAIMD_POSTGRES_CONNINFO=host=a password=b",
     "postgres.conninfo: a password is not allowed here; name its file in postgres.password_file"},
    {NULL, "CLAIMD_POSTGRES_CONNINFO=hots=a", "postgres.conninfo: invalid connection option"},
};

START_TEST(bad_configuration_is_one_line_and_exit_2)
{
    char says[OPERATOR_TEXT_SIZE];
    enum program p = (enum program)(_i % PROGRAMS);
    size_t i = (size_t)_i / PROGRAMS;
    autobuf struct buf out = BUF_INIT(OPERATOR_OUTPUT_MAX);
    if (geteuid() == 0 && strstr(usages[i].says, "Permission denied") != NULL) {
        return; /* root can read everything */
    }
    if (usages[i].config != NULL) {
        operator_write(&f, "bad.json", usages[i].config, 0644);
    }
    operator_expand(&f, usages[i].says, says);
    int code = operator_run(&f, p, usages[i].config == NULL ? "config.json" : "bad.json",
                            usages[i].env, &out);
    ck_assert_msg(strstr(buf_at(&out), says) != NULL, "%s: no \"%s\" in: %s", program_names[p],
                  says, buf_at(&out));
    ck_assert_msg(code == 2, "%s: exit %d: %s", program_names[p], code, buf_at(&out));
    ck_assert_msg(complaints(buf_at(&out)) == 1, "%s", buf_at(&out));
}
END_TEST

START_TEST(a_configuration_may_be_indented_with_tabs)
{
    autobuf struct buf out = BUF_INIT(OPERATOR_OUTPUT_MAX);
    operator_write(&f, "bad.json", "{\r\n\t\"log_level\":\t\"info\"\r\n}\r\n", 0644);
    ck_assert_int_eq(operator_ctl(&f, "bad.json", "", "config check", &out), 0);
}
END_TEST

START_TEST(a_password_that_everyone_can_read_is_a_warning)
{
    autobuf struct buf out = BUF_INIT(OPERATOR_OUTPUT_MAX);
    autobuf struct buf closed = BUF_INIT(OPERATOR_OUTPUT_MAX);
    operator_write(&f, "mine", "secret\n", 0600);
    operator_write(&f, "open", "secret\n", 0644);
    ck_assert_int_eq(
        operator_ctl(&f, "config.json", "CLAIMD_REDIS_PASSWORD_FILE=@/open", "config check", &out),
        0);
    ck_assert_ptr_nonnull(strstr(buf_at(&out), "warning: a password file can be read by every"));
    if (geteuid() == 0) {
        return; /* the programs may run as another user, who cannot read it */
    }
    ck_assert_int_eq(operator_ctl(&f, "config.json", "CLAIMD_REDIS_PASSWORD_FILE=@/mine",
                                  "config check", &closed),
                     0);
    ck_assert_ptr_null(strstr(buf_at(&closed), "password file"));
}
END_TEST

/* ---- PostgreSQL ---- */

static const struct {
    const char *env;
    const char *says;
} postgres[] = {
    {"CLAIMD_POSTGRES_CONNINFO=host=@/pg dbname=claimd user=locked\n"
     "CLAIMD_POSTGRES_PASSWORD_FILE=@/wrong",
     "user \\\"locked\\\"; correct the user, or postgres.password_file"},
    {"CLAIMD_POSTGRES_CONNINFO=host=@/pg dbname=claimd user=locked",
     "no password supplied; name a file in postgres.password_file"},
    {"CLAIMD_POSTGRES_CONNINFO=host=@/nowhere dbname=claimd", "No such file or directory"},
    {"CLAIMD_POSTGRES_CONNINFO=host=nowhere.invalid dbname=claimd", "nowhere.invalid"},
    {"CLAIMD_POSTGRES_CONNINFO=host=@/not-pg dbname=claimd user=x", "@/not-pg"},
    {"CLAIMD_POSTGRES_CONNINFO=host=@/pg dbname=nothing user=postgres",
     "database \\\"nothing\\\" does not exist; create it, or correct postgres.conninfo"},
    {"CLAIMD_POSTGRES_CONNINFO=host=@/pg dbname=claimd user=crowded",
     "for role \\\"crowded\\\"; raise max_connections, or the role's or database's limit"},
};

START_TEST(a_postgresql_that_cannot_be_used_is_named_and_exit_3)
{
    char says[OPERATOR_TEXT_SIZE];
    char plain[OPERATOR_TEXT_SIZE];
    enum program p = (enum program)(_i % PROGRAMS);
    size_t i = (size_t)_i / PROGRAMS;
    autobuf struct buf out = BUF_INIT(OPERATOR_OUTPUT_MAX);
    operator_expand(&f, postgres[i].says, says);
    size_t n = 0;
    for (const char *at = says; *at != '\0'; at++) { /* claimctl does not escape its texts */
        plain[n] = *at;
        n += p == CTL && *at == '\\' ? 0 : 1;
    }
    plain[n] = '\0';
    int code = operator_run(&f, p, "config.json", postgres[i].env, &out);
    ck_assert_msg(strstr(buf_at(&out), plain) != NULL, "%s: no \"%s\" in: %s", program_names[p],
                  plain, buf_at(&out));
    ck_assert_msg(code == 3, "%s: exit %d: %s", program_names[p], code, buf_at(&out));
    ck_assert_msg(complaints(buf_at(&out)) <= 3, /* the second one comes after 1 s */
                  "%s", buf_at(&out));
}
END_TEST

/* ---- settings that only a daemon checks ---- */

static const struct {
    enum program program;
    const char *env;
    const char *says;
    int code;
} daemons[] = {
    {WORKER, "CLAIMD_LOCK_NODES=nowhere:port",
     "lock.nodes, item 1: redis endpoint: port: 'port' is not a decimal number", 2},
    {SCHEDULER, "CLAIMD_LOCK_NODES=a:1,nowhere:port",
     "lock.nodes, item 2: redis endpoint: port: 'port' is not a decimal number", 2},
    {WORKER, "CLAIMD_LOCK_NODES=", "lock.nodes: is empty; allowed: 1 to 9 Redis masters", 2},
    {WORKER, "CLAIMD_WORKER_STATE_DIR=/proc/state", "worker.state_dir /proc/state: ", 2},
    {WORKER, "CLAIMD_WORKER_STATE_DIR=@/empty", "worker.state_dir: @/empty/lock: Not a directory",
     2},
    {WORKER, "CLAIMD_WORKER_RUNNER=@/nowhere", "worker.runner @/nowhere: No such file", 2},
    {WORKER, "CLAIMD_WORKER_PLUGIN_OWNERS=nobody_of_that_name",
     "worker.plugin_owners: no user 'nobody_of_that_name' on this host", 2},
};

START_TEST(what_a_daemon_cannot_start_with_is_one_line)
{
    char says[OPERATOR_TEXT_SIZE];
    autobuf struct buf out = BUF_INIT(OPERATOR_OUTPUT_MAX);
    operator_expand(&f, daemons[_i].says, says);
    int code = operator_run(&f, daemons[_i].program, "config.json", daemons[_i].env, &out);
    ck_assert_msg(strstr(buf_at(&out), says) != NULL, "no \"%s\" in: %s", says, buf_at(&out));
    ck_assert_msg(code == daemons[_i].code, "exit %d: %s", code, buf_at(&out));
    ck_assert_msg(complaints(buf_at(&out)) == 1, "%s", buf_at(&out));
}
END_TEST

START_TEST(a_schema_of_another_version_is_exit_5_for_all)
{
    sql_run(f.sql, "UPDATE claimd.cluster SET schema_version = schema_version - 1");
    int codes[PROGRAMS];
    int lines[PROGRAMS];
    bool says[PROGRAMS];
    for (int p = 0; p < PROGRAMS; p++) {
        autobuf struct buf out = BUF_INIT(OPERATOR_OUTPUT_MAX);
        codes[p] = operator_run(&f, (enum program)p, "config.json",
                                "CLAIMD_POSTGRES_TIMEOUT_MS=5000", &out);
        says[p] = strstr(buf_at(&out), "run `claimctl db migrate`") != NULL;
        lines[p] = complaints(buf_at(&out));
    }
    sql_run(f.sql, "UPDATE claimd.cluster SET schema_version = schema_version + 1");
    for (int p = 0; p < PROGRAMS; p++) {
        ck_assert_msg(codes[p] == 5 && says[p] && lines[p] == 1, "%s: exit %d, %d lines",
                      program_names[p], codes[p], lines[p]);
    }
}
END_TEST

/* ---- trouble that a daemon survives and logs ---- */

/* Redis may become available: a worker waits for it, but names each node once with the reason. */
static const struct {
    const char *env;
    const char *says;
    int times;
} waits[] = {
    {"CLAIMD_REDIS_USER=locked\nCLAIMD_REDIS_PASSWORD_FILE=@/wrong",
     "action=\"correct redis.user or redis.password_file; trying again\"", 3},
    {"CLAIMD_LOCK_NODES=unix:@/pg/.s.PGSQL.5432\nCLAIMD_TEST_OTHER_LIST=1",
     "node=unix:@/pg/.s.PGSQL.5432", 1},
    {"CLAIMD_WORKER_PLUGIN_DIR=@/open-plugins",
     "event=plugin_refused file=@/open-plugins err=\"writable by group or others (mode 0777), "
     "expected at most 0755: chmod go-w\"",
     1},
    {"CLAIMD_WORKER_PLUGIN_OWNERS=4242",
     "expected 4242: chown it, or set worker.plugin_owners\" action=\"its kinds are not served "
     "here",
     1},
    {"CLAIMD_WORKER_PLUGIN_DIR=@/nowhere",
     "event=plugin_refused file=@/nowhere err=\"cannot open the directory: No such file or "
     "directory\"",
     1},
};

START_TEST(what_may_still_come_is_named_once_and_waited_for)
{
    char says[OPERATOR_TEXT_SIZE];
    char log[OPERATOR_TEXT_SIZE];
    struct err err = {0};
    int code = -1;
    operator_expand(&f, waits[_i].says, says);
    (void)snprintf(log, sizeof log, "%s/wait-%d.log", f.dir, _i);
    bool is_other_list = strstr(waits[_i].env, "OTHER_LIST") != NULL;
    if (is_other_list) { /* no cluster was made with this list */
        sql_run(f.sql, "UPDATE claimd.cluster SET lock_nodes = ''");
    }
    pid_t pid = operator_start(&f, WORKER, "config.json", waits[_i].env, log);
    bool is_said = WAIT_UNTIL(fleet_count_lines(log, says) >= waits[_i].times, SOON_US);
    fleet_signal(pid, SIGTERM);
    ck_assert_int_eq(program_wait(pid, SOON_US, &code, &err), STATUS_OK);
    if (is_other_list) {
        sql_run(f.sql, "UPDATE claimd.cluster SET lock_nodes = ''");
    }
    char tail[2048];
    child_log_tail(log, tail, sizeof tail);
    ck_assert_msg(is_said, "no \"%s\" in: %s", says, tail);
    ck_assert_int_eq(fleet_count_lines(log, says), waits[_i].times);
    ck_assert_int_eq(code, 0);
}
END_TEST

static void make_open_plugins(void)
{
    char path[SERVER_PATH_MAX + 64];
    (void)snprintf(path, sizeof path, "%s/open-plugins", f.dir);
    ck_assert_int_eq(mkdir(path, 0755), 0);
    ck_assert_int_eq(chmod(path, 0777), 0);
    for (size_t i = 0; i < f.options.masters; i++) {
        fleet_redis(&f, i, "ACL SETUSER locked on >the-password ~claimd:* &* +@all");
    }
}

static void setup(void)
{
    char path[SERVER_PATH_MAX + 64];
    fleet_start(&f, &(struct fleet_options){.masters = 3});
    operator_write(&f, "empty", "\n", 0644);
    operator_write(&f, "wrong", "not-the-password\n", 0644);
    operator_write(&f, "unreadable", "secret\n", 0);
    /* "locked" needs a password; "crowded" has no free connection. */
    (void)snprintf(path, sizeof path, "%s/pg/data/pg_hba.conf", f.dir);
    FILE *hba = fopen(path, "w");
    ck_assert_ptr_nonnull(hba);
    (void)fputs("local all locked scram-sha-256\nlocal all all trust\n", hba);
    ck_assert_int_eq(fclose(hba), 0);
    sql_run(f.sql, "CREATE ROLE locked LOGIN PASSWORD 'the-password'");
    sql_run(f.sql, "CREATE ROLE crowded LOGIN CONNECTION LIMIT 0");
    sql_run(f.sql, "SELECT pg_reload_conf()");
    (void)snprintf(path, sizeof path, "%s/not-pg", f.dir);
    ck_assert_int_eq(mkdir(path, 0755), 0);
    (void)snprintf(path, sizeof path, "%s/not-pg/.s.PGSQL.5432", f.dir);
    ck_assert_int_eq(symlink(f.masters[0].path, path), 0);
    make_open_plugins();
}

static void teardown(void)
{
    fleet_stop(&f);
}

static Suite *suite(void)
{
    Suite *s = suite_create("bad input");
    TCase *c = tcase_create("bad input");
    tcase_set_timeout(c, 60);
    tcase_add_unchecked_fixture(c, setup, teardown);
    tcase_add_loop_test(c, bad_configuration_is_one_line_and_exit_2, 0,
                        (int)ARRAY_COUNT(usages) * PROGRAMS);
    tcase_add_test(c, a_configuration_may_be_indented_with_tabs);
    tcase_add_test(c, a_password_that_everyone_can_read_is_a_warning);
    tcase_add_loop_test(c, a_postgresql_that_cannot_be_used_is_named_and_exit_3, 0,
                        (int)ARRAY_COUNT(postgres) * PROGRAMS);
    tcase_add_loop_test(c, what_a_daemon_cannot_start_with_is_one_line, 0,
                        (int)ARRAY_COUNT(daemons));
    tcase_add_test(c, a_schema_of_another_version_is_exit_5_for_all);
    tcase_add_loop_test(c, what_may_still_come_is_named_once_and_waited_for, 0,
                        (int)ARRAY_COUNT(waits));
    suite_add_tcase(s, c);
    return s;
}

int main(void)
{
    return suite_run_in_one(suite());
}
