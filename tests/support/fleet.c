/* SPDX-License-Identifier: Apache-2.0 */
#include "support/fleet.h"

#include "base/buf.h"
#include "cluster/child.h"
#include "support/fleet_pg.h"
#include "support/suite.h"

#include <check.h>
#include <fcntl.h>
#include <hiredis/hiredis.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define OUTPUT_MAX ((size_t)4 << 20)
#define STEP_US (120 * US_PER_S)
#define STARTS_MAX 5
#define TIME_SCALE 0.25
#define SLOTS 2
#define ENV_MAX 16
#define ANY_PORT "127.0.0.1:0" /* for HTTP */

#define OK(call)                                                      \
    do {                                                              \
        struct err err = {0};                                         \
        ck_assert_msg((call) == STATUS_OK, "%s: %s", #call, err.msg); \
    } while (0)

static const char *need_env(const char *name)
{
    const char *value = getenv(name);
    ck_assert_msg(value != NULL, "%s is not set: run the test through ctest", name);
    return value;
}

static void program_path(char *ret_path, size_t size, const char *program)
{
    (void)snprintf(ret_path, size, "%s/%s", need_env("CLAIMD_BIN_DIR"), program);
}

/* ---- files ---- */

static void copy_file(const char *from, const char *to)
{
    char bytes[65536];
    autoclose int in = open(from, O_RDONLY | O_CLOEXEC);
    autoclose int out = open(to, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    ck_assert_msg(in >= 0 && out >= 0, "copy %s to %s", from, to);
    ssize_t n = 0;
    while ((n = read(in, bytes, sizeof bytes)) > 0) {
        ck_assert_int_eq(write(out, bytes, (size_t)n), n);
    }
}

void fleet_add_plugin(const struct fleet *f, const char *folder, const char *file)
{
    char from[SERVER_PATH_MAX + 64];
    char to[SERVER_PATH_MAX + 64];
    (void)snprintf(from, sizeof from, "%s/%s", need_env(folder), file);
    (void)snprintf(to, sizeof to, "%s/plugins/%s", f->dir, file);
    if (getenv("CLAIMD_BEFORE_DIR") != NULL && access(from, F_OK) != 0) {
        return; /* the release before has no such plugin */
    }
    copy_file(from, to);
}

static void copy_plugins(const struct fleet *f)
{
    static const struct {
        const char *from;
        const char *file;
    } plugins[] = {
        {"CLAIMD_PLUGIN_DIR", "noop.so"},           {"CLAIMD_PLUGIN_DIR", "sleep.so"},
        {"CLAIMD_TEST_PLUGIN_DIR", "misbehave.so"}, {"CLAIMD_TEST_PLUGIN_DIR", "meddle.so"},
        {"CLAIMD_TEST_PLUGIN_DIR", "prints.so"},    {"CLAIMD_TEST_PLUGIN_DIR", "says.so"}};
    char dir[SERVER_PATH_MAX + 16];
    (void)snprintf(dir, sizeof dir, "%s/plugins", f->dir);
    ck_assert_int_eq(mkdir(dir, 0755), 0);
    for (size_t i = 0; i < ARRAY_COUNT(plugins); i++) {
        fleet_add_plugin(f, plugins[i].from, plugins[i].file);
    }
}

void fleet_add_handlers(const struct fleet *f, const char *name, const char *json)
{
    char path[SERVER_PATH_MAX + 96];
    char new[sizeof path + 8];
    (void)snprintf(path, sizeof path, "%s/handlers/%s.json", f->dir, name);
    (void)snprintf(new, sizeof new, "%s.new", path);
    FILE *file = fopen(new, "w");
    ck_assert_ptr_nonnull(file);
    (void)fputs(json, file);
    ck_assert_int_eq(fclose(file), 0);
    ck_assert_int_eq(rename(new, path), 0);
}

static void make_handlers(const struct fleet *f)
{
    char dir[SERVER_PATH_MAX + 16];
    (void)snprintf(dir, sizeof dir, "%s/handlers", f->dir);
    ck_assert_int_eq(mkdir(dir, 0755), 0);
}

static void config_path(const struct fleet *f, char *ret_path, size_t size)
{
    (void)snprintf(ret_path, size, "%s/config.json", f->dir);
}

void fleet_write_config(const struct fleet *f)
{
    char path[SERVER_PATH_MAX + 16];
    config_path(f, path, sizeof path);
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    (void)fprintf(file, "{\"time_scale\": %.3f, \"log_level\": \"info\",\n", f->options.time_scale);
    (void)fprintf(file, " \"postgres\": {\"conninfo\": \"%s\"},\n", f->conninfo);
    (void)fprintf(file,
                  " \"lock\": {\"node_timeout_ms\": 200, \"fresh_nodes\": \"trust\", \"nodes\": [");
    for (size_t i = 0; i < f->options.masters; i++) {
        (void)fprintf(file, "%s\"unix:%s\"", i == 0 ? "" : ", ", f->masters[i].path);
    }
    (void)fprintf(file, "]},\n \"worker\": {\"slots\": %d, \"plugin_dir\": \"%s/plugins\"}",
                  f->options.slots, f->dir);
    if (f->options.has_handlers) { /* inside the worker's object */
        (void)fseek(file, -1, SEEK_END);
        (void)fprintf(file, ", \"handlers\": \"%s/handlers\"}", f->dir);
    }
    (void)fprintf(file, "%s%s}\n", f->options.more == NULL ? "" : ",\n ",
                  f->options.more == NULL ? "" : f->options.more);
    ck_assert_int_eq(fclose(file), 0);
}

/* ---- start and end ---- */

void fleet_migrate(const struct fleet *f)
{
    char claimctl[SERVER_PATH_MAX];
    char config[SERVER_PATH_MAX + 16];
    int code = -1;
    autobuf struct buf out = BUF_INIT(OUTPUT_MAX);
    program_path(claimctl, sizeof claimctl, "claimctl");
    config_path(f, config, sizeof config);
    const char *argv[] = {claimctl, "--config", config, "db", "migrate", NULL};
    OK(program_run(argv, NULL, STEP_US, &out, &code, &err));
    ck_assert_msg(code == 0, "claimctl db migrate: exit %d: %s", code, buf_at(&out));
}

void fleet_start(struct fleet *f, const struct fleet_options *options)
{
    char sub[SERVER_PATH_MAX + 32];
    *f = (struct fleet){.options = *options};
    f->options.masters = options->masters == 0 ? 5 : options->masters;
    f->options.time_scale = options->time_scale <= 0 ? TIME_SCALE : options->time_scale;
    f->options.slots = options->slots == 0 ? SLOTS : options->slots;
    OK(dir_make(f->dir, sizeof f->dir, &err));
    fleet_pg_start(f);
    for (size_t i = 0; i < f->options.masters; i++) {
        (void)snprintf(sub, sizeof sub, "%s/r%zu", f->dir, i);
        OK(redis_server_start(sub, options->redis_conf, &f->masters[i], &err));
    }
    copy_plugins(f);
    make_handlers(f);
    fleet_write_config(f);
    f->sql = sql_open(f->conninfo);
}

static void end_now(pid_t *pid)
{
    int code = 0;
    if (*pid > 0) {
        (void)kill(*pid, SIGKILL);
        (void)kill(*pid, SIGCONT);
        OK(program_wait(*pid, STEP_US, &code, &err));
        *pid = 0;
    }
}

void fleet_stop(struct fleet *f)
{
    for (size_t i = 0; i < FLEET_WORKERS_MAX; i++) {
        end_now(&f->workers[i]);
    }
    for (size_t i = 0; i < FLEET_SCHEDULERS_MAX; i++) {
        end_now(&f->schedulers[i]);
    }
    sql_close(f->sql);
    for (size_t i = 0; i < f->options.masters; i++) {
        redis_server_stop(&f->masters[i]);
    }
    fleet_pg_stop(f);
    dir_remove(f->dir);
}

static void start_program(struct fleet *f, const char *program, size_t i, const char *const *more,
                          pid_t *ret_pid)
{
    char path[SERVER_PATH_MAX];
    char config[SERVER_PATH_MAX + 16];
    char log[SERVER_PATH_MAX + 64];
    char state[SERVER_PATH_MAX + 64];
    char login[SERVER_PATH_MAX + 64];
    program_path(path, sizeof path, program);
    config_path(f, config, sizeof config);
    (void)snprintf(log, sizeof log, "%s/%s-%zu.log", f->dir, program, i);
    (void)snprintf(state, sizeof state, "CLAIMD_WORKER_STATE_DIR=%s/state-%zu", f->dir, i);
    /* The last "user" of a conninfo wins. */
    (void)snprintf(login, sizeof login, "CLAIMD_POSTGRES_CONNINFO=%s user=%s", f->conninfo,
                   strcmp(program, "claimd-worker") == 0 ? FLEET_WORKER_LOGIN
                                                         : FLEET_SCHEDULER_LOGIN);
    const char *argv[] = {path, "--config", config, NULL};
    const char *env[ENV_MAX + 5] = {NULL}; /* the first one of a name wins */
    size_t n = 0;
    for (; more != NULL && more[n] != NULL; n++) {
        ck_assert_uint_lt(n, ENV_MAX);
        env[n] = more[n];
    }
    env[n++] = state;
    env[n++] = "CLAIMD_WORKER_HTTP_LISTEN=" ANY_PORT;
    env[n++] = "CLAIMD_SCHEDULER_HTTP_LISTEN=" ANY_PORT;
    env[n] = login;
    OK(program_start(argv, env, log, ret_pid, &err));
}

bool fleet_is_registered(struct fleet *f, size_t i)
{
    return sql_number(
               f->sql,
               "SELECT count(*) FROM claimd.worker WHERE pid = %d AND NOT dead AND NOT stopped",
               (int)f->workers[i]) > 0;
}

void fleet_launch_worker(struct fleet *f, size_t i, const char *const *env)
{
    ck_assert_int_eq(f->workers[i], 0);
    start_program(f, "claimd-worker", i, env, &f->workers[i]);
}

/* If PostgreSQL does not answer in time, a daemon ends, and a supervisor starts it again. */
static bool has_given_up(pid_t *pid)
{
    int status = 0;
    if (!child_is_gone(*pid, &status)) {
        return false;
    }
    ck_assert(WIFEXITED(status));
    ck_assert_int_eq(WEXITSTATUS(status), 3);
    *pid = 0;
    return true;
}

void fleet_start_worker_with(struct fleet *f, size_t i, const char *const *env)
{
    for (int tries = 0; f->workers[i] == 0 && tries < STARTS_MAX; tries++) {
        fleet_launch_worker(f, i, env);
        ck_assert_msg(
            WAIT_UNTIL(has_given_up(&f->workers[i]) || fleet_is_registered(f, i), STEP_US),
            "worker %zu isn't registered", i);
    }
    ck_assert_int_ne(f->workers[i], 0);
}

void fleet_start_worker(struct fleet *f, size_t i, const char *probe)
{
    char armed[64];
    (void)snprintf(armed, sizeof armed, "CLAIMD_PROBE=%s", probe == NULL ? "" : probe);
    fleet_start_worker_with(f, i, (const char *const[]){armed, NULL});
}

void fleet_launch_scheduler(struct fleet *f, size_t i, const char *const *env)
{
    ck_assert_int_eq(f->schedulers[i], 0);
    start_program(f, "claimd-scheduler", i, env, &f->schedulers[i]);
}

void fleet_start_scheduler(struct fleet *f, size_t i)
{
    fleet_launch_scheduler(f, i, NULL);
}

void fleet_kill_runner(struct fleet *f, size_t i)
{
    pid_t runner = 0;
    if (program_children(f->workers[i], &runner, 1) == 1) {
        (void)kill(runner, SIGKILL); /* it may already have ended */
    }
}

void fleet_signal(pid_t pid, int number)
{
    ck_assert_int_gt(pid, 0);
    ck_assert_int_eq(kill(pid, number), 0);
}

int fleet_wait_end(struct fleet *f, pid_t *pid)
{
    int code = -1;
    (void)f;
    OK(program_wait(*pid, STEP_US, &code, &err));
    *pid = 0;
    return code;
}

/* ---- jobs ---- */

int64_t fleet_enqueue(struct fleet *f, const char *kind, const char *args, int count)
{
    return sql_number(f->sql,
                      "WITH new AS (INSERT INTO claimd.job (kind, args) SELECT '%s', '%s'"
                      " FROM generate_series(1, %d) RETURNING id) SELECT max(id) FROM new",
                      kind, args, count);
}

void fleet_wait_state(struct fleet *f, int64_t id, const char *state)
{
    const char *now = "";
    bool is_there = WAIT_UNTIL(
        (now = sql_text(f->sql, "SELECT state FROM claimd.jobs WHERE id = %lld", (long long)id),
         strcmp(now, state) == 0),
        SOON_US);
    ck_assert_msg(is_there, "job %lld is %s, not %s", (long long)id, now, state);
}

void fleet_wait_finished(struct fleet *f, int64_t count, const char *state, int64_t within_us)
{
    bool is_done =
        WAIT_UNTIL(sql_number(f->sql, "SELECT count(*) FROM claimd.job") == 0, within_us);
    const char *open = sql_text(
        f->sql, "SELECT string_agg(format('%%s %%s attempt %%s', id, state, attempt), ', ') FROM "
                "(SELECT * FROM claimd.job ORDER BY id LIMIT 5) o");
    ck_assert_msg(is_done, "%lld jobs are still open: %s",
                  (long long)sql_number(f->sql, "SELECT count(*) FROM claimd.job"), open);
    ck_assert_int_eq(
        sql_number(f->sql, "SELECT count(*) FROM claimd.job_history WHERE state = '%s'", state),
        count);
}

/* ---- Redis ---- */

static redisContext *master_open(const struct fleet *f, size_t master)
{
    const struct timeval limit = {.tv_sec = STEP_US / US_PER_S};
    const char *password = getenv("REDISCLI_AUTH"); /* the variable of redis-cli */
    redisContext *c = redisConnectUnixWithTimeout(f->masters[master].path, limit);
    ck_assert_ptr_nonnull(c);
    if (c->err == 0) {
        (void)redisSetTimeout(c, limit);
    }
    if (c->err == 0 && password != NULL) {
        freeReplyObject(redisCommand(c, "AUTH %s", password));
    }
    return c;
}

int64_t fleet_lock_keys(struct fleet *f)
{
    int64_t keys = 0;
    for (size_t i = 0; i < f->options.masters; i++) {
        redisContext *c = master_open(f, i); /* a test may have killed it */
        redisReply *reply = c->err == 0 ? redisCommand(c, "KEYS claimd:job:[0-9]*") : NULL;
        keys += reply != NULL ? (int64_t)reply->elements : 0;
        freeReplyObject(reply);
        redisFree(c);
    }
    return keys;
}

void fleet_redis(struct fleet *f, size_t master, const char *command)
{
    (void)fleet_redis_i64(f, master, command);
}

/* Closes the connection. */
static int64_t ask_once(redisContext *c, const char *command)
{
    redisReply *reply = c->err == 0 ? redisCommand(c, command) : NULL;
    ck_assert_msg(reply != NULL && reply->type != REDIS_REPLY_ERROR, "%s: %s", command,
                  reply != NULL ? reply->str : c->errstr);
    int64_t number = reply->type == REDIS_REPLY_INTEGER ? reply->integer
                     : reply->str != NULL               ? strtoll(reply->str, NULL, 10)
                                                        : 0;
    freeReplyObject(reply);
    redisFree(c);
    return number;
}

int64_t fleet_redis_i64(struct fleet *f, size_t master, const char *command)
{
    return ask_once(master_open(f, master), command);
}

void fleet_redis_as(struct fleet *f, size_t master, const char *user, const char *password,
                    const char *command)
{
    redisContext *c = master_open(f, master);
    freeReplyObject(c->err == 0 ? redisCommand(c, "AUTH %s %s", user, password) : NULL);
    (void)ask_once(c, command);
}

/* ---- logs and ledgers ---- */

int fleet_count_lines(const char *path, const char *text)
{
    char line[8192];
    int count = 0;
    FILE *file = fopen(path, "r");
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        count += strstr(line, text) != NULL ? 1 : 0;
    }
    if (file != NULL) {
        (void)fclose(file);
    }
    return count;
}

int fleet_log_count(struct fleet *f, const char *program, size_t i, const char *text)
{
    char path[SERVER_PATH_MAX + 64];
    (void)snprintf(path, sizeof path, "%s/%s-%zu.log", f->dir, program, i);
    return fleet_count_lines(path, text);
}

static bool find_http(const char *path, char *ret_address, size_t size)
{
    char line[4096];
    bool is_found = false;
    FILE *file = fopen(path, "re");
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        const char *http = strstr(line, " event=ready ") != NULL ? strstr(line, " http=") : NULL;
        if (http != NULL) {
            http += strlen(" http=");
            (void)snprintf(ret_address, size, "%.*s", (int)strcspn(http, " \n"), http);
            is_found = true;
        }
    }
    if (file != NULL) {
        (void)fclose(file);
    }
    return is_found;
}

void fleet_http(struct fleet *f, const char *program, size_t i, char *ret_address, size_t size)
{
    char path[SERVER_PATH_MAX + 64];
    (void)snprintf(path, sizeof path, "%s/%s-%zu.log", f->dir, program, i);
    ck_assert_msg(WAIT_UNTIL(find_http(path, ret_address, size), STEP_US), "%s %zu isn't ready",
                  program, i);
}

void fleet_ledger_path(const struct fleet *f, char *ret_path, size_t size)
{
    (void)snprintf(ret_path, size, "%s/ledger", f->dir);
}

int fleet_ledger_count(const struct fleet *f, const char *what)
{
    char path[SERVER_PATH_MAX + 64];
    fleet_ledger_path(f, path, sizeof path);
    return fleet_count_lines(path, what);
}
