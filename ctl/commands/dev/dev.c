/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl/commands/dev/dev.h"

#include "base/clock.h"
#include "base/parse.h"
#include "base/timer.h"
#include "ctl/core/ctl.h"
#include "ctl/core/table_text.h"
#include "sql/queries.h"

#include <limits.h>
#include <signal.h>
#include <sys/stat.h>

#define WORKERS_DEFAULT 2
#define MASTERS_DEFAULT 5
#define DATABASE_DEFAULT "claimd"
#define DATABASE_LETTERS "abcdefghijklmnopqrstuvwxyz0123456789_"
#define SIGNAL_COUNT 3
#define READY_CHECK_MS 100 /* how often to check whether the workers are ready */
#define READY_US (10 * US_PER_S)
#define WEB_ADDRESS_SIZE 128
#define DRAIN_MARGIN_US (5 * US_PER_S) /* time for a child beyond its own drain deadline */

struct dev_run {
    struct dev_cluster cluster;
    struct ctl *ctl;
    struct config config;
    int64_t workers; /* number of workers to start */
    int64_t ready_end_us;
    uv_timer_t ready;
    uv_loop_t loop;
    uv_signal_t signals[SIGNAL_COUNT];
    uv_timer_t limit;
    int64_t drain_us; /* after this time, children are killed */
    int stops;        /* requests to stop; the second one means at once */
    bool has_failed;
    bool has_own_plugins;  /* --plugins was given */
    bool has_usual_folder; /* --dir was not given */
};

/* ---- supervising ---- */

static void send_all(struct dev_cluster *d, int signal)
{
    for (size_t i = 0; i < d->child_count; i++) {
        if (d->children[i].pid > 0) {
            (void)kill(d->children[i].pid, signal);
        }
    }
}

static void note_end(struct dev_run *run, struct dev_child *child, int code)
{
    /* 128 + SIGTERM: it was stopped before it handled signals, so nothing was running. */
    bool is_drained = code == 0 || code == 128 + SIGTERM;
    child->pid = 0;
    if (run->stops == 0 || !is_drained) {
        (void)fprintf(stderr, "claimctl dev: %s ended with %d%s\n", child->name, code,
                      run->stops == 0 ? "; the others keep running" : "");
        run->has_failed = true;
    }
}

/* A server that has ended is not restarted, so that users can watch how the daemons react. */
static void note_server(struct dev_run *run, const char *name, pid_t *pid)
{
    int code = 0;
    if (*pid > 0 && program_wait(*pid, 0, &code, NULL) == STATUS_OK) {
        *pid = 0;
        (void)fprintf(stderr, "claimctl dev: %s ended with %d; the others keep running\n", name,
                      code);
        run->has_failed = true;
    }
}

static void note_servers(struct dev_run *run)
{
    struct dev_cluster *d = &run->cluster;
    note_server(run, "PostgreSQL", &d->pg.pid);
    for (size_t i = 0; i < d->master_count; i++) {
        char name[24];
        (void)snprintf(name, sizeof name, "Redis %zu", i + 1);
        note_server(run, name, &d->masters[i].pid);
    }
}

/* Stops the loop when no child is left. */
static void reap(struct dev_run *run)
{
    note_servers(run);
    size_t left = 0;
    for (size_t i = 0; i < run->cluster.child_count; i++) {
        struct dev_child *child = &run->cluster.children[i];
        int code = 0;
        if (child->pid > 0 && program_wait(child->pid, 0, &code, NULL) == STATUS_OK) {
            note_end(run, child, code);
        }
        left += child->pid > 0;
    }
    if (left == 0) {
        uv_stop(&run->loop);
    }
}

static void on_limit(uv_timer_t *timer)
{
    struct dev_run *run = timer->data;
    send_all(&run->cluster, SIGKILL);
}

