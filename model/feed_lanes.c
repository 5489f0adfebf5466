/* SPDX-License-Identifier: Apache-2.0
 *
 * The tables of lanes and of their groups. Entries don't move, because ranges and counts in flight
 * refer to them by index. */
#include "base/cleanup.h"
#include "model/feed.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define PLACES_SPARE 64

static int lane_compare(const struct feed_lane *a, const struct feed_lane *b)
{
    int by_queue = strcmp(a->queue, b->queue);
    if (by_queue != 0) {
        return by_queue;
    }
    return a->priority != b->priority ? a->priority - b->priority : a->share - b->share;
}

/* Returns the index in `order` of the lane, or the index where it is to be inserted. */
static size_t order_find(const struct feed *f, const struct feed_lane *wanted)
{
    size_t low = 0;
    size_t high = f->order_count;
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

/* Makes a lane to search for; false: no queue can have that name. */
static bool lane_name(struct feed_lane *ret, const char *queue, int priority, int share)
{
    *ret = (struct feed_lane){.priority = priority, .share = share};
    size_t len = strlen(queue);
    if (len >= sizeof ret->queue) {
        return false;
    }
    memcpy(ret->queue, queue, len + 1);
    return true;
}

struct feed_lane *feed_lane_find(struct feed *f, const char *queue, int priority, int share)
{
    struct feed_lane wanted;
    if (!lane_name(&wanted, queue, priority, share)) {
        return NULL;
    }
    size_t at = order_find(f, &wanted);
    if (at == f->order_count || lane_compare(&f->lanes[f->order[at]], &wanted) != 0) {
        return NULL;
    }
    return &f->lanes[f->order[at]];
}

static void *grown(void *list, size_t item, size_t *cap, struct err *err)
{
    size_t next = *cap == 0 ? 16 : 2 * *cap;
    void *bigger = realloc(list, next * item);
    if (bigger == NULL) {
        err_set(err, STATUS_NOMEM, 0, "no memory for %zu lanes", next);
        return NULL;
    }
    *cap = next;
    return bigger;
}

/* Finds an entry in the table of groups: a free one, or the next. */
static enum status group_new(struct feed *f, const struct feed_lane *lane, size_t *ret,
                             struct err *err)
{
    size_t at = f->group_count;
    if (f->groups_used < f->group_count) {
        for (at = 0; f->groups[at].lanes > 0; at++) {
        }
    }
    if (at == f->group_cap) {
        struct feed_group *groups = grown(f->groups, sizeof groups[0], &f->group_cap, err);
        if (groups == NULL) {
            return STATUS_NOMEM;
        }
        f->groups = groups;
    }
    f->group_count += at == f->group_count;
    f->groups_used++;
    struct feed_group *g = &f->groups[at];
    *g = (struct feed_group){.priority = lane->priority, .fed_low_us = FEED_NEVER_US};
    memcpy(g->queue, lane->queue, sizeof g->queue);
    *ret = at;
    return STATUS_OK;
}

/* Finds the lane's group. Lanes of one group are adjacent in `order`; `at` is where this lane will
 * be. */
static enum status group_of(struct feed *f, const struct feed_lane *lane, size_t at, size_t *ret,
                            struct err *err)
{
    const size_t near[] = {at, at - 1};
    for (size_t i = 0; i < ARRAY_COUNT(near); i++) {
        const struct feed_lane *l = near[i] < f->order_count ? &f->lanes[f->order[near[i]]] : NULL;
        if (l != NULL && l->priority == lane->priority && strcmp(l->queue, lane->queue) == 0) {
            *ret = l->group;
            return STATUS_OK;
        }
    }
    return group_new(f, lane, ret, err);
}

/* Finds an entry in the table of lanes, and makes room for one more in `order`. */
static enum status lane_room(struct feed *f, size_t *ret, struct err *err)
{
    size_t at = f->lane_count;
    if (f->order_count < f->lane_count) {
        for (at = 0; f->lanes[at].is_used; at++) {
        }
    }
    if (at == f->lane_cap) {
        size_t order_cap = f->lane_cap;
        size_t *order = grown(f->order, sizeof order[0], &order_cap, err);
        if (order == NULL) {
            return STATUS_NOMEM;
        }
        f->order = order;
        struct feed_lane *lanes = grown(f->lanes, sizeof lanes[0], &f->lane_cap, err);
        if (lanes == NULL) {
            return STATUS_NOMEM;
        }
        f->lanes = lanes;
    }
    *ret = at;
    return STATUS_OK;
}

size_t feed_lane_place(const struct feed *f, const char *queue, int priority, int share)
{
    struct feed_lane wanted;
    return lane_name(&wanted, queue, priority, share) ? order_find(f, &wanted) : f->order_count;
}

enum status feed_lane_put(struct feed *f, const char *queue, int priority, int share,
                          int64_t now_us, struct feed_lane **ret, struct err *err)
{
    size_t place = 0;
    enum status st = lane_room(f, &place, err);
    if (st != STATUS_OK) {
        return st;
    }
    struct feed_lane lane;
    bool is_named = lane_name(&lane, queue, priority, share);
    assert(is_named); /* the name was checked before */
    size_t at = order_find(f, &lane);
    st = group_of(f, &lane, at, &lane.group, err);
    if (st != STATUS_OK) {
        return st;
    }
    f->groups[lane.group].lanes++;
    feed_group_joined(f, lane.group, share);
    lane.high = FEED_BEGIN;
    lane.cursor = FEED_BEGIN;
    lane.behind = FEED_BEGIN;
    lane.rewind_us = FEED_NEVER_US;
    lane.next_due_us = FEED_NEVER_US;
    lane.seen_us = now_us;
    lane.is_full_read = true; /* a full pass in progress has nothing to read behind its cursor */
    lane.has_more = true;
    lane.is_served = true;
    lane.is_used = true;
    memmove(&f->order[at + 1], &f->order[at], (f->order_count - at) * sizeof f->order[0]);
    f->order[at] = place;
    f->order_count++;
    f->lane_count += place == f->lane_count;
    f->lanes[place] = lane;
    *ret = &f->lanes[place];
    return STATUS_OK;
}

enum status feed_lane_add(struct feed *f, const char *queue, int priority, int share,
                          int64_t now_us, struct err *err)
{
    struct feed_lane *lane = feed_lane_find(f, queue, priority, share);
    if (lane != NULL) {
        lane->seen_us = now_us;
    }
    if (lane != NULL || feed_queue_has_laps(f, queue)) {
        return err_fail(err, STATUS_CONFLICT, "lane %s/%d/%d is known", queue, priority, share);
    }
    enum status st = job_queue_check(queue, err);
    if (st != STATUS_OK) {
        return st;
    }
    if (f->order_count >= FEED_LANES_MAX) {
        f->is_crowded = true;
        return err_fail(err, STATUS_LIMIT, "more than %d lanes", FEED_LANES_MAX);
    }
    return feed_lane_put(f, queue, priority, share, now_us, &lane, err);
}

/* Every pass looks at all entries: if most are free, the others are moved together. If memory runs
 * out, they stay where they are. */
static void lanes_compact(struct feed *f)
{
    size_t *moved = NULL;
    if (f->lane_count > 2 * f->order_count + PLACES_SPARE) {
        moved = malloc(f->lane_count * sizeof moved[0]);
    }
    if (moved == NULL) {
        return;
    }
    size_t kept = 0;
    for (size_t i = 0; i < f->lane_count; i++) {
        if (f->lanes[i].is_used) {
            moved[i] = kept;
            f->lanes[kept++] = f->lanes[i];
        }
    }
    for (size_t i = 0; i < f->order_count; i++) {
        f->order[i] = moved[f->order[i]];
    }
    free(moved);
    f->lane_count = kept;
    f->plan_from = f->count_from = f->full_from = 0;
}

void feed_lanes_drop(struct feed *f, feed_lane_test *is_gone, const void *ctx)
{
    size_t kept = 0;
    for (size_t i = 0; i < f->order_count; i++) {
        struct feed_lane *l = &f->lanes[f->order[i]];
        if (!is_gone(l, ctx)) {
            f->order[kept++] = f->order[i];
            continue;
        }
        f->groups_used -= --f->groups[l->group].lanes == 0;
        feed_group_left(f, l->group, l->share);
        *l = (struct feed_lane){.is_used = false};
    }
    f->order_count = kept;
    lanes_compact(f);
}

static bool is_unseen(const struct feed_lane *lane, const void *before_us)
{
    return lane->seen_us < *(const int64_t *)before_us && lane->reading == 0 && !lane->is_lap;
}

void feed_lanes_forget(struct feed *f, int64_t before_us)
{
    feed_lanes_drop(f, is_unseen, &before_us);
}

bool feed_serve(struct feed *f, const struct feed_served *old, const struct feed_served *served)
{
    bool is_changed = feed_served_routes(old) != feed_served_routes(served);
    const char *queue = "";
    bool differs = false;
    bool is_served = false;
    for (size_t i = 0; i < f->order_count; i++) {
        struct feed_lane *lane = &f->lanes[f->order[i]];
        if (strcmp(queue, lane->queue) != 0) {
            queue = lane->queue;
            differs = is_changed && feed_served_differs(old, served, queue);
            is_served = feed_served_has_queue(served, queue);
        }
        if (differs || lane->is_served != is_served) {
            feed_lane_serve(lane, is_served);
        }
    }
    return is_changed;
}

void feed_lane_serve(struct feed_lane *lane, bool is_served)
{
    lane->has_more = lane->has_more || (is_served && !lane->is_served);
    lane->is_served = is_served;
}
