/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/cluster.h"

#include "base/clock.h"
#include "base/proc.h"
#include "bench/process.h"
#include "cluster/child.h"
#include "store/migrate.h"

#include <assert.h>
#include <jansson.h>
#include <libgen.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>

#define MIGRATE_US (60 * US_PER_S)
#define STOP_US (40 * US_PER_S) /* a worker's drain may take 30 s */

static const char pg_settings[] = "shared_buffers = 512MB\n"
                                  "max_wal_size = 4GB\n"
                                  "checkpoint_timeout = 30min\n";

static void on_signal(uv_signal_t *handle, int number)
{
    struct cluster *c = handle->data;
    (void)number;
    c->is_interrupted = true;
}

static void on_timer(uv_timer_t *timer)
{
    bool *is_over = timer->data;
    *is_over = true;
}

static void loop_open(struct cluster *c)
{
    int failed = uv_loop_init(&c->loop) | uv_signal_init(&c->loop, &c->on_int) |
                 uv_signal_init(&c->loop, &c->on_term) | uv_timer_init(&c->loop, &c->timer);
    c->on_int.data = c;
    c->on_term.data = c;
    failed |= uv_signal_start(&c->on_int, on_signal, SIGINT) |
              uv_signal_start(&c->on_term, on_signal, SIGTERM);
    assert(failed == 0);
}

static void loop_close(struct cluster *c)
{
    uv_close((uv_handle_t *)&c->on_int, NULL);
    uv_close((uv_handle_t *)&c->on_term, NULL);
    uv_close((uv_handle_t *)&c->timer, NULL);
    (void)uv_run(&c->loop, UV_RUN_DEFAULT);
    (void)uv_loop_close(&c->loop);
}

enum status cluster_wait(struct cluster *c, int64_t us, struct err *err)
{
    bool is_over = false;
    c->timer.data = &is_over;
    /* A repeating timer: if a single one were due before the first poll, nothing would end that
     * poll. */
    (void)uv_timer_start(&c->timer, on_timer, (uint64_t)(us / US_PER_MS), 1);
    while (!is_over && !c->is_interrupted) {
        (void)uv_run(&c->loop, UV_RUN_ONCE);
    }
    (void)uv_timer_stop(&c->timer);
    return is_over ? STATUS_OK : err_fail(err, STATUS_UNAVAILABLE, "interrupted");
}

/* Appends settings that need a restart: starts the server for initdb, stops it, and starts it
 * again. */
static enum status start_postgres(struct cluster *c, struct err *err)
{
    char dir[SERVER_PATH_MAX + 8];
    char path[SERVER_PATH_MAX + 32];
    (void)snprintf(dir, sizeof dir, "%s/pg", c->dir);
    enum status st = pg_server_start(dir, true, &c->pg, err);
    if (st != STATUS_OK) {
        return st;
    }
    pg_server_stop(&c->pg);
    (void)snprintf(path, sizeof path, "%s/data/postgresql.conf", dir);
    FILE *f = fopen(path, "ae");
    if (f == NULL) {
        return err_fail_sys(err, STATUS_UNAVAILABLE, errno, "open %s", path);
    }
    int n = fputs(pg_settings, f);
    if (fclose(f) != 0 || n < 0) {
        return err_fail_sys(err, STATUS_UNAVAILABLE, errno, "write %s", path);
    }
    return pg_server_start(dir, true, &c->pg, err);
}

