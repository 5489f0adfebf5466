/* SPDX-License-Identifier: Apache-2.0
 *
 * job_store_args(): what is too large to come with the claim, or rare, fetched by itself. */
#include "sql/queries.h"
#include "store/jobs/internal.h"

struct args_request {
    struct job_store *store;
    args_cb *done;
    void *ctx;
};

static void on_args(void *ctx, enum status st, const struct pg_result *const *results,
                    const struct err *err)
{
    (void)err;
    struct args_request *a = ctx;
    if (store_request_ended(a->store)) {
        size_t len = 0;
        struct job_args args = {.args = NULL};
        if (st != STATUS_OK) {
            st = STATUS_UNAVAILABLE; /* a read: whatever it was, it may be asked again */
        } else if (pg_row_count(results[0]) == 0) {
            st = STATUS_NOT_FOUND;
        } else {
            const struct pg_result *row = results[0];
            args.args = pg_text(row, 0, 0, &args.args_len);
            args.metadata = pg_is_null(row, 0, 1) ? NULL : pg_text(row, 0, 1, &len);
            args.checkpoint = pg_is_null(row, 0, 2) ? NULL : pg_text(row, 0, 2, &len);
        }
        a->done(a->ctx, st, st == STATUS_OK ? &args : NULL);
    }
    free(a);
}

enum status job_store_args(struct job_store *s, int64_t id, int64_t fence, args_cb *done, void *ctx,
                           struct err *err)
{
    struct args_request *a = malloc(sizeof *a);
    if (a == NULL) {
        return err_fail(err, STATUS_NOMEM, "args of job %lld", (long long)id);
    }
    *a = (struct args_request){.store = s, .done = done, .ctx = ctx};
    struct params p = {.count = 0};
    params_i64(&p, id);
    params_i64(&p, fence);
    enum status st = store_send_one(s, &SQL_JOB_ARGS, &p, on_args, a, err);
    if (st != STATUS_OK) {
        free(a);
    }
    return st;
}
