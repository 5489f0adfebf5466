/* SPDX-License-Identifier: Apache-2.0 */
#include "store/rescue_store.h"

#include "sql/queries.h"
#include "store/pg/params.h"
#include "store/seeded.h"

#include <assert.h>

#define ARRAYS_MAX ((size_t)1 << 20)

static enum status send_workers(struct pg *pg, const struct pg_statement *statement,
                                const char *const *worker_ids, size_t count, pg_done_cb *done,
                                void *ctx, struct err *err)
{
    autobuf struct buf ids = BUF_INIT(ARRAYS_MAX);
    enum status st = pg_array_text(&ids, worker_ids, NULL, count, err);
    if (st != STATUS_OK) {
        return st;
    }
    struct pg_param param = pg_param_buf(&ids);
    return pg_send_one(pg, statement, &param, done, ctx, err);
}

enum status rescue_store_mark_dead(struct pg *pg, const char *const *worker_ids, size_t count,
                                   pg_done_cb *done, void *ctx, struct err *err)
{
    return send_workers(pg, &SQL_RESCUE_MARK_DEAD, worker_ids, count, done, ctx, err);
}

void rescue_marked_row(const struct pg_result *r, int row, struct rescue_marked *ret)
{
    *ret = (struct rescue_marked){.worker_id = pg_text(r, row, 0, NULL),
                                  .host = pg_text(r, row, 1, NULL),
                                  .silent_ms = pg_i64(r, row, 2)};
}

enum status rescue_store_pull_heartbeats(struct pg *pg, pg_done_cb *done, void *ctx,
                                         struct err *err)
{
    return pg_send_one(pg, &SQL_RESCUE_PULL_HEARTBEATS, NULL, done, ctx, err);
}

enum status rescue_store_swept(struct pg *pg, const char *const *worker_ids, size_t count,
                               pg_done_cb *done, void *ctx, struct err *err)
{
    return send_workers(pg, &SQL_RESCUE_SWEPT, worker_ids, count, done, ctx, err);
}

enum status rescue_store_walk(struct pg *pg, int64_t after_id, int64_t rows, int64_t held_after_us,
                              pg_done_cb *done, void *ctx, struct err *err)
{
    char storage[3][8];
    struct pg_param params[] = {pg_param_i64(after_id, storage[0]), pg_param_i64(rows, storage[1]),
                                pg_param_i64(held_after_us, storage[2])};
    return pg_send_one(pg, &SQL_RESCUE_PAGE, params, done, ctx, err);
}

void rescue_found_row(const struct pg_result *r, int row, struct rescue_found *ret)
{
    *ret = (struct rescue_found){.id = pg_is_null(r, row, 0) ? 0 : pg_i64(r, row, 0),
                                 .fence = pg_i64(r, row, 1),
                                 .why = (enum rescue_why)pg_i64(r, row, 2),
                                 .worker = pg_i64(r, row, 3)};
}

enum status rescue_store_move(struct pg *pg, const struct rescue_found *jobs, size_t count,
                              pg_done_cb *done, void *ctx, struct err *err)
{
    static const int64_t unknown[RESCUE_ROUND_MAX]; /* the positions of the rows that they held */
    int64_t columns[3][RESCUE_ROUND_MAX];
    assert(count <= RESCUE_ROUND_MAX);
    for (size_t i = 0; i < count; i++) {
        columns[0][i] = jobs[i].id;
        columns[1][i] = jobs[i].fence;
        columns[2][i] = jobs[i].worker;
    }
    struct params p = {.count = 0};
    struct params asked = {.count = 0};
    struct params freed = {.count = 0};
    struct pg_request request = {.step_count = 3, .done = done, .ctx = ctx};
    for (size_t i = 0; i < ARRAY_COUNT(columns); i++) {
        params_i64_array(&p, columns[i], count);
    }
    params_i64_array(&asked, columns[0], count);
    params_i64_array(&freed, columns[0], count);
    params_i64_array(&freed, columns[1], count);
    params_tid_array(&freed, unknown, count);
    params_tid_array(&freed, unknown, count);
    enum status st = params_step(&p, seeded_statement(&SQL_RESCUE_MOVE), &request.steps[0], err);
    if (st == STATUS_OK) {
        st = params_step(&asked, &SQL_JOB_CANCEL_ASKED, &request.steps[1], err);
    }
    if (st == STATUS_OK) {
        st = params_step(&freed, &SQL_JOB_FREE_ENDED, &request.steps[2], err);
    }
    if (st == STATUS_OK) {
        st = pg_send(pg, &request, err);
    }
    params_release(&p);
    params_release(&asked);
    params_release(&freed);
    return st;
}

void rescue_moved_row(const struct pg_result *r, int row, struct rescue_moved *ret)
{
    *ret = (struct rescue_moved){.id = pg_i64(r, row, 0),
                                 .outcome = (enum rescue_outcome)pg_i64(r, row, 1),
                                 .queue = pg_text(r, row, 2, NULL),
                                 .kind = pg_text(r, row, 3, NULL),
                                 .priority = (int)pg_i64(r, row, 4),
                                 .ready_us = pg_time_us(r, row, 5)};
}

void rescue_freed_row(const struct pg_result *r, int row, struct rescue_moved *ret)
{
    *ret = (struct rescue_moved){.id = pg_i64(r, row, 0),
                                 .outcome = RESCUE_AVAILABLE,
                                 .queue = pg_text(r, row, 1, NULL),
                                 .kind = pg_text(r, row, 2, NULL),
                                 .priority = (int)pg_i64(r, row, 3),
                                 .ready_us = pg_time_us(r, row, 4)};
}
