/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "base/timer.h"
#include "store/admin.h"
#include "store/pg/internal.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static void op_clear_results(struct pg_op *op)
{
    for (int i = 0; i < op->got; i++) {
        PQclear(op->results[i].rows);
    }
    op->got = 0;
}

void pg_op_free(struct pg_op *op)
{
    if (op != NULL) {
        op_clear_results(op);
        free(op);
    }
}

/* ---- open and close ---- */

static void copy_text(const char **text, bool *ok)
{
    if (*text != NULL) {
        *text = strdup(*text);
        *ok = *ok && *text != NULL;
    }
}

static void pg_free(struct pg *pg)
{
    const char *texts[] = {pg->options.conninfo, pg->options.application_name, pg->options.listen};
    for (size_t i = 0; i < ARRAY_COUNT(texts); i++) {
        char *mine = NULL;
        memcpy(&mine, &texts[i], sizeof mine);
        free(mine);
    }
    free(pg);
}

static void on_timer_closed(uv_handle_t *handle)
{
    pg_free(handle->data);
}

static void on_timer(uv_timer_t *timer)
{
    struct pg *pg = timer->data;
    pg_session_tick(pg, clock_boot_us());
}

enum status pg_open(const struct pg_options *options, struct pg **ret_pg, struct err *err)
{
    assert(options->loop != NULL && options->timeout_us > 0);
    assert(options->listen == NULL || strlen(options->listen) <= PG_NAME_MAX);
    enum status st = admin_check_conninfo(options->conninfo, err);
    if (st != STATUS_OK) {
        err_prefix(err, "postgres.conninfo");
        return st;
    }
    struct pg *pg = calloc(1, sizeof *pg);
    if (pg == NULL) {
        return err_fail(err, STATUS_NOMEM, "PostgreSQL connection");
    }
    bool ok = true;
    pg->options = *options;
    copy_text(&pg->options.conninfo, &ok);
    copy_text(&pg->options.application_name, &ok);
    copy_text(&pg->options.listen, &ok);
    if (!ok) {
        pg_free(pg);
        return err_fail(err, STATUS_NOMEM, "PostgreSQL connection");
    }
    rand_seed_from_system(&pg->rand);
    pg->retry_us = PG_RETRY_FIRST_US;
    pg->stage = PG_AWAY;
    pg->wake_us = clock_boot_us();
    (void)uv_timer_init(options->loop, &pg->timer);
    pg->timer.data = pg;
    pg_timer_set(pg);
    *ret_pg = pg;
    return STATUS_OK;
}

static void end_all(struct pg_ops *ops, const struct err *why)
{
    for (struct pg_op *op = pg_ops_pop(ops); op != NULL; op = pg_ops_pop(ops)) {
        if (op->done != NULL) {
            op->done(op->ctx, why->status, NULL, why);
        }
        pg_op_free(op);
    }
}

void pg_close(struct pg *pg)
{
    if (pg == NULL) {
        return;
    }
    assert(pg->stage != PG_CLOSED);
    pg_session_drop(pg);
    pg->stage = PG_CLOSED;
    struct err why = {0};
    err_set(&why, STATUS_UNKNOWN, 0, "the connection was closed before the reply");
    end_all(&pg->limbo, &why);
    end_all(&pg->sent, &why);
    uv_close((uv_handle_t *)&pg->timer, on_timer_closed);
}

bool pg_is_up(const struct pg *pg)
{
    return pg->stage == PG_UP && !pg->is_broken;
}

int64_t pg_up_since_us(const struct pg *pg)
{
    return pg_is_up(pg) ? pg->up_since_us : 0;
}

int pg_backend_pid(const struct pg *pg)
{
    return pg_is_up(pg) ? pg->backend.pid : 0;
}

int pg_server_version(const struct pg *pg)
{
    return pg->server_version;
}

/* ---- timer ---- */

void pg_timer_set(struct pg *pg)
{
    int64_t at_us = pg->stage == PG_UP ? INT64_MAX : pg->wake_us;
    for (const struct pg_op *op = pg->sent.first; op != NULL; op = op->next) {
        at_us = op->deadline_us < at_us ? op->deadline_us : at_us;
    }
    if (pg->is_broken) {
        at_us = 0;
    }
    if (at_us == INT64_MAX) {
        (void)uv_timer_stop(&pg->timer);
        return;
    }
    int64_t wait_us = at_us - clock_boot_us();
    uint64_t wait_ms = wait_us > 0 ? (uint64_t)(wait_us / US_PER_MS) + 1 : 0;
    timer_start(&pg->timer, on_timer, wait_ms, 0);
}

