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
#define STALE_MAX 64      /* workers marked dead at once; the others follow in later rolls */
#define DRIFT_FIXED_US (2 * US_PER_MS)

struct seen_worker {
    char id[40];
    int64_t lost_pops;
    /* BOOTTIME when its leases have expired: request a full pass again then; 0 = no */
    int64_t again_us;
    bool is_live;
    bool is_present;
};

struct roll_call {
    struct roll_call_options options;
    uv_timer_t timer;
    struct seen_worker *workers;
    size_t worker_count;
    struct feed_writers writers;
    int64_t replied_us;
    int64_t steady_us; /* since then no reply was late, so silence is the worker's own */
    const char *dead[ROLL_WORKERS_MAX]; /* of the present roll, like the next */
    const char *stale[STALE_MAX];
    struct complaint complaint;
    bool is_failing; /* an error occurred in the tick in progress */
    bool is_asking;
    bool is_asked_for; /* the present roll was requested by roll_call_now() */
    bool is_wanted;    /* … or the next one was, which begins when this one is answered */
    bool is_leader;
};

/* One tick while its rows are processed. */
struct tick {
    int64_t now_us; /* BOOTTIME */
    int64_t t_max_us;
    const char *writers;
    struct roll roll;
};

static void complain(struct roll_call *r, const struct err *err)
{
    r->is_failing = true;
    if (complaint_due(&r->complaint, clock_boot_us())) {
        log_error("roll_call_failed", LOG_TEXT("err", err->msg),
                  LOG_TEXT("action", "trying again"));
    }
}

static struct seen_worker *worker_get(struct roll_call *r, const char *id)
{
    for (size_t i = 0; i < r->worker_count; i++) {
        if (strcmp(r->workers[i].id, id) == 0) {
            return &r->workers[i];
        }
    }
    if (r->worker_count == ROLL_WORKERS_MAX) {
        return NULL;
    }
    struct seen_worker *s = &r->workers[r->worker_count++];
    *s = (struct seen_worker){.lost_pops = -1};
    (void)snprintf(s->id, sizeof s->id, "%s", id);
    return s;
}

/* Ids that a silent worker popped have no hint and do not run. If it has locked some of them, they
 * can be claimed only after its lease has expired. Therefore there are two full passes: one now,
 * and one when its leases have expired. */
static void worker_silent(const struct roll_call *r, struct seen_worker *s, struct tick *t,
                          int64_t age_us)
{
    int64_t lease_us = t->t_max_us + t->t_max_us / 1000000 * r->options.drift_ppm + DRIFT_FIXED_US;
    t->roll.wants_full_pass = true;
    s->is_live = false;
    s->again_us = t->now_us + (lease_us > age_us ? lease_us - age_us : 0);
}

static void take_worker(struct roll_call *r, struct tick *t, const struct feed_tick_row *row)
{
    struct err err = {0};
    struct seen_worker *s = worker_get(r, row->name);
    bool is_live = !row->is_dead && !row->is_stale;
    if (is_live && feed_served_add(&t->roll.served, row->queues, row->kinds, &err) != STATUS_OK) {
        complain(r, &err);
    }
    if (s == NULL) {
        return;
    }
    s->is_present = true;
    t->roll.is_clock_behind = t->roll.is_clock_behind || (is_live && row->age_us < -AHEAD_US);
    t->roll.wants_full_pass =
        t->roll.wants_full_pass || (s->lost_pops >= 0 && row->number > s->lost_pops);
    s->lost_pops = row->number;
    if (s->is_live && !is_live) {
        worker_silent(r, s, t, row->age_us);
    }
    s->is_live = is_live;
    if (row->is_dead) {
        r->dead[t->roll.dead_count++] = row->name;
    } else if (row->is_stale && t->roll.stale_count < STALE_MAX) {
        r->stale[t->roll.stale_count++] = row->name;
    }
}

static void take_rows(struct roll_call *r, struct tick *t, const struct pg_result *rows)
{
    struct err err = {0};
    for (int i = 0; i < pg_row_count(rows); i++) {
        struct feed_tick_row row;
        feed_tick_row(rows, i, &row);
        switch (row.part) {
        case FEED_TICK_NOW:
            t->writers = row.name;
            t->t_max_us = row.number;
            t->roll.pg_us = row.us;
            t->roll.work = row.work;
            break;
        case FEED_TICK_WORKER:
            take_worker(r, t, &row);
            break;
        case FEED_TICK_PAUSED:
            if (feed_served_pause(&t->roll.served, row.name, &err) != STATUS_OK) {
                complain(r, &err);
            }
            break;
        }
    }
}

/* Forgets workers that are gone, once their leases have expired. Even one that ended in good order
 * may have cut off a pop (crash.W0). */