static void on_signal(uv_signal_t *handle, int signal)
{
    struct dev_run *run = handle->data;
    if (signal == SIGCHLD) {
        reap(run);
        return;
    }
    run->stops++;
    (void)uv_timer_stop(&run->ready);
    if (run->stops == 1) {
        (void)fprintf(stderr, "claimctl dev: stopping; press Ctrl-C again to stop at once\n");
        timer_start(&run->limit, on_limit, (uint64_t)(run->drain_us / US_PER_MS), 0);
    }
    send_all(&run->cluster, SIGTERM); /* a second SIGTERM makes them stop at once, too */
}

static enum status open_loop(struct dev_run *run, struct err *err)
{
    static const int numbers[SIGNAL_COUNT] = {SIGINT, SIGTERM, SIGCHLD};
    int rc = uv_loop_init(&run->loop);
    if (rc != 0) {
        return err_fail(err, STATUS_INTERNAL, "loop: %s", uv_strerror(rc));
    }
    (void)uv_timer_init(&run->loop, &run->limit);
    run->limit.data = run;
    (void)uv_timer_init(&run->loop, &run->ready);
    run->ready.data = run;
    for (size_t i = 0; i < SIGNAL_COUNT; i++) {
        (void)uv_signal_init(&run->loop, &run->signals[i]);
        run->signals[i].data = run;
        rc = rc == 0 ? uv_signal_start(&run->signals[i], on_signal, numbers[i]) : rc;
    }
    if (rc != 0) {
        return err_fail(err, STATUS_INTERNAL, "signals: %s", uv_strerror(rc));
    }
    return STATUS_OK;
}

static void close_loop(struct dev_run *run)
{
    for (size_t i = 0; i < SIGNAL_COUNT; i++) {
        uv_close((uv_handle_t *)&run->signals[i], NULL);
    }
    uv_close((uv_handle_t *)&run->limit, NULL);
    uv_close((uv_handle_t *)&run->ready, NULL);
    (void)uv_run(&run->loop, UV_RUN_DEFAULT);
    (void)uv_loop_close(&run->loop);
}

/* ---- starting ---- */

static enum status count_option(const struct ctl_args *args, const char *name, int64_t max,
                                int64_t standard, int64_t *ret_count, struct err *err)
{
    const char *text = ctl_value(args, name);
    *ret_count = standard;
    if (text == NULL) {
        return STATUS_OK;
    }
    enum status st = parse_i64(text, strlen(text), 1, max, ret_count, err);
    if (st != STATUS_OK) {
        err_prefix(err, "--%s", name);
    }
    return st;
}

/* Finds the folder and makes its path absolute: children have other working directories. */
static enum status find_folder(struct dev_cluster *d, const struct ctl_args *args, struct err *err)
{
    char cwd[PATH_MAX];
    const char *given = ctl_value(args, "dir");
    int n = 0;
    if (given == NULL) {
        n = snprintf(d->dir, sizeof d->dir, "/tmp/claimd-dev-%ld", (long)geteuid());
    } else if (given[0] == '/') {
        n = snprintf(d->dir, sizeof d->dir, "%s", given);
    } else if (getcwd(cwd, sizeof cwd) != NULL) {
        n = snprintf(d->dir, sizeof d->dir, "%s/%s", cwd, given);
    }
    if (n <= 0 || (size_t)n >= sizeof d->dir) {
        return err_fail(err, STATUS_INVALID,
                        "--dir: its absolute path must have 1 to %zu bytes: it holds sockets",
                        sizeof d->dir - 1);
    }
    (void)snprintf(d->config_path, sizeof d->config_path, "%s/claimd.json", d->dir);
    return STATUS_OK;
}

static enum status find_database(struct dev_cluster *d, const struct ctl_args *args,
                                 struct err *err)
{
    const char *given = ctl_value(args, "database");
    const char *name = given != NULL ? given : DATABASE_DEFAULT;
    size_t len = strlen(name);
    if (len == 0 || len >= sizeof d->database || strspn(name, DATABASE_LETTERS) != len) {
        return err_fail(err, STATUS_INVALID,
                        "--database: must have 1 to %zu characters of a-z, 0-9 and '_'",
                        sizeof d->database - 1);
    }
    memcpy(d->database, name, len + 1);
    return STATUS_OK;
}

