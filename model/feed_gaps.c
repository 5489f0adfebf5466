/* SPDX-License-Identifier: Apache-2.0
 *
 * Between the known lanes of a served queue, in the order of the feed index, there may be an
 * unknown one: these gaps are probed instead of walking over the rows of known lanes to find
 * others. Queues that no worker serves are not probed, however many jobs they have. */
#include "base/minmax.h"
#include "model/feed.h"

#include <stdio.h>

#define GAP_US 15   /* cost of probing one */
#define GAP_REST 20 /* probing may take 5 % of the time */
#define FEW_LANES 16

struct gap_list {
    struct feed_gap *list;
    size_t count;
    size_t max;
    size_t seen;
    size_t from;
};

static void gap_add(struct gap_list *g, enum feed_gap_form form, const char *queue, int priority,
                    int lo, int hi)
{
    if (hi - lo < 2) {
        return;
    }
    if (g->seen++ >= g->from && g->count < g->max) {
        struct feed_gap *gap = &g->list[g->count++];
        *gap = (struct feed_gap){.form = form, .priority = priority, .lo = lo, .hi = hi};
        (void)snprintf(gap->queue, sizeof gap->queue, "%s", queue);
    }
}

/* Adds the gaps between two lanes of one queue; NULL = an end of the queue. */
static void gap_add_between(struct gap_list *g, const char *queue, const struct feed_lane *prev,
                            const struct feed_lane *next)
{
    int lo = prev != NULL ? prev->priority : -1;
    int hi = next != NULL ? next->priority : JOB_PRIORITY_MAX + 1;
    if (prev != NULL && next != NULL && lo == hi) {
        gap_add(g, FEED_GAP_SHARES, queue, lo, prev->share, next->share);
        return;
    }
    if (prev != NULL) {
        gap_add(g, FEED_GAP_SHARES, queue, lo, prev->share, FEED_SHARES);
    }
    gap_add(g, FEED_GAP_PRIORITIES, queue, 0, lo, hi);
    if (next != NULL) {
        gap_add(g, FEED_GAP_SHARES, queue, hi, -1, next->share);
    }
}

/* Counts the lanes of the queue, which are adjacent in `order`. */
static size_t lanes_of(const struct feed *f, const char *queue, size_t first)
{
    size_t n = 0;
    while (first + n < f->order_count && strcmp(f->lanes[f->order[first + n]].queue, queue) == 0) {
        n++;
    }
    return n;
}

static void gaps_of_queue(const struct feed *f, const char *queue, size_t first, size_t count,
                          struct gap_list *g)
{
    const struct feed_lane *prev = NULL;
    for (size_t i = 0; i < count; i++) {
        const struct feed_lane *l = &f->lanes[f->order[first + i]];
        gap_add_between(g, queue, prev, l);
        prev = l;
    }
    gap_add_between(g, queue, prev, NULL);
}

static void gaps_of(const struct feed *f, const struct feed_served *served, bool wants_few,
                    struct gap_list *g)
{
    for (size_t i = 0; i < served->queue_count; i++) {
        const struct feed_served_queue *q = &served->queues[i];
        size_t first = feed_lane_place(f, q->name, 0, 0);
        size_t count = lanes_of(f, q->name, first);
        bool is_lapped = count > 0 && f->lanes[f->order[first]].is_lap;
        if (q->workers > 0 && !q->is_paused && !is_lapped && (count <= FEW_LANES) == wants_few) {
            gaps_of_queue(f, q->name, first, count, g);
        }
    }
}

static size_t next_gap(const struct gap_list *g)
{
    return g->from + g->count < g->seen ? g->from + g->count : 0;
}

size_t feed_gaps(struct feed *f, const struct feed_served *served, struct feed_gap *ret, size_t max)
{
    struct gap_list few = {.list = ret, .max = max - max / 2, .from = f->few_from};
    gaps_of(f, served, true, &few);
    struct gap_list many = {.list = ret + few.count, .max = max - few.count, .from = f->gap_from};
    gaps_of(f, served, false, &many);
    f->few_from = next_gap(&few);
    f->gap_from = next_gap(&many);
    return few.count + many.count;
}

int64_t feed_gaps_due_us(const struct feed *f, int64_t last_us, int64_t every_us)
{
    int64_t us = min_i64((int64_t)f->order_count, FEED_GAPS_MAX) * GAP_US * GAP_REST;
    return last_us + (f->tenants > 0 && us < every_us ? us : every_us);
}
