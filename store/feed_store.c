/* SPDX-License-Identifier: Apache-2.0 */
#include "store/feed_store.h"

#include "sql/queries.h"

#include <assert.h>

#define ARRAYS_MAX ((size_t)1 << 20)
#define RANGE_COLUMNS 7
#define GAP_COLUMNS 5

enum status feed_store_session(struct pg *pg, pg_done_cb *done, void *ctx, struct err *err)
{
    return pg_send_one(pg, &SQL_FEED_SESSION, NULL, done, ctx, err);
}

/* ---- a read ---- */

static int64_t range_number(const struct feed_lane *l, const struct feed_range *r, int column)
{
    switch (column) {
    case 1:
        return l->priority;
    case 2:
        return l->share;
    case 3:
        return r->after.us;
    case 4:
        return r->after.id;
    case 5:
        return r->to.us == FEED_NEVER_US ? 0 : r->to.us;
    default:
        return r->rows_max;
    }
}

static enum status range_column(struct buf *out, const struct feed *feed,
                                const struct feed_range *ranges, size_t count, int column,
                                struct err *err)
{
    if (column == 0) {
        const char *texts[FEED_RANGES_MAX];
        for (size_t i = 0; i < count; i++) {
            texts[i] = feed->lanes[ranges[i].lane].queue;
        }
        return pg_array_text(out, texts, NULL, count, err);
    }
    int64_t numbers[FEED_RANGES_MAX];
    for (size_t i = 0; i < count; i++) {
        numbers[i] = range_number(&feed->lanes[ranges[i].lane], &ranges[i], column);
    }
    return pg_array_i64(out, numbers, count, err);
}

static int64_t gap_number(const struct feed_gap *g, int column)
{
    switch (column) {
    case 0:
        return g->form;
    case 2:
        return g->priority;
    case 3:
        return g->lo;
    default:
        return g->hi;
    }
}

static enum status gap_column(struct buf *out, const struct feed_gap *gaps, size_t count,
                              int column, struct err *err)
{
    if (column == 1) {
        const char *texts[FEED_GAPS_MAX];
        for (size_t i = 0; i < count; i++) {
            texts[i] = gaps[i].queue;
        }
        return pg_array_text(out, texts, NULL, count, err);
    }
    int64_t numbers[FEED_GAPS_MAX];
    for (size_t i = 0; i < count; i++) {
        numbers[i] = gap_number(&gaps[i], column);
    }
    return pg_array_i64(out, numbers, count, err);
}

static void buf_list_release(struct buf *list, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        buf_release(&list[i]);
    }
}

enum status feed_store_read(struct pg *pg, const struct feed *feed,
                            const struct feed_read_request *request, pg_done_cb *done, void *ctx,
                            struct err *err)
{
    assert(request->range_count <= FEED_RANGES_MAX && request->gap_count <= FEED_GAPS_MAX);
    struct buf columns[RANGE_COLUMNS + GAP_COLUMNS];
    struct pg_param params[ARRAY_COUNT(columns) + 1];
    char lanes_max[8];
    bool has_gaps = request->gap_count > 0;
    size_t column_count = has_gaps ? ARRAY_COUNT(columns) : RANGE_COLUMNS;
    enum status st = STATUS_OK;
    for (int i = 0; i < (int)column_count; i++) {
        buf_init(&columns[i], ARRAYS_MAX);
        if (st == STATUS_OK) {
            st = i < RANGE_COLUMNS ? range_column(&columns[i], feed, request->ranges,
                                                  request->range_count, i, err)
                                   : gap_column(&columns[i], request->gaps, request->gap_count,
                                                i - RANGE_COLUMNS, err);
        }
        params[i] = pg_param_buf(&columns[i]);
    }
    params[ARRAY_COUNT(columns)] = pg_param_i64(FEED_READ_LANES_MAX, lanes_max);
    if (st == STATUS_OK) {
        const struct pg_statement *statement = has_gaps ? &SQL_FEED_READ : &SQL_FEED_GLANCE;
        struct pg_request sent = {.steps = {{.statement = statement, .params = params}},
                                  .step_count = 1,
                                  .timeout_us = request->timeout_us,
                                  .done = done,
                                  .ctx = ctx};
        st = pg_send(pg, &sent, err);
    }
    buf_list_release(columns, column_count);
    return st;
}

void feed_read_row(const struct pg_result *r, int row, struct feed_read_row *ret)
{
    *ret = (struct feed_read_row){.part = (enum feed_read_part)pg_i64(r, row, 0),
                                  .id = pg_i64(r, row, 2),
                                  .us = pg_time_us(r, row, 3)};
    if (ret->part == FEED_READ_ROW || ret->part == FEED_READ_LANE) {
        ret->name = pg_text(r, row, 4, NULL);
        ret->is_available = pg_bool(r, row, 5);
    }
    if (ret->part == FEED_READ_ROW || ret->part == FEED_READ_DUE) {
        ret->range = (size_t)pg_i64(r, row, 1) - 1; /* WITH ORDINALITY */
    }
    ret->priority = (int)(ret->id / FEED_SHARES);
    ret->share = (int)(ret->id % FEED_SHARES);
}

/* ---- each second ---- */

enum status feed_store_tick(struct pg *pg, pg_done_cb *done, void *ctx, struct err *err)
{
    return pg_send_one(pg, &SQL_FEED_TICK, NULL, done, ctx, err);
}

void feed_tick_row(const struct pg_result *r, int row, struct feed_tick_row *ret)
{
    *ret = (struct feed_tick_row){.part = (enum feed_tick_part)pg_i64(r, row, 0),
                                  .name = pg_text(r, row, 1, NULL),
                                  .is_dead = pg_bool(r, row, 4),
                                  .is_stale = pg_bool(r, row, 5),
                                  .number = pg_i64(r, row, 6),
                                  .age_us = pg_i64(r, row, 7),
                                  .us = pg_time_us(r, row, 8)};
    if (ret->part == FEED_TICK_NOW) {
        ret->work = (unsigned)ret->age_us;
    }
    if (ret->part == FEED_TICK_WORKER) {
        ret->queues = pg_text(r, row, 2, NULL);
        ret->kinds = pg_text(r, row, 3, NULL);
    }
}

/* ---- writes ---- */

enum status feed_store_hungry(struct pg *pg, bool is_hungry, pg_done_cb *done, void *ctx,
                              struct err *err)
{
    struct pg_param param = pg_param_bool(is_hungry);
    return pg_send_one(pg, &SQL_FEED_HUNGRY, &param, done, ctx, err);
}

enum status feed_store_repair(struct pg *pg, pg_done_cb *done, void *ctx, struct err *err)
{
    struct pg_request request = {
        .steps = {{.statement = &SQL_BATCH_REPAIR}, {.statement = &SQL_LIMIT_LEAKED}},
        .step_count = 2,
        .done = done,
        .ctx = ctx};
    return pg_send(pg, &request, err);
}

enum status feed_store_next_rated(struct pg *pg, int32_t most, pg_done_cb *done, void *ctx,
                                  struct err *err)
{
    char storage[4];
    const struct pg_param param = pg_param_i32(most, storage);
    return pg_send_one(pg, &SQL_LIMIT_RATED, &param, done, ctx, err);
}
