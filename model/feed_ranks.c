/* SPDX-License-Identifier: Apache-2.0
 *
 * If a group has tenants, its hints are ordered by ranks instead of due times: start-time fair
 * queueing (Goyal, Vin, Cheng 1996), in which each job is one unit of work. A lane's row gets the
 * later of two ranks: the one being served, and the one after its lane's last. So a tenant that
 * arrives late goes ahead of what others have waiting, and one that was away saves nothing up.
 * Ranks are numbers on the scale of due times, so that both kinds of score can be in one set. */
#include "base/clock.h"
#include "base/minmax.h"
#include "model/feed.h"
#include "model/hint.h"

#include <string.h>

/* Times look_ahead: full passes may push as many again, and tenants one row each. */
#define HINTS_TIMES_MAX 4

/* Jobs whose hints were popped this long ago have started: workers claim 40 ms of work ahead. */
#define STARTS_WITHIN_US (50 * US_PER_MS)

bool feed_group_has_tenants(const struct feed_group *g)
{
    return g->tenants > 0;
}

/* Begins to give ranks: the present hints are ordered by due time, so their rows are read again,
 * and get ranks that are earlier. */
static void begin_ranks(struct feed *f, size_t group)
{
    /* the rank being served must be known before the next one */
    f->groups[group].is_counted = false;
    for (size_t i = 0; i < f->lane_count; i++) {
        if (f->lanes[i].is_used && f->lanes[i].group == group) {
            feed_lane_rewind(&f->lanes[i], FEED_BEGIN_US);
        }
    }
}

void feed_group_joined(struct feed *f, size_t group, int share)
{
    struct feed_group *g = &f->groups[group];
    if (share > 0) {
        f->tenants++;
        g->tenants++;
        if (g->tenants == 1) {
            begin_ranks(f, group);
        }
    }
}

void feed_group_left(struct feed *f, size_t group, int share)
{
    f->groups[group].tenants -= share > 0;
    f->tenants -= share > 0;
}

void feed_group_served(struct feed *f, size_t group, int64_t first_ms)
{
    struct feed_group *g = &f->groups[group];
    int64_t rank = first_ms >= 0 ? first_ms : max_i64(g->last_rank, f->pg_us / US_PER_MS);
    if (g->now_rank == 0) { /* make it earlier than all hints pushed so far */
        bool has_hints = first_ms >= 0;
        rank = has_hints ? max_i64(first_ms - HINTS_TIMES_MAX * f->limits.look_ahead, 1) : rank;
        g->now_rank = rank;
    } else if (f->pg_us - g->next_us >= STARTS_WITHIN_US || f->pg_us < g->next_us) {
        g->now_rank = g->next_rank;
    } else {
        return;
    }
    g->next_rank = max_i64(g->next_rank, rank);
    g->next_us = f->pg_us;
}

bool feed_lane_is_next(const struct feed *f, const struct feed_lane *l)
{
    const struct feed_group *g = &f->groups[l->group];
    return feed_group_has_tenants(g) && !l->is_lap && l->rank <= g->next_rank &&
           !feed_pos_before(l->cursor, l->high);
}

/* A row that had its rank before a rewind is not charged for it again. */
static bool is_charged(const struct feed_lane *l, const struct feed_range *range,
                       struct feed_pos row)
{
    return range->part != FEED_AHEAD || feed_pos_before(l->high, row);
}

int64_t feed_row_order_us(struct feed *f, const struct feed_range *range, struct feed_pos row)
{
    struct feed_lane *l = &f->lanes[range->lane];
    struct feed_group *g = &f->groups[l->group];
    if (!feed_group_has_tenants(g) || g->now_rank == 0) { /* 0 = not counted yet */
        return row.us;
    }
    int64_t *next = range->part == FEED_FULL ? &l->full_rank : &l->rank;
    int64_t rank = max_i64(g->now_rank, *next);
    *next = is_charged(l, range, row) ? rank + 1 : rank;
    g->last_rank = max_i64(g->last_rank, *next);
    return rank * US_PER_MS;
}

/* ---- aging ---- */

static int aged_priority(const struct feed *f, int priority, int64_t row_us)
{
    int64_t waited_us = max_i64(f->pg_us - row_us, 0);
    int64_t steps = f->limits.aging_us > 0 ? waited_us / f->limits.aging_us : 0;
    return steps < priority ? priority - (int)steps : 0;
}

static const struct feed_group *find_group(const struct feed *f, const char *queue, int priority)
{
    for (size_t i = 0; i < f->group_count; i++) {
        const struct feed_group *g = &f->groups[i];
        if (g->lanes > 0 && g->priority == priority && strcmp(g->queue, queue) == 0) {
            return g;
        }
    }
    return NULL;
}

int64_t feed_row_score(struct feed *f, const struct feed_range *range, struct feed_pos row)
{
    const struct feed_lane *l = &f->lanes[range->lane];
    int64_t us = feed_row_order_us(f, range, row);
    int priority = aged_priority(f, l->priority, row.us);
    if (priority == l->priority) {
        return hint_score(priority, us);
    }
    const struct feed_group *g = f->tenants > 0 ? find_group(f, l->queue, priority) : NULL;
    bool is_late = g != NULL && feed_group_has_tenants(g) && g->now_rank * US_PER_MS < row.us;
    return hint_score(priority, is_late ? g->now_rank * US_PER_MS : row.us);
}
