/* SPDX-License-Identifier: Apache-2.0
 *
 * Between the known lanes, in the order of the feed index, an unknown one may lie: these gaps are
 * probed instead of walking the known lanes' rows to find others. */
#include "model/feed.h"

#include <stdio.h>

#define GAP_US 15   /* to look into one */
#define GAP_REST 20 /* 5 % of the time */

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

/* "~" sorts after every name. */
static void gap_add_queues(struct gap_list *g, const struct feed_lane *lo,
                           const struct feed_lane *hi)
{
    char queues[2 * JOB_NAME_MAX + 2];
    (void)snprintf(queues, sizeof queues, "%s,%s", lo == NULL ? "" : lo->queue,
                   hi == NULL ? "~" : hi->queue);
    gap_add(g, FEED_GAP_QUEUES, queues, 0, 0, 2);
}

static bool is_same_queue(const struct feed_lane *a, const struct feed_lane *b)
{
    return a != NULL && b != NULL && strcmp(a->queue, b->queue) == 0;
}

static void gap_add_before(struct gap_list *g, const struct feed_lane *prev,
                           const struct feed_lane *l)
{
    if (!is_same_queue(prev, l)) {
        gap_add_queues(g, prev, l);
        gap_add(g, FEED_GAP_PRIORITIES, l->queue, 0, -1, l->priority);
        gap_add(g, FEED_GAP_SHARES, l->queue, l->priority, -1, l->share);
    } else if (prev->priority != l->priority) {
        gap_add(g, FEED_GAP_PRIORITIES, l->queue, 0, prev->priority, l->priority);
        gap_add(g, FEED_GAP_SHARES, l->queue, l->priority, -1, l->share);
    } else {
        gap_add(g, FEED_GAP_SHARES, l->queue, l->priority, prev->share, l->share);
    }
}

static void gap_add_after(struct gap_list *g, const struct feed_lane *l,
                          const struct feed_lane *next)
{
    bool is_queue_end = !is_same_queue(l, next);
    if (is_queue_end || next->priority != l->priority) {
        gap_add(g, FEED_GAP_SHARES, l->queue, l->priority, l->share, FEED_SHARES);
    }
    if (is_queue_end) {
        gap_add(g, FEED_GAP_PRIORITIES, l->queue, 0, l->priority, JOB_PRIORITY_MAX + 1);
    }
}

size_t feed_gaps(struct feed *f, struct feed_gap *ret, size_t max)
{
    struct gap_list g = {.list = ret, .max = max, .from = f->gap_turn};
    const struct feed_lane *prev = NULL;
    for (size_t i = 0; i < f->order_count; i++) {
        const struct feed_lane *l = &f->lanes[f->order[i]];
        gap_add_before(&g, prev, l);
        gap_add_after(&g, l, i + 1 < f->order_count ? &f->lanes[f->order[i + 1]] : NULL);
        prev = l;
    }
    gap_add_queues(&g, prev, NULL);
    f->gap_turn = g.from + g.count < g.seen ? g.from + g.count : 0;
    return g.count;
}

int64_t feed_gaps_due_us(const struct feed *f, int64_t last_us, int64_t every_us)
{
    int64_t us = (int64_t)f->order_count * GAP_US * GAP_REST;
    return last_us + (f->tenants > 0 && us < every_us ? us : every_us);
}
