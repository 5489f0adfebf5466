/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/telemetry.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/notify.h"
#include "base/timer.h"
#include "daemon/http.h"
#include "daemon/process.h"

#include <pthread.h>
#include <stdatomic.h>

#define PULSE_MS 100
#define PULSES_PER_TEXT 10
#define TEXT_MAX ((size_t)4 << 20)
#define SILENT_US (5 * US_PER_S) /* no new text for this long: the loop hangs */
#define HEALTH_TEXT_MAX 4096
#define LEASE_TEXT_MAX 512

struct state {
    struct health alive;
    struct health ready; /* includes those of `alive` */
};

/* A published text; immutable, so that any thread may read it. */
struct text {
    atomic_int holders;
    int64_t made_us; /* on clock_boot_us() */
    struct state state;
    struct buf metrics;
};

struct telemetry {
    struct telemetry_options options;
    struct metrics *metrics;
    struct http *http;
    uv_timer_t timer; /* sends the pulse */
    uv_async_t pulse; /* an eventfd, which the poll phase reads */
    bool is_stopped;
    bool is_alive; /* as in the last text */
    int pulses;    /* since the last text */
    int64_t pulsed_us;
    atomic_llong lease_until_us;
    int64_t watchdog_us; /* interval of watchdog messages to the supervisor; 0 = none */
    int64_t told_us;
    int64_t lag_us; /* the longest since the last text */
    struct complaint complaint;
    pthread_mutex_t mutex;
    struct text *published; /* guarded by `mutex` */
};

static const struct metric_family loop_lag = {
    .name = "claimd_event_loop_lag_seconds",
    .help = "How late the event loop came round at worst since the text before, in seconds.",
    .type = METRIC_GAUGE};

/* ---- texts ---- */

static void give(struct text *text)
{
    if (text != NULL && atomic_fetch_sub(&text->holders, 1) == 1) {
        buf_release(&text->metrics);
        free(text);
    }
}

static struct text *take(struct telemetry *t)
{
    (void)pthread_mutex_lock(&t->mutex);
    struct text *text = t->published;
    (void)atomic_fetch_add(&text->holders, 1);
    (void)pthread_mutex_unlock(&t->mutex);
    return text;
}

static enum status make_text(const struct telemetry *t, const struct state *state,
                             struct text **ret, struct err *err)
{
    struct text *text = calloc(1, sizeof *text);
    if (text == NULL) {
        return err_fail(err, STATUS_NOMEM, "no memory for the metrics' text");
    }
    atomic_init(&text->holders, 1);
    buf_init(&text->metrics, TEXT_MAX);
    enum status st = metrics_render(t->metrics, &text->metrics, err);
    if (st != STATUS_OK) {
        give(text);
        return st;
    }
    text->made_us = clock_boot_us();
    text->state = *state;
    *ret = text;
    return STATUS_OK;
}

static enum status publish(struct telemetry *t, const struct state *state, struct err *err)
{
    struct text *text = NULL;
    metric_set(metrics_series(t->metrics, &loop_lag, NULL, NULL),
               (double)t->lag_us / (double)US_PER_S);
    t->lag_us = 0;
    process_collect(t->metrics);
    enum status st = make_text(t, state, &text, err);
    if (st != STATUS_OK) {
        return st;
    }
    (void)pthread_mutex_lock(&t->mutex);
    struct text *before = t->published;
    t->published = text;
    (void)pthread_mutex_unlock(&t->mutex);
    give(before);
    return STATUS_OK;
}

void telemetry_publish(struct telemetry *t)
{
    struct err err = {0};
    if (t == NULL || t->is_stopped) {
        return;
    }
    struct state state = {.alive = {.count = 0}};
    t->options.collect(t->options.ctx);
    if (t->options.alive != NULL) {
        t->options.alive(t->options.ctx, &state.alive);
    }
    t->is_alive = health_is_ok(&state.alive);
    state.ready = state.alive;
    t->options.ready(t->options.ctx, &state.ready);
    if (publish(t, &state, &err) == STATUS_OK) {
        log_recovered("metrics_recovered", &t->complaint);
    } else if (complaint_due(&t->complaint, clock_boot_us())) {
        log_warn("metrics_failed", LOG_TEXT("err", err.msg));
    }
}

/* ---- the pulse ---- */

static void on_timer(uv_timer_t *timer)
{
    struct telemetry *t = timer->data;
    (void)uv_async_send(&t->pulse);
}

static void on_pulse(uv_async_t *pulse)
{
    struct telemetry *t = pulse->data;
    int64_t now = clock_boot_us();
    int64_t late = now - t->pulsed_us - PULSE_MS * US_PER_MS;
    if (t->is_stopped) {
        return;
    }
    t->lag_us = late > t->lag_us ? late : t->lag_us;
    t->pulsed_us = now;
    if (t->options.lease != NULL) {
        atomic_store(&t->lease_until_us, t->options.lease(t->options.ctx));
    }
    if (t->watchdog_us > 0 && t->is_alive && now - t->told_us >= t->watchdog_us) {
        t->told_us = now;
        notify_watchdog();
    }
    if (++t->pulses == PULSES_PER_TEXT) {
        t->pulses = 0;
        telemetry_publish(t);
    }
}

