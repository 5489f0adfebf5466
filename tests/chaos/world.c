/* SPDX-License-Identifier: Apache-2.0 */
#include "chaos/world.h"

#include "base/buf.h"
#include "base/clock.h"
#include "chaos/host.h"
#include "chaos/row_history.h"
#include "cluster/child.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>

#define PATH_SIZE (SERVER_PATH_MAX + 64)
#define OUTPUT_MAX ((size_t)1 << 20)
#define CLAIMCTL_US (120 * US_PER_S)
#define WORDS_MAX 8
#define TURN_MS 20
#define STATEMENT_US (5 * US_PER_S)
#define RETRY_US (200 * US_PER_MS) /* for a server that failed to start */
#define DRAIN_MS 6000

int64_t world_scaled(const struct world *w, int64_t us)
{
    return (int64_t)((double)us * w->options->time_scale);
}

void world_violation(struct world *w, const char *target, const char *format, ...)
{
    char text[512];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    w->violations++;
    (void)printf("violation: %s: %s\n", target, text);
    journal_write(&w->nemesis,
                  json_pack("{s:s, s:s, s:s, s:s, s:i}", "ph", "violation", "x", "process",
                            "target", target, "text", text, "traits", TRAIT_REPORT));
}

/* ---- files ---- */

static enum status find_bin(struct world *w, struct err *err)
{
    ssize_t n = readlink("/proc/self/exe", w->bin_dir, sizeof w->bin_dir - 1);
    if (n <= 0) {
        return err_fail_sys(err, STATUS_INTERNAL, errno, "find my own path");
    }
    w->bin_dir[n] = '\0';
    char *slash = strrchr(w->bin_dir, '/');
    *(slash != NULL ? slash : w->bin_dir) = '\0';
    return STATUS_OK;
}

