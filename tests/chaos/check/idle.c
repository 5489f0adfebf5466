/* SPDX-License-Identifier: Apache-2.0
 *
 * K11, L9: no job waits beside a worker that has an idle slot for it. For one job and one worker,
 * both must not last for more than a second without interruption, except during faults and their
 * aftermath. In a queue that is walked in laps, the time of a lap is added.
 *
 * A job waits from the commit of the row that made it available, or from its due time, until its
 * handler starts; a claim, or a hand-back before the start, changes nothing. Time does not count
 * while its queue or kind is paused, or while its queue or key has no place (refusals.c). */
#include "idle.h"

#include <stdlib.h>

#define K11 "K11"
#define BOUND_NS (NS_PER_S + 50 * NS_PER_MS)
#define LAP_NS \
    (5 * NS_PER_S) /* longest time from the start of a lap to that of the next (decision 23) */
#define AFTERMATH_NS (30 * NS_PER_S) /* scaled; by then a full pass has found everything */
/* While the daemons waited for a CPU, their servers waited about as long. */
#define STARVED_FACTOR 2

/* ---- faults ---- */

/* True for the kit's reports about an undisturbed world, and for faults that the load causes all
 * the time. */
static bool is_harmless(const struct fault *f)
{
    static const char *const names[] = {"ended",       "failed",  "started",
                                        "not started", "process", "slow_commit"};
    for (size_t i = 0; i < ARRAY_COUNT(names); i++) {
        if (strcmp(f->what, names[i]) == 0) {
            return true;
        }
    }
    return false;
}

static void add_faults(const struct run *r, struct spans *ret)
{
    int64_t aftermath = (int64_t)((double)AFTERMATH_NS * r->c.scale);
    for (size_t i = 0; i < r->fault_count; i++) {
        const struct fault *f = &r->faults[i];
        int64_t end = f->back > f->to ? f->back : f->to;
        if (!is_harmless(f)) {
            spans_add(ret, f->from, f->to == NEVER ? NEVER : end + aftermath);
        }
    }
    spans_sort(ret);
}

/* ---- spare workers ---- */

static bool is_among(const struct served *s, const char *queue, const char *kind)
{
    bool has_queue = false;
    bool has_kind = false;
    for (size_t i = 0; i < s->count; i++) {
        has_queue = has_queue || s->names[i].queue == queue;
        has_kind = has_kind || s->names[i].kind == kind;
    }
    return has_queue && has_kind;
}

/* Adds the times in which this worker does not serve that queue and kind. */
static void add_unserved(const struct spare_worker *v, const char *queue, const char *kind,
                         struct spans *to)
{
    int64_t from = 0;
    for (size_t i = 0; i < v->served_count; i++) {
        if (is_among(&v->served[i], queue, kind)) {
            spans_add(to, from, v->served[i].since);
            from = i + 1 < v->served_count ? v->served[i + 1].since : NEVER;
        }
    }
    spans_add(to, from, NEVER);
}

/* ---- the host ---- */

/* Returns how long daemons waited for a CPU between two times, from the samples around them. */
static int64_t starved(const struct idle *all, struct span at)
{
    int64_t sum = 0;
    for (size_t i = 0; i < all->starved_count; i++) {
        const struct starved *s = &all->starved[i];
        sum += s->to > at.from && s->from < at.to ? s->waited : 0;
    }
    return sum;
}

/* ---- jobs ---- */

struct wait {
    int64_t since; /* NEVER = it is not waiting */
    const char *queue;
    const char *kind;
    const char *key;
    int64_t ready_at_us;
};

/* In a queue with more tenants than there is room for, each tenant has one turn per lap. */
static int64_t bound_of(const struct idle *all, const char *queue)
{
    const char *lapped = json_string_value(json_object_get(all->run->about, "lapped"));
    return BOUND_NS + (lapped != NULL && strcmp(lapped, queue) == 0 ? LAP_NS : 0);
}

