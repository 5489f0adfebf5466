/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds jobs that may be claimed: because a run has ended, because they were refused for a limit,
 * or because their lock was held. */
#include "sql/queries.h"
#include "store/jobs/internal.h"
#include "store/jobs/segment.h"

#include <assert.h>

void segment_tell_freed_rows(const struct pg_result *rows, freed_cb *on_freed, void *ctx)
{
    for (int row = 0; row < pg_row_count(rows); row++) {
        size_t len = 0;
        const struct freed_job job = {.id = pg_i64(rows, row, 0),
                                      .queue = pg_text(rows, row, 1, &len),
                                      .kind = pg_text(rows, row, 2, &len),
                                      .priority = (int)pg_i64(rows, row, 3),
                                      .ready_at_unix_us = pg_time_us(rows, row, 4)};
        on_freed(ctx, &job);
    }
}

struct next_request {
    struct job_store *store;
    freed_cb *each;
    next_cb *done;
    void *ctx;
};

static void on_next(void *ctx, enum status st, const struct pg_result *const *results,
                    const struct err *err)
{
    (void)err;
    struct next_request *n = ctx;
    if (store_request_ended(n->store)) {
        if (st == STATUS_OK) {
            segment_tell_freed_rows(results[0], n->each, n->ctx);
        }
        n->done(n->ctx, st == STATUS_OK ? STATUS_OK : STATUS_UNAVAILABLE);
    }
    free(n);
}

static enum status ask(const struct next_request *request, const struct pg_statement *statement,
                       const int64_t *ids, size_t count, struct err *err)
{
    assert(count <= CLAIM_IDS_MAX);
    struct next_request *n = malloc(sizeof *n);
    if (n == NULL) {
        return err_fail(err, STATUS_NOMEM, "no memory for what follows %zu jobs", count);
    }
    *n = *request;
    struct params p = {.count = 0};
    params_i64_array(&p, ids, count);
    enum status st = store_send_one(n->store, statement, &p, on_next, n, err);
    params_release(&p);
    if (st != STATUS_OK) {
        free(n);
    }
    return st;
}

enum status job_store_next(struct job_store *s, const int64_t *ids, size_t count, freed_cb *each,
                           next_cb *done, void *ctx, struct err *err)
{
    const struct next_request request = {.store = s, .each = each, .done = done, .ctx = ctx};
    return ask(&request, &SQL_LIMIT_NEXT, ids, count, err);
}

enum status job_store_due(struct job_store *s, const int64_t *ids, size_t count, freed_cb *each,
                          next_cb *done, void *ctx, struct err *err)
{
    const struct next_request request = {.store = s, .each = each, .done = done, .ctx = ctx};
    return ask(&request, &SQL_JOB_DUE, ids, count, err);
}

enum status job_store_find(struct job_store *s, const int64_t *ids, size_t count, freed_cb *each,
                           next_cb *done, void *ctx, struct err *err)
{
    const struct next_request request = {.store = s, .each = each, .done = done, .ctx = ctx};
    return ask(&request, &SQL_JOB_FIND, ids, count, err);
}
