/* SPDX-License-Identifier: Apache-2.0 */
#include "base/build.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/notify.h"
#include "base/timer.h"
#include "daemon/process.h"
#include "daemon/ready.h"
#include "scheduler/scheduler_internal.h"
#include "store/feed_store.h"
#include "store/migrate.h"

#include <signal.h>
#include <stdio.h>

#define STATEMENT_TIMEOUT_US (2 * US_PER_S)
#define HINTS_TIMEOUT_US US_PER_S
#define BEHIND_ROWS 500
#define READ_EVERY_US (10 * US_PER_MS)
#define READY_CHECK_MS 5
#define CLOSE_US (2 * US_PER_S)
/* a leader that has been unable to feed for this long lets others try */
#define UNFIT_US (10 * US_PER_S)

/* ---- shutdown ---- */

static void on_lock_closed(void *ctx)
{
    struct scheduler *s = ctx;
    rescuer_close(s->rescuer);
    feeder_close(s->feeder);
    s->rescuer = NULL;
    s->feeder = NULL;
}

static void on_too_late(uv_timer_t *timer)
{
    struct scheduler *s = timer->data;
    uv_stop(&s->loop);
}

static void handles_unref(struct scheduler *s)
{
    for (size_t i = 0; i < ARRAY_COUNT(s->signals); i++) {
        uv_unref((uv_handle_t *)&s->signals[i]); /* a second signal still counts */
    }
    timer_start(&s->deadline, on_too_late, CLOSE_US / US_PER_MS, 0);
    uv_unref((uv_handle_t *)&s->deadline);
}

/* Closes the parts in reverse order; the loop ends when the last handle is closed. The leader's
 * lock is released before the servers are left, so that another scheduler can lead at once. */
static void stop(struct scheduler *s, int exit_code)
{
    if (s->stage == STAGE_STOPPING) {
        return;
    }
    s->stage = STAGE_STOPPING;
    s->exit_code = exit_code;
    notify_stopping();
    telemetry_stop(s->telemetry);
    services_stop(&s->services);
    report_close(TAKE(s->report));
    if (s->is_leader) {
        log_info("leader_lost", LOG_I64("pid", getpid()), LOG_TEXT("why", "it is stopping"));
    }
    lead_close(TAKE(s->lead));
    pg_close(s->pg);
    hints_close(s->hints);
    if (s->cluster_poll != NULL) {
        news_close(&s->news);
    }
    cluster_poll_close(s->cluster_poll);
    if (s->lock != NULL) {
        redlock_async_close(s->lock, on_lock_closed, s);
    } else {
        on_lock_closed(s);
    }
    handles_unref(s);
}

static void fail(struct scheduler *s, int exit_code, const struct err *err)
{
    if (s->stage != STAGE_STOPPING) {
        log_error("start_failed", LOG_TEXT("err", err->msg));
        stop(s, exit_code);
    }
}

static void on_signal(uv_signal_t *handle, int number)
{
    struct scheduler *s = handle->data;
    if (s->stage == STAGE_STOPPING) {
        uv_stop(&s->loop);
        return;
    }
    log_info("draining", LOG_I64("signal", number));
    stop(s, 0);
}

/* Sets the password for new connections; existing ones stay open. */
static void take_redis_password(struct scheduler *s, const char *password)
{
    struct err err = {0};
    enum status st = daemon_lock_set_password(s->lock, password, &err);
    if (st == STATUS_OK && s->lead != NULL) {
        st = lead_set_password(s->lead, password, &err);
    }
    if (st == STATUS_OK && s->hints != NULL) {
        st = hints_set_password(s->hints, password, &err);
    }
    daemon_say_password(st, &err);
}

static void on_reload_due(uv_timer_t *timer)
{
    struct scheduler *s = timer->data;
    if (s->stage == STAGE_STOPPING) {
        return;
    }
    const struct config *next = daemon_reload(s->config, s->is_ready_said);
    daemon_metrics_reloaded(&s->metrics.daemon, next != NULL);
    if (next == NULL) {
        return;
    }
    take_redis_password(s, next->redis.password);
    s->config = next;
    services_reload(&s->services, next);
}

