/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/watch.h"

#include "base/bug.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/timer.h"
#include "model/feed_writers.h"
#include "store/feed_store.h"

#include <stdio.h>
#include <string.h>

#define WORKERS_MAX 4096
#define STALE_MAX 64 /* marked dead at once; more take turns */
#define DRIFT_FIXED_US (2 * US_PER_MS)

struct seen_worker {
    char id[40];
    int64_t lost_pops;
    int64_t again_us; /* BOOTTIME when its leases are gone: rewind once more; 0 = no */
    bool is_live;
    bool is_present;
};

struct watch {
    struct watch_options options;
    uv_timer_t timer;
    struct seen_worker *workers;
    size_t worker_count;
    struct feed_writers writers;
    int64_t replied_us;
    int64_t steady_us; /* since then no reply was late: silence is the workers' own */
    int64_t full_pass_us;
    struct complaint complaint;
    bool is_failing; /* the tick being taken */
    bool is_asking;
    bool is_leader;
};

/* What one tick said, while its rows are taken. */
struct tick {
    int64_t now_us; /* BOOTTIME */
    int64_t pg_us;
    int64_t t_max_us;
    const char *writers;
    struct feed_served served;
    bool wants_full_pass;
    char stale[STALE_MAX][40];
    size_t stale_count;
};

static void complain(struct watch *w, const struct err *err)
{
    w->is_failing = true;
    if (complaint_due(&w->complaint, clock_boot_us())) {
        log_error("watch_failed", LOG_TEXT("err", err->msg), LOG_TEXT("action", "looking again"));
    }
}

static struct seen_worker *worker_get(struct watch *w, const char *id)
{
    for (size_t i = 0; i < w->worker_count; i++) {
        if (strcmp(w->workers[i].id, id) == 0) {
            return &w->workers[i];
        }
    }
    if (w->worker_count == WORKERS_MAX) {
        return NULL;
    }
    struct seen_worker *s = &w->workers[w->worker_count++];
    *s = (struct seen_worker){.lost_pops = -1};
    (void)snprintf(s->id, sizeof s->id, "%s", id);
    return s;
}

/* Ids that a silent worker popped are neither hints nor running. Those whose lease it took can be
 * claimed only when that has run out: hence twice. */
static void worker_silent(const struct watch *w, struct seen_worker *s, struct tick *t,
                          int64_t age_us)
{
    int64_t lease_us = t->t_max_us + t->t_max_us / 1000000 * w->options.drift_ppm + DRIFT_FIXED_US;
    t->wants_full_pass = true;
    s->is_live = false;
    s->again_us = t->now_us + (lease_us > age_us ? lease_us - age_us : 0);
}

static void take_worker(struct watch *w, struct tick *t, const struct feed_tick_row *row)
{
    struct err err = {0};
    struct seen_worker *s = worker_get(w, row->name);
    bool is_live = !row->is_dead && !row->is_stale;
    if (is_live && feed_served_add(&t->served, row->queues, row->kinds, &err) != STATUS_OK) {
        complain(w, &err);
    }
    if (s == NULL) {
        return;
    }
    s->is_present = true;
    t->wants_full_pass = t->wants_full_pass || (s->lost_pops >= 0 && row->number > s->lost_pops);
    s->lost_pops = row->number;
    if (s->is_live && !is_live) {
        worker_silent(w, s, t, row->age_us);
    }
    s->is_live = is_live;
    if (row->is_dead && w->is_leader) {
        rescuer_dead(w->options.rescuer, row->name);
    } else if (row->is_stale && t->stale_count < STALE_MAX) {
        (void)snprintf(t->stale[t->stale_count++], sizeof t->stale[0], "%s", row->name);
    }
}

static void take_rows(struct watch *w, struct tick *t, const struct pg_result *rows)
{
    struct err err = {0};
    for (int i = 0; i < pg_row_count(rows); i++) {
        struct feed_tick_row row;
        feed_tick_row(rows, i, &row);
        switch (row.part) {
        case FEED_TICK_NOW:
            t->writers = row.name;
            t->t_max_us = row.number;
            t->pg_us = row.us;
            break;
        case FEED_TICK_WORKER:
            take_worker(w, t, &row);
            break;
        case FEED_TICK_PAUSED:
            if (feed_served_pause(&t->served, row.name, &err) != STATUS_OK) {
                complain(w, &err);
            }
            break;
        }
    }
}

/* A worker that is gone is remembered until its leases are. One that ended in good order may have
 * cut off a pop (crash.W0). */
static void forget_gone(struct watch *w, struct tick *t)
{
    size_t kept = 0;
    for (size_t i = 0; i < w->worker_count; i++) {
        struct seen_worker *s = &w->workers[i];
        if (s->again_us > 0 && s->again_us <= t->now_us) {
            s->again_us = 0;
            t->wants_full_pass = true;
        }
        t->wants_full_pass = t->wants_full_pass || (s->is_live && !s->is_present);
        if (s->is_present || s->again_us > 0) {
            w->workers[kept] = *s;
            w->workers[kept++].is_present = false;
        }
    }
    w->worker_count = kept;
}

