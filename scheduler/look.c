/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/look.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/probe.h"
#include "model/hint.h"
#include "store/feed_store.h"

#include <assert.h>
#include <stdio.h>

#define QUERY_CANCELED "57014"

/* What came of a range, kept until its rows are pushed. */
struct range_end {
    int rows;
    struct feed_pos last;
    int64_t next_due_us;
    bool is_cut; /* there was no place for more of its rows: as if the page had ended there */
};

#define CROWDED_QUIET_US (90 * US_PER_S) /* three full passes that found room for all lanes */

struct look {
    struct look_options options;
    bool is_busy;
    int64_t pg_us;    /* PostgreSQL's time … */
    int64_t pg_at_us; /* … at this BOOTTIME */
    struct look_result result;
    struct err why;
    struct complaint crowded; /* lanes that can't be taken */
    struct feed_range ranges[FEED_RANGES_MAX];
    struct range_end ends[FEED_RANGES_MAX];
    size_t range_count;
    struct feed_gap gaps[FEED_GAPS_MAX];
    struct hint hints[HINTS_PUSH_MAX];
    size_t hint_groups[HINTS_PUSH_MAX];
    int64_t hint_ready_us[HINTS_PUSH_MAX];
    size_t hint_count;
};

/* ---- the end ---- */

static void range_done(struct look *l, size_t i)
{
    const struct feed_range *range = &l->ranges[i];
    const struct range_end *end = &l->ends[i];
    if (range->part == FEED_AHEAD) {
        l->options.feed->lanes[range->lane].next_due_us = end->next_due_us;
    }
    feed_range_done(l->options.feed, range, end->is_cut ? range->rows_max : end->rows, end->last,
                    l->pg_us);
}

static void finish(struct look *l, enum look_end end, const struct err *err)
{
    for (size_t i = 0; i < l->range_count; i++) {
        if (end == LOOK_DONE) {
            range_done(l, i);
        } else if (end == LOOK_CUT_OFF) {
            feed_range_too_long(l->options.feed, &l->ranges[i], look_pg_us(l));
        } else {
            feed_range_failed(l->options.feed, &l->ranges[i]);
        }
    }
    l->range_count = 0;
    l->is_busy = false;
    if (complaint_is_quiet(&l->crowded, clock_boot_us(), CROWDED_QUIET_US)) {
        log_recovered("lanes_recovered", &l->crowded);
    }
    l->result.end = end;
    l->result.why = err != NULL ? err->msg : "the hints were not taken";
    struct look_result result = l->result;
    l->options.done(l->options.ctx, &result);
}

/* ---- push ---- */

/* With several groups in one push it isn't known whose were new: at most all of them. */
static void count_pushed(struct look *l, int64_t added)
{
    for (size_t i = 0; i < l->hint_count; i++) {
        if (l->options.remembers) {
            feed_memory_add(&l->options.feed->memory, l->hints[i].id, l->hint_ready_us[i]);
        }
        if (l->options.remembers || added > 0) {
            feed_group_added(l->options.feed, l->hint_groups[i], l->hint_ready_us[i],
                             (int64_t)i < added);
        }
    }
    l->result.pushed = l->hint_count;
    l->result.added = added;
}

static void on_pushed(void *ctx, enum status st, int64_t added)
{
    struct look *l = ctx;
    if (st == STATUS_OK) {
        count_pushed(l, added);
    }
    finish(l, st == STATUS_OK ? LOOK_DONE : LOOK_FAILED, NULL);
}

/* ---- read ---- */

static void take_row(struct look *l, const struct feed_look_row *row)
{
    struct range_end *end = &l->ends[row->range];
    const struct feed_range *range = &l->ranges[row->range];
    end->is_cut = end->is_cut || l->hint_count == HINTS_PUSH_MAX;
    if (end->is_cut) {
        return;
    }
    struct feed_pos at = {.us = row->us, .id = row->id};
    end->rows++;
    end->last = at;
    const struct feed_lane *lane = &l->options.feed->lanes[range->lane];
    struct hint hint = {.id = row->id, .score = hint_score(lane->priority, row->us)};
    if (feed_range_row(l->options.feed, range, at, row->is_available) &&
        look_route(l->options.served, lane->queue, row->name, &hint)) {
        l->hint_groups[l->hint_count] = lane->group;
        l->hint_ready_us[l->hint_count] = row->us;
        l->hints[l->hint_count++] = hint;
    }
}