static void judge(struct idle *all, const struct job *j, const struct wait *w, int64_t until)
{
    struct span at = {.from = w->since, .to = until};
    int64_t bound = w->since == NEVER ? 0 : bound_of(all, w->queue);
    if (w->since == NEVER || until - w->since <= bound) {
        return;
    }
    struct spans excused = {.list = NULL};
    spans_add_within(&excused, &all->faults, at);
    refusals_add(&all->refusals, w->queue, w->kind, w->key, at, &excused);
    size_t excused_count = excused.count;
    for (size_t i = 0; i < all->worker_count; i++) {
        const struct spare_worker *v = &all->workers[i];
        struct spans shut = {.list = NULL};
        for (size_t k = 0; k < excused_count; k++) {
            spans_add(&shut, excused.list[k].from, excused.list[k].to);
        }
        add_unserved(v, w->queue, w->kind, &shut);
        spans_sort(&shut);
        struct span both = spans_longest(&v->spare, &shut, at);
        spans_free(&shut);
        int64_t took = both.to - both.from;
        if (took > bound && took > bound + STARVED_FACTOR * starved(all, both)) {
            violation(all->run, K11, "L9", j->id,
                      "waited in queue %s for %.2f s from %.3f s on, and for %.2f s of them, from "
                      "%.3f s on, %s had an idle slot for it",
                      w->queue, (double)(until - w->since) / (double)NS_PER_S,
                      (double)(w->since - all->run->first) / (double)NS_PER_S,
                      (double)took / (double)NS_PER_S,
                      (double)(both.from - all->run->first) / (double)NS_PER_S, v->process->name);
            break; /* reported once per wait */
        }
    }
    spans_free(&excused);
}

/* Returns when the handler of this claim began; NEVER = it did not. */
static int64_t started_at(const struct job *j, int64_t fence)
{
    for (size_t i = 0; i < j->event_count; i++) {
        const struct event *e = &j->events[i];
        bool is_start = e->op == OP_STARTED || (e->op == OP_RUN && e->phase == PH_INV);
        if (is_start && e->fence == fence) {
            return e->t;
        }
    }
    return NEVER;
}

static bool is_handed_back(const struct job *j, int64_t fence)
{
    for (size_t i = 0; i < j->event_count; i++) {
        const struct event *e = &j->events[i];
        if (e->op == OP_HAND_BACK && e->phase == PH_OK && e->fence == fence) {
            return true;
        }
    }
    return false;
}

static int64_t due(const struct row *row)
{
    int64_t ahead_ns = (row->ready_at_us - row->at_us) * 1000;
    return row->committed + (ahead_ns > 0 && row->ready_at_us > 0 ? ahead_ns : 0);
}

static bool is_spent(const struct job *j, const struct row *row)
{
    int64_t max = j->final_count > 0 ? j->finals[0].max_attempts : 0;
    return max > 0 && row->attempt >= max;
}

/* The row is available: the job waits from now on, unless it was waiting already. */
static void wait_on(const struct job *j, const struct row *row, struct wait *w)
{
    bool is_back = row->old_state == intern("running", 7) && w->since != NEVER &&
                   is_handed_back(j, row->fence);
    bool is_other = w->since == NEVER || row->ready_at_us != w->ready_at_us ||
                    row->queue != w->queue || row->exclusive_key != w->key;
    if (is_back || !(is_other || row->old_state != row->new_state)) {
        return;
    }
    *w = (struct wait){.since = is_spent(j, row) ? NEVER : due(row),
                       .queue = row->queue,
                       .kind = row->kind,
                       .key = row->exclusive_key,
                       .ready_at_us = row->ready_at_us};
}

static void check_job(struct idle *all, const struct job *j)
{
    struct wait w = {.since = NEVER};
    for (size_t i = 0; i < j->row_count; i++) {
        const struct row *row = &j->rows[i];
        if (row->new_state == intern("available", 9)) {
            wait_on(j, row, &w);
        } else if (row->new_state == intern("running", 7)) {
            int64_t start = row->old_state == row->new_state ? NEVER : started_at(j, row->fence);
            if (start != NEVER) {
                judge(all, j, &w, start);
                w.since = NEVER;
            }
        } else {
            judge(all, j, &w, row->committed);
            w.since = NEVER;
        }
    }
    judge(all, j, &w, all->run->last);
}

void check_idle(struct run *r)
{
    struct idle all = {.run = r};
    idle_find_workers(&all);
    if (all.worker_count == 0) {
        idle_free(&all);
        return; /* a history of programs that do not record it */
    }
    idle_find_starved(&all);
    add_faults(r, &all.faults);
    refusals_find(&all.refusals, r);
    for (size_t i = 1; i < r->job_count; i++) {
        if (!r->jobs[i].is_edited) { /* changes by hand are excused, like faults */
            check_job(&all, &r->jobs[i]);
        }
    }
    idle_free(&all);
}
