/* SPDX-License-Identifier: Apache-2.0 */
#include "model/feed.h"

#include "base/bug.h"
#include "base/minmax.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define READ_ROWS_MIN 16 /* a lane that seems empty is read by at least this many rows */
#define PAGE_ROWS_MIN 64
#define LANE_US 6    /* cost of looking at a lane that seems empty */
#define IDLE_MAX 128 /* such lanes looked at in a pass in which others have more rows */
#define LANE_REST 10 /* looking at all of them may take a tenth of the time */
#define PASS_US_MAX (20 * INT64_C(1000))

void feed_init(struct feed *f, const struct feed_limits *limits)
{
    *f = (struct feed){.limits = *limits, .page_rows = limits->page_rows};
}

void feed_set_limits(struct feed *f, const struct feed_limits *limits)
{
    f->limits = *limits;
    f->page_rows = (int)min_i64(f->page_rows, limits->page_rows);
}

void feed_release(struct feed *f)
{
    free(f->lanes);
    free(f->order);
    free(f->groups);
    feed_memory_release(&f->memory);
    *f = (struct feed){.limits = f->limits, .page_rows = f->limits.page_rows};
}

/* ---- rewinding ---- */

void feed_lane_rewind(struct feed_lane *lane, int64_t us)
{
    if (lane->reading > 0) {
        lane->rewind_us = min_i64(lane->rewind_us, us);
        return;
    }
    if (lane->is_lap) { /* a lap reads every tenant from its beginning anyway */
        return;
    }
    struct feed_pos to = {.us = us, .id = INT64_MIN}; /* includes all rows of that time */
    if (feed_pos_before(to, lane->cursor) && !SEEDED_BUG(5)) {
        lane->cursor = to;
    }
    if (us == FEED_BEGIN_US) {
        lane->high = FEED_BEGIN;
        lane->rank = 0;
    }
    lane->has_more = true;
}

void feed_rewind(struct feed *f, int64_t us)
{
    for (size_t i = 0; i < f->order_count; i++) {
        feed_lane_rewind(&f->lanes[f->order[i]], us);
    }
}

/* Handles a PostgreSQL clock that was set back, also by a failover to a server with a slower one:
 * new rows are older than what the cursor has read. */
static void clock_back(const struct feed *f, struct feed_lane *l, int64_t pg_us)
{
    if (SEEDED_BUG(18) || l->cursor.us <= pg_us + f->limits.look_behind_us / 2) {
        return;
    }
    l->cursor = (struct feed_pos){.us = pg_us - f->limits.look_behind_us, .id = INT64_MIN};
    l->behind = l->cursor;
    l->behind_since_us = 0;
    l->is_young = true;
    l->has_more = true;
}

/* ---- planning a pass ---- */

static int64_t group_room(const struct feed *f, const struct feed_group *g)
{
    return g->is_counted ? max_i64(f->limits.look_ahead - g->held, 0) : 0;
}

static bool lane_wants_ahead(const struct feed *f, const struct feed_lane *l, int64_t now_us,
                             int64_t pg_us, bool woken)
{
    const struct feed_group *g = &f->groups[l->group];
    if (l->is_lap) {
        return l->is_served && l->reading == 0 && group_room(f, g) > 0 && feed_lap_is_due(l, pg_us);
    }
    bool may_read = group_room(f, g) > 0 || (g->is_counted && feed_lane_is_next(f, l));
    if (!l->is_served || l->reading > 0 || !may_read) {
        return false;
    }
    int64_t rest_us =
        max_i64(f->limits.read_every_us, (int64_t)f->order_count * LANE_US * LANE_REST);
    return l->has_more || woken || l->next_due_us <= pg_us || now_us - l->ahead_us >= rest_us;
}

static void behind_to(struct feed_lane *l, int64_t us)
{
    if (!SEEDED_BUG(18) || us > l->behind.us) {
        l->behind = (struct feed_pos){.us = us};
    }
}

/* Between its walks, the look-behind keeps up with the clock while the cursor reads old rows: late
 * commits don't add rows to a backlog. */
static bool lane_wants_behind(const struct feed *f, struct feed_lane *l, int64_t pg_us)
{
    if (!l->is_served || l->reading > 0) {
        return false;
    }
    if (!l->is_young) {
        behind_to(l, pg_us - f->limits.look_behind_us);
        return false;
    }
    return feed_pos_before(l->behind, l->cursor);
}