/* ---- sending ---- */

static bool is_prepared(const struct pg *pg, const struct pg_statement *statement)
{
    for (int i = 0; i < pg->prepared_count; i++) {
        if (pg->prepared[i] == statement) {
            return true;
        }
    }
    return false;
}

static void forget_prepared(struct pg *pg, const struct pg_statement *statement)
{
    for (int i = 0; i < pg->prepared_count; i++) {
        if (pg->prepared[i] == statement) {
            pg->prepared[i] = pg->prepared[--pg->prepared_count];
            return;
        }
    }
}

/* Sends the preparation in a segment of its own: within the request's segment, an earlier error
 * would skip it, while later requests that rely on it have already been sent. */
static enum status prepare(struct pg *pg, const struct pg_statement *statement, int64_t deadline_us,
                           struct err *err)
{
    if (pg->prepared_count == PG_PREPARED_MAX) {
        return err_fail(err, STATUS_LIMIT, "more than %d prepared statements", PG_PREPARED_MAX);
    }
    struct pg_op *op = calloc(1, sizeof *op);
    if (op == NULL) {
        return err_fail(err, STATUS_NOMEM, "PostgreSQL request");
    }
    op->prepares = statement;
    op->deadline_us = deadline_us;
    pg->prepared[pg->prepared_count++] = statement;
    pg_ops_push(&pg->sent, op);
    if (PQsendPrepare(pg->conn, statement->name, statement->sql, statement->type_count,
                      statement->types) != 1 ||
        PQpipelineSync(pg->conn) != 1) {
        pg->is_broken = true;
    }
    return STATUS_OK;
}

static bool send_step(struct pg *pg, const struct pg_step *step)
{
    const char *values[PG_PARAMS_MAX];
    int lengths[PG_PARAMS_MAX];
    int formats[PG_PARAMS_MAX];
    int count = step->statement->type_count;
    assert(count <= PG_PARAMS_MAX);
    for (int i = 0; i < count; i++) {
        values[i] = step->params[i].bytes;
        lengths[i] = step->params[i].len;
        formats[i] = 1;
    }
    if (step->statement->name[0] == '\0') {
        return PQsendQueryParams(pg->conn, step->statement->sql, count, step->statement->types,
                                 values, lengths, formats, 1) == 1;
    }
    return PQsendQueryPrepared(pg->conn, step->statement->name, count, values, lengths, formats,
                               1) == 1;
}

/* From here on a request counts as sent, even if sending fails: it ends as UNKNOWN once the session
 * is gone. */
static void send_segment(struct pg *pg, const struct pg_request *request)
{
    for (int i = 0; i < request->step_count && !pg->is_broken; i++) {
        pg->is_broken = !send_step(pg, &request->steps[i]);
    }
    if (!pg->is_broken && PQpipelineSync(pg->conn) != 1) {
        pg->is_broken = true;
    }
}

enum status pg_send(struct pg *pg, const struct pg_request *request, struct err *err)
{
    assert(request->step_count > 0 && request->step_count <= PG_STEPS_MAX);
    assert(request->done != NULL);
    if (!pg_is_up(pg)) {
        return err_fail(err, STATUS_UNAVAILABLE, "not connected to PostgreSQL");
    }
    if (pg->sent.count + PG_STEPS_MAX >= PG_OPS_MAX) {
        return err_fail(err, STATUS_LIMIT, "%zu requests wait for PostgreSQL", pg->sent.count);
    }
    int64_t timeout_us = request->timeout_us > 0 ? request->timeout_us : pg->options.timeout_us;
    int64_t deadline_us = clock_boot_us() + timeout_us;
    for (int i = 0; i < request->step_count && !pg->is_broken; i++) {
        const struct pg_statement *statement = request->steps[i].statement;
        if (statement->name[0] != '\0' && !is_prepared(pg, statement)) {
            enum status st = prepare(pg, statement, deadline_us, err);
            if (st != STATUS_OK) {
                return st;
            }
        }
    }
    struct pg_op *op = calloc(1, sizeof *op);
    if (op == NULL) {
        return err_fail(err, STATUS_NOMEM, "PostgreSQL request");
    }
    op->deadline_us = deadline_us;
    op->step_count = request->step_count;
    op->done = request->done;
    op->ctx = request->ctx;
    pg_ops_push(&pg->sent, op);
    send_segment(pg, request);
    pg_session_poll(pg);
    pg_timer_set(pg);
    return STATUS_OK;
}

