/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/cluster_poll.h"

#include "base/bug.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/timer.h"
#include "model/feed_writers.h"
#include "store/feed_store.h"

#include <stdio.h>
#include <string.h>

#define AHEAD_US US_PER_S /* a heartbeat this far ahead was made by another clock */
#define STALE_MAX 64      /* workers marked dead at once; the others follow in later polls */
#define DRIFT_FIXED_US (2 * US_PER_MS)

struct seen_worker {
    char id[40];
    int64_t lost_pops;
    /* BOOTTIME when its leases have expired: request a full pass again then; 0 = no */
    int64_t again_us;
    bool is_live;
    bool is_present;
};

struct cluster_poll {
    struct cluster_poll_options options;
    uv_timer_t timer;
    struct seen_worker *workers;
    size_t worker_count;
    struct feed_writers writers;
    int64_t replied_us;
    int64_t steady_us; /* since then no reply was late, so silence is the worker's own */
    const char *dead[POLL_WORKERS_MAX]; /* of the present poll, like the next */
    const char *stale[STALE_MAX];
    struct complaint complaint;
    bool is_failing; /* an error occurred in the tick in progress */
    bool is_asking;
    bool is_asked_for; /* the present poll was requested by cluster_poll_now() */
    bool is_wanted;    /* … or the next one was, which begins when this one is answered */
    bool is_leader;
};

/* One tick while its rows are processed. */
struct tick {
    int64_t now_us; /* BOOTTIME */
    int64_t t_max_us;
    const char *writers;
    struct cluster_view view;
};

static void complain(struct cluster_poll *p, const struct err *err)
{
    p->is_failing = true;
    if (complaint_due(&p->complaint, clock_boot_us())) {
        log_error("cluster_poll_failed", LOG_TEXT("err", err->msg),
                  LOG_TEXT("action", "trying again"));
    }
}

static struct seen_worker *worker_get(struct cluster_poll *p, const char *id)
{
    for (size_t i = 0; i < p->worker_count; i++) {
        if (strcmp(p->workers[i].id, id) == 0) {
            return &p->workers[i];
        }
    }
    if (p->worker_count == POLL_WORKERS_MAX) {
        return NULL;
    }
    struct seen_worker *s = &p->workers[p->worker_count++];
    *s = (struct seen_worker){.lost_pops = -1};
    (void)snprintf(s->id, sizeof s->id, "%s", id);
    return s;
}

/* Ids that a silent worker popped have no hint and do not run. If it has locked some of them, they
 * can be claimed only after its lease has expired. Therefore there are two full passes: one now,
 * and one when its leases have expired. */
static void worker_silent(const struct cluster_poll *p, struct seen_worker *s, struct tick *t,
                          int64_t age_us)
{
    int64_t lease_us = t->t_max_us + t->t_max_us / 1000000 * p->options.drift_ppm + DRIFT_FIXED_US;
    t->view.wants_full_pass = true;
    s->is_live = false;
    s->again_us = t->now_us + (lease_us > age_us ? lease_us - age_us : 0);
}

static void take_worker(struct cluster_poll *p, struct tick *t, const struct feed_tick_row *row)
{
    struct err err = {0};
    struct seen_worker *s = worker_get(p, row->name);
    bool is_live = !row->is_dead && !row->is_stale;
    if (is_live && feed_served_add(&t->view.served, row->queues, row->kinds, &err) != STATUS_OK) {
        complain(p, &err);
    }
    if (s == NULL) {
        return;
    }
    s->is_present = true;
    t->view.is_clock_behind = t->view.is_clock_behind || (is_live && row->age_us < -AHEAD_US);
    t->view.wants_full_pass =
        t->view.wants_full_pass || (s->lost_pops >= 0 && row->number > s->lost_pops);
    s->lost_pops = row->number;
    if (s->is_live && !is_live) {
        worker_silent(p, s, t, row->age_us);
    }
    s->is_live = is_live;
    if (row->is_dead) {
        p->dead[t->view.dead_count++] = row->name;
    } else if (row->is_stale && t->view.stale_count < STALE_MAX) {
        p->stale[t->view.stale_count++] = row->name;
    }
}

static void take_rows(struct cluster_poll *p, struct tick *t, const struct pg_result *rows)
{
    struct err err = {0};
    for (int i = 0; i < pg_row_count(rows); i++) {
        struct feed_tick_row row;
        feed_tick_row(rows, i, &row);
        switch (row.part) {
        case FEED_TICK_NOW:
            t->writers = row.name;
            t->t_max_us = row.number;
            t->view.pg_us = row.us;
            t->view.work = row.work;
            break;
        case FEED_TICK_WORKER:
            take_worker(p, t, &row);
            break;
        case FEED_TICK_PAUSED:
            if (feed_served_pause(&t->view.served, row.name, &err) != STATUS_OK) {
                complain(p, &err);
            }
            break;
        }
    }
}

/* Forgets workers that are gone, once their leases have expired. Even one that ended in good order
 * may have cut off a pop (crash.W0). */
