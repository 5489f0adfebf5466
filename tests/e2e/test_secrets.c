/* SPDX-License-Identifier: Apache-2.0
 *
 * Passwords never appear: there are canaries for PostgreSQL (scram) and Redis (ACL user,
 * requirepass, in a file and in a URL), right and wrong ones, at log_level debug. The test searches
 * everything that the programs print and log, the servers' logs, argv and environ of every process,
 * and what the daemons write into the database. */
#include "operator.h"
#include "support/suite.h"

#include <check.h>
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>

#define MASTERS 3
#define CANARY "c4n4ry" /* part of every password here */

static struct fleet f;
static int ports[MASTERS];

/* ---- the search ---- */

static void search(const char *what, const char *bytes, size_t len)
{
    const char *found = memmem(bytes, len, CANARY, strlen(CANARY));
    size_t before = found == NULL ? 0 : (size_t)(found - bytes);
    size_t back = before < 200 ? before : 200;
    ck_assert_msg(found == NULL, "a password is in %s: …%.*s", what, (int)back + 12, found - back);
}

static void search_file(const char *path)
{
    static char bytes[(size_t)4 << 20];
    autoclose int fd = open(path, O_RDONLY | O_CLOEXEC);
    size_t len = 0;
    ssize_t n = 0;
    while (fd >= 0 && (n = read(fd, bytes + len, sizeof bytes - len)) > 0) {
        len += (size_t)n;
    }
    search(path, bytes, len);
}

/* Searches argv and environ of all processes that we may read; returns how many of them are
 * runners. */
static int search_processes(void)
{
    char path[300];
    char name[64];
    int runners = 0;
    DIR *proc = opendir("/proc");
    ck_assert_ptr_nonnull(proc);
    for (struct dirent *entry = readdir(proc); entry != NULL; entry = readdir(proc)) {
        if (strspn(entry->d_name, "0123456789") != strlen(entry->d_name)) {
            continue;
        }
        static const char *const files[] = {"cmdline", "environ"};
        for (size_t i = 0; i < ARRAY_COUNT(files); i++) {
            (void)snprintf(path, sizeof path, "/proc/%s/%s", entry->d_name, files[i]);
            search_file(path);
        }
        (void)snprintf(path, sizeof path, "/proc/%s/comm", entry->d_name);
        FILE *comm = fopen(path, "r");
        if (comm != NULL && fgets(name, sizeof name, comm) != NULL) {
            runners += strncmp(name, "claimd-runner", 13) == 0 ? 1 : 0;
        }
        if (comm != NULL) {
            (void)fclose(comm);
        }
    }
    (void)closedir(proc);
    return runners;
}

static void search_logs(void)
{
    char path[SERVER_PATH_MAX + 300];
    DIR *dir = opendir(f.dir);
    ck_assert_ptr_nonnull(dir);
    for (struct dirent *entry = readdir(dir); entry != NULL; entry = readdir(dir)) {
        if (strstr(entry->d_name, ".log") != NULL) {
            (void)snprintf(path, sizeof path, "%s/%s", f.dir, entry->d_name);
            search_file(path);
        }
    }
    (void)closedir(dir);
    (void)snprintf(path, sizeof path, "%s/pg/postgres.log", f.dir);
    search_file(path);
    for (size_t i = 0; i < f.options.masters; i++) {
        (void)snprintf(path, sizeof path, "%s/redis.log", f.masters[i].dir);
        search_file(path);
    }
}

static void search_database(void)
{
    static const char *const queries[] = {
        "SELECT lock_nodes FROM claimd.cluster",
        "SELECT string_agg(w::text, ' ') FROM claimd.worker w",
        ("SELECT string_agg(query || application_name, ' ') FROM pg_stat_activity "
         "WHERE pid <> pg_backend_pid()"),
    };
    for (size_t i = 0; i < ARRAY_COUNT(queries); i++) {
        const char *text = sql_text(f.sql, "%s", queries[i]);
        search(queries[i], text, strlen(text));
    }
}

/* ---- ways to pass a password ---- */

#define FILES                                     \
    "CLAIMD_POSTGRES_PASSWORD_FILE=@/secret-pg\n" \
    "CLAIMD_REDIS_PASSWORD_FILE=@/secret-redis\n" \
    "CLAIMD_LOG_LEVEL=debug\nCLAIMD_POSTGRES_TIMEOUT_MS="