/* Reloads in a separate loop turn, once for any number of signals, as in worker/worker.c. */
static void on_reload_signal(uv_signal_t *handle, int number)
{
    struct scheduler *s = handle->data;
    (void)number;
    if (s->stage != STAGE_STOPPING && !uv_is_active((uv_handle_t *)&s->reload)) {
        timer_start(&s->reload, on_reload_due, 0, 0);
    }
}

/* ---- leading ---- */

static void on_lead(void *ctx, bool is_leader, const char *why)
{
    struct scheduler *s = ctx;
    if (is_leader) {
        log_info("leader_won", LOG_I64("pid", getpid()));
    } else {
        log_info("leader_lost", LOG_I64("pid", getpid()), LOG_TEXT("why", why));
    }
    s->is_leader = is_leader;
    s->leader_us = clock_boot_us();
    report_now(s->report);
    cluster_poll_lead(s->cluster_poll, is_leader);
    if (is_leader) {
        services_start(&s->services);
    } else {
        services_stop(&s->services);
    }
}

static void on_polled(void *ctx, struct cluster_view *view)
{
    struct scheduler *s = ctx;
    feeder_serve(s->feeder, &view->served);
    services_polled(&s->services, view);
    if (s->is_leader) {
        news_polled(&s->news, view);
    }
}

static void on_session_up(struct scheduler *s)
{
    feeder_up(s->feeder);
    cluster_poll_up(s->cluster_poll);
}

static bool on_fit(void *ctx)
{
    const struct scheduler *s = ctx;
    return scheduler_feed_age_us(s) < config_scaled(s->config, UNFIT_US);
}

static void on_other_nodes(void *ctx)
{
    stop(ctx, DAEMON_USAGE);
}

static enum status report_begin(struct scheduler *s, struct err *err)
{
    struct report_options options = {.loop = &s->loop,
                                     .pg = s->pg,
                                     .lead = s->lead,
                                     .feeder = s->feeder,
                                     .config = s->config,
                                     .fingerprint = s->fingerprint,
                                     .last_error = &s->pg_down_why,
                                     .on_other_nodes = on_other_nodes,
                                     .ctx = s};
    return report_open(&options, &s->report, err);
}

/* ---- nodes ---- */

static void on_lock_node(void *ctx, size_t node, enum redlock_event_kind event, int64_t until_us,
                         const char *why)
{
    struct scheduler *s = ctx;
    daemon_metrics_lock_node(&s->metrics.daemon, node, event);
    daemon_log_lock_node(s->config, node, event, until_us, why);
    scheduler_log_nodes(s);
}

void scheduler_log_nodes(struct scheduler *s)
{
    daemon_log_hints(&s->hints_said, s->config);
    if (s->is_ready_said && s->lead != NULL) {
        daemon_log_quorum(&s->quorum_said, s->config, lead_lock(s->lead),
                          "no leader can be elected, and no job rescued");
    }
}

/* Re-feeds hints lost with a node, or left on one that is no longer the push target. */
static void on_hint_node(void *ctx, size_t node, bool is_up, bool is_empty_memory,
                         const struct err *why)
{
    struct scheduler *s = ctx;
    (void)is_empty_memory;
    daemon_log_hint_node(&s->hints_said, s->config, s->lead == NULL ? NULL : lead_lock(s->lead),
                         node, is_up ? NULL : why);
    if (is_up) {
        feeder_up(s->feeder);
    } else {
        feeder_reset(s->feeder);
    }
}

/* ---- startup ---- */

static enum status locks_open(struct scheduler *s, int64_t t_max_us, struct err *err)
{
    const struct config *c = s->config;
    struct daemon_lock_names names;
    struct redlock_async_options lock = daemon_lock_options(c, &names, &s->loop, t_max_us);
    enum status st = daemon_lock_open(&lock, &s->lock, err);
    if (st != STATUS_OK) {
        return st;
    }
    struct lead_options lead = {.lock = lock,
                                .prefix = c->redis.prefix,
                                .try_us = c->scheduler.lead_try_us,
                                .on_change = on_lead,
                                .is_fit = on_fit,
                                .ctx = s};
    lead.lock.ttl_us = c->scheduler.lead_ttl_us;
    lead.lock.ttl_max_us = lead.lock.ttl_us > t_max_us ? lead.lock.ttl_us : t_max_us;
    lead.lock.on_node = on_lock_node;
    return lead_open(&lead, &s->lead, err);
}