/* Uses --plugins, else the plugins of the build that this program belongs to, else the installed
 * ones. */
static enum status find_plugins(struct dev_cluster *d, const struct ctl_args *args, struct err *err)
{
    const char *given = ctl_value(args, "plugins");
    char path[PATH_MAX];
    char real[PATH_MAX];
    enum status st = ctl_program_path("../plugins", path, sizeof path, err);
    if (st != STATUS_OK) {
        return st;
    }
    if (given == NULL && access(path, R_OK) != 0) {
        struct config config;
        st = config_load(NULL, &config, err);
        (void)snprintf(d->plugins, sizeof d->plugins, "%s", config.worker.plugin_dir);
        return st;
    }
    struct stat info;
    const char *wanted = given != NULL ? given : path;
    if (realpath(wanted, real) == NULL || stat(real, &info) != 0 || !S_ISDIR(info.st_mode) ||
        strlen(real) >= sizeof d->plugins) {
        return err_fail(err, STATUS_INVALID, "--plugins: '%s' is not a folder", wanted);
    }
    (void)snprintf(d->plugins, sizeof d->plugins, "%.*s", CONFIG_PATH_MAX - 1, real);
    return STATUS_OK;
}

static enum status find_handlers(struct dev_cluster *d, const struct ctl_args *args,
                                 struct err *err)
{
    const char *given = ctl_value(args, "handlers");
    char real[PATH_MAX];
    if (given == NULL) {
        return STATUS_OK;
    }
    if (realpath(given, real) == NULL || strlen(real) >= sizeof d->handlers) {
        return err_fail(err, STATUS_INVALID, "--handlers: '%s' is not a folder", given);
    }
    memcpy(d->handlers, real, strlen(real) + 1);
    return STATUS_OK;
}

/* Unsets variables of the shell that would override the configuration of the folder. */
static void clear_environment(void)
{
    static const char *const names[] = {
        "CLAIMD_POSTGRES_CONNINFO", "CLAIMD_LOCK_NODES",         "CLAIMD_HINTS_NODES",
        "CLAIMD_WORKER_PLUGIN_DIR", "CLAIMD_WORKER_HTTP_LISTEN", "CLAIMD_SCHEDULER_HTTP_LISTEN",
        "CLAIMD_WEB_LISTEN",        "CLAIMD_WEB_TOKENS_FILE",    "CLAIMD_WEB_MODE"};
    for (size_t i = 0; i < ARRAY_COUNT(names); i++) {
        (void)unsetenv(names[i]);
    }
}