static void forget_gone(struct roll_call *r, struct tick *t)
{
    size_t kept = 0;
    for (size_t i = 0; i < r->worker_count; i++) {
        struct seen_worker *s = &r->workers[i];
        if (s->again_us > 0 && s->again_us <= t->now_us) {
            s->again_us = 0;
            t->roll.wants_full_pass = true;
        }
        t->roll.wants_full_pass = t->roll.wants_full_pass || (s->is_live && !s->is_present);
        if (s->is_present || s->again_us > 0) {
            r->workers[kept] = *s;
            r->workers[kept++].is_present = false;
        }
    }
    r->worker_count = kept;
}

static void take_writers(struct roll_call *r, struct tick *t)
{
    struct err err = {0};
    if (feed_writers_list(&r->writers, t->writers, t->roll.pg_us, r->options.gap_us,
                          &t->roll.rewind_us, &err) != STATUS_OK) {
        complain(r, &err);
        t->roll.wants_full_pass = true;
    }
}

static void take_tick(struct roll_call *r, const struct pg_result *rows)
{
    struct tick t = {.now_us = clock_boot_us(),
                     .roll = {.rewind_us = FEED_NEVER_US,
                              .dead = r->dead,
                              .stale = r->stale,
                              .is_asked_for = r->is_asked_for}};
    if (pg_row_count(rows) == 0) {
        return; /* no row in `cluster`: no migration was ever made here */
    }
    if (t.now_us - r->replied_us > r->options.stale_us / 2) {
        r->steady_us = t.now_us;
    }
    r->replied_us = t.now_us;
    r->is_failing = false;
    take_rows(r, &t, rows);
    forget_gone(r, &t);
    if (r->is_leader) {
        take_writers(r, &t);
    }
    if (!SEEDED_BUG(13) && t.now_us - r->steady_us < r->options.stale_us) {
        t.roll.stale_count = 0;
    }
    r->options.on_roll(r->options.ctx, &t.roll);
    feed_served_release(&t.roll.served);
    if (!r->is_failing) {
        log_recovered("roll_call_recovered", &r->complaint);
    }
}

static void ask(struct roll_call *r);

static void on_tick(void *ctx, enum status st, const struct pg_result *const *results,
                    const struct err *err)
{
    struct roll_call *r = ctx;
    r->is_asking = false;
    if (st == STATUS_OK) {
        take_tick(r, results[0]);
    } else {
        complain(r, err);
    }
    r->is_asked_for = r->is_wanted;
    r->is_wanted = false;
    if (r->is_asked_for) {
        ask(r);
    }
}

static void ask(struct roll_call *r)
{
    if (!r->is_asking && pg_is_up(r->options.pg)) {
        r->is_asking = feed_store_tick(r->options.pg, on_tick, r, NULL) == STATUS_OK;
    }
}

static void on_timer(uv_timer_t *timer)
{
    ask(timer->data);
}

/* A request that is in flight may have read before the change, so another one follows it. */
void roll_call_now(struct roll_call *r)
{
    r->is_wanted = r->is_asking;
    r->is_asked_for = r->is_asked_for || !r->is_asking;
    ask(r);
}

size_t roll_call_live(const struct roll_call *r, const char **ret_ids)
{
    size_t count = 0;
    for (size_t i = 0; i < r->worker_count; i++) {
        if (r->workers[i].is_live) {
            ret_ids[count++] = r->workers[i].id;
        }
    }
    return count;
}

void roll_call_lead(struct roll_call *r, bool is_leader)
{
    r->is_leader = is_leader;
    if (is_leader) {
        feed_writers_reset(&r->writers);
        ask(r);
    }
}

void roll_call_up(struct roll_call *r)
{
    r->steady_us = clock_boot_us();
    ask(r);
}

enum status roll_call_open(const struct roll_call_options *options, struct roll_call **ret,
                           struct err *err)
{
    struct roll_call *r = calloc(1, sizeof *r);
    struct seen_worker *workers = calloc(ROLL_WORKERS_MAX, sizeof workers[0]);
    if (r == NULL || workers == NULL) {
        free(r);
        free(workers);
        return err_fail(err, STATUS_NOMEM, "no memory for the roll call");
    }
    r->options = *options;
    r->workers = workers;
    r->steady_us = clock_boot_us();
    r->replied_us = r->steady_us;
    (void)uv_timer_init(options->loop, &r->timer);
    r->timer.data = r;
    uint64_t every_ms = (uint64_t)(options->every_us / US_PER_MS) + 1;
    timer_start(&r->timer, on_timer, every_ms, every_ms);
    *ret = r;
    return STATUS_OK;
}

static void on_closed(uv_handle_t *timer)
{
    struct roll_call *r = timer->data;
    feed_writers_release(&r->writers);
    free(r->workers);
    free(r);
}

void roll_call_close(struct roll_call *r)
{
    if (r != NULL) {
        uv_close((uv_handle_t *)&r->timer, on_closed);
    }
}