static enum status hints_begin(struct scheduler *s, struct err *err)
{
    const struct config *c = s->config;
    struct redis_endpoint nodes[CONFIG_NODES_MAX];
    enum status st = daemon_hint_endpoints(c, nodes, err);
    if (st != STATUS_OK) {
        return st;
    }
    struct hints_options options = {.loop = &s->loop,
                                    .nodes = nodes,
                                    .node_count = c->hints.node_count,
                                    .prefix = c->redis.prefix,
                                    .timeout_us = HINTS_TIMEOUT_US,
                                    .on_node = on_hint_node,
                                    .ctx = s};
    return hints_open(&options, &s->hints, err);
}

static enum status parts_open(struct scheduler *s, int64_t t_max_us, struct err *err)
{
    const struct config *c = s->config;
    int64_t every_us = c->scheduler.lead_try_us;
    /* Half a tick more: a transaction that one snapshot saw ends within two ticks. */
    int64_t behind_us = c->scheduler.look_behind_us + every_us / 2;
    struct feeder_options feeder = {.loop = &s->loop,
                                    .pg = s->pg,
                                    .hints = s->hints,
                                    .conninfo = s->conninfo,
                                    .timeout_us = c->postgres.timeout_us,
                                    .limits = {.look_ahead = c->scheduler.look_ahead,
                                               .look_behind_us = behind_us,
                                               .page_rows = c->scheduler.page_rows,
                                               .aging_us = c->scheduler.priority_aging_us,
                                               .behind_rows = BEHIND_ROWS,
                                               .read_every_us = READ_EVERY_US},
                                    .every_us = every_us,
                                    .full_pass_us = c->scheduler.full_pass_us,
                                    .pass_seconds = s->metrics.pass_seconds};
    enum status st = feeder_open(&feeder, &s->feeder, err);
    if (st != STATUS_OK) {
        return st;
    }
    struct rescuer_options rescuer = {.loop = &s->loop,
                                      .pg = s->pg,
                                      .lock = s->lock,
                                      .hints = s->hints,
                                      .feeder = s->feeder,
                                      .prefix = c->redis.prefix,
                                      .retry_us = every_us / 4,
                                      .held_after_us = t_max_us + c->worker.stale_us,
                                      .doubt_us = c->worker.stale_us};
    st = rescuer_open(&rescuer, &s->rescuer, err);
    if (st != STATUS_OK) {
        return st;
    }
    s->services.env = (struct service_env){.loop = &s->loop,
                                           .config = c,
                                           .conninfo = s->conninfo,
                                           .pg = s->pg,
                                           .registry = s->metrics.registry,
                                           .hints = s->hints,
                                           .feeder = s->feeder,
                                           .rescuer = s->rescuer};
    struct cluster_poll_options cluster_poll = {.loop = &s->loop,
                                                .pg = s->pg,
                                                .every_us = every_us,
                                                .stale_us = c->worker.stale_us,
                                                .gap_us = behind_us,
                                                .drift_ppm = c->lock.drift_ppm,
                                                .on_polled = on_polled,
                                                .ctx = s};
    st = cluster_poll_open(&cluster_poll, &s->cluster_poll, err);
    if (st == STATUS_OK) {
        news_open(&s->news, &s->loop, s->cluster_poll, s->hints);
    }
    return st;
}

static void on_ready_due(uv_timer_t *timer)
{
    struct scheduler *s = timer->data;
    struct ready_servers servers;
    if (!ready_is_time(s->config, s->lock, s->ready_since_us) ||
        !ready_is_time(s->config, lead_lock(s->lead), s->ready_since_us)) {
        return;
    }
    (void)uv_timer_stop(timer);
    s->is_ready_said = true;
    ready_describe(s->config, s->lock, pg_server_version(s->pg), &servers);
    log_info("ready", LOG_TEXT("postgres", servers.postgres), LOG_TEXT("redis", servers.redis),
             LOG_TEXT("redis_versions", servers.redis_versions),
             LOG_TEXT("http", telemetry_address(s->telemetry)));
    notify_ready();
}

