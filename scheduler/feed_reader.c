/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/feed_reader.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/probe.h"
#include "store/feed_store.h"

#include <assert.h>
#include <stdio.h>

#define QUERY_CANCELED "57014"

/* The result of a range, kept until its rows are pushed. */
struct range_end {
    int rows;
    struct feed_pos last;
    int64_t next_due_us;
    bool is_cut; /* no room for more of its rows: handled as if the page had ended here */
};

#define CROWDED_QUIET_US (90 * US_PER_S) /* three full passes that had room for all lanes */

struct feed_reader {
    struct feed_reader_options options;
    bool is_busy;
    int64_t pg_us;    /* PostgreSQL's time at pg_at_us */
    int64_t pg_at_us; /* BOOTTIME */
    struct feed_read_result result;
    struct err why;
    struct complaint crowded; /* there is no room for more lanes */
    struct feed_range ranges[FEED_RANGES_MAX];
    struct range_end ends[FEED_RANGES_MAX];
    size_t range_count;
    struct feed_gap gaps[FEED_GAPS_MAX];
    struct hint hints[HINTS_PUSH_MAX];
    size_t hint_groups[HINTS_PUSH_MAX];
    int64_t hint_ready_us[HINTS_PUSH_MAX];
    size_t hint_count;
};

/* ---- end of a read ---- */

static void range_done(struct feed_reader *r, size_t i)
{
    const struct feed_range *range = &r->ranges[i];
    const struct range_end *end = &r->ends[i];
    if (range->part == FEED_AHEAD) {
        r->options.feed->lanes[range->lane].next_due_us = end->next_due_us;
    }
    feed_range_done(r->options.feed, range, end->is_cut ? range->rows_max : end->rows, end->last,
                    r->pg_us);
}

static void finish(struct feed_reader *r, enum feed_read_end end, const struct err *err)
{
    for (size_t i = 0; i < r->range_count; i++) {
        if (end == FEED_READ_DONE) {
            range_done(r, i);
        } else if (end == FEED_READ_CUT_OFF) {
            feed_range_too_long(r->options.feed, &r->ranges[i], feed_reader_pg_us(r));
        } else {
            feed_range_failed(r->options.feed, &r->ranges[i]);
        }
    }
    r->range_count = 0;
    r->is_busy = false;
    if (complaint_is_quiet(&r->crowded, clock_boot_us(), CROWDED_QUIET_US)) {
        log_recovered("lanes_recovered", &r->crowded);
    }
    r->result.end = end;
    r->result.why = err != NULL ? err->msg : "the hints were not taken";
    struct feed_read_result result = r->result;
    r->options.done(r->options.ctx, &result);
}

/* ---- push ---- */

/* The reply to a push does not say which group the new hints belong to: assume the first ones. */
static void count_pushed(struct feed_reader *r, int64_t added)
{
    for (size_t i = 0; i < r->hint_count; i++) {
        if (r->options.remembers) {
            feed_memory_add(&r->options.feed->memory, r->hints[i].id, r->hint_ready_us[i]);
        }
        if (r->options.remembers || added > 0) {
            feed_group_added(r->options.feed, r->hint_groups[i], r->hint_ready_us[i],
                             (int64_t)i < added);
        }
    }
    r->result.pushed = r->hint_count;
    r->result.added = added;
}

static void on_pushed(void *ctx, enum status st, int64_t added)
{
    struct feed_reader *r = ctx;
    if (st == STATUS_OK) {
        count_pushed(r, added);
    }
    finish(r, st == STATUS_OK ? FEED_READ_DONE : FEED_READ_FAILED, NULL);
}

/* ---- read ---- */

static void take_hint(struct feed_reader *r, const struct feed_range *range, struct feed_pos at,
                      const char *kind)
{
    const struct feed_lane *lane = &r->options.feed->lanes[range->lane];
    struct hint hint = {.id = at.id};
    if (feed_reader_route(r->options.served, lane->queue, kind, &hint)) {
        hint.score = feed_row_score(r->options.feed, range, at);
        r->hint_groups[r->hint_count] = lane->group;
        r->hint_ready_us[r->hint_count] = at.us;
        r->hints[r->hint_count++] = hint;
    }
}

static void take_row(struct feed_reader *r, const struct feed_read_row *row)
{
    struct range_end *end = &r->ends[row->range];
    const struct feed_range *range = &r->ranges[row->range];
    end->is_cut = end->is_cut || r->hint_count == HINTS_PUSH_MAX;
    if (end->is_cut) {
        return;
    }
    struct feed_pos at = {.us = row->us, .id = row->id};
    end->rows++;
    end->last = at;
    if (feed_range_row(r->options.feed, range, at, row->wants_hint)) {
        take_hint(r, range, at, row->name);
    }
}

/* The rows of one tenant are adjacent; each tenant counts as one row of the range. */
static void take_lap_row(struct feed_reader *r, const struct feed_lap_row *row)
{
    struct range_end *end = &r->ends[row->range];
    const struct feed_range *range = &r->ranges[row->range];
    end->is_cut = end->is_cut || r->hint_count == HINTS_PUSH_MAX;
    if (end->is_cut) {
        return;
    }
    if (row->share != end->last.us) {
        end->rows++;
        end->last.us = row->share;
        feed_lap_share(r->options.feed, range, row->id != 0);
    }
    if (row->id != 0) {
        take_hint(r, range, (struct feed_pos){.us = row->us, .id = row->id}, row->kind);
    }
}

