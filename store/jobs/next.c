/* SPDX-License-Identifier: Apache-2.0
 *
 * job_store_next(): what may be claimed where others were refused for a limit. */
#include "sql/queries.h"
#include "store/jobs/batch.h"
#include "store/jobs/internal.h"

#include <assert.h>

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
            batch_tell_freed_rows(results[0], n->each, n->ctx);
        }
        n->done(n->ctx, st == STATUS_OK ? STATUS_OK : STATUS_UNAVAILABLE);
    }
    free(n);
}

enum status job_store_next(struct job_store *s, const int64_t *ids, size_t count, freed_cb *each,
                           next_cb *done, void *ctx, struct err *err)
{
    assert(count <= CLAIM_IDS_MAX);
    struct next_request *n = malloc(sizeof *n);
    if (n == NULL) {
        return err_fail(err, STATUS_NOMEM, "what comes next of %zu jobs", count);
    }
    *n = (struct next_request){.store = s, .each = each, .done = done, .ctx = ctx};
    struct params p = {.count = 0};
    params_i64_array(&p, ids, count);
    enum status st = store_send_one(s, &SQL_LIMIT_NEXT, &p, on_next, n, err);
    params_release(&p);
    if (st != STATUS_OK) {
        free(n);
    }
    return st;
}
