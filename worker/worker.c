/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/worker.h"

#include "base/build.h"
#include "base/clock.h"
#include "base/proc.h"
#include "base/timer.h"
#include "daemon/daemon.h"
#include "daemon/process.h"
#include "worker/wiring.h"

#include <signal.h>
#include <stdio.h>

#define HINTS_TIMEOUT_US (1 * US_PER_S)
#define START_DEADLINE_FACTOR 2 /* × postgres.timeout_ms: time for the first connection */

/* ---- events of connections ---- */

static void on_pg_up(void *ctx)
{
    struct worker *w = ctx;
    daemon_metrics_pg_up(&w->metrics.daemon);
    log_recovered("postgres_up", &w->pg_complaint);
    job_store_on_up(w->servers.store);
    cancel_session_up(&w->jobs);
    registration_begin(&w->membership);
    w->due.room = true;
}

static void on_pg_down(void *ctx, const struct err *why)
{
    struct worker *w = ctx;
    w->pg_down_why = *why;
    if (w->standing.stage == WORKER_STARTING && why->status == STATUS_INVALID) {
        worker_fail(w, DAEMON_USAGE, why->msg); /* the conninfo itself is wrong */
    } else if (complaint_due(&w->pg_complaint, clock_boot_us())) {
        log_warn("postgres_down", LOG_TEXT("err", why->msg), LOG_TEXT("action", "reconnecting"));
    }
}

/* Logs what has no event of its own: hint nodes that have recovered. */
static void log_nodes(struct worker *w)
{
    daemon_log_hints(&w->hints_said, w->servers.config);
    if (w->standing.stage == WORKER_RUNNING && w->ready.awaited_since_us == 0 &&
        w->servers.lock != NULL) {
        daemon_log_quorum(&w->quorum_said, w->servers.config, w->servers.lock,
                          "no jobs are claimed until quorum returns; running jobs continue");
    }
}

static void on_lock_node(void *ctx, size_t node, enum redlock_event_kind event, int64_t until_us,
                         const char *why)
{
    struct worker *w = ctx;
    daemon_metrics_lock_node(&w->metrics.daemon, node, event);
    daemon_log_lock_node(w->servers.config, node, event, until_us, why);
    ready_check(w);
    log_nodes(w);
    if (event == REDLOCK_EVENT_UP || event == REDLOCK_EVENT_VOTING) {
        w->due.room = true;
    }
}

static void on_lease(void *ctx, struct redlock_batch *batch, size_t index, void *user,
                     enum redlock_state state)
{
    struct worker *w = ctx;
    deadlines_on_lease(&w->jobs, batch, index, user, state);
}

/* ---- closing ---- */

/* Runs in a turn of its own, because worker_close() may be called from a callback of what is closed
 * here. */
static void on_close_due(uv_timer_t *timer)
{
    struct worker *w = timer->data;
    log_info("stopped", LOG_I64("exit_code", w->exit_code));
    uv_close((uv_handle_t *)timer, NULL);
    uv_close((uv_handle_t *)&w->reload_timer, NULL);
    hints_popper_close(TAKE(w->servers.popper));
    hints_close(TAKE(w->servers.hints));
    intake_close(&w->intake);
    jobs_close(&w->jobs);
    membership_close(&w->membership);
    turn_close(w);
    slots_close(&w->slots);
    if (w->servers.lock != NULL) {
        redlock_async_close(TAKE(w->servers.lock), NULL, NULL);
    }
    telemetry_stop(w->telemetry);
    job_store_close(TAKE(w->servers.store));
    pg_close(TAKE(w->servers.pg));
    process_ignore_requests();
    for (size_t i = 0; i < ARRAY_COUNT(w->signals); i++) {
        uv_close((uv_handle_t *)&w->signals[i], NULL);
    }
}

void worker_close(struct worker *w)
{
    if (w->standing.stage != WORKER_CLOSING) {
        w->standing.stage = WORKER_CLOSING;
        timer_start(&w->close_timer, on_close_due, 0, 0);
    }
}

/* ---- signals ---- */

static void on_end_signal(uv_signal_t *handle, int signum)
{
    struct worker *w = handle->data;
    (void)signum;
    if (w->standing.stage == WORKER_DRAINING) {
        drain_begin(w, 0); /* on the second signal, stop at once */
    } else if (w->standing.stage != WORKER_CLOSING) {
        drain_begin(w, w->servers.config->worker.drain_us);
    }
}

static void be_quiet(struct worker *w)
{
    w->standing.is_quiet = true;
    log_info("quiet", LOG_I64("running", w->active.count[ACTIVE_RUNNING]));
    w->due.listen = true;
}

static void on_quiet_signal(uv_signal_t *handle, int signum)
{
    (void)signum;
    be_quiet(handle->data);
}