struct demand {
    int busy; /* lanes with more rows */
    int idle; /* lanes that seem empty */
    int behind;
};

static struct demand demand_of(struct feed *f, int64_t now_us, int64_t pg_us, bool woken)
{
    struct demand d = {0};
    for (size_t i = 0; i < f->group_count; i++) {
        f->groups[i].busy = 0;
        f->groups[i].idle = 0;
    }
    for (size_t i = 0; i < f->lane_count; i++) {
        struct feed_lane *l = &f->lanes[i];
        if (l->reading == 0) {
            clock_back(f, l, pg_us);
        }
        if (lane_wants_ahead(f, l, now_us, pg_us, woken)) {
            f->groups[l->group].busy += l->has_more;
            f->groups[l->group].idle += !l->has_more;
            d.busy += l->has_more;
            d.idle += !l->has_more;
        }
        d.behind += lane_wants_behind(f, l, pg_us);
    }
    return d;
}

/* Lanes that seem empty get a quarter of their group's room, but at least one row each: even
 * thousands of them leave most of it to the lanes with more. */
static int64_t idle_room(const struct feed *f, const struct feed_group *g)
{
    return group_room(f, g) / (g->busy > 0 ? 4 : 1);
}

/* A lane with more rows gets its part of the page, and of the room that is left in its group. */
static int ahead_rows(const struct feed *f, const struct feed_lane *l, const struct demand *d)
{
    const struct feed_group *g = &f->groups[l->group];
    assert(d->busy + d->idle > 0 && g->busy + g->idle > 0); /* this lane itself was counted */
    if (!l->has_more) {
        int64_t rows = max_i64(f->page_rows / (d->busy + d->idle), READ_ROWS_MIN);
        return (int)max_i64(min_i64(rows, idle_room(f, g) / g->idle), 1);
    }
    int64_t rows = max_i64(f->page_rows / d->busy, READ_ROWS_MIN);
    int64_t room = group_room(f, g) - (g->idle > 0 ? idle_room(f, g) : 0);
    return (int)max_i64(min_i64(rows, room / g->busy), 1);
}

static void plan_lane(struct feed *f, size_t at, const struct demand *d, bool ahead, bool behind,
                      int64_t pg_us, struct feed_range *ret, size_t *count)
{
    struct feed_lane *l = &f->lanes[at];
    if (behind) {
        if (l->behind_since_us == 0) {
            l->behind_since_us = pg_us;
        }
        assert(d->behind > 0);
        int rows = f->limits.behind_rows / d->behind;
        ret[(*count)++] =
            (struct feed_range){.lane = at,
                                .part = FEED_BEHIND,
                                .after = l->behind,
                                .to = l->cursor,
                                .rows_max = rows > READ_ROWS_MIN ? rows : READ_ROWS_MIN,
                                .rank = l->rank};
    }
    if (ahead && l->is_lap) {
        ret[(*count)++] = feed_lap_range(f, at, group_room(f, &f->groups[l->group]), pg_us);
    } else if (ahead) {
        ret[(*count)++] = (struct feed_range){.lane = at,
                                              .part = FEED_AHEAD,
                                              .after = l->cursor,
                                              .to = {.us = FEED_NEVER_US},
                                              .rows_max = ahead_rows(f, l, d),
                                              .rank = l->rank};
    }
}

static size_t plan(struct feed *f, int64_t now_us, int64_t pg_us, bool woken, bool has_behind,
                   struct feed_range *ret_ranges, size_t max)
{
    struct demand d = demand_of(f, now_us, pg_us, woken);
    f->pg_us = pg_us;
    size_t idle = 0;
    size_t count = 0;
    size_t n = 0;
    for (; n < f->lane_count && count + 2 <= max; n++) {
        size_t at = (f->plan_from + n) % f->lane_count;
        struct feed_lane *l = &f->lanes[at];
        bool is_late = d.busy > 0 && !l->has_more && idle == IDLE_MAX && !woken;
        bool ahead = !is_late && lane_wants_ahead(f, l, now_us, pg_us, woken);
        bool behind = lane_wants_behind(f, l, pg_us) && has_behind;
        plan_lane(f, at, &d, ahead, behind, pg_us, ret_ranges, &count);
        if (ahead) {
            l->ahead_us = now_us;
            idle += !l->has_more;
        }
        l->reading += (int)ahead + (int)behind;
    }
    f->plan_from =
        f->lane_count == 0 ? 0 : (f->plan_from + (n < f->lane_count ? n : 1)) % f->lane_count;
    return count;
}