static const struct {
    const char *what;
    const char *config;
    const char *env;
    bool is_right;
} ways[] = {
    {"an ACL user and files", "config.json", FILES "5000\nCLAIMD_REDIS_USER=app", true},
    {"requirepass and files", "default.json", FILES "5000", true},
    {"passwords in URLs", "url.json", FILES "5000", true},
    {"a wrong password of PostgreSQL", "config.json",
     "CLAIMD_POSTGRES_PASSWORD_FILE=@/secret-wrong\n"
     "CLAIMD_REDIS_PASSWORD_FILE=@/secret-redis\nCLAIMD_LOG_LEVEL=debug",
     false},
    {"a wrong password of Redis", "config.json",
     "CLAIMD_POSTGRES_PASSWORD_FILE=@/secret-pg\nCLAIMD_REDIS_USER=app\n"
     "CLAIMD_REDIS_PASSWORD_FILE=@/secret-wrong\n"
     "CLAIMD_POSTGRES_TIMEOUT_MS=5000\nCLAIMD_LOG_LEVEL=debug",
     false},
    {"a wrong password in URLs", "wrong-url.json", FILES "5000", false},
};

static void ctl_with(size_t way, const char *words)
{
    autobuf struct buf out = BUF_INIT(OPERATOR_OUTPUT_MAX);
    char what[256];
    (void)operator_ctl(&f, ways[way].config, ways[way].env, words, &out);
    (void)snprintf(what, sizeof what, "claimctl %s, %s", words, ways[way].what);
    search(what, buf_at(&out), out.len);
}

static void say_ctl(size_t way)
{
    static const char *const commands[] = {
        "config check",
        "config show",
        "config show --origin",
        "config show --json",
        "doctor",
        "doctor --json",
        "stats",
        "workers",
        "jobs list",
        "enqueue noop",
    };
    for (size_t i = 0; i < ARRAY_COUNT(commands); i++) {
        ctl_with(way, commands[i]);
    }
}

static void end(pid_t pid)
{
    struct err err = {0};
    int code = -1;
    (void)kill(pid, SIGTERM);
    ck_assert_int_eq(program_wait(pid, SOON_US, &code, &err), STATUS_OK);
}

START_TEST(no_password_is_printed_logged_or_in_a_process)
{
    size_t i = (size_t)_i;
    char scheduler_log[SERVER_PATH_MAX + 64];
    char worker_log[SERVER_PATH_MAX + 64];
    (void)snprintf(scheduler_log, sizeof scheduler_log, "%s/scheduler-%zu.log", f.dir, i);
    (void)snprintf(worker_log, sizeof worker_log, "%s/worker-%zu.log", f.dir, i);
    sql_run(f.sql, "UPDATE claimd.cluster SET lock_nodes = ''");
    pid_t scheduler = operator_start(&f, SCHEDULER, ways[i].config, ways[i].env, scheduler_log);
    pid_t worker = operator_start(&f, WORKER, ways[i].config, ways[i].env, worker_log);
    if (ways[i].is_right) {
        int64_t done = sql_number(f.sql, "SELECT count(*) FROM claimd.job_history");
        (void)fleet_enqueue(&f, "noop", "{}", 3);
        fleet_wait_finished(&f, done + 3, "completed", SOON_US);
        ck_assert_int_gt(search_processes(), 0);
    } else {
        ck_assert_msg(WAIT_UNTIL(fleet_count_lines(worker_log, "event=postgres_down") > 0 ||
                                     fleet_count_lines(worker_log, "event=node_refused") > 0,
                                 SOON_US),
                      "%s: %s", ways[i].what, worker_log);
        (void)search_processes();
    }
    say_ctl(i);
    (void)search_processes();
    end(worker);
    end(scheduler);
    sql_run(f.sql, "DELETE FROM claimd.job");
    search_logs();
    search_database();
}
END_TEST

static int64_t spied(int64_t id, const char *what)
{
    return sql_number(f.sql, "SELECT (result->>'%s')::int FROM claimd.job_history WHERE id = %lld",
                      what, (long long)id);
}

/* ---- a password change under load ---- */

static void redis_as_app(size_t node, const char *password, const char *command)
{
    fleet_redis_as(&f, node, "app", password, command);
}