static enum status pulse_start(struct telemetry *t, struct err *err)
{
    int failed = uv_async_init(t->options.loop, &t->pulse, on_pulse);
    if (failed != 0) {
        return err_fail(err, STATUS_UNAVAILABLE, "telemetry: %s", uv_strerror(failed));
    }
    (void)uv_timer_init(t->options.loop, &t->timer);
    t->pulse.data = t;
    t->timer.data = t;
    t->is_stopped = false;
    timer_start(&t->timer, on_timer, PULSE_MS, PULSE_MS);
    uv_unref((uv_handle_t *)&t->timer); /* they don't keep the loop alive */
    uv_unref((uv_handle_t *)&t->pulse);
    return STATUS_OK;
}

/* ---- pages, in the HTTP thread ---- */

static enum status render_lease(const struct telemetry *t, struct buf *out, struct err *err)
{
    const struct metric_family *f = t->options.lease_family;
    if (f == NULL) {
        return STATUS_OK;
    }
    bool is_held = clock_boot_us() < atomic_load(&t->lease_until_us);
    return buf_printf(out, err, "# HELP %s %s\n# TYPE %s gauge\n%s %d\n", f->name, f->help, f->name,
                      f->name, is_held ? 1 : 0);
}

static int64_t age_us(const struct text *text)
{
    return clock_boot_us() - text->made_us;
}

/* Outdated values would look as if all were calm, so they are not shown. */
static enum status metrics_page(void *ctx, struct http_answer *ret, struct err *err)
{
    struct telemetry *t = ctx;
    struct text *text = take(t);
    ret->is_fine = age_us(text) < SILENT_US;
    buf_init(&ret->text, text->metrics.len + LEASE_TEXT_MAX);
    if (!ret->is_fine) {
        give(text);
        ret->type = "text/plain; charset=utf-8";
        return buf_append_text(&ret->text,
                               "No figures: the event loop does not turn (see /healthz).\n", err);
    }
    ret->type = "text/plain; version=0.0.4; charset=utf-8";
    enum status st = buf_append(&ret->text, buf_at(&text->metrics), text->metrics.len, err);
    give(text);
    if (st != STATUS_OK) {
        return st;
    }
    return render_lease(t, &ret->text, err);
}

/* Adds the check that the loop turns, which both pages have, and renders the page. */
static enum status health_page(struct health *health, int64_t silent_us, struct http_answer *ret,
                               struct err *err)
{
    health_add(health, "loop", silent_us < SILENT_US, "the event loop has not turned for %lld ms",
               (long long)(silent_us / US_PER_MS));
    ret->is_fine = health_is_ok(health);
    ret->type = "application/json";
    buf_init(&ret->text, HEALTH_TEXT_MAX);
    return health_render(health, &ret->text, err);
}

/* Shows the loop check and the daemon's liveness checks. */
static enum status alive_page(void *ctx, struct http_answer *ret, struct err *err)
{
    struct text *text = take(ctx);
    struct health health = text->state.alive;
    int64_t silent_us = age_us(text);
    give(text);
    return health_page(&health, silent_us, ret, err);
}

/* Shows all checks. */
static enum status ready_page(void *ctx, struct http_answer *ret, struct err *err)
{
    struct text *text = take(ctx);
    struct health health = text->state.ready;
    int64_t silent_us = age_us(text);
    give(text);
    return health_page(&health, silent_us, ret, err);
}

static const struct http_page pages[] = {
    {"/metrics", metrics_page}, {"/healthz", alive_page}, {"/readyz", ready_page}};

/* ---- start and stop ---- */

/* Publishes the first text before the HTTP server starts, so that every client finds one. */
static enum status parts_open(struct telemetry *t, struct err *err)
{
    enum status st = metrics_open(&t->metrics, err);
    if (st != STATUS_OK) {
        return st;
    }
    struct state state = {.alive = {.count = 0}};
    health_add(&state.ready, "started", false, "starting");
    process_begin(t->metrics);
    st = publish(t, &state, err);
    if (st != STATUS_OK) {
        return st;
    }
    const struct http_options http = {.key = t->options.http_key,
                                      .listen = t->options.http_listen,
                                      .pages = pages,
                                      .page_count = ARRAY_COUNT(pages),
                                      .ctx = t};
    st = http_open(&http, &t->http, err);
    if (st != STATUS_OK) {
        return st;
    }
    return pulse_start(t, err);
}

enum status telemetry_open(const struct telemetry_options *options, struct telemetry **ret,
                           struct err *err)
{
    struct telemetry *t = calloc(1, sizeof *t);
    if (t == NULL) {
        return err_fail(err, STATUS_NOMEM, "no memory for the telemetry");
    }
    t->options = *options;
    t->is_stopped = true;
    t->is_alive = true;
    t->pulsed_us = clock_boot_us();
    t->watchdog_us = notify_watchdog_us() / 2;
    (void)pthread_mutex_init(&t->mutex, NULL);
    enum status st = parts_open(t, err);
    if (st != STATUS_OK) {
        http_close(TAKE(t->http));
        telemetry_free(t);
        return st;
    }
    *ret = t;
    return STATUS_OK;
}

struct metrics *telemetry_metrics(const struct telemetry *t)
{
    return t == NULL ? NULL : t->metrics;
}

const char *telemetry_address(const struct telemetry *t)
{
    return http_address(t->http);
}

void telemetry_stop(struct telemetry *t)
{
    if (t != NULL && !t->is_stopped) {
        t->is_stopped = true;
        http_close(TAKE(t->http));
        uv_close((uv_handle_t *)&t->timer, NULL);
        uv_close((uv_handle_t *)&t->pulse, NULL);
    }
}

void telemetry_free(struct telemetry *t)
{
    if (t != NULL) {
        give(t->published);
        metrics_close(t->metrics);
        (void)pthread_mutex_destroy(&t->mutex);
        free(t);
    }
}
