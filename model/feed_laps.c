/* SPDX-License-Identifier: Apache-2.0
 *
 * A queue with more lanes than there is room for. Its tenants are walked in laps: each lap reads
 * some rows of every tenant from its beginning, so that nothing has to be remembered about a
 * tenant, no tenant is left out, and rows that appear later are found by the next lap. */
#include "base/clock.h"
#include "base/minmax.h"
#include "model/feed.h"

#include <string.h>

#define LANES_MIN 1024 /* a queue with fewer lanes is not the reason why there is no room */
#define PAGE_MAX 512   /* shares per read */
#define EACH_MAX 64    /* rows of one share per lap */
#define ROWS_MAX 4096  /* rows per read */
#define SHARE_US 30    /* cost of looking at one share */
/* Time between the beginnings of two laps, as a multiple of the cost of looking at all shares. */
#define DISTANCE_BUSY 2
#define DISTANCE_IDLE 5 /* if the last lap found nothing new */
#define DISTANCE_MAX_US (5 * US_PER_S)

/* ---- choosing queues ---- */

bool feed_queue_has_laps(const struct feed *f, const char *queue)
{
    size_t at = f->laps > 0 ? feed_lane_place(f, queue, 0, 0) : f->order_count;
    return at < f->order_count && f->lanes[f->order[at]].is_lap &&
           strcmp(f->lanes[f->order[at]].queue, queue) == 0;
}

/* Selects the lanes of a queue that are given up. */
static bool is_lane_of(const struct feed_lane *lane, const void *queue)
{
    return !lane->is_lap && strcmp(lane->queue, queue) == 0;
}

static bool is_lap_of(const struct feed_lane *lane, const void *queue)
{
    return lane->is_lap && strcmp(lane->queue, queue) == 0;
}

static size_t largest_queue(const struct feed *f, char ret_queue[JOB_NAME_MAX + 1])
{
    size_t most = 0;
    size_t count = 0;
    for (size_t i = 0; i < f->order_count; i++) {
        const struct feed_lane *l = &f->lanes[f->order[i]];
        bool is_same = i > 0 && strcmp(f->lanes[f->order[i - 1]].queue, l->queue) == 0;
        count = is_same ? count + 1 : 1;
        if (count > most) {
            most = count;
            memcpy(ret_queue, l->queue, sizeof l->queue);
        }
    }
    return most;
}

/* Drops the old lanes last, so that the groups, and the known numbers of their hints, stay. */
enum status feed_laps_begin(struct feed *f, char ret_queue[JOB_NAME_MAX + 1], struct err *err)
{
    f->is_crowded = false;
    if (largest_queue(f, ret_queue) < LANES_MIN) {
        return err_fail(err, STATUS_NOT_FOUND, "no queue has %d lanes", LANES_MIN);
    }
    for (int priority = 0; priority <= JOB_PRIORITY_MAX; priority++) {
        struct feed_lane *lane = NULL;
        enum status st = feed_lane_put(f, ret_queue, priority, FEED_SHARES, INT64_MAX, &lane, err);
        if (st != STATUS_OK) {
            feed_lanes_drop(f, is_lap_of, ret_queue);
            return st;
        }
        lane->is_lap = true;
        lane->has_more = false;
        lane->lap = (struct feed_lap){.share = -1, .last_shares = -1, .page = PAGE_MAX};
    }
    feed_lanes_drop(f, is_lane_of, ret_queue);
    f->laps += JOB_PRIORITY_MAX + 1;
    return STATUS_OK;
}

/* Returns how many lanes the queue of this lap would have; −1 = not all of its laps are
 * complete. */
static int lanes_wanted(const struct feed *f, size_t first)
{
    int lanes = 0;
    for (size_t i = first; i < f->order_count && i <= first + JOB_PRIORITY_MAX; i++) {
        const struct feed_lap *lap = &f->lanes[f->order[i]].lap;
        if (lap->last_shares < 0) {
            return -1;
        }
        lanes += lap->last_shares;
    }
    return lanes;
}

bool feed_laps_end(struct feed *f, char ret_queue[JOB_NAME_MAX + 1])
{
    for (size_t i = 0; f->laps > 0 && i < f->order_count; i++) {
        const struct feed_lane *l = &f->lanes[f->order[i]];
        if (!l->is_lap || l->priority != 0) {
            continue;
        }
        int lanes = lanes_wanted(f, i);
        if (lanes >= 0 && f->order_count + (size_t)lanes <= FEED_LANES_MAX / 2) {
            memcpy(ret_queue, l->queue, sizeof l->queue);
            feed_lanes_drop(f, is_lap_of, ret_queue);
            f->laps -= JOB_PRIORITY_MAX + 1;
            return true;
        }
    }
    return false;
}

