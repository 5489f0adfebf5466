/* SPDX-License-Identifier: Apache-2.0
 *
 * K5, S19: no worker is declared dead unless it was silent for `stale` while PostgreSQL could be
 * reached. Time in which no heartbeat was possible does not count (fault.D4). */
#include "check.h"

#include <inttypes.h>

/* A stall shorter than a request's deadline (which is not scaled) goes unnoticed. */
#define NOTICED_NS (5 * NS_PER_S)

static bool is_away(const struct fault *f)
{
    return fault_has(f, TRAIT_PG_GONE) ||
           (fault_has(f, TRAIT_PG_STOPPED) && f->to - f->from >= NOTICED_NS);
}

/* Returns how long PostgreSQL was away within [from, to]. Faults are sorted by their beginnings; an
 * overlap of two counts once. */
static int64_t away(const struct run *r, int64_t from, int64_t to)
{
    int64_t sum = 0;
    for (size_t i = 0; i < r->fault_count; i++) {
        const struct fault *f = &r->faults[i];
        int64_t begin = f->from > from ? f->from : from;
        int64_t end = f->to < to ? f->to : to;
        if (is_away(f) && end > begin) {
            sum += end - begin;
            from = end;
        }
    }
    return sum;
}

static const struct process *process_of(const struct run *r, const char *worker)
{
    for (size_t i = 0; i < r->process_count; i++) {
        if (process_is_worker(&r->processes[i], worker)) {
            return &r->processes[i];
        }
    }
    return NULL;
}

/* Returns when its last confirmed heartbeat before t was sent. */
static int64_t last_beat(const struct run *r, const char *worker, int64_t t)
{
    int64_t asked = 0;
    int64_t last = 0;
    for (size_t i = 0; i < r->jobs[0].event_count && r->jobs[0].events[i].t < t; i++) {
        const struct event *e = &r->jobs[0].events[i];
        bool is_beat = (e->op == OP_BEAT || e->op == OP_START) && e->name == worker;
        if (is_beat && e->phase == PH_INV) {
            asked = e->t;
        } else if (is_beat && e->phase == PH_OK && !e->flag) {
            last = asked != 0 ? asked : e->t;
        }
    }
    return last;
}

void check_deaths(struct run *r)
{
    for (size_t i = 0; i < r->jobs[0].event_count; i++) {
        const struct event *e = &r->jobs[0].events[i];
        const struct process *p =
            e->op == OP_DEAD && e->phase == PH_OK ? process_of(r, e->name) : NULL;
        int64_t last = p == NULL ? 0 : last_beat(r, e->name, e->t);
        if (last == 0 || fault_in(r, TRAIT_PG_CLOCK, last - 60 * NS_PER_S, e->t) != NULL) {
            continue; /* PostgreSQL's clock decides who is stale; the lease is the second witness */
        }
        int64_t silent = e->t - last - away(r, last, e->t);
        if (silent < r->c.stale - r->c.stale / 10) {
            violation(r, "K5", "S19", 0,
                      "worker %s (%s) was taken for dead at %.3f s after %" PRId64
                      " ms of silence while PostgreSQL was there; `stale` is %" PRId64 " ms",
                      e->name, p->name, (double)(e->t - r->first) / (double)NS_PER_S,
                      silent / NS_PER_MS, r->c.stale / NS_PER_MS);
        }
    }
}