static void on_joined(void *ctx, enum status st, int64_t t_max_us, const struct err *err)
{
    struct scheduler *s = ctx;
    struct err failed = {0};
    if (s->stage != STAGE_STARTING) {
        return;
    }
    if (st == STATUS_UNKNOWN || st == STATUS_UNAVAILABLE) {
        return; /* tried again with the next session */
    }
    if (st != STATUS_OK) {
        fail(s, st == STATUS_CONFLICT ? DAEMON_USAGE : DAEMON_FAILED, err);
        return;
    }
    if (hints_begin(s, &failed) != STATUS_OK || locks_open(s, t_max_us, &failed) != STATUS_OK ||
        parts_open(s, t_max_us, &failed) != STATUS_OK || report_begin(s, &failed) != STATUS_OK) {
        fail(s, DAEMON_USAGE, &failed);
        return;
    }
    s->stage = STAGE_READY;
    s->ready_since_us = clock_boot_us();
    timer_start(&s->deadline, on_ready_due, READY_CHECK_MS, READY_CHECK_MS);
    on_session_up(s);
    telemetry_publish(s->telemetry);
}

static void on_checked(void *ctx, enum status st, const struct err *err)
{
    struct scheduler *s = ctx;
    struct err failed = {0};
    if (s->stage != STAGE_STARTING || st == STATUS_UNKNOWN || st == STATUS_UNAVAILABLE) {
        return;
    }
    if (st != STATUS_OK) {
        fail(s, st == STATUS_CONFLICT ? DAEMON_NOT_POSSIBLE : DAEMON_FAILED, err);
        return;
    }
    s->join = (struct cluster_join){.pg = s->pg,
                                    .fingerprint = s->fingerprint,
                                    .ttl_us = s->config->lock.ttl_us,
                                    .done = on_joined,
                                    .ctx = s};
    if (cluster_store_join(&s->join, &failed) != STATUS_OK) {
        fail(s, DAEMON_FAILED, &failed);
    }
}

static void on_session(void *ctx, enum status st, const struct pg_result *const *results,
                       const struct err *err)
{
    (void)ctx;
    (void)results;
    if (st != STATUS_OK && st != STATUS_UNKNOWN) {
        log_error("postgres_failed", LOG_TEXT("err", err->msg));
    }
}

static void on_pg_up(void *ctx)
{
    struct scheduler *s = ctx;
    struct err err = {0};
    daemon_metrics_pg_up(&s->metrics.daemon);
    log_recovered("postgres_up", &s->pg_complaint);
    if (feed_store_session(s->pg, on_session, s, &err) != STATUS_OK) {
        log_error("postgres_failed", LOG_TEXT("err", err.msg));
    }
    if (s->stage == STAGE_READY) {
        on_session_up(s);
    } else if (s->stage == STAGE_STARTING &&
               migrate_check(s->pg, on_checked, s, &err) != STATUS_OK) {
        fail(s, DAEMON_FAILED, &err);
    }
}

static void on_pg_down(void *ctx, const struct err *why)
{
    struct scheduler *s = ctx;
    s->pg_down_why = *why;
    if (s->stage == STAGE_STARTING && why->status == STATUS_INVALID) {
        fail(s, DAEMON_USAGE, why); /* the conninfo itself is wrong */
    } else if (s->stage != STAGE_STOPPING && complaint_due(&s->pg_complaint, clock_boot_us())) {
        log_warn("postgres_down", LOG_TEXT("err", why->msg), LOG_TEXT("action", "reconnecting"));
    }
}

static void on_notify(void *ctx, const char *channel, const char *payload)
{
    struct scheduler *s = ctx;
    (void)channel;
    if (s->stage != STAGE_READY) {
        return;
    }
    if (strcmp(payload, "ended") == 0) { /* sent by the trigger job_in_history */
        services_wake(&s->services);
    } else if (strcmp(payload, NEWS_PAYLOAD) == 0) {
        news_take(&s->news);
    } else {
        feeder_wake(s->feeder);
    }
}