void worker_take_asked(struct worker *w, const char *asked)
{
    bool is_asked_quiet = strcmp(asked, "quiet") == 0;
    bool was_asked_quiet = w->standing.is_asked_quiet;
    w->standing.is_asked_quiet = is_asked_quiet;
    if (is_asked_quiet && !w->standing.is_quiet) {
        be_quiet(w);
    } else if (was_asked_quiet && asked[0] == '\0') {
        w->standing.is_quiet = false;
        log_info("resumed", LOG_I64("running", w->active.count[ACTIVE_RUNNING]));
        w->due.listen = true;
    } else if (strcmp(asked, "drain") == 0 && w->standing.stage == WORKER_RUNNING) {
        drain_begin(w, w->servers.config->worker.drain_us);
    }
}

/* For new connections; open ones stay open. */
static void take_redis_password(struct worker *w, const char *password)
{
    struct err err = {0};
    enum status st = daemon_lock_set_password(w->servers.lock, password, &err);
    if (st == STATUS_OK && w->servers.hints != NULL) {
        st = hints_set_password(w->servers.hints, password, &err);
    }
    if (st == STATUS_OK && w->servers.popper != NULL) {
        st = hints_popper_set_password(w->servers.popper, password, &err);
    }
    daemon_say_password(st, &err);
}

static void on_reload_due(uv_timer_t *timer)
{
    struct worker *w = timer->data;
    if (w->standing.stage == WORKER_RUNNING) {
        kinds_refresh(&w->membership); /* even if the configuration is refused */
    }
    const struct config *next = daemon_reload(
        w->servers.config, w->standing.stage == WORKER_RUNNING && w->ready.awaited_since_us == 0);
    daemon_metrics_reloaded(&w->metrics.daemon, next != NULL);
    if (next == NULL) {
        return;
    }
    take_redis_password(w, next->redis.password);
    w->servers.config = next;
    room_configure(&w->intake);
    slots_set_recycling(&w->slots, next->worker.runner_jobs_max, next->worker.runner_age_us);
    w->due.room = true;
}

/* Reloads in a turn of its own, once for any number of signals: libuv handles signals until none is
 * left, and if they arrive faster than a configuration is read, nothing else would ever run. */
static void on_reload_signal(uv_signal_t *handle, int signum)
{
    struct worker *w = handle->data;
    (void)signum;
    if (!uv_is_active((uv_handle_t *)&w->reload_timer)) {
        timer_start(&w->reload_timer, on_reload_due, 0, 0);
    }
}

static int start_signal(struct worker *w, uv_signal_t *signal, uv_signal_cb on_signal, int number)
{
    signal->data = w;
    int failed = uv_signal_init(w->servers.loop, signal);
    if (failed != 0) {
        return failed;
    }
    return uv_signal_start(signal, on_signal, number);
}

static enum status start_signals(struct worker *w, struct err *err)
{
    static const struct {
        int number;
        uv_signal_cb on_signal;
    } table[] = {{SIGTERM, on_end_signal},
                 {SIGINT, on_end_signal},
                 {SIGUSR1, on_quiet_signal},
                 {SIGHUP, on_reload_signal}};
    for (size_t i = 0; i < ARRAY_COUNT(table); i++) {
        int failed = start_signal(w, &w->signals[i], table[i].on_signal, table[i].number);
        if (failed != 0) {
            return err_fail(err, STATUS_INTERNAL, "signal handler: %s", uv_strerror(failed));
        }
    }
    return STATUS_OK;
}

/* ---- starting ---- */

void worker_on_registered(struct worker *w)
{
    ready_await(w); /* before anything is published: log_nodes() checks it */
    if (w->standing.stage == WORKER_STARTING) {
        w->standing.stage = WORKER_RUNNING;
        telemetry_publish(w->telemetry);
    }
    ready_check(w);
    w->due.listen = true;
    w->due.room = true;
}

enum status worker_open_lock(struct worker *w, int64_t ttl_max_us, struct err *err)
{
    const struct config *c = w->servers.config;
    struct daemon_lock_names names;
    struct redlock_async_options options =
        daemon_lock_options(c, &names, w->servers.loop, ttl_max_us);
    options.on_node = on_lock_node;
    options.on_state = on_lease;
    options.ctx = w;
    return daemon_lock_open(&options, &w->servers.lock, err);
}

static void on_hint_node(void *ctx, size_t node, bool is_up, bool is_empty_memory,
                         const struct err *why)
{
    struct worker *w = ctx;
    (void)is_empty_memory;
    daemon_log_hint_node(&w->hints_said, w->servers.config, w->servers.lock, node,
                         is_up ? NULL : why);
}

