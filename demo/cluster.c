/* SPDX-License-Identifier: Apache-2.0 */
#include "demo/cluster.h"

#include "base/clock.h"

#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>

#define RUN_US (120 * US_PER_S)
#define DRAIN_US (45 * US_PER_S)
#define WATCH_US (30 * US_PER_S)
#define SETTLE_US (200 * US_PER_MS)
#define OUTPUT_MAX ((size_t)64 << 20)
#define SLOTS "2"

enum env {
    ENV_CONNINFO,
    ENV_NODES,
    ENV_FRESH,
    ENV_PLUGINS,
    ENV_COMMANDS,
    ENV_SLOTS,
    ENV_STATE,
    ENV_WORKER_HTTP,
    ENV_SCHEDULER_HTTP,
    ENV_WEB
};

static enum status set_env(struct cluster *c, enum env which, const char *name, const char *value,
                           struct err *err)
{
    char *text = c->env_texts[which];
    if (snprintf(text, CLUSTER_TEXT_MAX, "%s=%s", name, value) >= CLUSTER_TEXT_MAX) {
        return err_fail(err, STATUS_LIMIT, "%s is too long", name);
    }
    c->env[which] = text;
    return STATUS_OK;
}

static enum status start_servers(struct cluster *c, struct err *err)
{
    char path[SERVER_PATH_MAX + 16];
    char nodes[CLUSTER_NODES * 128] = "";
    (void)snprintf(path, sizeof path, "%s/pg", c->dir);
    enum status st = pg_server_start(path, true, &c->pg, err);
    for (size_t i = 0; i < CLUSTER_NODES && st == STATUS_OK; i++) {
        (void)snprintf(path, sizeof path, "%s/redis-%zu", c->dir, i);
        st = redis_server_start(path, NULL, &c->redis[i], err);
        size_t used = strlen(nodes);
        (void)snprintf(nodes + used, sizeof nodes - used, "%sunix:%s", i == 0 ? "" : ",",
                       c->redis[i].path);
    }
    if (st != STATUS_OK) {
        return st;
    }
    st = pg_server_create_db(&c->pg, "claimd", NULL, c->conninfo, sizeof c->conninfo, err);
    if (st != STATUS_OK) {
        return st;
    }
    return set_env(c, ENV_NODES, "CLAIMD_LOCK_NODES", nodes, err);
}

static enum status set_env_of_all(struct cluster *c, struct err *err)
{
    char plugins[SERVER_PATH_MAX + 16];
    (void)snprintf(plugins, sizeof plugins, "%s/../plugins", c->bin);
    const struct {
        enum env which;
        const char *name;
        const char *value;
    } settings[] = {
        {ENV_CONNINFO, "CLAIMD_POSTGRES_CONNINFO", c->conninfo},
        {ENV_FRESH, "CLAIMD_LOCK_FRESH_NODES", "trust"},
        {ENV_PLUGINS, "CLAIMD_WORKER_PLUGIN_DIR", plugins},
        {ENV_COMMANDS, "CLAIMD_WORKER_COMMANDS",
         "{\"md5\": [\"" CLUSTER_MD5SUM "\", \"--\", \"{path}\"]}"},
        {ENV_SLOTS, "CLAIMD_WORKER_SLOTS", SLOTS},
        {ENV_STATE, "CLAIMD_WORKER_STATE_DIR", c->dir},
        {ENV_WORKER_HTTP, "CLAIMD_WORKER_HTTP_LISTEN", "127.0.0.1:0"},
        {ENV_SCHEDULER_HTTP, "CLAIMD_SCHEDULER_HTTP_LISTEN", "127.0.0.1:0"},
        {ENV_WEB, "CLAIMD_WEB_LISTEN", "127.0.0.1:0"},
    };
    for (size_t i = 0; i < ARRAY_COUNT(settings); i++) {
        enum status st = set_env(c, settings[i].which, settings[i].name, settings[i].value, err);
        if (st != STATUS_OK) {
            return st;
        }
    }
    return STATUS_OK;
}

static enum status start_daemon(struct cluster *c, const char *program, size_t n, pid_t *ret_pid,
                                struct err *err)
{
    char path[SERVER_PATH_MAX + 32];
    char log_path[SERVER_PATH_MAX + 32];
    char state[SERVER_PATH_MAX + 32];
    (void)snprintf(path, sizeof path, "%s/claimd-%s", c->bin, program);
    (void)snprintf(log_path, sizeof log_path, "%s/%s-%zu.log", c->dir, program, n);
    (void)snprintf(state, sizeof state, "%s/%s-%zu", c->dir, program, n);
    enum status st = set_env(c, ENV_STATE, "CLAIMD_WORKER_STATE_DIR", state, err);
    if (st != STATUS_OK) {
        return st;
    }
    const char *const argv[] = {path, NULL};
    return program_start(argv, c->env, log_path, ret_pid, err);
}