size_t feed_plan(struct feed *f, int64_t now_us, int64_t pg_us, bool woken,
                 struct feed_range *ret_ranges, size_t max)
{
    return plan(f, now_us, pg_us, woken, true, ret_ranges, max);
}

size_t feed_plan_ahead(struct feed *f, int64_t now_us, int64_t pg_us, struct feed_range *ret_ranges,
                       size_t max)
{
    return plan(f, now_us, pg_us, true, false, ret_ranges, max);
}

/* ---- results ---- */

bool feed_range_row(const struct feed *f, const struct feed_range *range, struct feed_pos row,
                    bool wants_hint)
{
    return wants_hint &&
           (range->part != FEED_BEHIND || !feed_memory_has(&f->memory, row.id, row.us));
}

static void behind_done(struct feed *f, struct feed_lane *l, bool is_full, struct feed_pos last)
{
    if (is_full) {
        l->behind = last;
        return;
    }
    behind_to(l, l->behind_since_us - f->limits.look_behind_us);
    l->behind_since_us = 0;
    l->is_young = feed_pos_before(l->behind, l->cursor);
}

/* Moves the cursor past what was walked without result: entries of a transaction that has not
 * committed, or dead ones, would be walked again by each read. A row that later commits behind the
 * cursor was written by a transaction older than the look-behind, whose end causes a rewind. */
static void cursor_keep_up(const struct feed *f, struct feed_lane *l, int64_t pg_us)
{
    struct feed_pos to = {.us = pg_us - f->limits.look_behind_us};
    if (feed_pos_before(l->cursor, to)) {
        l->cursor = to;
    }
}

static void ahead_done(const struct feed *f, struct feed_lane *l, int rows, bool is_full,
                       struct feed_pos last, int64_t pg_us)
{
    if (rows > 0) {
        l->cursor = last;
        l->high = feed_pos_before(l->high, last) ? last : l->high;
        l->is_young = l->is_young || last.us > pg_us - f->limits.look_behind_us;
    }
    l->has_more = is_full;
    if (!is_full) {
        cursor_keep_up(f, l, pg_us);
    }
}

/* The number of hints that a full pass pushes is bounded, too: the rest is left to the cursor,
 * which waits for room. */
static void full_done(struct feed *f, const struct feed_range *range, bool is_full,
                      struct feed_pos last)
{
    struct feed_lane *l = &f->lanes[range->lane];
    l->is_full_read = !is_full;
    l->full = last;
    if (is_full && f->groups[l->group].held > 2 * f->limits.look_ahead) {
        l->is_full_read = true;
        feed_lane_rewind(l, last.us);
    } else if (is_full && range->lane < f->full_from) {
        f->full_from = range->lane; /* the next page begins with it */
    }
}

static void range_end(struct feed_lane *l)
{
    assert(l->reading > 0);
    if (--l->reading > 0) {
        return;
    }
    l->is_full_open = false;
    if (l->rewind_us != FEED_NEVER_US) {
        int64_t us = l->rewind_us;
        l->rewind_us = FEED_NEVER_US;
        feed_lane_rewind(l, us);
    }
}

void feed_range_done(struct feed *f, const struct feed_range *range, int rows, struct feed_pos last,
                     int64_t pg_us)
{
    struct feed_lane *l = &f->lanes[range->lane];
    bool is_full = rows >= range->rows_max;
    if (range->part == FEED_FULL) {
        full_done(f, range, is_full, last);
        return;
    }
    if (range->part == FEED_BEHIND) {
        behind_done(f, l, is_full, last);
    } else if (range->part == FEED_LAP) {
        feed_lap_done(f, l, rows, is_full, last.us, pg_us);
    } else {
        ahead_done(f, l, rows, is_full, last, pg_us);
    }
    range_end(l);
}

void feed_range_failed(struct feed *f, const struct feed_range *range)
{
    struct feed_lane *l = &f->lanes[range->lane];
    if (range->part != FEED_FULL) {
        l->has_more = true;
        l->rank = range->rank;
        range_end(l);
    }
}