static enum status open_hints(struct worker *w, struct err *err)
{
    const struct config *c = w->servers.config;
    struct redis_endpoint nodes[CONFIG_NODES_MAX];
    enum status st = daemon_hint_endpoints(c, nodes, err);
    if (st != STATUS_OK) {
        return st;
    }
    struct hints_options hints = {.loop = w->servers.loop,
                                  .nodes = nodes,
                                  .node_count = c->hints.node_count,
                                  .prefix = c->redis.prefix,
                                  .timeout_us = HINTS_TIMEOUT_US,
                                  .ctx = w};
    st = hints_open(&hints, &w->servers.hints, err);
    if (st != STATUS_OK) {
        return st;
    }
    struct hints_popper_options popper = {.nodes = hints,
                                          .waker = w->servers.hints,
                                          .block_us = c->worker.block_us,
                                          .on_popped = intake_popped,
                                          .want = intake_want,
                                          .on_lost = intake_lost_pop,
                                          .on_news = intake_news,
                                          .ctx = &w->intake};
    popper.nodes.on_node = on_hint_node;
    return hints_popper_open(&popper, &w->servers.popper, err);
}

static void on_pg_notify(void *ctx, const char *channel, const char *payload)
{
    (void)channel; /* there is only one */
    struct worker *w = ctx;
    cancel_take_notify(&w->jobs, payload);
}

static enum status open_store(struct worker *w, struct err *err)
{
    const struct config *c = w->servers.config;
    char conninfo[2 * CONFIG_PATH_MAX];
    enum status st = config_conninfo(c, conninfo, sizeof conninfo, err);
    if (st != STATUS_OK) {
        return st;
    }
    struct pg_options pg = {.loop = w->servers.loop,
                            .conninfo = conninfo,
                            .application_name = "claimd-worker",
                            .timeout_us = c->postgres.timeout_us,
                            .lock_timeout_ms = c->postgres.lock_timeout_ms,
                            .plans_once = true,
                            .on_up = on_pg_up,
                            .on_down = on_pg_down,
                            .on_notify = on_pg_notify,
                            .ctx = w};
    st = pg_open(&pg, &w->servers.pg, err);
    if (st != STATUS_OK) {
        return st;
    }
    struct job_store_options store = {.pg = w->servers.pg,
                                      .loop = w->servers.loop,
                                      .worker_id = "",
                                      .on_freed = limits_freed,
                                      .ctx = &w->intake};
    return job_store_open(&store, &w->servers.store, err);
}

/* Finds claimd-runner beside the running program, unless the configuration names another path. */
static enum status find_runner(struct worker *w, struct err *err)
{
    if (w->servers.config->worker.runner[0] != '\0') {
        (void)snprintf(w->runner, sizeof w->runner, "%s", w->servers.config->worker.runner);
    } else {
        size_t size = sizeof w->runner;
        int failed = uv_exepath(w->runner, &size);
        char *slash = failed == 0 ? strrchr(w->runner, '/') : NULL;
        size_t room = slash == NULL ? 0 : sizeof w->runner - (size_t)(slash + 1 - w->runner);
        if (room == 0 || snprintf(slash + 1, room, "claimd-runner") >= (int)room) {
            return err_fail(err, STATUS_INVALID, "cannot determine the path of claimd-runner");
        }
    }
    if (access(w->runner, X_OK) != 0) {
        return err_fail_sys(err, STATUS_INVALID, errno, "worker.runner %s", w->runner);
    }
    return STATUS_OK;
}

static enum status open_slots(struct worker *w, struct err *err)
{
    struct slot_options options = {.loop = w->servers.loop,
                                   .runner = w->runner,
                                   .plugin_dir = w->servers.config->worker.plugin_dir,
                                   .plugin_owners = w->plugin_owners,
                                   .handlers = w->servers.config->worker.handlers,
                                   .commands = w->servers.config->worker.commands,
                                   .without = kinds_without(&w->membership),
                                   .doubtful = kinds_doubtful(&w->membership),
                                   .jobs_max = w->servers.config->worker.runner_jobs_max,
                                   .age_us = w->servers.config->worker.runner_age_us,
                                   .events = &wiring_slot_events,
                                   .jobs = &w->jobs,
                                   .ctx = w};
    return slots_open(&w->slots, &options, (size_t)w->servers.config->worker.slots, err);
}

/* Called right before a text of the metrics is made. */
static void on_collect(void *ctx)
{
    worker_collect(ctx);
    log_nodes(ctx);
}

static enum status open_telemetry(struct worker *w, struct err *err)
{
    struct telemetry_options options = {.loop = w->servers.loop,
                                        .http_key = "worker.http_listen",
                                        .http_listen = w->servers.config->worker.http_listen,
                                        .collect = on_collect,
                                        .ready = ready_fill,
                                        .ctx = w};
    enum status st = telemetry_open(&options, &w->telemetry, err);
    if (st != STATUS_OK) {
        return st;
    }
    worker_metrics_init(&w->metrics, telemetry_metrics(w->telemetry), w->servers.config);
    return STATUS_OK;
}