static void take_laps(struct feed_reader *r, const struct pg_result *rows)
{
    struct feed_lap_row row;
    for (int i = 0; i < pg_row_count(rows); i++) {
        feed_lap_row(rows, i, &row);
        take_lap_row(r, &row);
    }
}

static void take_lane(struct feed_reader *r, const struct feed_read_row *row)
{
    struct err err = {0};
    int64_t now_us = clock_boot_us();
    enum status st =
        feed_lane_add(r->options.feed, row->name, row->priority, row->share, now_us, &err);
    r->result.lanes++;
    r->result.rest =
        (struct feed_gap){.form = FEED_GAP_REST, .priority = row->priority, .lo = row->share};
    (void)snprintf(r->result.rest.queue, sizeof r->result.rest.queue, "%s", row->name);
    if (st != STATUS_OK && st != STATUS_CONFLICT && complaint_due(&r->crowded, now_us)) {
        log_warn("lanes_crowded", LOG_TEXT("queue", row->name), LOG_TEXT("err", err.msg),
                 LOG_I64("lanes", r->options.feed->order_count),
                 LOG_TEXT("action", "the queue with the most lanes is walked in laps"));
    }
}

/* Adds the lanes after all else: that may move the table that the hints' queues point into. */
static void take_lanes(struct feed_reader *r, const struct pg_result *rows)
{
    struct feed_read_row row;
    for (int i = 0; i < pg_row_count(rows); i++) {
        feed_read_row(rows, i, &row);
        if (row.part == FEED_READ_LANE) {
            take_lane(r, &row);
        }
    }
}

static void take_rows(struct feed_reader *r, const struct pg_result *rows)
{
    struct feed_read_row row;
    for (int i = 0; i < pg_row_count(rows); i++) {
        feed_read_row(rows, i, &row);
        if (row.part == FEED_READ_NOW) {
            feed_reader_set_clock(r, row.us);
        } else if (row.part == FEED_READ_DUE) {
            r->ends[row.range].next_due_us = row.us;
        } else if (row.part == FEED_READ_ROW) {
            take_row(r, &row);
        }
    }
}

static bool has_laps(const struct feed_reader *r)
{
    for (size_t i = 0; i < r->range_count; i++) {
        if (r->ranges[i].part == FEED_LAP) {
            return true;
        }
    }
    return false;
}

static void on_read(void *ctx, enum status st, const struct pg_result *const *results,
                    const struct err *err)
{
    struct feed_reader *r = ctx;
    if (st != STATUS_OK) {
        finish(r, strcmp(err->code, QUERY_CANCELED) == 0 ? FEED_READ_CUT_OFF : FEED_READ_FAILED,
               err);
        return;
    }
    take_rows(r, results[0]);
    if (has_laps(r)) {
        take_laps(r, results[1]);
    }
    probe("S3");
    bool is_pushing = r->hint_count > 0;
    struct err failed = {0};
    if (is_pushing &&
        hints_push(r->options.hints, r->hints, r->hint_count, on_pushed, r, &failed) != STATUS_OK) {
        finish(r, FEED_READ_FAILED, &failed);
        return;
    }
    take_lanes(r, results[0]);
    if (!is_pushing) {
        finish(r, FEED_READ_DONE, NULL);
    }
}

/* ---- interface ---- */

enum status feed_reader_begin(struct feed_reader *r, struct pg *pg, size_t range_count,
                              size_t gap_count, int64_t timeout_us, struct err *err)
{
    assert(!r->is_busy);
    const struct feed_read_request request = {.ranges = r->ranges,
                                              .range_count = range_count,
                                              .gaps = r->gaps,
                                              .gap_count = gap_count,
                                              .served = r->options.served,
                                              .timeout_us = timeout_us};
    r->range_count = range_count;
    r->hint_count = 0;
    r->result = (struct feed_read_result){.end = FEED_READ_FAILED};
    for (size_t i = 0; i < range_count; i++) {
        r->ends[i] = (struct range_end){.last = r->ranges[i].after, .next_due_us = FEED_NEVER_US};
    }
    enum status st = feed_store_read(pg, r->options.feed, &request, on_read, r, err);
    r->is_busy = st == STATUS_OK;
    for (size_t i = 0; st != STATUS_OK && i < range_count; i++) {
        feed_range_failed(r->options.feed, &r->ranges[i]);
    }
    return st;
}

struct feed_range *feed_reader_ranges(struct feed_reader *r)
{
    return r->ranges;
}

struct feed_gap *feed_reader_gaps(struct feed_reader *r)
{
    return r->gaps;
}

int64_t feed_reader_pg_us(const struct feed_reader *r)
{
    return r->pg_us + (clock_boot_us() - r->pg_at_us);
}

void feed_reader_set_clock(struct feed_reader *r, int64_t pg_us)
{
    r->pg_us = pg_us;
    r->pg_at_us = clock_boot_us();
}

bool feed_reader_route(const struct feed_served *served, const char *queue, const char *kind,
                       struct hint *ret_hint)
{
    enum feed_route route = feed_served_route(served, queue, kind);
    ret_hint->queue = queue;
    ret_hint->kind = route == FEED_ROUTE_KIND ? kind : NULL;
    return route != FEED_ROUTE_NONE;
}

enum status feed_reader_open(const struct feed_reader_options *options, struct feed_reader **ret,
                             struct err *err)
{
    struct feed_reader *r = calloc(1, sizeof *r);
    if (r == NULL) {
        return err_fail(err, STATUS_NOMEM, "no memory to read the queue");
    }
    r->options = *options;
    *ret = r;
    return STATUS_OK;
}

void feed_reader_close(struct feed_reader *r)
{
    free(r);
}