int64_t feed_lanes_known(const struct feed *f)
{
    int64_t lanes = 0;
    for (size_t i = 0; i < f->order_count; i++) {
        const struct feed_lane *l = &f->lanes[f->order[i]];
        lanes += l->is_lap ? max_i64(l->lap.last_shares, l->lap.shares) : 1;
    }
    return lanes;
}

int64_t feed_laps_longest(const struct feed *f, const char **ret_queue)
{
    int64_t longest_us = -1;
    for (size_t i = 0; f->laps > 0 && i < f->order_count; i++) {
        const struct feed_lane *l = &f->lanes[f->order[i]];
        int64_t so_far_us = l->has_more ? f->pg_us - l->lap.begun_us : 0;
        int64_t us = max_i64(l->lap.took_us, so_far_us);
        if (l->is_lap && us > longest_us) {
            longest_us = us;
            *ret_queue = l->queue;
        }
    }
    return max_i64(longest_us, 0);
}

/* ---- one lap ---- */

/* The last condition prevents a clock that was set back from delaying a lap. */
bool feed_lap_is_due(const struct feed_lane *l, int64_t pg_us)
{
    return l->has_more || pg_us >= l->lap.next_us || l->lap.next_us - pg_us > DISTANCE_MAX_US;
}

static void lap_begin(const struct feed *f, struct feed_lane *l, int64_t pg_us)
{
    struct feed_lap *lap = &l->lap;
    lap->share = -1;
    lap->shares = 0;
    lap->busy = 0;
    lap->is_deep = lap->wants_deep;
    lap->wants_deep = false;
    lap->fed = f->groups[l->group].fed;
    lap->begun_us = pg_us;
    l->has_more = true;
}

/* Returns how many rows to read of each tenant, so that the tenants that have some fill the room
 * together. */
static int each_max(const struct feed *f, const struct feed_lap *lap)
{
    int64_t busy = lap->last_shares < 0 ? f->limits.look_ahead : max_i64(lap->last_busy, 1);
    return (int)max_i64(min_i64(f->limits.look_ahead / busy, EACH_MAX), 1);
}

struct feed_range feed_lap_range(struct feed *f, size_t lane, int64_t room, int64_t pg_us)
{
    struct feed_lane *l = &f->lanes[lane];
    struct feed_lap *lap = &l->lap;
    if (!l->has_more) {
        lap_begin(f, l, pg_us);
    }
    int each = lap->is_skipping ? 0 : each_max(f, lap);
    int64_t shares = min_i64(ROWS_MAX / max_i64(each, 1), lap->is_skipping ? 1 : lap->page);
    return (struct feed_range){.lane = lane,
                               .part = FEED_LAP,
                               .after = {.us = lap->share},
                               .rows_max = (int)max_i64(min_i64(shares, room), 1),
                               .each_max = each};
}

void feed_lap_share(struct feed *f, const struct feed_range *range, bool has_rows)
{
    struct feed_lane *l = &f->lanes[range->lane];
    l->rank = 0; /* its rows get ranks from the one being served on, as in a full pass */
    l->lap.busy += has_rows;
}

void feed_lap_done(struct feed *f, struct feed_lane *l, int shares, bool is_full, int64_t share,
                   int64_t pg_us)
{
    struct feed_lap *lap = &l->lap;
    lap->share = (int)share;
    lap->shares += shares;
    lap->page = (int)min_i64(2 * (int64_t)lap->page, PAGE_MAX);
    lap->is_skipping = false;
    l->has_more = is_full;
    if (is_full) {
        return;
    }
    bool is_idle = f->groups[l->group].fed == lap->fed;
    int64_t cost_us = (int64_t)lap->shares * SHARE_US;
    int64_t distance_us = cost_us * (is_idle ? DISTANCE_IDLE : DISTANCE_BUSY);
    lap->next_us = lap->begun_us + min_i64(distance_us, DISTANCE_MAX_US);
    lap->took_us = max_i64(pg_us - lap->begun_us, 0);
    lap->last_shares = lap->shares;
    lap->last_busy = lap->busy;
}

/* Repeats a read that was cut off with fewer shares; if a single one takes too long, it is left out
 * of this lap. */
void feed_lap_too_long(struct feed_lane *l)
{
    l->lap.is_skipping = l->lap.page == 1;
    l->lap.page = (int)max_i64(l->lap.page / 2, 1);
}