static void prune_left(const struct worker *w)
{
    size_t count = state_dir_prune(w->servers.config->worker.state_dir);
    if (count > 0) {
        log_info("state_pruned", LOG_I64("folders", count));
    }
}

static enum status open_timers(struct worker *w, struct err *err)
{
    enum status st = timer_open(w->servers.loop, &w->reload_timer, w, "reload", err);
    if (st != STATUS_OK) {
        return st;
    }
    return timer_open(w->servers.loop, &w->close_timer, w, "close", err);
}

static enum status open_state_dir(struct worker *w, struct err *err)
{
    enum status st = state_dir_open(w->servers.config->worker.state_dir, &w->state_lock_fd,
                                    w->membership.registration.predecessor_id, err);
    if (st != STATUS_OK) {
        return st;
    }
    prune_left(w);
    return STATUS_OK;
}

static enum status open_membership(struct worker *w, struct err *err)
{
    const struct membership_env env = wiring_membership(w);
    return membership_open(&w->membership, &env, err);
}

static enum status open_intake(struct worker *w, struct err *err)
{
    const struct intake_env env = wiring_intake(w);
    return intake_open(&w->intake, &env, err);
}

static enum status open_jobs(struct worker *w, struct err *err)
{
    const struct jobs_env env = wiring_jobs(w);
    return jobs_open(&w->jobs, &env, err);
}

static enum status open_orphans(struct worker *w, struct err *err)
{
    (void)w;
    return orphans_open(err);
}

static enum status find_plugin_owners(struct worker *w, struct err *err)
{
    return config_plugin_owners(w->servers.config, w->plugin_owners, err);
}

typedef enum status open_step(struct worker *w, struct err *err);

/* The slots come last because their runners start at once. */
static enum status open_all(struct worker *w, struct err *err)
{
    static open_step *const steps[] = {
        open_orphans,   find_runner,   find_plugin_owners, open_membership, open_state_dir,
        open_telemetry, start_signals, open_hints,         open_intake,     open_jobs,
        open_timers,    open_store,    turn_open,          open_slots};
    for (size_t i = 0; i < ARRAY_COUNT(steps); i++) {
        enum status st = steps[i](w, err);
        if (st != STATUS_OK) {
            return st;
        }
    }
    return STATUS_OK;
}

static void worker_init(struct worker *w, uv_loop_t *loop, const struct config *config)
{
    w->servers.loop = loop;
    w->servers.config = config;
    w->state_lock_fd = -1;
    rand_seed_from_system(&w->rand);
    w->start_deadline_us = clock_boot_us() + START_DEADLINE_FACTOR * config->postgres.timeout_us;
}

void worker_check_started(struct worker *w, int64_t now_us)
{
    if (w->standing.stage == WORKER_STARTING && now_us >= w->start_deadline_us &&
        !pg_is_up(w->servers.pg)) {
        struct err *why = &w->pg_down_why;
        err_set(why, STATUS_TIMEOUT, 0, "no answer");
        err_prefix(why, "PostgreSQL can't be used");
        worker_fail(w, DAEMON_NO_DEPENDENCY, why->msg);
    }
}

void worker_fail(struct worker *w, int exit_code, const char *why)
{
    log_error("start_failed", LOG_TEXT("err", why));
    w->exit_code = exit_code;
    worker_close(w);
}

int worker_main(const struct config *config)
{
    static uv_loop_t loop; /* closing handles point to it until the process ends */
    struct err err = {0};
    struct worker *w = calloc(1, sizeof *w);
    if (w == NULL || uv_loop_init(&loop) != 0) {
        log_error("start_failed", LOG_TEXT("err", "no memory for the loop"));
        free(w);
        return DAEMON_FAILED;
    }
    worker_init(w, &loop, config);
    log_info("started", LOG_TEXT("version", CLAIMD_BUILD), LOG_I64("pid", getpid()));
    enum status st = open_all(w, &err);
    if (st != STATUS_OK) {
        log_error("start_failed", LOG_TEXT("err", err.msg));
        membership_release(&w->membership);
        free(w); /* the loop's handles end with the process */
        return daemon_start_exit(st);
    }
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    proc_end_children(); /* processes that the runners left behind */
    (void)uv_loop_close(&loop);
    int exit_code = w->exit_code;
    telemetry_free(w->telemetry);
    close_slot(&w->state_lock_fd);
    membership_release(&w->membership);
    lengths_release(&w->lengths);
    active_release(&w->active);
    free(w);
    return exit_code;
}