static enum status start_all(struct dev_run *run, int64_t masters, int64_t workers, struct err *err)
{
    enum status st = dev_start_servers(&run->cluster, (size_t)masters, run->has_usual_folder, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = dev_start_child(&run->cluster, "claimd-scheduler", 1, err);
    if (st != STATUS_OK) {
        return st;
    }
    for (int i = 1; i <= workers; i++) {
        st = dev_start_child(&run->cluster, "claimd-worker", i, err);
        if (st != STATUS_OK) {
            return st;
        }
    }
    return run->cluster.web_listen[0] == '\0'
               ? STATUS_OK
               : dev_start_child(&run->cluster, "claimd-web", 1, err);
}

/* Writes the address of the page; its token follows a #, which browsers send to no server. */
static void web_address(const struct dev_cluster *d, char ret[WEB_ADDRESS_SIZE])
{
    (void)snprintf(ret, WEB_ADDRESS_SIZE, "http://%s/#token=%s", d->web_listen, d->web_token);
}

static void say_json(const struct dev_run *run)
{
    static const struct table_column columns[] = {
        {"dir", CELL_TEXT},       {"config", CELL_TEXT},    {"conninfo", CELL_TEXT},
        {"masters", CELL_NUMBER}, {"workers", CELL_NUMBER}, {"web", CELL_TEXT}};
    const struct dev_cluster *d = &run->cluster;
    char masters[24];
    char worker_count[24];
    char web[WEB_ADDRESS_SIZE];
    const char *const values[] = {d->dir,  d->config_path, run->config.postgres.conninfo,
                                  masters, worker_count,   d->web_listen[0] != '\0' ? web : NULL};
    web_address(d, web);
    (void)snprintf(masters, sizeof masters, "%zu", d->master_count);
    (void)snprintf(worker_count, sizeof worker_count, "%lld", (long long)run->workers);
    auto_table struct table table = TABLE("dev", columns);
    table.is_record = true;
    if (table_add(&table, values, NULL) == STATUS_OK) {
        enum status st = table_print(&table, true, run->ctl->out, NULL);
        (void)st; /* the reader of our output may have gone: the cluster stays */
    }
    (void)fflush(run->ctl->out);
}

static void say_how(const struct dev_run *run)
{
    FILE *out = run->ctl->out;
    const struct dev_cluster *d = &run->cluster;
    char program[PATH_MAX];
    char web[WEB_ADDRESS_SIZE];
    bool has_web = d->web_listen[0] != '\0';
    web_address(d, web);
    if (ctl_program_path("claimctl", program, sizeof program, NULL) != STATUS_OK) {
        (void)snprintf(program, sizeof program, "claimctl");
    }
    (void)fprintf(out,
                  "\n"
                  "PostgreSQL, %zu Redis masters, 1 scheduler and %lld worker%s run in %s\n"
                  "In another terminal:\n\n"
                  "  eval \"$(%s dev --env --dir %s)\"\n"
                  "  claimctl enqueue %s\n"
                  "  claimctl jobs list\n"
                  "  psql \"$DATABASE\"\n\n"
                  "%s%s%sCtrl-C stops everything; the jobs are kept.\n\n",
                  d->master_count, (long long)run->workers, run->workers == 1 ? "" : "s", d->dir,
                  program, d->dir, run->has_own_plugins ? "KIND" : "noop",
                  has_web ? "In a browser:\n\n  " : "", has_web ? web : "", has_web ? "\n\n" : "");
    (void)fflush(out);
}

static int64_t live_workers(const struct dev_run *run)
{
    enum { STATE = 2 };
    static const char *const params[] = {"f"};
    auto_admin struct admin *a = NULL;
    auto_admin_rows struct admin_rows *rows = NULL;
    int64_t live = 0;
    enum status st = ctl_connect(&run->config, false, &a, NULL);
    if (st != STATUS_OK || admin_query(a, &SQL_ADMIN_WORKERS, params, &rows, NULL) != STATUS_OK) {
        return 0;
    }
    for (int i = 0; i < admin_row_count(rows); i++) {
        live += strcmp(admin_value(rows, i, STATE), "live") == 0;
    }
    return live;
}

/* Prints how to use the cluster only when it is usable, so that the log lines of the starting
 * daemons do not scroll it away. */
static void on_ready_timer(uv_timer_t *timer)
{
    const struct dev_run *run = timer->data;
    if (live_workers(run) >= run->workers || clock_boot_us() >= run->ready_end_us) {
        (void)uv_timer_stop(timer);
        if (run->ctl->is_json) {
            say_json(run);
        } else {
            say_how(run);
        }
    }
}

static enum status run_until_stopped(struct dev_run *run, int64_t masters, struct err *err)
{
    enum status st = open_loop(run, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = start_all(run, masters, run->workers, err);
    if (st == STATUS_OK) {
        st = config_load(run->cluster.config_path, &run->config, err);
    }
    if (st == STATUS_OK) {
        run->ready_end_us = clock_boot_us() + READY_US;
        timer_start(&run->ready, on_ready_timer, READY_CHECK_MS, READY_CHECK_MS);
        run->drain_us = run->config.worker.drain_us + DRAIN_MARGIN_US;
        reap(run); /* children that ended before the loop runs */
        (void)uv_run(&run->loop, UV_RUN_DEFAULT);
    }
    close_loop(run);
    if (st != STATUS_OK) {
        return st;
    }
    if (run->has_failed) {
        return err_fail(err, STATUS_INTERNAL, "some processes failed");
    }
    return STATUS_OK;
}

/* ---- variables for another shell ---- */

/* Quotes the value as one word of a shell. */
static void say_export(FILE *out, const char *name, const char *value, const char *rest)
{
    (void)fprintf(out, "export %s='", name);
    for (; *value != '\0'; value++) {
        if (*value == '\'') {
            (void)fputs("'\\''", out);
        } else {
            (void)fputc(*value, out);
        }
    }
    (void)fprintf(out, "'%s\n", rest);
}

/* True if the folder is already in $PATH. */
static bool is_in_path(const char *folder)
{
    size_t len = strlen(folder);
    const char *at = getenv("PATH");
    while (at != NULL) {
        size_t n = strcspn(at, ":");
        if (n == len && strncmp(at, folder, n) == 0) {
            return true;
        }
        at = at[n] == ':' ? at + n + 1 : NULL;
    }
    return false;
}

/* Prints the variables instead of writing a file: a root shell may be in a folder of another user,
 * and must not run commands from a file there. PostgreSQL's own variables are for programs that
 * connect to "dbname=app". */
static enum status say_env(struct dev_run *run, struct err *err)
{
    const struct dev_cluster *d = &run->cluster;
    FILE *out = run->ctl->out;
    char bin[PATH_MAX];
    char socket[DEV_DIR_MAX + 16];
    (void)snprintf(socket, sizeof socket, "%s/.s.PGSQL.5432", d->dir);
    if (access(d->config_path, R_OK) != 0 || access(socket, F_OK) != 0) {
        return err_fail(err, STATUS_CONFLICT, "no claimctl dev runs in '%s'", d->dir);
    }
    enum status st = config_load(d->config_path, &run->config, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = ctl_program_path("", bin, sizeof bin, err);
    if (st != STATUS_OK) {
        return st;
    }
    bin[strlen(bin) - 1] = '\0'; /* cuts off its slash */
    say_export(out, "CLAIMD_CONFIG", d->config_path, "");
    say_export(out, "DATABASE", run->config.postgres.conninfo, "");
    say_export(out, "PGHOST", d->dir, "");
    (void)fprintf(out, "export PGPORT=5432 PGUSER=postgres\n");
    if (!is_in_path(bin)) {
        say_export(out, "PATH", bin, ":\"$PATH\"");
    }
    return STATUS_OK;
}

/* ---- the command ---- */

static enum status run_dev(struct dev_run *run, const struct ctl_args *args, struct err *err)
{
    int64_t masters = 0;
    enum status st = find_folder(&run->cluster, args, err);
    if (st != STATUS_OK) {
        return st;
    }
    if (ctl_value(args, "env") != NULL) {
        return say_env(run, err);
    }
    st = count_option(args, "workers", DEV_WORKERS_MAX, WORKERS_DEFAULT, &run->workers, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = count_option(args, "masters", CONFIG_NODES_MAX, MASTERS_DEFAULT, &masters, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = find_database(&run->cluster, args, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = find_plugins(&run->cluster, args, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = find_handlers(&run->cluster, args, err);
    if (st != STATUS_OK) {
        return st;
    }
    return run_until_stopped(run, masters, err);
}

enum status dev(struct ctl *ctl, const struct ctl_args *args, struct err *err)
{
    struct dev_run run = {.ctl = ctl, .cluster = {.lock_fd = -1}};
    run.has_own_plugins = ctl_value(args, "plugins") != NULL;
    run.has_usual_folder = ctl_value(args, "dir") == NULL;
    clear_environment();
    (void)signal(SIGPIPE, SIG_IGN); /* the reader of our output may go: the cluster stays */
    enum status st = run_dev(&run, args, err);
    dev_release(&run.cluster);
    return st;
}
