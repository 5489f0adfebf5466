/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/cron.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/probe.h"
#include "base/timer.h"
#include "store/feed_store.h"
#include "store/schedule_store.h"

#define EVERY_US US_PER_S
#define LIMIT_US (10 * US_PER_S)
/* Wait before ticks that are due but locked by another session are tried again. */
#define LOCKED_US (100 * US_PER_MS)
#define BACKOFF_DOUBLINGS_MAX 5
#define MEND_EVERY_US (60 * US_PER_S)

struct cron {
    struct pg *pg;
    struct metrics *registry; /* may be NULL */
    uv_timer_t timer;
    int64_t every_us;
    int64_t timeout_us; /* for connecting; the statement may take LIMIT_US in addition */
    int64_t mend_every_us;
    int64_t mend_at_us; /* BOOTTIME */
    char mended_upto[SCHEDULE_NAME_MAX + 1];
    int failures; /* in a row */
    struct complaint complaint;
    bool is_asking;
    bool is_stopping;
};

static const struct metric_family ticks = {.name = "claimd_schedule_ticks_total",
                                           .help = "What became of the ticks of schedules.",
                                           .type = METRIC_COUNTER,
                                           .labels = {"outcome"}};
static const struct metric_family late = {.name = "claimd_schedule_late_seconds",
                                          .help = "From the time of a tick to its job.",
                                          .type = METRIC_HISTOGRAM};
static const struct metric_family failed = {.name = "claimd_schedule_rounds_failed_total",
                                            .help = "Times that the schedules could not be read.",
                                            .type = METRIC_COUNTER};

void cron_metrics_init(struct metrics *registry)
{
    for (int i = 0; i < SCHEDULE_OUTCOMES; i++) {
        (void)metrics_series(registry, &ticks, schedule_outcome_text((enum schedule_outcome)i),
                             NULL);
    }
    (void)metrics_series(registry, &late, NULL, NULL);
    (void)metrics_series(registry, &failed, NULL, NULL);
}

/* ---- waiting ---- */

int64_t cron_wait_us(int64_t late_us, bool did_something, int64_t every_us)
{
    if (late_us < 0) {
        return -late_us < every_us ? -late_us : every_us;
    }
    int64_t locked_us = LOCKED_US < every_us ? LOCKED_US : every_us;
    return did_something ? 0 : locked_us;
}

int64_t cron_backoff_us(int failures, int64_t every_us)
{
    int doublings = failures - 1;
    return every_us << (doublings < BACKOFF_DOUBLINGS_MAX ? doublings : BACKOFF_DOUBLINGS_MAX);
}

static void on_timer(uv_timer_t *timer);

static void wait_us(struct cron *c, int64_t us)
{
    /* Rounded up: a call before the tick is due would find nothing and have to be repeated. */
    timer_start(&c->timer, on_timer, (uint64_t)((us + US_PER_MS - 1) / US_PER_MS), 0);
}

static void fail(struct cron *c, const struct err *err)
{
    c->failures++;
    metric_add(metrics_series(c->registry, &failed, NULL, NULL), 1);
    if (complaint_due(&c->complaint, clock_boot_us())) {
        log_error("schedules_failed", LOG_TEXT("err", err->msg),
                  LOG_TEXT("action", "trying again; until then no tick fires"));
    }
    wait_us(c, cron_backoff_us(c->failures, c->every_us));
}

/* ---- events ---- */

static void tell(struct cron *c, const struct schedule_event *e)
{
    metric_add(metrics_series(c->registry, &ticks, schedule_outcome_text(e->outcome), NULL), 1);
    switch (e->outcome) {
    case SCHEDULE_FIRED:
        metric_observe_us(metrics_series(c->registry, &late, NULL, NULL), e->late_us);
        log_info("schedule_fired", LOG_TEXT("schedule", e->schedule), LOG_TEXT("due", e->due),
                 LOG_I64("job", e->job));
        break;
    case SCHEDULE_SKIPPED:
        log_info("schedule_skipped", LOG_TEXT("schedule", e->schedule), LOG_TEXT("due", e->due),
                 LOG_TEXT("why", e->error == NULL ? "one of its jobs is still open" : e->error));
        break;
    case SCHEDULE_MISSED:
        log_warn("schedule_missed", LOG_TEXT("schedule", e->schedule), LOG_TEXT("from", e->due),
                 LOG_TEXT("action", "ticks from then on that are too late are skipped"));
        break;
    case SCHEDULE_FAILED:
        log_warn("schedule_failed", LOG_TEXT("schedule", e->schedule), LOG_TEXT("due", e->due),
                 LOG_TEXT("err", e->error), LOG_TEXT("action", "it is tried again"));
        break;
    case SCHEDULE_NEXT:
        break;
    }
}

static void ask(struct cron *c);

/* Ends the request. Returns true if this scheduler still leads and the statement succeeded. */
static bool is_answered(struct cron *c, enum status st, const struct err *err)
{
    c->is_asking = false;
    if (c->is_stopping) {
        return false;
    }
    if (st != STATUS_OK) {
        fail(c, err);
    }
    return st == STATUS_OK;
}