static void take_new_password(pid_t pid, const char *log)
{
    (void)kill(pid, SIGHUP);
    ck_assert(WAIT_UNTIL(fleet_count_lines(log, "event=reloaded keys=redis.password_file") == 1,
                         SOON_US));
}

/* Old and new password are both valid for a while. Then one server after the other forgets the old
 * one and ends every connection, as ACL LOAD does in Redis 7.0. */
START_TEST(a_redis_password_changes_under_load_and_nobody_is_refused)
{
    static const char env[] = "CLAIMD_REDIS_USER=app\n"
                              "CLAIMD_POSTGRES_PASSWORD_FILE=@/secret-pg\n"
                              "CLAIMD_REDIS_PASSWORD_FILE=@/secret-turning\n"
                              "CLAIMD_POSTGRES_TIMEOUT_MS=5000\nCLAIMD_LOG_LEVEL=debug";
    enum { JOBS = 400 };
    char logs[2][SERVER_PATH_MAX + 64];
    (void)snprintf(logs[0], sizeof logs[0], "%s/scheduler-turning.log", f.dir);
    (void)snprintf(logs[1], sizeof logs[1], "%s/worker-turning.log", f.dir);
    operator_write(&f, "secret-turning", CANARY "-redis\n", 0644);
    sql_run(f.sql, "UPDATE claimd.cluster SET lock_nodes = ''");
    pid_t scheduler = operator_start(&f, SCHEDULER, "config.json", env, logs[0]);
    pid_t worker = operator_start(&f, WORKER, "config.json", env, logs[1]);
    int64_t done = sql_number(f.sql, "SELECT count(*) FROM claimd.job_history");
    (void)fleet_enqueue(&f, "sleep", "{\"ms\": 50}", JOBS);
    ck_assert(WAIT_UNTIL(sql_number(f.sql, "SELECT count(*) FROM claimd.job_history") > done + 10,
                         SOON_US));
    for (size_t i = 0; i < MASTERS; i++) {
        redis_as_app(i, CANARY "-redis", "ACL SETUSER app >" CANARY "-new");
    }
    operator_write(&f, "secret-turning", CANARY "-new\n", 0644);
    take_new_password(scheduler, logs[0]);
    take_new_password(worker, logs[1]);
    for (size_t i = 0; i < MASTERS; i++) {
        int ups = fleet_count_lines(logs[1], "event=node_up");
        redis_as_app(i, CANARY "-new", "ACL SETUSER app <" CANARY "-redis");
        redis_as_app(i, CANARY "-new", "CLIENT KILL TYPE normal SKIPME yes");
        ck_assert(WAIT_UNTIL(fleet_count_lines(logs[1], "event=node_up") > ups, SOON_US));
    }
    fleet_wait_finished(&f, done + JOBS, "completed", 2 * SOON_US);
    for (size_t i = 0; i < 2; i++) {
        ck_assert_int_eq(fleet_count_lines(logs[i], "event=node_refused"), 0);
        ck_assert_int_eq(fleet_count_lines(logs[i], "event=reload_failed"), 0);
    }
    ck_assert_int_eq(fleet_count_lines(logs[1], "event=lease_lost"), 0);
    ck_assert_int_eq(sql_number(f.sql, "SELECT count(*) FROM claimd.job_history WHERE attempt > 1"),
                     0);
    end(worker);
    end(scheduler);
    for (size_t i = 0; i < MASTERS; i++) {
        redis_as_app(i, CANARY "-new", "ACL SETUSER app >" CANARY "-redis <" CANARY "-new");
    }
    search_logs();
}
END_TEST

/* Both passwords are in the daemons' memory; and a process that could write into a worker would
 * control it. */