enum status pg_send_one(struct pg *pg, const struct pg_statement *statement,
                        const struct pg_param *params, pg_done_cb *done, void *ctx, struct err *err)
{
    struct pg_request request = {.steps = {{.statement = statement, .params = params}},
                                 .step_count = 1,
                                 .done = done,
                                 .ctx = ctx};
    return pg_send(pg, &request, err);
}

/* ---- replies ---- */

/* Lets the next request prepare a statement again whose preparation failed; a request that already
 * uses it gets this reason instead of "does not exist". */
static void end_prepare(struct pg *pg, const struct pg_op *op)
{
    if (op->err.status != STATUS_OK) {
        forget_prepared(pg, op->prepares);
        pg->prepare_err = op->err;
        err_prefix(&pg->prepare_err, "prepare %s", op->prepares->name);
    }
}

/* Leaves a server that refuses writes (a primary that became a standby, or a disk that is nearly
 * full): on another host of conninfo, or later, writes may succeed. */
static void leave_read_only(struct pg *pg, const struct err *err)
{
    if (strcmp(err->code, "25006") == 0 && !pg->is_broken) {
        pg->is_broken = true;
        err_set(&pg->broken_why, STATUS_UNAVAILABLE, 0, "this server takes no writes: %s",
                err->msg);
    }
}

static void end_request(struct pg *pg, struct pg_op *op)
{
    if (strcmp(op->err.code, "26000") == 0 && pg->prepare_err.status != STATUS_OK) {
        op->err = pg->prepare_err;
    }
    if (op->err.status == STATUS_OK && op->got != op->step_count) {
        err_set(&op->err, STATUS_INTERNAL, 0, "PostgreSQL sent %d results for %d statements",
                op->got, op->step_count);
    }
    leave_read_only(pg, &op->err);
    if (op->err.status != STATUS_OK) {
        op->done(op->ctx, op->err.status, NULL, &op->err);
        return;
    }
    const struct pg_result *results[PG_STEPS_MAX];
    for (int i = 0; i < op->got; i++) {
        results[i] = &op->results[i];
    }
    op->done(op->ctx, STATUS_OK, results, &op->err);
}

static void end_segment(struct pg *pg)
{
    struct pg_op *op = pg_ops_pop(&pg->sent);
    if (op->prepares != NULL) {
        end_prepare(pg, op);
    } else {
        end_request(pg, op);
    }
    pg_op_free(op);
}

static void take_result(struct pg_op *op, PGresult *rows)
{
    ExecStatusType kind = PQresultStatus(rows);
    bool is_reply = kind == PGRES_TUPLES_OK || kind == PGRES_COMMAND_OK;
    if (is_reply && op->got < PG_STEPS_MAX) {
        op->results[op->got++].rows = rows;
        return;
    }
    if (kind != PGRES_PIPELINE_ABORTED) {
        pg_err_from(&op->err, rows);
    }
    PQclear(rows);
}

void pg_requests_read(struct pg *pg)
{
    while (pg->stage == PG_UP && pg->sent.first != NULL && PQisBusy(pg->conn) == 0) {
        PGresult *rows = PQgetResult(pg->conn);
        if (PQstatus(pg->conn) == CONNECTION_BAD) {
            PQclear(rows);
            return; /* the caller checks the connection too */
        }
        if (PQresultStatus(rows) == PGRES_PIPELINE_SYNC) {
            PQclear(rows);
            end_segment(pg);
        } else if (rows != NULL) { /* NULL ends one statement of the segment */
            take_result(pg->sent.first, rows);
        }
    }
}

/* A callback may close the connection, which ends the rest. */
void pg_limbo_end(struct pg *pg, const struct err *why)
{
    for (struct pg_op *op = pg_ops_pop(&pg->limbo); op != NULL; op = pg_ops_pop(&pg->limbo)) {
        op->done(op->ctx, why->status, NULL, why);
        pg_op_free(op);
    }
}
