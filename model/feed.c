/* SPDX-License-Identifier: Apache-2.0 */
#include "model/feed.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LOOK_ROWS_MIN 16 /* a lane that seems empty is read at least this far */
#define PAGE_ROWS_MIN 64
#define PASS_US_MAX (20 * INT64_C(1000))

static int64_t min_i64(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t max_i64(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static bool pos_before(struct feed_pos a, struct feed_pos b)
{
    return a.us < b.us || (a.us == b.us && a.id < b.id);
}

void feed_init(struct feed *f, const struct feed_limits *limits)
{
    *f = (struct feed){.limits = *limits, .page_rows = limits->page_rows, .cap_us = FEED_NEVER_US};
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

/* ---- lanes and groups ---- */

static enum status group_of(struct feed *f, const char *queue, int priority, size_t *ret,
                            struct err *err)
{
    for (size_t i = 0; i < f->group_count; i++) {
        if (f->groups[i].priority == priority && strcmp(f->groups[i].queue, queue) == 0) {
            *ret = i;
            return STATUS_OK;
        }
    }
    if (f->group_count == f->group_cap) {
        size_t cap = f->group_cap == 0 ? 16 : 2 * f->group_cap;
        struct feed_group *groups = realloc(f->groups, cap * sizeof groups[0]);
        if (groups == NULL) {
            return err_fail(err, STATUS_NOMEM, "no memory for %zu groups of lanes", cap);
        }
        f->groups = groups;
        f->group_cap = cap;
    }
    struct feed_group *g = &f->groups[f->group_count];
    *g = (struct feed_group){.priority = priority, .fed_low_us = FEED_NEVER_US};
    memcpy(g->queue, queue, strlen(queue) + 1);
    *ret = f->group_count++;
    return STATUS_OK;
}

static enum status lane_room(struct feed *f, struct err *err)
{
    if (f->lane_count == FEED_LANES_MAX) {
        return err_fail(err, STATUS_LIMIT, "more than %d lanes", FEED_LANES_MAX);
    }
    if (f->lane_count == f->lane_cap) {
        size_t cap = f->lane_cap == 0 ? 16 : 2 * f->lane_cap;
        struct feed_lane *lanes = realloc(f->lanes, cap * sizeof lanes[0]);
        if (lanes == NULL) {
            return err_fail(err, STATUS_NOMEM, "no memory for %zu lanes", cap);
        }
        f->lanes = lanes;
        size_t *order = realloc(f->order, cap * sizeof order[0]);
        if (order == NULL) {
            return err_fail(err, STATUS_NOMEM, "no memory for %zu lanes", cap);
        }
        f->order = order;
        f->lane_cap = cap;
    }
    return STATUS_OK;
}

static int lane_compare(const struct feed_lane *a, const struct feed_lane *b)
{
    int by_queue = strcmp(a->queue, b->queue);
    if (by_queue != 0) {
        return by_queue;
    }
    return a->priority != b->priority ? a->priority - b->priority : a->share - b->share;
}

/* Where the lane is in `order`, or would have to be. */
static size_t order_find(const struct feed *f, const struct feed_lane *wanted)
{
    size_t low = 0;
    size_t high = f->lane_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (lane_compare(&f->lanes[f->order[middle]], wanted) < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

struct feed_lane *feed_lane_find(struct feed *f, const char *queue, int priority, int share)
{
    struct feed_lane wanted = {.priority = priority, .share = share};
    if (strlen(queue) >= sizeof wanted.queue) {
        return NULL;
    }
    memcpy(wanted.queue, queue, strlen(queue) + 1);
    size_t at = order_find(f, &wanted);
    if (at == f->lane_count || lane_compare(&f->lanes[f->order[at]], &wanted) != 0) {
        return NULL;
    }
    return &f->lanes[f->order[at]];
}

static void order_insert(struct feed *f, size_t lane)
{
    size_t at = f->lane_count - 1; /* the lane is counted already */
    while (at > 0 && lane_compare(&f->lanes[f->order[at - 1]], &f->lanes[lane]) > 0) {
        f->order[at] = f->order[at - 1];
        at--;
    }
    f->order[at] = lane;
}

enum status feed_lane_add(struct feed *f, const char *queue, int priority, int share,
                          int64_t saved_us, int64_t pg_us, struct err *err)
{
    if (feed_lane_find(f, queue, priority, share) != NULL) {
        return err_fail(err, STATUS_CONFLICT, "lane %s/%d/%d is known", queue, priority, share);
    }
    enum status st = job_queue_check(queue, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = lane_room(f, err);
    if (st != STATUS_OK) {
        return st;
    }
    size_t group = 0;
    st = group_of(f, queue, priority, &group, err);
    if (st != STATUS_OK) {
        return st;
    }
    int64_t mark_us = max_i64(saved_us, 0);
    struct feed_lane *l = &f->lanes[f->lane_count++];
    *l = (struct feed_lane){.priority = priority,
                            .share = share,
                            .group = group,
                            .cursor = {.us = mark_us},
                            .behind = {.us = pg_us - f->limits.look_behind_us},
                            .mark_us = mark_us,
                            .saved_us = saved_us,
                            .rewind_us = FEED_NEVER_US,
                            .next_due_us = FEED_NEVER_US,
                            .has_more = true,
                            .seeks_mark = true};
    memcpy(l->queue, queue, strlen(queue) + 1);
    order_insert(f, f->lane_count - 1);
    return STATUS_OK;
}

/* ---- going back ---- */

void feed_lane_rewind(struct feed_lane *lane, int64_t us)
{
    if (lane->reading > 0) {
        lane->rewind_us = min_i64(lane->rewind_us, us);
        return;
    }
    struct feed_pos to = {.us = max_i64(us, lane->mark_us)};
    if (us <= lane->mark_us) {
        lane->seeks_mark = true;
    }
    if (pos_before(to, lane->cursor)) {
        lane->cursor = to;
    }
    lane->has_more = true;
}

void feed_rewind(struct feed *f, const char *queue, int64_t us)
{
    for (size_t i = 0; i < f->lane_count; i++) {
        if (queue == NULL || strcmp(f->lanes[i].queue, queue) == 0) {
            feed_lane_rewind(&f->lanes[i], us);
        }
    }
}

void feed_lane_saved(struct feed_lane *lane, int64_t saved_us)
{
    bool is_lowered = saved_us < (lane->saved_us >= 0 ? lane->saved_us : lane->mark_us);
    lane->saved_us = saved_us;
    if (is_lowered) {
        lane->mark_us = min_i64(lane->mark_us, saved_us);
        feed_lane_rewind(lane, 0);
    }
}

/* Late commits may still put rows before a mark that is younger than the look-behind, or than the
 * beginning of a transaction that is still writing (cap_us) or has ended during this very pass. */
static void mark_raise(struct feed *f, struct feed_lane *lane, int64_t to_us, int64_t pg_us)
{
    int64_t us = min_i64(to_us, min_i64(pg_us - f->limits.look_behind_us, f->cap_us));
    lane->mark_us = max_i64(lane->mark_us, min_i64(us, lane->rewind_us));
    lane->seeks_mark = false;
}

/* ---- the plan of a pass ---- */

static int64_t group_room(const struct feed *f, const struct feed_group *g)
{
    return g->is_counted ? max_i64(f->limits.look_ahead - g->held, 0) : 0;
}

static bool lane_wants_look(const struct feed *f, const struct feed_lane *l, int64_t now_us,
                            int64_t pg_us, bool woken)
{
    if (l->reading > 0 || group_room(f, &f->groups[l->group]) == 0) {
        return false;
    }
    return l->has_more || woken || l->next_due_us <= pg_us ||
           now_us - l->looked_us >= f->limits.look_every_us;
}

/* Between rounds the look-behind keeps up with the clock while the cursor reads old rows: a backlog
 * has no late neighbours. */
static bool lane_wants_behind(const struct feed *f, struct feed_lane *l, int64_t pg_us)
{
    if (l->reading > 0) {
        return false;
    }
    if (!l->is_young) {
        l->behind = (struct feed_pos){.us = pg_us - f->limits.look_behind_us};
        return false;
    }
    return pos_before(l->behind, l->cursor);
}

struct demand {
    int busy; /* lanes with more */
    int idle; /* lanes that are only looked at */
    int behind;
};

static struct demand demand_of(struct feed *f, int64_t now_us, int64_t pg_us, bool woken)
{
    struct demand d = {0};
    for (size_t i = 0; i < f->group_count; i++) {
        f->groups[i].wanting = 0;
    }
    for (size_t i = 0; i < f->lane_count; i++) {
        struct feed_lane *l = &f->lanes[i];
        if (lane_wants_look(f, l, now_us, pg_us, woken)) {
            f->groups[l->group].wanting++;
            d.busy += l->has_more;
            d.idle += !l->has_more;
        }
        d.behind += lane_wants_behind(f, l, pg_us);
    }
    return d;
}

/* A lane with more gets its part of the page, and of the room that its group has left. */
static int ahead_rows(const struct feed *f, const struct feed_lane *l, const struct demand *d)
{
    const struct feed_group *g = &f->groups[l->group];
    assert(d->busy + d->idle > 0 && g->wanting > 0); /* it was counted itself */
    int64_t rows = f->page_rows / (l->has_more ? d->busy : d->busy + d->idle);
    rows = max_i64(rows, LOOK_ROWS_MIN);
    return (int)max_i64(min_i64(rows, group_room(f, g) / g->wanting), 1);
}

static void plan_lane(struct feed *f, size_t at, const struct demand *d, bool looks, bool behind,
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
                                .rows_max = rows > LOOK_ROWS_MIN ? rows : LOOK_ROWS_MIN};
    }
    if (looks) {
        ret[(*count)++] = (struct feed_range){.lane = at,
                                              .part = FEED_AHEAD,
                                              .after = l->cursor,
                                              .to = {.us = FEED_NEVER_US},
                                              .rows_max = ahead_rows(f, l, d)};
    }
}

size_t feed_plan(struct feed *f, int64_t now_us, int64_t pg_us, bool woken,
                 struct feed_range *ret_ranges, size_t max)
{
    f->pg_us = pg_us;
    struct demand d = demand_of(f, now_us, pg_us, woken);
    size_t count = 0;
    size_t n = 0;
    for (; n < f->lane_count && count + 2 <= max; n++) {
        size_t at = (f->turn + n) % f->lane_count;
        struct feed_lane *l = &f->lanes[at];
        bool looks = lane_wants_look(f, l, now_us, pg_us, woken);
        bool behind = lane_wants_behind(f, l, pg_us);
        plan_lane(f, at, &d, looks, behind, pg_us, ret_ranges, &count);
        if (looks) {
            l->looked_us = now_us;
        }
        l->reading = (int)looks + (int)behind;
    }
    f->turn = f->lane_count == 0 ? 0 : (f->turn + (n < f->lane_count ? n : 1)) % f->lane_count;
    return count;
}

/* ---- what came ---- */

bool feed_range_row(struct feed *f, const struct feed_range *range, struct feed_pos row,
                    bool is_available)
{
    struct feed_lane *l = &f->lanes[range->lane];
    if (!is_available) {
        return false;
    }
    if (range->part == FEED_BEHIND) {
        return !feed_memory_has(&f->memory, row.id, row.us);
    }
    if (l->seeks_mark) {
        mark_raise(f, l, row.us, f->pg_us);
    }
    return true;
}

static void behind_done(struct feed *f, struct feed_lane *l, bool is_full, struct feed_pos last)
{
    if (is_full) {
        l->behind = last;
        return;
    }
    l->behind = (struct feed_pos){.us = l->behind_since_us - f->limits.look_behind_us};
    l->behind_since_us = 0;
    l->is_young = pos_before(l->behind, l->cursor);
}

/* Past what was walked and gave nothing: entries of a transaction that has not committed, or dead
 * ones, would be walked again at each look. What commits behind here was written before the
 * look-behind by somebody whose end rewinds. */
static void cursor_keep_up(const struct feed *f, struct feed_lane *l, int64_t pg_us)
{
    struct feed_pos to = {.us = pg_us - f->limits.look_behind_us};
    if (pos_before(l->cursor, to)) {
        l->cursor = to;
    }
}

static void ahead_done(struct feed *f, struct feed_lane *l, bool is_full, struct feed_pos last,
                       int64_t pg_us)
{
    if (last.us > 0) {
        l->cursor = last;
        l->is_young = l->is_young || last.us > pg_us - f->limits.look_behind_us;
    }
    l->has_more = is_full;
    if (is_full) {
        return;
    }
    cursor_keep_up(f, l, pg_us);
    if (l->seeks_mark) {
        mark_raise(f, l, pg_us, pg_us);
    }
}

static void range_end(struct feed_lane *l)
{
    assert(l->reading > 0);
    if (--l->reading == 0 && l->rewind_us != FEED_NEVER_US) {
        int64_t us = l->rewind_us;
        l->rewind_us = FEED_NEVER_US;
        feed_lane_rewind(l, us);
    }
}

void feed_range_done(struct feed *f, const struct feed_range *range, int rows, struct feed_pos last,
                     int64_t pg_us)
{
    struct feed_lane *l = &f->lanes[range->lane];
    if (range->part == FEED_BEHIND) {
        behind_done(f, l, rows >= range->rows_max, last);
    } else {
        ahead_done(f, l, rows >= range->rows_max, last, pg_us);
    }
    range_end(l);
}

void feed_range_failed(struct feed *f, const struct feed_range *range)
{
    struct feed_lane *l = &f->lanes[range->lane];
    l->has_more = true;
    range_end(l);
}

void feed_range_too_long(struct feed *f, const struct feed_range *range, int64_t pg_us)
{
    struct feed_lane *l = &f->lanes[range->lane];
    if (range->part == FEED_AHEAD) {
        cursor_keep_up(f, l, pg_us);
        l->has_more = false;
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
        if (f->lanes[i].group == group) {
            feed_lane_rewind(&f->lanes[i], low_us);
        }
    }
}

void feed_group_added(struct feed *f, size_t group, int64_t row_us, bool is_new)
{
    struct feed_group *g = &f->groups[group];
    g->fed_low_us = min_i64(g->fed_low_us, row_us);
    g->held += is_new ? 1 : 0;
}

size_t feed_counts_wanted(const struct feed *f, size_t *ret_groups, size_t max)
{
    size_t count = 0;
    for (size_t i = 0; i < f->lane_count && count < max; i++) {
        size_t at = f->lanes[i].group;
        const struct feed_group *g = &f->groups[at];
        bool is_wanted = !g->is_counted || (f->lanes[i].has_more && g->held > 0) ||
                         2 * g->held > f->limits.look_ahead;
        bool is_listed = false;
        for (size_t k = 0; k < count; k++) {
            is_listed = is_listed || ret_groups[k] == at;
        }
        if (is_wanted && !is_listed) {
            ret_groups[count++] = at;
        }
    }
    return count;
}

void feed_forget_counts(struct feed *f)
{
    for (size_t i = 0; i < f->group_count; i++) {
        f->groups[i].is_counted = false;
    }
}

bool feed_has_more(const struct feed *f)
{
    for (size_t i = 0; i < f->lane_count; i++) {
        const struct feed_group *g = &f->groups[f->lanes[i].group];
        if (f->lanes[i].has_more && (!g->is_counted || group_room(f, g) > 0)) {
            return true;
        }
    }
    return false;
}

bool feed_is_full(const struct feed *f)
{
    for (size_t i = 0; i < f->lane_count; i++) {
        const struct feed_group *g = &f->groups[f->lanes[i].group];
        if (f->lanes[i].has_more && g->is_counted && group_room(f, g) == 0) {
            return true;
        }
    }
    return false;
}

int64_t feed_next_due_us(const struct feed *f)
{
    int64_t us = FEED_NEVER_US;
    for (size_t i = 0; i < f->lane_count; i++) {
        us = min_i64(us, f->lanes[i].next_due_us);
    }
    return us;
}