static void forget_gone(struct cluster_poll *p, struct tick *t)
{
    size_t kept = 0;
    for (size_t i = 0; i < p->worker_count; i++) {
        struct seen_worker *s = &p->workers[i];
        if (s->again_us > 0 && s->again_us <= t->now_us) {
            s->again_us = 0;
            t->view.wants_full_pass = true;
        }
        t->view.wants_full_pass = t->view.wants_full_pass || (s->is_live && !s->is_present);
        if (s->is_present || s->again_us > 0) {
            p->workers[kept] = *s;
            p->workers[kept++].is_present = false;
        }
    }
    p->worker_count = kept;
}

static void take_writers(struct cluster_poll *p, struct tick *t)
{
    struct err err = {0};
    if (feed_writers_list(&p->writers, t->writers, t->view.pg_us, p->options.gap_us,
                          &t->view.rewind_us, &err) != STATUS_OK) {
        complain(p, &err);
        t->view.wants_full_pass = true;
    }
}

static void take_tick(struct cluster_poll *p, const struct pg_result *rows)
{
    struct tick t = {.now_us = clock_boot_us(),
                     .view = {.rewind_us = FEED_NEVER_US,
                              .dead = p->dead,
                              .stale = p->stale,
                              .is_asked_for = p->is_asked_for}};
    if (pg_row_count(rows) == 0) {
        return; /* no row in `cluster`: no migration was ever made here */
    }
    if (t.now_us - p->replied_us > p->options.stale_us / 2) {
        p->steady_us = t.now_us;
    }
    p->replied_us = t.now_us;
    p->is_failing = false;
    take_rows(p, &t, rows);
    forget_gone(p, &t);
    if (p->is_leader) {
        take_writers(p, &t);
    }
    if (!SEEDED_BUG(13) && t.now_us - p->steady_us < p->options.stale_us) {
        t.view.stale_count = 0;
    }
    p->options.on_polled(p->options.ctx, &t.view);
    feed_served_release(&t.view.served);
    if (!p->is_failing) {
        log_recovered("cluster_poll_recovered", &p->complaint);
    }
}

static void ask(struct cluster_poll *p);

static void on_tick(void *ctx, enum status st, const struct pg_result *const *results,
                    const struct err *err)
{
    struct cluster_poll *p = ctx;
    p->is_asking = false;
    if (st == STATUS_OK) {
        take_tick(p, results[0]);
    } else {
        complain(p, err);
    }
    p->is_asked_for = p->is_wanted;
    p->is_wanted = false;
    if (p->is_asked_for) {
        ask(p);
    }
}

static void ask(struct cluster_poll *p)
{
    if (!p->is_asking && pg_is_up(p->options.pg)) {
        p->is_asking = feed_store_tick(p->options.pg, on_tick, p, NULL) == STATUS_OK;
    }
}

static void on_timer(uv_timer_t *timer)
{
    ask(timer->data);
}

/* A request that is in flight may have read before the change, so another one follows it. */
void cluster_poll_now(struct cluster_poll *p)
{
    p->is_wanted = p->is_asking;
    p->is_asked_for = p->is_asked_for || !p->is_asking;
    ask(p);
}

size_t cluster_poll_live(const struct cluster_poll *p, const char **ret_ids)
{
    size_t count = 0;
    for (size_t i = 0; i < p->worker_count; i++) {
        if (p->workers[i].is_live) {
            ret_ids[count++] = p->workers[i].id;
        }
    }
    return count;
}

void cluster_poll_lead(struct cluster_poll *p, bool is_leader)
{
    p->is_leader = is_leader;
    if (is_leader) {
        feed_writers_reset(&p->writers);
        ask(p);
    }
}

void cluster_poll_up(struct cluster_poll *p)
{
    p->steady_us = clock_boot_us();
    ask(p);
}

enum status cluster_poll_open(const struct cluster_poll_options *options, struct cluster_poll **ret,
                              struct err *err)
{
    struct cluster_poll *p = calloc(1, sizeof *p);
    struct seen_worker *workers = calloc(POLL_WORKERS_MAX, sizeof workers[0]);
    if (p == NULL || workers == NULL) {
        free(p);
        free(workers);
        return err_fail(err, STATUS_NOMEM, "no memory for the cluster poll");
    }
    p->options = *options;
    p->workers = workers;
    p->steady_us = clock_boot_us();
    p->replied_us = p->steady_us;
    (void)uv_timer_init(options->loop, &p->timer);
    p->timer.data = p;
    uint64_t every_ms = (uint64_t)(options->every_us / US_PER_MS) + 1;
    timer_start(&p->timer, on_timer, every_ms, every_ms);
    *ret = p;
    return STATUS_OK;
}

static void on_closed(uv_handle_t *timer)
{
    struct cluster_poll *p = timer->data;
    feed_writers_release(&p->writers);
    free(p->workers);
    free(p);
}

void cluster_poll_close(struct cluster_poll *p)
{
    if (p != NULL) {
        uv_close((uv_handle_t *)&p->timer, on_closed);
    }
}