static enum status find_bin(struct cluster *c, struct err *err)
{
    ssize_t n = readlink("/proc/self/exe", c->bin, sizeof c->bin - 1);
    if (n <= 0) {
        return err_fail_sys(err, STATUS_INTERNAL, errno, "cannot find my own path");
    }
    c->bin[n] = '\0';
    char *slash = strrchr(c->bin, '/');
    if (slash != NULL) {
        *slash = '\0';
    }
    return STATUS_OK;
}

enum status cluster_start(struct cluster *c, struct err *err)
{
    static const char *const migrate[] = {"db", "migrate", NULL};
    autobuf struct buf out = BUF_INIT(OUTPUT_MAX);
    enum status st = find_bin(c, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = dir_make_on_disk(c->dir, sizeof c->dir, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = start_servers(c, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = set_env_of_all(c, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = cluster_ctl(c, migrate, &out, err);
    if (st != STATUS_OK) {
        return st;
    }
    for (size_t i = 0; i < CLUSTER_SCHEDULERS; i++) {
        st = start_daemon(c, "scheduler", i + 1, &c->schedulers[i], err);
        if (st != STATUS_OK) {
            return st;
        }
    }
    for (size_t i = 0; i < CLUSTER_WORKERS; i++) {
        st = start_daemon(c, "worker", i + 1, &c->workers[i], err);
        if (st != STATUS_OK) {
            return st;
        }
    }
    return STATUS_OK;
}

/* Finds the address in the ready line of its log. */
static bool find_address(const char *log_path, char *ret, size_t size)
{
    char line[1024];
    bool is_found = false;
    FILE *log = fopen(log_path, "re");
    while (log != NULL && !is_found && fgets(line, sizeof line, log) != NULL) {
        const char *at = strstr(line, " http=http");
        is_found = at != NULL && strstr(line, "event=ready") != NULL;
        if (is_found) {
            (void)snprintf(ret, size, "%.*s", (int)strcspn(at + 6, " \n"), at + 6);
        }
    }
    if (log != NULL) {
        (void)fclose(log);
    }
    return is_found;
}

enum status cluster_watch(struct cluster *c, char *ret_address, size_t size, struct err *err)
{
    char log_path[SERVER_PATH_MAX + 32];
    (void)snprintf(log_path, sizeof log_path, "%s/web-1.log", c->dir);
    enum status st = start_daemon(c, "web", 1, &c->web, err);
    if (st != STATUS_OK) {
        return st;
    }
    if (!WAIT_UNTIL(find_address(log_path, ret_address, size), WATCH_US)) {
        return err_fail(err, STATUS_TIMEOUT, "claimd-web is not ready: see %s", log_path);
    }
    return STATUS_OK;
}

static void end_all(pid_t *pids, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (pids[i] > 0) {
            program_kill(pids[i]);
            pids[i] = 0;
        }
    }
}

void cluster_stop(struct cluster *c)
{
    end_all(&c->web, 1);
    end_all(c->workers, CLUSTER_WORKERS);
    end_all(c->schedulers, CLUSTER_SCHEDULERS);
    for (size_t i = 0; i < CLUSTER_NODES; i++) {
        redis_server_stop(&c->redis[i]);
    }
    pg_server_stop(&c->pg);
}

static enum status drain(pid_t *pids, size_t count, int64_t end_us, const char *what,
                         struct err *err)
{
    int code = 0;
    for (size_t i = 0; i < count; i++) {
        if (pids[i] > 0) {
            (void)kill(pids[i], SIGTERM);
        }
    }
    for (size_t i = 0; i < count; i++) {
        if (pids[i] <= 0) {
            continue;
        }
        enum status st = program_wait(pids[i], end_us - wait_now_us(), &code, err);
        if (st != STATUS_OK) {
            err_prefix(err, "drain %s %zu", what, i + 1);
            return st;
        }
        pids[i] = 0;
        if (code != 0) {
            return err_fail(err, STATUS_INTERNAL, "%s %zu ended with %d", what, i + 1, code);
        }
    }
    return STATUS_OK;
}

enum status cluster_drain(struct cluster *c, struct err *err)
{
    int64_t end_us = wait_now_us() + DRAIN_US;
    enum status st = drain(c->workers, CLUSTER_WORKERS, end_us, "worker", err);
    if (st != STATUS_OK) {
        return st;
    }
    return drain(c->schedulers, CLUSTER_SCHEDULERS, end_us, "scheduler", err);
}

/* Runs the program; returns INTERNAL with the head of its output if its exit code is not 0. */
static enum status run(struct cluster *c, const char *const *argv, struct buf *out, struct err *err)
{
    int code = 0;
    enum status st = program_run(argv, c->env, RUN_US, out, &code, err);
    if (st != STATUS_OK) {
        return st;
    }
    if (code != 0) {
        return err_fail(err, STATUS_INTERNAL, "%s ended with %d: %s", argv[0], code,
                        out->len > 0 ? buf_at(out) : "");
    }
    return STATUS_OK;
}

enum status cluster_ctl(struct cluster *c, const char *const *args, struct buf *out,
                        struct err *err)
{
    char path[SERVER_PATH_MAX + 16];
    const char *argv[24] = {path};
    (void)snprintf(path, sizeof path, "%s/claimctl", c->bin);
    for (size_t i = 0; args[i] != NULL && i + 2 < ARRAY_COUNT(argv); i++) {
        argv[i + 1] = args[i];
    }
    return run(c, argv, out, err);
}

enum status cluster_sql(struct cluster *c, const char *sql, struct buf *out, struct err *err)
{
    const char *const argv[] = {"psql", "-XqAt", "-v", "ON_ERROR_STOP=1", "-d", c->conninfo,
                                "-c",   sql,     NULL};
    buf_reset(out);
    return run(c, argv, out, err);
}

static enum status busiest_worker(struct cluster *c, struct killed *ret, struct err *err)
{
    autobuf struct buf out = BUF_INIT(OUTPUT_MAX);
    enum status st = cluster_sql(c,
                                 "SELECT w.worker_id, w.pid, count(*) FROM claimd.job j"
                                 " JOIN claimd.worker w USING (worker_id)"
                                 " WHERE j.state = 'running' GROUP BY 1, 2 ORDER BY 3 DESC LIMIT 1",
                                 &out, err);
    if (st != STATUS_OK) {
        return st;
    }
    if (out.len == 0) {
        return err_fail(err, STATUS_NOT_FOUND, "no worker holds running jobs");
    }
    const char *id = buf_at(&out); /* "uuid|pid|count" */
    size_t len = strcspn(id, "|");
    char *end = NULL;
    (void)snprintf(ret->worker_id, sizeof ret->worker_id, "%.*s", (int)len, id);
    ret->pid = (pid_t)strtol(id + len + 1, &end, 10);
    ret->held = strtol(end + 1, NULL, 10);
    return STATUS_OK;
}

static enum status count_held(struct cluster *c, struct killed *k, struct err *err)
{
    char sql[256];
    autobuf struct buf out = BUF_INIT(OUTPUT_MAX);
    (void)snprintf(sql, sizeof sql,
                   "SELECT count(*) FROM claimd.job WHERE state = 'running' AND worker_id = '%s'",
                   k->worker_id);
    enum status st = cluster_sql(c, sql, &out, err);
    if (st != STATUS_OK) {
        return st;
    }
    k->held = strtol(buf_at(&out), NULL, 10);
    return STATUS_OK;
}

/* Stops the worker before it looks, so that the worker still holds its jobs when it is killed. */
enum status cluster_kill_a_worker(struct cluster *c, struct killed *ret, struct err *err)
{
    struct killed k = {0};
    enum status st = busiest_worker(c, &k, err);
    if (st != STATUS_OK) {
        return st;
    }
    (void)kill(k.pid, SIGSTOP);
    (void)WAIT_UNTIL(false, SETTLE_US); /* by then, statements already sent are committed */
    st = count_held(c, &k, err);
    if (st == STATUS_OK && k.held == 0) {
        st = err_fail(err, STATUS_NOT_FOUND, "it holds none any more");
    }
    if (st != STATUS_OK) {
        (void)kill(k.pid, SIGCONT);
        return st;
    }
    program_kill(k.pid);
    for (size_t i = 0; i < CLUSTER_WORKERS; i++) {
        if (c->workers[i] == k.pid) {
            c->workers[i] = 0;
        }
    }
    *ret = k;
    return STATUS_OK;
}

enum status cluster_count_locks(struct cluster *c, long *ret_count, struct err *err)
{
    long count = 0;
    for (size_t i = 0; i < CLUSTER_NODES; i++) {
        autobuf struct buf out = BUF_INIT(OUTPUT_MAX);
        static const char *const scan[] = {"--scan", "--pattern", "claimd:job:[0-9]*", NULL};
        enum status st = redis_server_ask(&c->redis[i], scan, &out, err);
        if (st != STATUS_OK) {
            return st;
        }
        for (size_t k = 0; k < out.len; k++) {
            count += buf_at(&out)[k] == '\n' ? 1 : 0;
        }
    }
    *ret_count = count;
    return STATUS_OK;
}

long cluster_count_lines(const struct cluster *c, const char *wanted)
{
    long count = 0;
    for (size_t i = 0; i < CLUSTER_WORKERS; i++) {
        char path[SERVER_PATH_MAX + 32];
        autofree char *line = NULL;
        size_t size = 0;
        (void)snprintf(path, sizeof path, "%s/worker-%zu.log", c->dir, i + 1);
        FILE *f = fopen(path, "re");
        while (f != NULL && getline(&line, &size, f) > 0) {
            count += strstr(line, wanted) != NULL ? 1 : 0;
        }
        if (f != NULL) {
            (void)fclose(f);
        }
    }
    return count;
}