static void on_no_start(uv_timer_t *timer)
{
    struct scheduler *s = timer->data;
    err_set(&s->pg_down_why, STATUS_TIMEOUT, 0, "no answer");
    err_prefix(&s->pg_down_why, "PostgreSQL can't be used");
    fail(s, DAEMON_NO_DEPENDENCY, &s->pg_down_why);
}

/* Less than the request's own deadline, which would cost the connection: PostgreSQL cancels a read
 * that walks too long, so that heartbeats and rescues on this connection need not wait longer. */
static int statement_timeout_ms(const struct config *c)
{
    int64_t half_us = c->postgres.timeout_us / 2;
    return (int)((half_us < STATEMENT_TIMEOUT_US ? half_us : STATEMENT_TIMEOUT_US) / US_PER_MS);
}

static enum status start(struct scheduler *s, struct err *err)
{
    const struct config *c = s->config;
    enum status st =
        redis_endpoint_sorted_list(c->lock.nodes[0], sizeof c->lock.nodes[0], c->lock.node_count,
                                   s->fingerprint, sizeof s->fingerprint, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = scheduler_telemetry(s, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = config_conninfo(c, s->conninfo, sizeof s->conninfo, err);
    if (st != STATUS_OK) {
        return st;
    }
    struct pg_options pg = {.loop = &s->loop,
                            .conninfo = s->conninfo,
                            .application_name = "claimd-scheduler",
                            .listen = "claimd",
                            .timeout_us = c->postgres.timeout_us,
                            .lock_timeout_ms = c->postgres.lock_timeout_ms,
                            .statement_timeout_ms = statement_timeout_ms(c),
                            .on_up = on_pg_up,
                            .on_down = on_pg_down,
                            .on_notify = on_notify,
                            .ctx = s};
    return pg_open(&pg, &s->pg, err);
}

static void handles_init(struct scheduler *s)
{
    static const struct {
        int number;
        uv_signal_cb on_signal;
    } table[] = {{SIGTERM, on_signal}, {SIGINT, on_signal}, {SIGHUP, on_reload_signal}};
    for (size_t i = 0; i < ARRAY_COUNT(s->signals); i++) {
        (void)uv_signal_init(&s->loop, &s->signals[i]);
        s->signals[i].data = s;
        (void)uv_signal_start(&s->signals[i], table[i].on_signal, table[i].number);
    }
    (void)uv_timer_init(&s->loop, &s->reload);
    s->reload.data = s;
    (void)uv_timer_init(&s->loop, &s->deadline);
    s->deadline.data = s;
    timer_start(&s->deadline, on_no_start,
                (uint64_t)(2 * s->config->postgres.timeout_us / US_PER_MS), 0);
}

static void handles_close(struct scheduler *s)
{
    process_ignore_requests();
    for (size_t i = 0; i < ARRAY_COUNT(s->signals); i++) {
        uv_close((uv_handle_t *)&s->signals[i], NULL);
    }
    uv_close((uv_handle_t *)&s->reload, NULL);
    uv_close((uv_handle_t *)&s->deadline, NULL);
    (void)uv_run(&s->loop, UV_RUN_NOWAIT);
    (void)uv_loop_close(&s->loop); /* busy if the shutdown was cut short */
}

int scheduler_main(const struct config *config)
{
    struct scheduler s = {.config = config};
    struct err err = {0};
    if (uv_loop_init(&s.loop) != 0) {
        log_error("start_failed", LOG_TEXT("err", "no event loop"));
        return DAEMON_FAILED;
    }
    log_info("started", LOG_TEXT("version", CLAIMD_BUILD), LOG_I64("pid", getpid()));
    handles_init(&s);
    enum status st = start(&s, &err);
    if (st != STATUS_OK) {
        fail(&s, daemon_start_exit(st), &err);
    }
    (void)uv_run(&s.loop, UV_RUN_DEFAULT);
    handles_close(&s);
    telemetry_free(s.telemetry);
    log_info("stopped", LOG_I64("exit_code", s.exit_code));
    return s.exit_code;
}