static enum status start_servers(struct cluster *c, struct err *err)
{
    const char *paths[MASTERS_MAX];
    enum status st = start_postgres(c, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = pg_server_create_db(&c->pg, "claimd", NULL, c->conninfo, sizeof c->conninfo, err);
    for (size_t i = 0; i < c->options.masters && st == STATUS_OK; i++) {
        char dir[SERVER_PATH_MAX + 16];
        (void)snprintf(dir, sizeof dir, "%s/r%zu", c->dir, i);
        st = redis_server_start(dir, NULL, &c->redis[i], err);
        paths[i] = c->redis[i].path;
    }
    if (st != STATUS_OK) {
        return st;
    }
    st = migrate_up(c->conninfo, MIGRATE_US, NULL, NULL, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = db_open(&c->db, &c->loop, c->conninfo, &c->is_interrupted, err);
    if (st != STATUS_OK) {
        return st;
    }
    return masters_open(&c->masters, &c->loop, paths, c->options.masters, &c->is_interrupted, err);
}

static json_t *node_list(const struct cluster *c)
{
    json_t *nodes = json_array();
    for (size_t i = 0; i < c->options.masters; i++) {
        const char *path = c->node_paths[i][0] != '\0' ? c->node_paths[i] : c->redis[i].path;
        (void)json_array_append_new(nodes, json_sprintf("unix:%s", path));
    }
    return nodes;
}

static json_t *queue_list(const struct cluster *c)
{
    json_t *queues = c->options.queues == 0 ? json_pack("[s]", "default") : json_array();
    for (size_t i = 0; i < c->options.queues; i++) {
        (void)json_array_append_new(queues, json_sprintf("q%zu", i));
    }
    return queues;
}

static enum status write_config(struct cluster *c, struct err *err)
{
    char plugins[SERVER_PATH_MAX + 64];
    (void)snprintf(plugins, sizeof plugins, "%s/../%s", c->bin_dir, c->options.plugins);
    json_auto_t *config =
        json_pack("{s:{s:s}, s:{s:o, s:s}, s:{s:i, s:o, s:s}}", "postgres", "conninfo", c->conninfo,
                  "lock", "nodes", node_list(c), "fresh_nodes", "trust", "worker", "slots",
                  c->options.slots, "queues", queue_list(c), "plugin_dir", plugins);
    if (c->handlers[0] != '\0') {
        (void)json_object_set_new(json_object_get(config, "worker"), "handlers",
                                  json_string(c->handlers));
    }
    (void)snprintf(c->config_path, sizeof c->config_path, "%s/claimd.json", c->dir);
    if (config == NULL || json_dump_file(config, c->config_path, JSON_INDENT(2)) != 0) {
        return err_fail(err, STATUS_UNAVAILABLE, "can't write %s", c->config_path);
    }
    return STATUS_OK;
}

enum status cluster_open(struct cluster *c, const struct cluster_options *options, struct err *err)
{
    *c = (struct cluster){.options = *options};
    char program[PATH_MAX] = "";
    loop_open(c);
    if (readlink("/proc/self/exe", program, sizeof program - 1) < 0) {
        return err_fail_sys(err, STATUS_INTERNAL, errno, "own path");
    }
    (void)snprintf(c->bin_dir, sizeof c->bin_dir, "%s", dirname(program));
    enum status st = dir_make(c->dir, sizeof c->dir, err);
    if (st != STATUS_OK) {
        return st;
    }
    return start_servers(c, err);
}

static void stop_hard(pid_t *pid)
{
    int code = 0;
    if (*pid > 0) {
        (void)kill(*pid, SIGKILL);
        if (program_wait(*pid, STOP_US, &code, NULL) == STATUS_OK) {
            *pid = 0;
        }
    }
}

void cluster_close(struct cluster *c)
{
    stop_hard(&c->scheduler);
    for (size_t i = 0; i < c->options.workers; i++) {
        stop_hard(&c->workers[i]);
    }
    db_close(&c->db);
    masters_close(&c->masters);
    loop_close(c);
    for (size_t i = 0; i < c->options.masters; i++) {
        redis_server_stop(&c->redis[i]);
    }
    pg_server_stop(&c->pg);
    dir_remove(c->dir);
}

/* Starts a daemon, which answers HTTP at `listen`. Its log begins from scratch, since a drain
 * writes a line per job. */
static enum status start_daemon(struct cluster *c, const char *name, size_t number, char *listen,
                                pid_t *ret_pid, struct err *err)
{
    char program[SERVER_PATH_MAX + 64];
    char state[SERVER_PATH_MAX + 64];
    char log_path[SERVER_PATH_MAX + 64];
    (void)snprintf(program, sizeof program, "%s/%s", c->bin_dir, name);
    (void)snprintf(state, sizeof state, "CLAIMD_WORKER_STATE_DIR=%s/worker%zu", c->dir, number);
    (void)snprintf(log_path, sizeof log_path, "%s/%s%zu.log", c->dir, name, number);
    char worker_http[64];
    char scheduler_http[64];
    int port = port_free();
    if (port == 0) {
        return err_fail(err, STATUS_UNAVAILABLE, "no free port");
    }
    /* A loopback address of this process alone: otherwise another program may take the port before
     * the daemon does. */
    unsigned pid = (unsigned)getpid();
    (void)snprintf(listen, sizeof c->http[0], "127.%u.%u.%u:%d", 1 + (pid >> 16) % 128,
                   (pid >> 8) % 256, pid % 256, port);
    (void)snprintf(worker_http, sizeof worker_http, "CLAIMD_WORKER_HTTP_LISTEN=%s", listen);
    (void)snprintf(scheduler_http, sizeof scheduler_http, "CLAIMD_SCHEDULER_HTTP_LISTEN=%s",
                   listen);
    (void)unlink(log_path);
    const char *const argv[] = {program, "--config", c->config_path, NULL};
    char conninfo[sizeof c->worker_conninfo + 64];
    bool is_elsewhere = ret_pid != &c->scheduler && c->worker_conninfo[0] != '\0';
    (void)snprintf(conninfo, sizeof conninfo, "CLAIMD_POSTGRES_CONNINFO=%s", c->worker_conninfo);
    const char *const env[] = {state, worker_http, scheduler_http, is_elsewhere ? conninfo : NULL,
                               NULL};
    return program_start(argv, env, log_path, ret_pid, err);
}

enum status cluster_start_daemons(struct cluster *c, struct err *err)
{
    enum status st = write_config(c, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = start_daemon(c, "claimd-scheduler", 0, c->http[0], &c->scheduler, err);
    if (st != STATUS_OK) {
        return st;
    }
    for (size_t i = 0; i < c->options.workers; i++) {
        st = start_daemon(c, "claimd-worker", i, c->http[i + 1], &c->workers[i], err);
        if (st != STATUS_OK) {
            return st;
        }
    }
    return STATUS_OK;
}

static enum status stop_daemon(pid_t *pid, const char *name, struct err *err)
{
    int code = 0;
    if (*pid <= 0) {
        return STATUS_OK;
    }
    (void)kill(*pid, SIGTERM);
    enum status st = program_wait(*pid, STOP_US, &code, err);
    if (st != STATUS_OK) {
        stop_hard(pid);
        return st;
    }
    *pid = 0;
    return code == 0 ? STATUS_OK : err_fail(err, STATUS_CONFLICT, "%s ended with %d", name, code);
}

enum status cluster_stop_daemons(struct cluster *c, struct err *err)
{
    enum status st = STATUS_OK;
    for (size_t i = 0; i < c->options.workers; i++) {
        enum status one = stop_daemon(&c->workers[i], "claimd-worker", err);
        st = one != STATUS_OK ? one : st;
    }
    enum status one = stop_daemon(&c->scheduler, "claimd-scheduler", err);
    return one != STATUS_OK ? one : st;
}

static enum status check_daemon(const struct cluster *c, const char *name, size_t number, pid_t pid,
                                struct err *err)
{
    char path[SERVER_PATH_MAX + 64];
    char tail[300];
    struct proc_stat stat;
    if (pid <= 0) {
        return STATUS_OK; /* not started */
    }
    if (proc_stat(pid, &stat) && stat.state != 'X' && stat.state != 'Z') {
        return STATUS_OK;
    }
    (void)snprintf(path, sizeof path, "%s/%s%zu.log", c->dir, name, number);
    child_log_tail(path, tail, sizeof tail);
    return err_fail(err, STATUS_NOT_FOUND, "%s has ended: %s", name, tail);
}

enum status cluster_check_daemons(const struct cluster *c, struct err *err)
{
    enum status st = check_daemon(c, "claimd-scheduler", 0, c->scheduler, err);
    if (st != STATUS_OK) {
        return st;
    }
    for (size_t i = 0; i < c->options.workers; i++) {
        st = check_daemon(c, "claimd-worker", i, c->workers[i], err);
        if (st != STATUS_OK) {
            return st;
        }
    }
    return STATUS_OK;
}

struct cluster_cpu cluster_cpu(const struct cluster *c)
{
    struct cluster_cpu sum = {0};
    struct process_cpu one = process_cpu(c->pg.pid);
    sum.postgres_us = one.self_us + one.children_us;
    for (size_t i = 0; i < c->options.masters; i++) {
        sum.redis_us += process_cpu(c->redis[i].pid).self_us;
    }
    sum.scheduler_us = process_cpu(c->scheduler).self_us;
    for (size_t i = 0; i < c->options.workers; i++) {
        one = process_cpu(c->workers[i]);
        sum.worker_us += one.self_us;
        sum.runner_us += one.children_us;
    }
    return sum;
}

int64_t cluster_worker_rss_kib(const struct cluster *c)
{
    int64_t peak = 0;
    for (size_t i = 0; i < c->options.workers; i++) {
        int64_t one = process_peak_rss_kib(c->workers[i]);
        peak = one > peak ? one : peak;
    }
    return peak;
}

int64_t cluster_scheduler_rss_kib(const struct cluster *c)
{
    return process_peak_rss_kib(c->scheduler);
}
