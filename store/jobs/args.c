/* SPDX-License-Identifier: Apache-2.0
 *
 * job_store_args(): fetches separately what is too large to come with the claim, or rare. */
#include "sql/queries.h"
#include "store/jobs/internal.h"

/* A claim may bring hundreds of such jobs, each with a megabyte. Only this many fetches are in
 * flight at once, so that other requests to PostgreSQL do not wait long behind them. */
#define IN_FLIGHT_MAX 4

struct args_request {
    struct args_request *next;
    struct job_store *store;
    int64_t id;
    int64_t fence;
    args_cb *done;
    void *ctx;
};

void args_queue_release(struct args_queue *q)
{
    while (q->first != NULL) {
        struct args_request *next = q->first->next;
        free(q->first);
        q->first = next;
    }
}

/* Columns of job_args. */
enum { COLUMN_ARGS, COLUMN_METADATA, COLUMN_CHECKPOINT, COLUMN_HAS_METADATA, COLUMN_PREDECESSORS };

static enum status read_row(const struct pg_result *row, struct job_args *ret)
{
    if (pg_row_count(row) == 0) {
        return STATUS_NOT_FOUND;
    }
    if (pg_is_null(row, 0, COLUMN_ARGS)) {
        ret->too_long = "args";
        return STATUS_LIMIT;
    }
    bool has_metadata = pg_bool(row, 0, COLUMN_HAS_METADATA);
    if (has_metadata && pg_is_null(row, 0, COLUMN_METADATA)) {
        ret->too_long = "metadata";
        return STATUS_LIMIT;
    }
    bool has_checkpoint = !pg_is_null(row, 0, COLUMN_CHECKPOINT);
    bool has_predecessors = !pg_is_null(row, 0, COLUMN_PREDECESSORS);
    size_t len = 0;
    ret->args = pg_text(row, 0, COLUMN_ARGS, &ret->args_len);
    ret->metadata = has_metadata ? pg_text(row, 0, COLUMN_METADATA, &len) : NULL;
    ret->checkpoint = has_checkpoint ? pg_text(row, 0, COLUMN_CHECKPOINT, &len) : NULL;
    ret->predecessors = has_predecessors ? pg_text(row, 0, COLUMN_PREDECESSORS, &len) : NULL;
    return STATUS_OK;
}

static void send_queued(struct job_store *s);

static void on_args(void *ctx, enum status st, const struct pg_result *const *results,
                    const struct err *err)
{
    (void)err;
    struct args_request *a = ctx;
    struct job_store *s = a->store;
    if (store_request_ended(s)) {
        struct job_args args = {.args = NULL};
        s->args.in_flight--;
        /* It is a read, so after any error it may be repeated. */
        a->done(a->ctx, st == STATUS_OK ? read_row(results[0], &args) : STATUS_UNAVAILABLE, &args);
        send_queued(s);
    }
    free(a);
}

static enum status send_one(struct args_request *a, struct err *err)
{
    struct params p = {.count = 0};
    params_i64(&p, a->id);
    params_i64(&p, a->fence);
    enum status st = store_send_one(a->store, &SQL_JOB_ARGS, &p, on_args, a, err);
    a->store->args.in_flight += st == STATUS_OK;
    return st;
}

static void send_queued(struct job_store *s)
{
    while (s->args.first != NULL && s->args.in_flight < IN_FLIGHT_MAX) {
        struct args_request *a = s->args.first;
        s->args.first = a->next;
        if (send_one(a, NULL) != STATUS_OK) {
            const struct job_args none = {.args = NULL};
            a->done(a->ctx, STATUS_UNAVAILABLE, &none);
            free(a);
        }
    }
}

enum status job_store_args(struct job_store *s, int64_t id, int64_t fence, args_cb *done, void *ctx,
                           struct err *err)
{
    struct args_request *a = malloc(sizeof *a);
    if (a == NULL) {
        return err_fail(err, STATUS_NOMEM, "no memory for the args of job %lld", (long long)id);
    }
    *a = (struct args_request){.store = s, .id = id, .fence = fence, .done = done, .ctx = ctx};
    if (s->args.in_flight >= IN_FLIGHT_MAX) {
        *(s->args.first == NULL ? &s->args.first : &s->args.last->next) = a;
        s->args.last = a;
        return STATUS_OK;
    }
    enum status st = send_one(a, err);
    if (st != STATUS_OK) {
        free(a);
    }
    return st;
}