static void take_lane(struct look *l, const struct feed_look_row *row)
{
    struct err err = {0};
    int64_t now_us = clock_boot_us();
    bool is_served = feed_served_has_queue(l->options.served, row->name);
    enum status st = feed_lane_add(l->options.feed, row->name, row->priority, row->share, is_served,
                                   now_us, &err);
    l->result.lanes++;
    l->result.rest =
        (struct feed_gap){.form = FEED_GAP_REST, .priority = row->priority, .lo = row->share};
    (void)snprintf(l->result.rest.queue, sizeof l->result.rest.queue, "%s", row->name);
    if (st != STATUS_OK && st != STATUS_CONFLICT && complaint_due(&l->crowded, now_us)) {
        log_warn("lanes_crowded", LOG_TEXT("queue", row->name), LOG_TEXT("err", err.msg),
                 LOG_I64("lanes", l->options.feed->order_count),
                 LOG_TEXT("action", "its jobs wait until others are done"));
    }
}

/* Lanes last: they may move the table that the hints' queues point into. */
static void take_lanes(struct look *l, const struct pg_result *rows)
{
    struct feed_look_row row;
    for (int i = 0; i < pg_row_count(rows); i++) {
        feed_look_row(rows, i, &row);
        if (row.part == FEED_LOOK_LANE) {
            take_lane(l, &row);
        }
    }
}

static void take_rows(struct look *l, const struct pg_result *rows)
{
    struct feed_look_row row;
    for (int i = 0; i < pg_row_count(rows); i++) {
        feed_look_row(rows, i, &row);
        if (row.part == FEED_LOOK_NOW) {
            look_set_clock(l, row.us);
        } else if (row.part == FEED_LOOK_DUE) {
            l->ends[row.range].next_due_us = row.us;
        } else if (row.part == FEED_LOOK_ROW) {
            take_row(l, &row);
        }
    }
}

static void on_read(void *ctx, enum status st, const struct pg_result *const *results,
                    const struct err *err)
{
    struct look *l = ctx;
    if (st != STATUS_OK) {
        finish(l, strcmp(err->code, QUERY_CANCELED) == 0 ? LOOK_CUT_OFF : LOOK_FAILED, err);
        return;
    }
    take_rows(l, results[0]);
    probe("S3");
    bool is_pushing = l->hint_count > 0;
    struct err failed = {0};
    if (is_pushing &&
        hints_push(l->options.hints, l->hints, l->hint_count, on_pushed, l, &failed) != STATUS_OK) {
        finish(l, LOOK_FAILED, &failed);
        return;
    }
    take_lanes(l, results[0]);
    if (!is_pushing) {
        finish(l, LOOK_DONE, NULL);
    }
}

/* ---- from outside ---- */

enum status look_begin(struct look *l, struct pg *pg, size_t range_count, size_t gap_count,
                       int64_t timeout_us, struct err *err)
{
    assert(!l->is_busy);
    const struct feed_look_request request = {.ranges = l->ranges,
                                              .range_count = range_count,
                                              .gaps = l->gaps,
                                              .gap_count = gap_count,
                                              .timeout_us = timeout_us};
    l->range_count = range_count;
    l->hint_count = 0;
    l->result = (struct look_result){.end = LOOK_FAILED};
    for (size_t i = 0; i < range_count; i++) {
        l->ends[i] = (struct range_end){.last = l->ranges[i].after, .next_due_us = FEED_NEVER_US};
    }
    enum status st = feed_store_look(pg, l->options.feed, &request, on_read, l, err);
    l->is_busy = st == STATUS_OK;
    for (size_t i = 0; st != STATUS_OK && i < range_count; i++) {
        feed_range_failed(l->options.feed, &l->ranges[i]);
    }
    return st;
}

struct feed_range *look_ranges(struct look *l)
{
    return l->ranges;
}

struct feed_gap *look_gaps(struct look *l)
{
    return l->gaps;
}

int64_t look_pg_us(const struct look *l)
{
    return l->pg_us + (clock_boot_us() - l->pg_at_us);
}

void look_set_clock(struct look *l, int64_t pg_us)
{
    l->pg_us = pg_us;
    l->pg_at_us = clock_boot_us();
}

bool look_route(const struct feed_served *served, const char *queue, const char *kind,
                struct hint *ret_hint)
{
    enum feed_route route = feed_served_route(served, queue, kind);
    ret_hint->queue = queue;
    ret_hint->kind = route == FEED_ROUTE_KIND ? kind : NULL;
    return route != FEED_ROUTE_NONE;
}

enum status look_open(const struct look_options *options, struct look **ret, struct err *err)
{
    struct look *l = calloc(1, sizeof *l);
    if (l == NULL) {
        return err_fail(err, STATUS_NOMEM, "no memory to look at the queue");
    }
    l->options = *options;
    *ret = l;
    return STATUS_OK;
}

void look_close(struct look *l)
{
    free(l);
}