void feed_range_too_long(struct feed *f, const struct feed_range *range, int64_t pg_us)
{
    struct feed_lane *l = &f->lanes[range->lane];
    if (range->part == FEED_AHEAD) {
        cursor_keep_up(f, l, pg_us);
        l->has_more = false;
    } else if (range->part == FEED_LAP) {
        feed_lap_too_long(l);
    } else {
        behind_done(f, l, false, (struct feed_pos){0});
    }
    range_end(l);
}

void feed_pass_took(struct feed *f, int64_t us)
{
    if (us > PASS_US_MAX) {
        f->page_rows = (int)max_i64(f->page_rows / 2, min_i64(PAGE_ROWS_MIN, f->limits.page_rows));
    } else if (us < PASS_US_MAX / 2) {
        f->page_rows = (int)min_i64(f->page_rows + f->page_rows / 4 + 1, f->limits.page_rows);
    }
}

/* ---- room ---- */

void feed_group_counted(struct feed *f, size_t group, int64_t count, int64_t now_us,
                        int64_t every_us)
{
    struct feed_group *g = &f->groups[group];
    g->held = count;
    g->is_counted = true;
    if (count > 0 || g->fed_low_us == FEED_NEVER_US || now_us - g->dry_us < every_us) {
        return;
    }
    int64_t low_us = g->fed_low_us;
    g->fed_low_us = FEED_NEVER_US;
    g->dry_us = now_us;
    for (size_t i = 0; i < f->lane_count; i++) {
        struct feed_lane *l = &f->lanes[i];
        if (l->is_used && l->group == group) {
            l->high = FEED_BEGIN; /* their ranks are lost, too */
            feed_lane_rewind(l, low_us);
        }
    }
}

void feed_group_added(struct feed *f, size_t group, int64_t row_us, bool is_new)
{
    struct feed_group *g = &f->groups[group];
    g->fed_low_us = min_i64(g->fed_low_us, row_us);
    g->held += is_new ? 1 : 0;
    g->fed += is_new ? 1 : 0;
}

static bool wants_count(const struct feed *f, const struct feed_lane *l)
{
    const struct feed_group *g = &f->groups[l->group];
    bool is_serving = feed_group_has_tenants(g) && g->held > 0;
    return l->is_served && (!g->is_counted || (l->has_more && g->held > 0) ||
                            2 * g->held > f->limits.look_ahead || is_serving);
}

size_t feed_counts_wanted(struct feed *f, size_t *ret_groups, size_t max)
{
    size_t count = 0;
    size_t n = 0;
    f->count_call++;
    for (; n < f->lane_count && count < max; n++) {
        const struct feed_lane *l = &f->lanes[(f->count_from + n) % f->lane_count];
        if (wants_count(f, l) && f->groups[l->group].listed != f->count_call) {
            f->groups[l->group].listed = f->count_call;
            ret_groups[count++] = l->group;
        }
    }
    f->count_from = f->lane_count == 0 ? 0 : (f->count_from + n) % f->lane_count;
    return count;
}

void feed_forget_counts(struct feed *f)
{
    for (size_t i = 0; i < f->group_count; i++) {
        f->groups[i].is_counted = false;
    }
}

static bool has_room(const struct feed *f, const struct feed_lane *l)
{
    return !f->groups[l->group].is_counted || group_room(f, &f->groups[l->group]) > 0;
}

bool feed_has_more(const struct feed *f)
{
    for (size_t i = 0; i < f->lane_count; i++) {
        const struct feed_lane *l = &f->lanes[i];
        if (l->has_more && l->is_served && has_room(f, l)) {
            return true;
        }
    }
    return false;
}

bool feed_is_full(const struct feed *f)
{
    for (size_t i = 0; i < f->lane_count; i++) {
        const struct feed_lane *l = &f->lanes[i];
        if (l->has_more && l->is_served && !has_room(f, l)) {
            return true;
        }
    }
    return false;
}

int64_t feed_next_due_us(const struct feed *f)
{
    int64_t us = FEED_NEVER_US;
    for (size_t i = 0; i < f->lane_count; i++) {
        const struct feed_lane *l = &f->lanes[i];
        if (l->is_used && l->is_served && has_room(f, l)) {
            us = min_i64(us, l->next_due_us);
        }
    }
    return us;
}
