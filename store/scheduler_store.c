/* SPDX-License-Identifier: Apache-2.0 */
#include "store/scheduler_store.h"

#include "base/clock.h"
#include "sql/queries.h"
#include "store/migrate.h"
#include "store/pg/params.h"

static void on_reported(void *ctx, enum status st, const struct pg_result *const *results,
                        const struct err *err)
{
    enum { AT, IS_OURS, LOCK_NODES };
    const struct scheduler_saying *saying = ctx;
    struct err wrong = {0};
    if (st != STATUS_OK) {
        saying->done(saying->ctx, st, 0, err);
        return;
    }
    if (!pg_bool(results[0], 0, IS_OURS)) {
        err_set(&wrong, STATUS_CONFLICT, 0,
                "the cluster's lock nodes are now %s, but lock.nodes here is %s",
                pg_text(results[0], 0, LOCK_NODES, NULL), saying->fingerprint);
    }
    saying->done(saying->ctx, wrong.status, pg_time_us(results[0], 0, AT), &wrong);
}

static void put_report(struct params *p, const struct scheduler_report *r)
{
    params_uuid(p, r->scheduler_id);
    params_i64(p, r->stale_us);
    params_i32(p, r->pid);
    params_text(p, r->host);
    params_text(p, r->version);
    params_text(p, r->fingerprint);
    params_i64(p, r->leads_us);
    params_i64(p, r->passed_us);
    params_i32(p, r->lock_nodes);
    params_i32(p, r->lock_nodes_voting);
    params_i64(p, clock_wall_us());
    params_i64(p, r->clock_step_us);
    params_i64(p, r->stepped_us);
    params_text(p, r->last_error);
    params_i64(p, r->full_age_us);
    params_i64(p, r->full_took_us);
    params_i32(p, migrate_known_version());
    params_i64(p, r->lanes);
    params_text(p, r->lap_queue);
    params_i64(p, r->lap_us);
}

enum status scheduler_store_report(struct pg *pg, const struct scheduler_report *report,
                                   struct scheduler_saying *saying, struct err *err)
{
    struct params p = {.count = 0};
    struct pg_request request = {.step_count = 1, .done = on_reported, .ctx = saying};
    put_report(&p, report);
    enum status st = params_step(&p, &SQL_SCHEDULER_REPORT, &request.steps[0], err);
    if (st == STATUS_OK) {
        st = pg_send(pg, &request, err);
    }
    params_release(&p);
    return st;
}

static void on_gone(void *ctx, enum status st, const struct pg_result *const *results,
                    const struct err *err)
{
    (void)ctx;
    (void)st;
    (void)results;
    (void)err;
}

void scheduler_store_gone(struct pg *pg, const char *scheduler_id)
{
    struct params p = {.count = 0};
    struct pg_request request = {.step_count = 1, .done = on_gone};
    struct pg_statement unnamed = SQL_SCHEDULER_GONE;
    unnamed.name = ""; /* a prepared statement would need a round trip first */
    params_uuid(&p, scheduler_id);
    bool is_sent = params_step(&p, &unnamed, &request.steps[0], NULL) == STATUS_OK &&
                   pg_send(pg, &request, NULL) == STATUS_OK;
    (void)is_sent; /* if it was not sent, the row becomes stale */
    params_release(&p);
}
