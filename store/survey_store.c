/* SPDX-License-Identifier: Apache-2.0 */
#include "store/survey_store.h"

#include "sql/queries.h"

enum {
    COLUMN_PART,
    COLUMN_QUEUE,
    COLUMN_KIND,
    COLUMN_NUMBERS,
    COLUMN_US = 7,
    COLUMN_OK,
    COLUMN_RUNNING_US,
    COLUMN_WAITING
};

enum status survey_store_read(struct pg *pg, int64_t timeout_us, pg_done_cb *done, void *ctx,
                              struct err *err)
{
    char storage[3][8];
    const struct pg_param params[] = {pg_param_i64(SURVEY_QUEUES_MAX, storage[0]),
                                      pg_param_i64(SURVEY_UNSERVED_MAX, storage[1]),
                                      pg_param_i64(SURVEY_MAPS_MAX, storage[2])};
    struct pg_request request = {
        .steps = {{.statement = &SQL_SURVEY_SETTINGS},
                  [SURVEY_RESULT] = {.statement = &SQL_SURVEY_QUEUES, .params = params}},
        .step_count = SURVEY_RESULT + 1,
        .timeout_us = timeout_us,
        .done = done,
        .ctx = ctx};
    return pg_send(pg, &request, err);
}

void survey_store_row(const struct pg_result *r, int row, struct survey_row *ret)
{
    int64_t n[4];
    for (int i = 0; i < 4; i++) {
        n[i] = pg_i64(r, row, COLUMN_NUMBERS + i);
    }
    *ret = (struct survey_row){.part = (enum survey_part)pg_i64(r, row, COLUMN_PART)};
    if (ret->part == SURVEY_CLUSTER) {
        ret->live_workers = n[0];
        ret->stale_workers = n[1];
        ret->days_ahead = n[2];
        return;
    }
    if (ret->part == SURVEY_TABLE) {
        ret->table_bytes = n[0];
        ret->dead_rows = n[1];
        ret->inserted = n[2];
        return;
    }
    if (ret->part == SURVEY_MAP) {
        ret->map = pg_text(r, row, COLUMN_QUEUE, NULL);
        ret->open = n[0];
        ret->completed = n[1];
        ret->failed = n[2];
        ret->cancelled = n[3];
        return;
    }
    if (ret->part == SURVEY_BESIDE || ret->part == SURVEY_CLAIMED) {
        ret->queue = pg_text(r, row, COLUMN_QUEUE, NULL);
        ret->job = n[0];
        ret->version = n[1];
        ret->fence = n[2];
        ret->idle_us = pg_i64(r, row, COLUMN_US);
        return;
    }
    ret->queue = pg_text(r, row, COLUMN_QUEUE, NULL);
    ret->kind = ret->part == SURVEY_UNSERVED ? pg_text(r, row, COLUMN_KIND, NULL) : NULL;
    ret->available = n[0];
    ret->scheduled = n[1];
    ret->retryable = n[2];
    ret->running = n[3];
    ret->oldest_due_us = pg_i64(r, row, COLUMN_US);
    ret->is_paused = pg_bool(r, row, COLUMN_OK);
    ret->oldest_running_us = pg_i64(r, row, COLUMN_RUNNING_US);
    ret->waiting = pg_i64(r, row, COLUMN_WAITING);
}