static enum status copy_some(const char *from, const char *to, size_t most, struct err *err)
{
    char bytes[4096];
    ssize_t n = 0;
    autoclose int in = open(from, O_RDONLY | O_CLOEXEC);
    autoclose int out = open(to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    while (in >= 0 && out >= 0 &&
           (n = read(in, bytes, most < sizeof bytes ? most : sizeof bytes)) > 0) {
        if (write(out, bytes, (size_t)n) != n) {
            break;
        }
        most -= (size_t)n;
    }
    return in >= 0 && out >= 0 && n == 0
               ? STATUS_OK
               : err_fail_sys(err, STATUS_UNAVAILABLE, errno, "copy %s to %s", from, to);
}

static enum status copy_file(const char *from, const char *to, struct err *err)
{
    return copy_some(from, to, SIZE_MAX, err);
}

bool world_put_plugin(struct world *w, const char *from, size_t most)
{
    char new[PATH_SIZE];
    char old[PATH_SIZE];
    struct err why = {0};
    (void)snprintf(new, sizeof new, "%s/plugin.new", w->dir);
    (void)snprintf(old, sizeof old, "%s/plugins/chaos.so", w->dir);
    return copy_some(from, new, most, &why) == STATUS_OK && rename(new, old) == 0;
}

static enum status copy_plugins(struct world *w, struct err *err)
{
    char dir[PATH_SIZE];
    char to[PATH_SIZE + 64];
    for (size_t i = 0; i < WORLD_PLUGINS_MAX && w->plan->plugins[i].path != NULL; i++) {
        const struct world_plugin *p = &w->plan->plugins[i];
        (void)snprintf(dir, sizeof dir, "%s/%s", w->dir, p->folder);
        (void)snprintf(to, sizeof to, "%s%s", dir, strrchr(p->path, '/'));
        if (mkdir(dir, 0755) != 0 && errno != EEXIST) {
            return err_fail_sys(err, STATUS_UNAVAILABLE, errno, "make %s", dir);
        }
        enum status st = copy_file(p->path, to, err);
        if (st != STATUS_OK) {
            return st;
        }
    }
    return STATUS_OK;
}

static json_t *nodes_json(const struct world *w)
{
    json_t *nodes = json_array();
    for (size_t i = 0; i < WORLD_REDIS; i++) {
        char url[PATH_SIZE];
        (void)snprintf(url, sizeof url, "unix:");
        world_net_path(w, i, url + strlen(url), sizeof url - strlen(url));
        (void)json_array_append_new(nodes, json_string(url));
    }
    return nodes;
}

static json_t *queues_json(const struct world *w)
{
    json_t *queues = json_array();
    for (size_t i = 0; i < WORLD_QUEUES_MAX && w->plan->queues[i] != NULL; i++) {
        (void)json_array_append_new(queues, json_string(w->plan->queues[i]));
    }
    return queues;
}

enum status world_write_config(struct world *w, struct err *err)
{
    char plugins[PATH_SIZE];
    char handlers[PATH_SIZE];
    char new[PATH_SIZE];
    (void)snprintf(plugins, sizeof plugins, "%s/plugins", w->dir);
    (void)snprintf(w->config_path, sizeof w->config_path, "%s/claimd.json", w->dir);
    (void)snprintf(new, sizeof new, "%s/claimd.json.new", w->dir);
    json_t *all = json_pack(
        "{s:f, s:s, s:{s:s}, s:{s:i, s:o}, s:{s:I, s:s, s:i, s:o, s:s}, s:{s:s}}", "time_scale",
        w->options->time_scale, "log_level", w->plan->log_level, "postgres", "conninfo",
        w->net_conninfo, "lock", "node_timeout_ms", 100, "nodes", nodes_json(w), "worker", "slots",
        (json_int_t)w->options->slots, "plugin_dir", plugins, "drain_ms", DRAIN_MS, "queues",
        queues_json(w), "http_listen", "127.0.0.1:0", "scheduler", "http_listen", "127.0.0.1:0");
    if (w->options->has_programs) {
        (void)snprintf(handlers, sizeof handlers, "%s/handlers", w->dir);
        (void)json_object_set_new(json_object_get(all, "worker"), "handlers",
                                  json_string(handlers));
    }
    int rc = all != NULL ? json_dump_file(all, new, JSON_INDENT(2)) : -1;
    json_decref(all);
    return rc == 0 && rename(new, w->config_path) == 0
               ? STATUS_OK
               : err_fail_sys(err, STATUS_UNAVAILABLE, errno, "write %s", w->config_path);
}

/* ---- servers ---- */

/* Returns the variables for a server; NULL: none. */
static const char *const *env_of(const struct world *w, size_t server)
{
    return w->plan->is_bare ? NULL : w->env[server];
}

static enum status make_clock(struct world *w, size_t server, struct err *err)
{
    int64_t none = 0;
    char *path = w->clock_file[server];
    (void)snprintf(path, sizeof w->clock_file[server], "CLOCK_SHIM_FILE=%s/clock-%zu", w->dir,
                   server);
    w->env[server][0] = w->shim[0];
    w->env[server][1] = path;
    autoclose int fd = open(strchr(path, '=') + 1, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    return fd >= 0 && write(fd, &none, sizeof none) == sizeof none
               ? STATUS_OK
               : err_fail_sys(err, STATUS_UNAVAILABLE, errno, "write %s", path);
}

void world_set_clock(struct world *w, size_t server, int64_t offset_us)
{
    autoclose int fd = open(strchr(w->clock_file[server], '=') + 1, O_WRONLY | O_CLOEXEC);
    ssize_t n = pwrite(fd, &offset_us, sizeof offset_us, 0);
    (void)n;
}

/* Turns on commit timestamps for the history of rows; a standby copies the setting. */
static enum status date_commits(struct pg_server *pg, struct err *err)
{
    enum status st =
        pg_server_ask(pg, "ALTER SYSTEM SET track_commit_timestamp = on", NULL, 0, err);
    if (st != STATUS_OK) {
        return st;
    }
    pg_server_stop(pg);
    return pg_server_restart(pg, err);
}

static enum status start_servers(struct world *w, struct err *err)
{
    char path[PATH_SIZE];
    enum status st = STATUS_OK;
    (void)snprintf(w->shim[0], sizeof w->shim[0], "LD_PRELOAD=%s", CHAOS_CLOCK_SHIM);
    for (size_t i = 0; i <= WORLD_REDIS && !w->plan->is_bare; i++) {
        st = make_clock(w, i, err);
        if (st != STATUS_OK) {
            return st;
        }
    }
    for (size_t i = 0; i < WORLD_REDIS; i++) {
        (void)snprintf(path, sizeof path, "%s/r%zu", w->dir, i);
        w->redis_state[i].restart_us = WORLD_NEVER;
        st = redis_server_start_env(path, "enable-debug-command local", env_of(w, i), &w->redis[i],
                                    err);
        if (st != STATUS_OK) {
            return st;
        }
    }
    (void)snprintf(path, sizeof path, "%s/pg0", w->dir);
    w->pg_state.restart_us = WORLD_NEVER;
    st = pg_server_start_env(path, false, env_of(w, WORLD_REDIS), &w->pg[0], err);
    if (st != STATUS_OK) {
        return st;
    }
    st = w->plan->is_bare ? STATUS_OK : date_commits(&w->pg[0], err);
    if (st != STATUS_OK) {
        return st;
    }
    return pg_server_create_db(&w->pg[0], "claimd", NULL, w->conninfo, sizeof w->conninfo, err);
}

/* ---- the network ---- */

struct pg_server *world_primary(struct world *w)
{
    return &w->pg[w->lead];
}

void world_net_path(const struct world *w, size_t server, char *ret_path, size_t size)
{
    if (w->plan->is_bare) {
        (void)snprintf(ret_path, size, "%s", w->redis[server].path);
    } else if (server < WORLD_REDIS) {
        (void)snprintf(ret_path, size, "%s/net/r%zu.sock", w->dir, server);
    } else {
        (void)snprintf(ret_path, size, "%s/net/pg%zu/.s.PGSQL.5432", w->dir, server - WORLD_REDIS);
    }
}

static enum status make_link(struct world *w, size_t server, struct err *err)
{
    char here[PATH_SIZE];
    char there[PATH_SIZE];
    world_net_path(w, server, here, sizeof here);
    if (server < WORLD_REDIS) {
        (void)snprintf(there, sizeof there, "%s", w->redis[server].path);
    } else {
        (void)snprintf(there, sizeof there, "%s/pg%zu/.s.PGSQL.5432", w->dir, server - WORLD_REDIS);
        *strrchr(here, '/') = '\0';
        if (mkdir(here, 0755) != 0) {
            return err_fail_sys(err, STATUS_UNAVAILABLE, errno, "make %s", here);
        }
        world_net_path(w, server, here, sizeof here);
    }
    return link_proxy_add(w->net, here, there, err);
}

/* Each server is reached through a socket of the proxy; PostgreSQL through one of two seats,
 * because of failovers. */
static enum status make_net(struct world *w, struct err *err)
{
    char dir[PATH_SIZE];
    if (w->plan->is_bare) {
        (void)snprintf(w->net_conninfo, sizeof w->net_conninfo, "%s", w->conninfo);
        return STATUS_OK;
    }
    (void)snprintf(dir, sizeof dir, "%s/net", w->dir);
    if (mkdir(dir, 0755) != 0) {
        return err_fail_sys(err, STATUS_UNAVAILABLE, errno, "make %s", dir);
    }
    int n = snprintf(w->net_conninfo, sizeof w->net_conninfo,
                     "host=%s/pg0,%s/pg1 port=5432,5432 dbname=claimd user=postgres"
                     " target_session_attrs=read-write",
                     dir, dir);
    int m = snprintf(w->conninfo, sizeof w->conninfo,
                     "host=%s/pg0,%s/pg1 port=5432,5432 dbname=claimd user=postgres"
                     " target_session_attrs=read-write",
                     w->dir, w->dir);
    if (n < 0 || (size_t)n >= sizeof w->net_conninfo || m < 0 || (size_t)m >= sizeof w->conninfo) {
        return err_fail(err, STATUS_LIMIT, "%s: too long", w->dir);
    }
    enum status st = link_proxy_start(&w->net, err);
    if (st != STATUS_OK) {
        return st;
    }
    for (size_t i = 0; i < WORLD_SERVERS; i++) {
        st = make_link(w, i, err);
        if (st != STATUS_OK) {
            return st;
        }
    }
    return link_proxy_listen(w->net, WORLD_SERVERS - 1, false, err);
}

enum status world_claimctl(const struct world *w, const char *const *words, struct buf *out,
                           int *ret_code, struct err *err)
{
    char claimctl[PATH_SIZE];
    const char *argv[WORDS_MAX + 4] = {claimctl, "--config", w->config_path};
    (void)snprintf(claimctl, sizeof claimctl, "%s/claimctl", w->bin_dir);
    for (size_t i = 0; i < WORDS_MAX && words[i] != NULL; i++) {
        argv[3 + i] = words[i];
    }
    return program_run(argv, NULL, CLAIMCTL_US, out, ret_code, err);
}

static enum status migrate(struct world *w, struct err *err)
{
    static const char *const words[] = {"db", "migrate", NULL};
    int code = -1;
    autobuf struct buf out = BUF_INIT(OUTPUT_MAX);
    enum status st = world_claimctl(w, words, &out, &code, err);
    if (st != STATUS_OK) {
        return st;
    }
    if (code != 0) {
        return err_fail(err, STATUS_UNAVAILABLE, "claimctl db migrate: exit %d: %s", code,
                        out.len > 0 ? buf_at(&out) : "");
    }
    return STATUS_OK;
}

/* Daemons have the least privileges that they need (inv.P1). */
static enum status make_logins(struct world *w, struct err *err)
{
    return session_do(&w->sql, err,
                      "CREATE ROLE chaos_worker LOGIN IN ROLE claimd_worker;"
                      "CREATE ROLE chaos_scheduler LOGIN IN ROLE claimd_scheduler");
}

static enum status open_files(struct world *w, struct err *err)
{
    enum status st = find_bin(w, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = folder_make(w->options->folder, &w->folder, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = journal_open(&w->folder, "nemesis.jsonl", &w->nemesis, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = samples_open(&w->samples, &w->folder, err);
    if (st != STATUS_OK) {
        return st;
    }
    w->samples.next_us = w->plan->is_bare ? WORLD_NEVER : 0;
    return dir_make(w->dir, sizeof w->dir, err);
}

static enum status open_servers(struct world *w, struct err *err)
{
    enum status st = start_servers(w, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = make_net(w, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = copy_plugins(w, err);
    if (st != STATUS_OK) {
        return st;
    }
    return world_write_config(w, err);
}

static enum status open_database(struct world *w, struct err *err)
{
    enum status st = migrate(w, err);
    if (st != STATUS_OK) {
        return st;
    }
    session_init(&w->sql, w->conninfo, STATEMENT_US);
    st = make_logins(w, err);
    if (st != STATUS_OK) {
        return st;
    }
    return w->plan->is_bare ? STATUS_OK : row_history_begin(&w->sql, err);
}

static volatile sig_atomic_t is_interrupted;

static void on_int(int number)
{
    (void)number;
    is_interrupted = 1;
}

bool world_is_interrupted(void)
{
    return is_interrupted != 0;
}

enum status world_open(struct world *w, const struct options *options,
                       const struct world_plan *plan, struct err *err)
{
    *w = (struct world){.options = options, .plan = plan};
    (void)signal(SIGINT, on_int);
    (void)signal(SIGTERM, on_int);
    enum status st = open_files(w, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = open_servers(w, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = open_database(w, err);
    if (st != STATUS_OK) {
        return st;
    }
    hosts_init(w);
    return STATUS_OK;
}

/* ---- events during the run ---- */

static void tick_redis(struct world *w, size_t i, int64_t now_us)
{
    struct err why = {0};
    if (w->redis[i].pid > 0 || now_us < w->redis_state[i].restart_us) {
        return;
    }
    bool is_up = redis_server_restart(&w->redis[i], &why) == STATUS_OK;
    w->redis_state[i].restart_us = is_up ? WORLD_NEVER : now_us + RETRY_US;
    world_show(w, i, is_up);
}

void world_show(struct world *w, size_t server, bool is_up)
{
    struct err why = {0};
    if (w->net != NULL && link_proxy_listen(w->net, server, is_up, &why) != STATUS_OK) {
        world_violation(w, "kit", "%s", why.msg);
    }
}

void world_pg_is_gone(struct world *w, bool is_gone)
{
    world_show(w, WORLD_REDIS + w->lead, !is_gone);
    world_show(w, WORLD_REDIS + 1 - w->lead, false);
    if (w->is_pg_gone != is_gone) {
        w->is_pg_gone = is_gone;
        journal_write(&w->nemesis,
                      json_pack("{s:s, s:s, s:s, s:i}", "ph", is_gone ? "inv" : "ok", "x",
                                "pg_gone", "target", "pg", "traits", TRAIT_PG_GONE));
    }
}

static void tick_pg(struct world *w, int64_t now_us)
{
    struct err why = {0};
    int status = 0;
    struct pg_server *pg = world_primary(w);
    struct server_state *state = &w->pg_state;
    if (state->is_starting && pg_server_is_ready(pg)) {
        world_pg_is_gone(w, false);
        *state = (struct server_state){.restart_us = WORLD_NEVER};
    } else if (pg->pid > 0 && child_is_gone(pg->pid, &status)) {
        world_pg_is_gone(w, true);
        pg_server_kill(pg);
        *state = (struct server_state){.restart_us = now_us + RETRY_US};
    } else if (pg->pid == 0 && now_us >= state->restart_us) {
        bool is_launched = pg_server_launch(pg, &why) == STATUS_OK;
        *state = (struct server_state){.restart_us = is_launched ? WORLD_NEVER : now_us + RETRY_US,
                                       .is_starting = is_launched};
    }
}

void world_take_redis(struct world *w, size_t i, int64_t away_us)
{
    world_show(w, i, false);
    redis_server_kill(&w->redis[i]);
    w->redis_state[i].restart_us = clock_boot_us() + away_us;
}

void world_take_pg(struct world *w, int64_t away_us)
{
    world_pg_is_gone(w, true);
    pg_server_kill(world_primary(w));
    w->pg_state.restart_us = clock_boot_us() + away_us;
}

void world_turn(struct world *w)
{
    (void)poll(NULL, 0, TURN_MS);
    int64_t now_us = clock_boot_us();
    tick_pg(w, now_us);
    for (size_t i = 0; i < WORLD_REDIS; i++) {
        tick_redis(w, i, now_us);
    }
    for (size_t i = 0; i < w->host_count; i++) {
        host_tick(w, &w->hosts[i], now_us);
    }
    samples_tick(&w->samples, w, now_us);
}

void world_heal(struct world *w)
{
    int64_t now_us = clock_boot_us();
    w->pg_state.restart_us = world_primary(w)->pid == 0 ? now_us : w->pg_state.restart_us;
    for (size_t i = 0; i < WORLD_REDIS; i++) {
        w->redis_state[i].restart_us = now_us;
    }
    for (size_t i = 0; i < w->host_count; i++) {
        w->hosts[i].restart_us = now_us;
    }
}

bool world_is_whole(struct world *w)
{
    bool is_whole = world_primary(w)->pid > 0 && !w->pg_state.is_starting;
    for (size_t i = 0; i < WORLD_REDIS; i++) {
        is_whole = is_whole && w->redis[i].pid > 0;
    }
    for (size_t i = 0; i < w->host_count; i++) {
        is_whole = is_whole && w->hosts[i].pid > 0 && w->hosts[i].ended_by_us == WORLD_NEVER;
    }
    return is_whole;
}

void world_await_whole(struct world *w, int64_t most_us)
{
    int64_t end_us = clock_boot_us() + most_us;
    while (!world_is_whole(w) && clock_boot_us() < end_us) {
        world_turn(w);
    }
    if (!world_is_whole(w)) {
        world_violation(w, "world", "not all of it runs again");
    }
}

static void keep_server_logs(const struct world *w)
{
    char from[PATH_SIZE];
    char to[PATH_SIZE];
    struct err why = {0};
    for (size_t i = 0; i < WORLD_SERVERS; i++) {
        if (i < WORLD_REDIS) {
            (void)snprintf(from, sizeof from, "%s/r%zu/redis.log", w->dir, i);
            (void)snprintf(to, sizeof to, "%s/logs/redis-%zu.log", w->folder.path, i);
        } else {
            (void)snprintf(from, sizeof from, "%s/pg%zu/postgres.log", w->dir, i - WORLD_REDIS);
            (void)snprintf(to, sizeof to, "%s/logs/postgres-%zu.log", w->folder.path,
                           i - WORLD_REDIS);
        }
        (void)copy_file(from, to, &why);
    }
}

void world_close(struct world *w)
{
    for (size_t i = 0; i < w->host_count; i++) {
        host_kill(w, &w->hosts[i]);
    }
    session_close(&w->sql);
    for (size_t i = 0; i < WORLD_REDIS; i++) {
        redis_server_stop(&w->redis[i]);
    }
    link_proxy_stop(w->net);
    for (size_t i = 0; i < WORLD_PG; i++) {
        pg_server_stop(&w->pg[i]);
    }
    if (w->dir[0] != '\0' && w->folder.path[0] != '\0') {
        keep_server_logs(w);
    }
    dir_remove(w->dir);
    samples_close(&w->samples);
    journal_close(&w->nemesis);
}