START_TEST(J4_a_process_of_the_same_user_sees_nothing_of_a_daemons_memory)
{
    char log[SERVER_PATH_MAX + 64];
    char args[32];
    sql_run(f.sql, "UPDATE claimd.cluster SET lock_nodes = ''");
    int64_t done = sql_number(f.sql, "SELECT count(*) FROM claimd.job_history");
    (void)snprintf(log, sizeof log, "%s/spied.log", f.dir);
    pid_t scheduler = operator_start(&f, SCHEDULER, ways[0].config, ways[0].env, log);
    pid_t worker = operator_start(&f, WORKER, ways[0].config, ways[0].env, log);
    (void)snprintf(args, sizeof args, "{\"pid\": %d}", (int)scheduler);
    int64_t last = fleet_enqueue(&f, "spy", args, 1);
    int64_t first = fleet_enqueue(&f, "spy", "{\"pid\": 0}", 1);
    fleet_wait_finished(&f, done + 2, "completed", SOON_US);
    end(worker);
    end(scheduler);
    if (spied(first, "uid") == 0) {
        return; /* root may read everything */
    }
    ck_assert_int_eq(spied(first, "mem") + spied(first, "environ"), 0);
    ck_assert_int_eq(spied(last, "mem") + spied(last, "environ"), 0);
}
END_TEST

/* ---- the fleet ---- */

static void write_config(const char *name, const char *format)
{
    char nodes[512] = "";
    char text[OPERATOR_TEXT_SIZE];
    for (size_t i = 0; i < MASTERS; i++) {
        size_t at = strlen(nodes);
        (void)snprintf(nodes + at, sizeof nodes - at, "%s\"%s127.0.0.1:%d\"", i > 0 ? ", " : "",
                       format, ports[i]);
    }
    (void)snprintf(text, sizeof text,
                   "{\"time_scale\": 0.25, \"lock\": {\"nodes\": [%s], \"fresh_nodes\": \"trust\","
                   " \"node_timeout_ms\": 200}, \"worker\": {\"slots\": 2, \"plugin_dir\":"
                   " \"%s/plugins\"}, \"postgres\": {\"conninfo\": \"%s user=app\"}}\n",
                   nodes, f.dir, f.conninfo);
    operator_write(&f, name, text, 0644);
}

static void set_up_redis(void)
{
    char command[256];
    for (size_t i = 0; i < MASTERS; i++) {
        ports[i] = port_free();
        (void)snprintf(command, sizeof command, "CONFIG SET port %d", ports[i]);
        fleet_redis(&f, i, command);
        fleet_redis(&f, i, "ACL SETUSER app on >" CANARY "-redis ~claimd:* &* +@all");
        /* The last command without a password. */
        fleet_redis(&f, i, "CONFIG SET requirepass " CANARY "-redis");
    }
}

static void set_up_postgres(void)
{
    char path[SERVER_PATH_MAX + 64];
    (void)snprintf(path, sizeof path, "%s/pg/data/pg_hba.conf", f.dir);
    FILE *hba = fopen(path, "w");
    ck_assert_ptr_nonnull(hba);
    (void)fputs("local all app scram-sha-256\nlocal all all trust\n", hba);
    ck_assert_int_eq(fclose(hba), 0);
    sql_run(f.sql, "CREATE ROLE app LOGIN PASSWORD '" CANARY "-pg' IN ROLE claimd_worker,"
                   " claimd_scheduler, claimd_producer, claimd_reader");
    sql_run(f.sql, "SELECT pg_reload_conf()");
}

static void setup(void)
{
    fleet_start(&f, &(struct fleet_options){.masters = MASTERS});
    set_up_postgres();
    set_up_redis();
    operator_write(&f, "secret-pg", CANARY "-pg\n", 0644);
    operator_write(&f, "secret-redis", CANARY "-redis\n", 0644);
    operator_write(&f, "secret-wrong", CANARY "-wrong\n", 0644);
    write_config("config.json", "");
    write_config("default.json", "");
    write_config("url.json", "redis://app:" CANARY "-redis@");
    write_config("wrong-url.json", "redis://app:" CANARY "-wrong@");
}

static void teardown(void)
{
    fleet_stop(&f);
}

static Suite *suite(void)
{
    Suite *s = suite_create("secrets");
    TCase *c = tcase_create("secrets");
    tcase_set_timeout(c, 120);
    tcase_add_unchecked_fixture(c, setup, teardown);
    tcase_add_loop_test(c, no_password_is_printed_logged_or_in_a_process, 0,
                        (int)ARRAY_COUNT(ways));
    tcase_add_test(c, a_redis_password_changes_under_load_and_nobody_is_refused);
    tcase_add_test(c, J4_a_process_of_the_same_user_sees_nothing_of_a_daemons_memory);
    suite_add_tcase(s, c);
    return s;
}

int main(void)
{
    return suite_run_in_one(suite());
}