/* ---- mending ---- */

static void on_mended(void *ctx, enum status st, const struct pg_result *const *results,
                      const struct err *err)
{
    struct cron *c = ctx;
    if (!is_answered(c, st, err)) {
        return;
    }
    struct schedule_mended m = {0};
    int last = pg_row_count(results[0]) - 1;
    for (int i = 0; i <= last; i++) {
        schedule_store_mended(results[0], i, &m);
        if (i < last) {
            log_warn("schedule_mended", LOG_TEXT("schedule", m.schedule), LOG_TEXT("was", m.was),
                     LOG_TEXT("due", m.due),
                     LOG_TEXT("action", "it waited past its next tick; it now fires at that tick"));
        }
    }
    if (m.schedule != NULL) {
        c->mend_at_us = clock_boot_us() + c->every_us;
    }
    (void)snprintf(c->mended_upto, sizeof c->mended_upto, "%s",
                   m.schedule == NULL ? "" : m.schedule);
    ask(c);
}

/* Mends up to 100 schedules; what fails is tried again at the next mending. */
static void mend(struct cron *c)
{
    struct err err = {0};
    c->mend_at_us = clock_boot_us() + c->mend_every_us;
    if (schedule_store_mend(c->pg, c->mended_upto, LIMIT_US + c->timeout_us, on_mended, c, &err) !=
        STATUS_OK) {
        fail(c, &err);
        return;
    }
    c->is_asking = true;
}

static void go_on(struct cron *c, const struct schedule_event *next, bool did_something)
{
    int64_t us =
        next->is_never ? c->every_us : cron_wait_us(next->late_us, did_something, c->every_us);
    if (us > 0 && clock_boot_us() >= c->mend_at_us) {
        mend(c);
    } else if (!next->is_never) { /* else a cluster poll announces the next schedule */
        wait_us(c, us);
    }
}

/* ---- firing ---- */

static void on_fired(void *ctx, enum status st, const struct pg_result *const *results,
                     const struct err *err)
{
    struct cron *c = ctx;
    if (!is_answered(c, st, err)) {
        return;
    }
    c->failures = 0;
    log_recovered("schedules_recovered", &c->complaint);
    struct schedule_event event = {.is_never = true};
    int last = pg_row_count(results[0]) - 1;
    if (last > 0) {
        probe("T2");
    }
    for (int i = 0; i <= last; i++) {
        schedule_store_event(results[0], i, &event);
        if (i < last) {
            tell(c, &event);
        }
    }
    go_on(c, &event, last > 0);
}

static void ask(struct cron *c)
{
    struct err err = {0};
    if (c->is_asking || !pg_is_up(c->pg)) {
        return; /* on_fired() or on_up() continues */
    }
    (void)uv_timer_stop(&c->timer);
    if (schedule_store_fire(c->pg, LIMIT_US + c->timeout_us, on_fired, c, &err) != STATUS_OK) {
        fail(c, &err);
        return;
    }
    c->is_asking = true;
    probe("T1");
}

static void on_timer(uv_timer_t *timer)
{
    ask(timer->data);
}

/* ---- leading ---- */

static void on_up(void *ctx)
{
    ask(ctx);
}

static enum status on_lead(const struct service_env *env, void **ret_self, struct err *err)
{
    struct cron *c = calloc(1, sizeof *c);
    if (c == NULL) {
        return err_fail(err, STATUS_NOMEM, "no memory for the schedules");
    }
    c->registry = env->registry;
    c->every_us = config_scaled(env->config, EVERY_US);
    c->timeout_us = env->config->postgres.timeout_us;
    c->mend_every_us = config_scaled(env->config, MEND_EVERY_US);
    struct pg_options pg = {.loop = env->loop,
                            .conninfo = env->conninfo,
                            .application_name = "claimd-scheduler schedules",
                            .timeout_us = c->timeout_us,
                            .statement_timeout_ms = (int)(LIMIT_US / US_PER_MS),
                            .on_up = on_up,
                            .ctx = c};
    enum status st = pg_open(&pg, &c->pg, err);
    if (st != STATUS_OK) {
        free(c);
        return st;
    }
    (void)uv_timer_init(env->loop, &c->timer);
    c->timer.data = c;
    *ret_self = c;
    return STATUS_OK;
}

static void on_polled(void *ctx, const struct cluster_view *view)
{
    struct cron *c = ctx;
    if ((view->work & FEED_TICK_SCHEDULES) != 0 && !uv_is_active((uv_handle_t *)&c->timer)) {
        ask(c);
    }
}

static void on_closed(uv_handle_t *timer)
{
    free(timer->data);
}

static void on_stop(void *ctx)
{
    struct cron *c = ctx;
    c->is_stopping = true;
    pg_close(c->pg);
    uv_close((uv_handle_t *)&c->timer, on_closed);
}

const struct service cron_service = {
    .failed = "schedules_failed", .start = on_lead, .polled = on_polled, .stop = on_stop};
