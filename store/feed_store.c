/* SPDX-License-Identifier: Apache-2.0 */
#include "store/feed_store.h"

#include "sql/queries.h"

#include <assert.h>

#define ARRAYS_MAX ((size_t)1 << 20)
#define RANGE_COLUMNS 8
#define GAP_COLUMNS 5
#define LAP_COLUMNS 8
#define KINDS_MAX ((size_t)1 << 20)

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
        return r->part == FEED_LAP ? FEED_BEGIN_US : r->to.us == FEED_NEVER_US ? 0 : r->to.us;
    case 6:
        return r->part == FEED_LAP ? 0 : r->rows_max; /* feed_laps reads this range */
    default:
        return r->part == FEED_FULL;
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

static int64_t lap_number(const struct feed_read_request *request, const struct feed *feed,
                          size_t range, int column)
{
    const struct feed_range *r = &request->ranges[range];
    switch (column) {
    case 0:
        return (int64_t)range;
    case 2:
        return feed->lanes[r->lane].priority;
    case 3:
        return r->after.us;
    case 4:
        return r->rows_max;
    case 5:
        return r->each_max;
    default:
        return feed->lanes[r->lane].lap.is_deep;
    }
}

static size_t laps_in(const struct feed_read_request *request, size_t ret_ranges[FEED_RANGES_MAX])
{
    size_t count = 0;
    for (size_t i = 0; i < request->range_count; i++) {
        if (request->ranges[i].part == FEED_LAP) {
            ret_ranges[count++] = i;
        }
    }
    return count;
}

/* Makes one array element per lap with the kinds of its queue; `text` holds all of them. */
static enum status lap_kinds(struct buf *out, const struct feed_read_request *request,
                             const struct feed *feed, const size_t *laps, size_t count,
                             struct err *err)
{
    autobuf struct buf text = BUF_INIT(KINDS_MAX);
    const char *texts[FEED_RANGES_MAX];
    size_t lens[FEED_RANGES_MAX];
    size_t starts[FEED_RANGES_MAX];
    for (size_t i = 0; i < count; i++) {
        starts[i] = text.len;
        enum status st = feed_served_kinds(
            request->served, feed->lanes[request->ranges[laps[i]].lane].queue, &text, err);
        if (st != STATUS_OK) {
            return st;
        }
        lens[i] = text.len - starts[i];
    }
    for (size_t i = 0; i < count; i++) {
        texts[i] = text.len > 0 ? buf_at(&text) + starts[i] : "";
    }
    return pg_array_text(out, texts, lens, count, err);
}

static enum status lap_column(struct buf *out, const struct feed_read_request *request,
                              const struct feed *feed, const size_t *laps, size_t count, int column,
                              struct err *err)
{
    const char *texts[FEED_RANGES_MAX];
    int64_t numbers[FEED_RANGES_MAX];
    if (column == LAP_COLUMNS - 1) {
        return lap_kinds(out, request, feed, laps, count, err);
    }
    for (size_t i = 0; i < count; i++) {
        texts[i] = feed->lanes[request->ranges[laps[i]].lane].queue;
        numbers[i] = column == 1 ? 0 : lap_number(request, feed, laps[i], column);
    }
    return column == 1 ? pg_array_text(out, texts, NULL, count, err)
                       : pg_array_i64(out, numbers, count, err);
}

/* The parameters of a read, for both statements. */
struct read_params {
    struct buf columns[RANGE_COLUMNS + GAP_COLUMNS + LAP_COLUMNS];
    size_t column_count;
    struct pg_param params[RANGE_COLUMNS + GAP_COLUMNS + 1];
    struct pg_param laps[LAP_COLUMNS];
    char lanes_max[8];
};

static struct buf *next_column(struct read_params *p)
{
    struct buf *column = &p->columns[p->column_count++];
    buf_init(column, ARRAYS_MAX);
    return column;
}

static enum status read_columns(struct read_params *p, const struct feed *feed,
                                const struct feed_read_request *request, struct err *err)
{
    int columns = RANGE_COLUMNS + (request->gap_count > 0 ? GAP_COLUMNS : 0);
    for (int i = 0; i < columns; i++) {
        struct buf *column = next_column(p);
        enum status st =
            i < RANGE_COLUMNS
                ? range_column(column, feed, request->ranges, request->range_count, i, err)
                : gap_column(column, request->gaps, request->gap_count, i - RANGE_COLUMNS, err);
        if (st != STATUS_OK) {
            return st;
        }
        p->params[i] = pg_param_buf(column);
    }
    p->params[RANGE_COLUMNS + GAP_COLUMNS] = pg_param_i64(FEED_READ_LANES_MAX, p->lanes_max);
    return STATUS_OK;
}

static enum status lap_columns(struct read_params *p, const struct feed *feed,
                               const struct feed_read_request *request, const size_t *laps,
                               size_t count, struct err *err)
{
    for (int i = 0; i < LAP_COLUMNS && count > 0; i++) {
        struct buf *column = next_column(p);
        enum status st = lap_column(column, request, feed, laps, count, i, err);
        if (st != STATUS_OK) {
            return st;
        }
        p->laps[i] = pg_param_buf(column);
    }
    return STATUS_OK;
}

enum status feed_store_read(struct pg *pg, const struct feed *feed,
                            const struct feed_read_request *request, pg_done_cb *done, void *ctx,
                            struct err *err)
{
    assert(request->range_count <= FEED_RANGES_MAX && request->gap_count <= FEED_GAPS_MAX);
    struct read_params p = {.column_count = 0};
    size_t laps[FEED_RANGES_MAX];
    size_t lap_count = laps_in(request, laps);
    enum status st = read_columns(&p, feed, request, err);
    if (st == STATUS_OK) {
        st = lap_columns(&p, feed, request, laps, lap_count, err);
    }
    if (st == STATUS_OK) {
        const struct pg_statement *read =
            request->gap_count > 0 ? &SQL_FEED_READ : &SQL_FEED_GLANCE;
        struct pg_request sent = {.steps = {{.statement = read, .params = p.params},
                                            {.statement = &SQL_FEED_LAPS, .params = p.laps}},
                                  .step_count = lap_count > 0 ? 2 : 1,
                                  .timeout_us = request->timeout_us,
                                  .done = done,
                                  .ctx = ctx};
        st = pg_send(pg, &sent, err);
    }
    buf_list_release(p.columns, p.column_count);
    return st;
}

void feed_lap_row(const struct pg_result *r, int row, struct feed_lap_row *ret)
{
    *ret = (struct feed_lap_row){.range = (size_t)pg_i64(r, row, 0),
                                 .share = pg_i64(r, row, 1),
                                 .id = pg_i64(r, row, 2),
                                 .us = pg_time_us(r, row, 3)};
    if (ret->id != 0) {
        ret->kind = pg_text(r, row, 4, NULL);
    }
}

void feed_read_row(const struct pg_result *r, int row, struct feed_read_row *ret)
{
    *ret = (struct feed_read_row){.part = (enum feed_read_part)pg_i64(r, row, 0),
                                  .id = pg_i64(r, row, 2),
                                  .us = pg_time_us(r, row, 3)};
    if (ret->part == FEED_READ_ROW || ret->part == FEED_READ_LANE) {
        ret->name = pg_text(r, row, 4, NULL);
        ret->wants_hint = pg_bool(r, row, 5);
    }
    if (ret->part == FEED_READ_ROW || ret->part == FEED_READ_DUE) {
        ret->range = (size_t)pg_i64(r, row, 1) - 1; /* WITH ORDINALITY counts from 1 */
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