static void look_at_writers(struct watch *w, const struct tick *t)
{
    struct err err = {0};
    int64_t rewind_us = FEED_NEVER_US;
    if (feed_writers_list(&w->writers, t->writers, t->pg_us, w->options.gap_us, &rewind_us, &err) !=
        STATUS_OK) {
        complain(w, &err);
        feeder_full_pass(w->options.feeder);
    }
    if (rewind_us != FEED_NEVER_US) {
        feeder_rewind(w->options.feeder, rewind_us);
    }
}

static void look_at_stale(struct watch *w, struct tick *t)
{
    const char *ids[STALE_MAX];
    if (!SEEDED_BUG(13) && t->now_us - w->steady_us < w->options.stale_us) {
        return;
    }
    for (size_t i = 0; i < t->stale_count; i++) {
        ids[i] = t->stale[i];
    }
    rescuer_stale(w->options.rescuer, ids, t->stale_count);
}

static void look_as_leader(struct watch *w, struct tick *t)
{
    look_at_writers(w, t);
    look_at_stale(w, t);
    if (t->now_us - w->full_pass_us >= w->options.full_pass_us) {
        w->full_pass_us = t->now_us;
        rescuer_audit(w->options.rescuer);
    }
    if (t->wants_full_pass) {
        feeder_full_pass(w->options.feeder);
    }
    feeder_tick(w->options.feeder);
}

static void on_tick(void *ctx, enum status st, const struct pg_result *const *results,
                    const struct err *err)
{
    struct watch *w = ctx;
    struct tick t = {.now_us = clock_boot_us()};
    w->is_asking = false;
    if (st != STATUS_OK) {
        complain(w, err);
        return;
    }
    if (pg_row_count(results[0]) == 0) {
        return; /* no row in `cluster`: nothing was ever migrated here */
    }
    if (t.now_us - w->replied_us > w->options.stale_us / 2) {
        w->steady_us = t.now_us;
    }
    w->replied_us = t.now_us;
    w->is_failing = false;
    if (w->is_leader && !feeder_is_started(w->options.feeder)) {
        struct feed_tick_row now;
        feed_tick_row(results[0], 0, &now);
        (void)feeder_start(w->options.feeder, now.us);
    }
    take_rows(w, &t, results[0]);
    forget_gone(w, &t);
    feeder_serve(w->options.feeder, &t.served);
    if (w->is_leader && feeder_is_started(w->options.feeder)) {
        look_as_leader(w, &t);
    }
    if (!w->is_failing) {
        log_recovered("watch_recovered", &w->complaint);
    }
}

static void ask(struct watch *w)
{
    if (!w->is_asking && pg_is_up(w->options.pg)) {
        w->is_asking = feed_store_tick(w->options.pg, on_tick, w, NULL) == STATUS_OK;
    }
}

static void on_timer(uv_timer_t *timer)
{
    ask(timer->data);
}

void watch_lead(struct watch *w, bool is_leader)
{
    w->is_leader = is_leader;
    if (!is_leader) {
        feeder_stop(w->options.feeder);
        rescuer_stop(w->options.rescuer);
        return;
    }
    feed_writers_reset(&w->writers);
    w->full_pass_us = clock_boot_us();
    rescuer_start(w->options.rescuer);
    ask(w);
}

void watch_on_up(struct watch *w)
{
    w->steady_us = clock_boot_us();
    feeder_up(w->options.feeder);
    ask(w);
}

void watch_set_full_pass(struct watch *w, int64_t full_pass_us)
{
    w->options.full_pass_us = full_pass_us;
}

enum status watch_open(const struct watch_options *options, struct watch **ret, struct err *err)
{
    struct watch *w = calloc(1, sizeof *w);
    struct seen_worker *workers = calloc(WORKERS_MAX, sizeof workers[0]);
    if (w == NULL || workers == NULL) {
        free(w);
        free(workers);
        return err_fail(err, STATUS_NOMEM, "no memory for the watch");
    }
    w->options = *options;
    w->workers = workers;
    w->steady_us = clock_boot_us();
    w->replied_us = w->steady_us;
    (void)uv_timer_init(options->loop, &w->timer);
    w->timer.data = w;
    uint64_t every_ms = (uint64_t)(options->every_us / US_PER_MS) + 1;
    timer_start(&w->timer, on_timer, every_ms, every_ms);
    *ret = w;
    return STATUS_OK;
}

static void on_closed(uv_handle_t *timer)
{
    struct watch *w = timer->data;
    feed_writers_release(&w->writers);
    free(w->workers);
    free(w);
}

void watch_close(struct watch *w)
{
    if (w != NULL) {
        uv_close((uv_handle_t *)&w->timer, on_closed);
    }
}
