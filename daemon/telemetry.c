/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/telemetry.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/notify.h"
#include "daemon/http.h"
#include "daemon/process.h"

#include <pthread.h>
#include <stdatomic.h>

#define TICK_MS 100
#define TICKS_PER_TEXT 10
#define TEXT_MAX ((size_t)4 << 20)

struct text {
    struct telemetry_text public; /* first: what others are given is this */
    atomic_int holders;
    struct buf metrics;
};

struct telemetry {
    struct telemetry_options options;
    struct metrics *metrics;
    struct http *http;
    uv_timer_t timer;
    bool is_stopped;
    int ticks;
    int64_t ticked_us;
    int64_t watchdog_us; /* how often the supervisor is told that the loop turns; 0 = never */
    int64_t told_us;
    int64_t lag_us; /* the longest since the text before */
    struct complaint complaint;
    pthread_mutex_t mutex;
    struct text *published; /* under the mutex */
};

static const struct metric_family loop_lag = {
    .name = "claimd_event_loop_lag_seconds",
    .help = "How late the event loop's timer ran at worst since the text before, in seconds.",
    .type = METRIC_GAUGE};

/* ---- texts ---- */

static void give(struct text *text)
{
    if (text != NULL && atomic_fetch_sub(&text->holders, 1) == 1) {
        buf_release(&text->metrics);
        free(text);
    }
}

void telemetry_give(const struct telemetry_text *text)
{
    give((struct text *)(uintptr_t)text);
}

const struct telemetry_text *telemetry_take(struct telemetry *t)
{
    (void)pthread_mutex_lock(&t->mutex);
    struct text *text = t->published;
    (void)atomic_fetch_add(&text->holders, 1);
    (void)pthread_mutex_unlock(&t->mutex);
    return &text->public;
}

static enum status make_text(const struct telemetry *t, const struct health *ready,
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
    text->public = (struct telemetry_text){.made_us = clock_boot_us(),
                                           .len = text->metrics.len,
                                           .metrics = buf_at(&text->metrics),
                                           .ready = *ready};
    *ret = text;
    return STATUS_OK;
}

static enum status publish(struct telemetry *t, const struct health *ready, struct err *err)
{
    struct text *text = NULL;
    metric_set(metrics_series(t->metrics, &loop_lag, NULL, NULL),
               (double)t->lag_us / (double)US_PER_S);
    t->lag_us = 0;
    process_collect(t->metrics);
    enum status st = make_text(t, ready, &text, err);
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
    struct health ready = {.count = 0};
    t->options.collect(t->options.ctx);
    t->options.ready(t->options.ctx, &ready);
    if (publish(t, &ready, &err) == STATUS_OK) {
        log_recovered("metrics_recovered", &t->complaint);
    } else if (complaint_due(&t->complaint, clock_boot_us())) {
        log_warn("metrics_failed", LOG_TEXT("err", err.msg));
    }
}

/* ---- the timer ---- */

static void on_tick(uv_timer_t *timer)
{
    struct telemetry *t = timer->data;
    int64_t now = clock_boot_us();
    int64_t late = now - t->ticked_us - TICK_MS * US_PER_MS;
    t->lag_us = late > t->lag_us ? late : t->lag_us;
    t->ticked_us = now;
    if (t->watchdog_us > 0 && now - t->told_us >= t->watchdog_us) {
        t->told_us = now;
        notify_watchdog();
    }
    if (++t->ticks == TICKS_PER_TEXT) {
        t->ticks = 0;
        telemetry_publish(t);
    }
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
    t->ticked_us = clock_boot_us();
    t->watchdog_us = notify_watchdog_us() / 2;
    (void)pthread_mutex_init(&t->mutex, NULL);
    enum status st = metrics_open(&t->metrics, err);
    if (st == STATUS_OK) {
        struct health ready = {.count = 0};
        health_add(&ready, "started", false, "starting");
        process_begin(t->metrics);
        st = publish(t, &ready, err);
    }
    if (st == STATUS_OK) {
        st = http_open(options->http_key, options->http_listen, t, &t->http, err);
    }
    if (st != STATUS_OK) {
        telemetry_free(t);
        return st;
    }
    (void)uv_timer_init(options->loop, &t->timer);
    t->timer.data = t;
    t->is_stopped = false;
    (void)uv_timer_start(&t->timer, on_tick, TICK_MS, TICK_MS);
    uv_unref((uv_handle_t *)&t->timer); /* no reason to live on */
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
