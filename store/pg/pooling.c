/* SPDX-License-Identifier: Apache-2.0
 *
 * Detects a pooler between us and PostgreSQL. In session mode the server process is ours for as
 * long as our connection lasts. In transaction mode it is ours for one transaction, so prepared
 * statements, settings and LISTEN would be left to other clients (INTERFACES rule 8). A second
 * connection tells the modes apart: its open transaction takes our server process away unless that
 * is reserved for us. */
#include "sql/statement.h"
#include "store/pg/internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct pg_pooling {
    struct pg *pg;    /* the session in question; NULL = stopped */
    struct pg *other; /* the second connection */
    pg_pooling_cb *done;
};

static const struct pg_statement open_transaction = {.name = "", .sql = "BEGIN"};
/* The name is qualified: this server process may not have received our search path. */
static const struct pg_statement whose_server = {.name = "",
                                                 .sql = "SELECT pg_catalog.pg_backend_pid()"};

bool pg_pooling_is_possible(const struct pg *pg)
{
    return !pg->is_probe && pg->backend.pid != 0 && pg->backend.pid != PQbackendPID(pg->conn);
}

static void answer(struct pg_pooling *p, enum pg_pooling_kind kind)
{
    if (p->pg != NULL) {
        p->done(p->pg, kind);
    }
}

static void on_taken(void *ctx, enum status st, const struct pg_result *const *results,
                     const struct err *err)
{
    struct pg_pooling *p = ctx;
    (void)err;
    if (st != STATUS_OK || p->pg == NULL) {
        answer(p, PG_POOLING_UNKNOWN);
        return;
    }
    bool is_ours = pg_i64(results[1], 0, 0) == p->pg->backend.pid;
    answer(p, is_ours ? PG_POOLING_BY_TRANSACTION : PG_POOLING_LOOK_AGAIN);
}

static void on_other_up(void *ctx)
{
    struct pg_pooling *p = ctx;
    const struct pg_request request = {
        .steps = {{.statement = &open_transaction}, {.statement = &whose_server}},
        .step_count = 2,
        .done = on_taken,
        .ctx = p};
    if (pg_send(p->other, &request, NULL) != STATUS_OK) {
        answer(p, PG_POOLING_UNKNOWN);
    }
}

static void on_other_down(void *ctx, const struct err *why)
{
    (void)why;
    answer(ctx, PG_POOLING_UNKNOWN);
}

enum status pg_pooling_start(struct pg *pg, pg_pooling_cb *done, struct err *err)
{
    struct pg_pooling *p = calloc(1, sizeof *p);
    if (p == NULL) {
        return err_fail(err, STATUS_NOMEM, "no memory to look for a pooler");
    }
    p->pg = pg;
    p->done = done;
    struct pg_options options = pg->options;
    options.listen = NULL;
    options.on_up = on_other_up;
    options.on_down = on_other_down;
    options.on_notify = NULL;
    options.ctx = p;
    enum status st = pg_open(&options, &p->other, err);
    if (st != STATUS_OK) {
        free(p);
        return st;
    }
    p->other->is_probe = true;
    pg->pooling = p;
    return STATUS_OK;
}

/* Closing the connection ends its transaction. */
void pg_pooling_stop(struct pg *pg)
{
    struct pg_pooling *p = pg->pooling;
    if (p != NULL) {
        pg->pooling = NULL;
        p->pg = NULL;
        pg_close(p->other);
        free(p);
    }
}
