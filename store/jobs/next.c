/* SPDX-License-Identifier: Apache-2.0
 *
 * Answers questions about jobs, and finds those that may be claimed because a run has ended. */
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

struct question_wait {
    struct job_store *store;
    freed_cb *each;
    answered_cb *done;
    void *ctx;
};

static void on_answered(void *ctx, enum status st, const struct pg_result *const *results,
                        const struct err *err)
{
    (void)err;
    struct question_wait *q = ctx;
    if (store_request_ended(q->store)) {
        if (st == STATUS_OK) {
            segment_tell_freed_rows(results[0], q->each, q->ctx);
        }
        q->done(q->ctx, st == STATUS_OK ? STATUS_OK : STATUS_UNAVAILABLE);
    }
    free(q);
}

static const struct pg_statement *const statements[QUESTION_COUNT] = {
    [QUESTION_EXISTS] = &SQL_JOB_FIND,
    [QUESTION_DUE] = &SQL_JOB_DUE,
    [QUESTION_NEXT] = &SQL_LIMIT_NEXT,
};

enum status job_store_ask(struct job_store *s, enum job_question question, const int64_t *ids,
                          size_t count, freed_cb *each, answered_cb *done, void *ctx,
                          struct err *err)
{
    assert(count <= CLAIM_IDS_MAX);
    struct question_wait *q = malloc(sizeof *q);
    if (q == NULL) {
        return err_fail(err, STATUS_NOMEM, "no memory to ask about %zu jobs", count);
    }
    *q = (struct question_wait){.store = s, .each = each, .done = done, .ctx = ctx};
    struct params p = {.count = 0};
    params_i64_array(&p, ids, count);
    enum status st = store_send_one(s, statements[question], &p, on_answered, q, err);
    params_release(&p);
    if (st != STATUS_OK) {
        free(q);
    }
    return st;
}
