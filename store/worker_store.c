/* SPDX-License-Identifier: Apache-2.0 */
#include "store/worker_store.h"

#include "base/clock.h"
#include "sql/queries.h"
#include "store/migrate.h"
#include "store/pg/params.h"

#include <assert.h>
#include <stdio.h>

#define WORKER_KINDS_MAX 500

/* The state of a request until its reply. */
struct waiting {
    worker_done_cb *done;
    worker_heartbeat_cb *heartbeat;
    predecessor_cb *ended;
    handed_back_cb *handed_back;
    void *ctx;
};

static struct waiting *waiting_new(struct waiting from, struct err *err)
{
    struct waiting *w = malloc(sizeof *w);
    if (w == NULL) {
        err_set(err, STATUS_NOMEM, 0, "no memory for the worker's row");
        return NULL;
    }
    *w = from;
    return w;
}

static void on_done(void *ctx, enum status st, const struct pg_result *const *results,
                    const struct err *err)
{
    (void)results;
    struct waiting *w = ctx;
    w->done(w->ctx, st, err);
    free(w);
}

/* Sends the request; frees `w` if that fails. */
static enum status send_for(struct pg *pg, struct pg_request *request, pg_done_cb *done,
                            struct waiting *w, struct err *err)
{
    request->done = done;
    request->ctx = w;
    enum status st = pg_send(pg, request, err);
    if (st != STATUS_OK) {
        free(w);
    }
    return st;
}

/* Adds a statement whose only parameter is a worker's id. */
static enum status step_by_id(struct params *p, const struct pg_statement *statement,
                              const char *worker_id, struct pg_request *request, struct err *err)
{
    params_uuid(p, worker_id);
    int n = request->step_count;
    request->step_count++;
    return params_step(p, statement, &request->steps[n], err);
}

static enum status send_by_id(struct pg *pg, const struct pg_statement *statement,
                              const char *worker_id, worker_done_cb *done, void *ctx,
                              struct err *err)
{
    struct params p = {.count = 0};
    struct pg_request request = {.step_count = 0};
    enum status st = step_by_id(&p, statement, worker_id, &request, err);
    if (st != STATUS_OK) {
        return st;
    }
    struct waiting *w = waiting_new((struct waiting){.done = done, .ctx = ctx}, err);
    return w == NULL ? STATUS_NOMEM : send_for(pg, &request, on_done, w, err);
}

/* ---- register ---- */

struct kind_columns {
    const char *names[WORKER_KINDS_MAX];
    const char *plugins[WORKER_KINDS_MAX];
    const char *versions[WORKER_KINDS_MAX];
    int64_t max_attempts[WORKER_KINDS_MAX];
    int64_t max_crashes[WORKER_KINDS_MAX];
    int64_t timeouts_us[WORKER_KINDS_MAX];
    int64_t at_most_once[WORKER_KINDS_MAX];
    const char *backoffs[WORKER_KINDS_MAX];
    int64_t keep_log[WORKER_KINDS_MAX];
    int64_t graces_us[WORKER_KINDS_MAX];
};

static void put_kinds(struct params *p, const struct worker_registration *r,
                      struct kind_columns *columns)
{
    size_t count = r->kind_count;
    for (size_t i = 0; i < count; i++) {
        const struct worker_kind *kind = &r->kinds[i];
        columns->names[i] = kind->name;
        columns->plugins[i] = kind->plugin != NULL ? kind->plugin : "";
        columns->versions[i] = kind->version != NULL ? kind->version : "";
        columns->max_attempts[i] = kind->settings.max_attempts;
        columns->max_crashes[i] = kind->settings.max_crashes;
        columns->timeouts_us[i] = kind->settings.timeout_us;
        columns->at_most_once[i] = kind->settings.at_most_once;
        columns->backoffs[i] = kind->settings.backoff;
        columns->keep_log[i] = kind->settings.keeps_log;
        columns->graces_us[i] = kind->settings.grace_us;
    }
    params_text_array(p, columns->names, NULL, count);
    params_text_array(p, columns->plugins, NULL, count);
    params_text_array(p, columns->versions, NULL, count);
    params_i64_array(p, columns->max_attempts, count);
    params_i64_array(p, columns->max_crashes, count);
    params_i64_array(p, columns->timeouts_us, count);
    params_i64_array(p, columns->at_most_once, count);
    params_text_array(p, columns->backoffs, NULL, count);
    params_i64_array(p, columns->keep_log, count);
    params_i64_array(p, columns->graces_us, count);
}

static void put_worker(struct params *p, const struct worker_registration *r,
                       const struct kind_columns *columns)
{
    params_uuid(p, r->worker_id);
    params_i64(p, r->stale_us);
    params_i32(p, r->pid);
    params_i32(p, r->slots);
    params_text(p, r->host);
    params_text(p, r->state_dir);
    params_text(p, r->token_prefix);
    params_text(p, r->version);
    params_text_array(p, r->queues, NULL, r->queue_count);
    params_text_array(p, columns->names, NULL, r->kind_count);
    params_text(p, r->lock_nodes != NULL ? r->lock_nodes : "");
    params_i32(p, migrate_known_version());
    params_text(p, r->commands != NULL ? r->commands : "{}");
}

static void on_registered(void *ctx, enum status st, const struct pg_result *const *results,
                          const struct err *err)
{
    struct waiting *w = ctx;
    struct err wrong = {0};
    if (st == STATUS_OK && pg_row_count(results[1]) == 0) {
        st = err_fail(&wrong, STATUS_CONFLICT,
                      "the cluster's lock nodes have changed: change lock.nodes here, too");
        err = &wrong;
    }
    w->done(w->ctx, st, err);
    free(w);
}

static enum status send_registration(struct pg *pg, struct params *params,
                                     const struct worker_registration *r, struct waiting *w,
                                     struct err *err)
{
    autofree struct kind_columns *columns = malloc(sizeof *columns);
    if (columns == NULL) {
        free(w);
        return err_fail(err, STATUS_NOMEM, "no memory for the kinds of a worker");
    }
    struct pg_request request = {.step_count = 2};
    put_kinds(&params[0], r, columns);
    put_worker(&params[1], r, columns);
    enum status st = params_step(&params[0], &SQL_WORKER_KINDS, &request.steps[0], err);
    if (st == STATUS_OK) {
        st = params_step(&params[1], &SQL_WORKER_REGISTER, &request.steps[1], err);
    }
    if (st != STATUS_OK) {
        free(w);
        return st;
    }
    return send_for(pg, &request, on_registered, w, err);
}

enum status worker_store_register(struct pg *pg, const struct worker_registration *r,
                                  worker_done_cb *done, void *ctx, struct err *err)
{
    if (r->kind_count > WORKER_KINDS_MAX) {
        return err_fail(err, STATUS_INVALID, "%zu kinds: at most %d", r->kind_count,
                        WORKER_KINDS_MAX);
    }
    struct waiting *w = waiting_new((struct waiting){.done = done, .ctx = ctx}, err);
    if (w == NULL) {
        return STATUS_NOMEM;
    }
    struct params params[2] = {{.count = 0}};
    enum status st = send_registration(pg, params, r, w, err);
    params_release(&params[0]);
    params_release(&params[1]);
    return st;
}

/* ---- heartbeat ---- */

/* Reads the reply. The names are borrowed from the rows; `names` has room for twice the number of
 * rows. */
static void read_reply(const struct pg_result *rows, struct worker_heartbeat_reply *reply,
                       const char **names, struct worker_cancel *cancels,
                       struct worker_weight *weights)
{
    int count = pg_row_count(rows);
    const char **kinds = names + count;
    *reply = (struct worker_heartbeat_reply){.is_dead = true,
                                             .paused_queues = names,
                                             .weights = weights,
                                             .paused_kinds = kinds,
                                             .asked = "",
                                             .cancels = cancels};
    for (int row = 0; row < count; row++) {
        size_t len = 0;
        const char *what = pg_text(rows, row, 0, &len);
        const char *name = pg_text(rows, row, 1, &len);
        if (strcmp(what, "heartbeat") == 0) {
            reply->is_dead = false;
        } else if (strcmp(what, "cancel") == 0) {
            cancels[reply->cancel_count++] =
                (struct worker_cancel){.id = pg_i64(rows, row, 2), .fence = pg_i64(rows, row, 3)};
        } else if (strcmp(what, "paused") == 0) {
            names[reply->paused_count++] = name;
        } else if (strcmp(what, "weight") == 0) {
            weights[reply->weight_count++] =
                (struct worker_weight){.queue = name, .weight = (int)pg_i64(rows, row, 2)};
        } else if (strcmp(what, "kind") == 0) {
            kinds[reply->paused_kind_count++] = name;
        } else {
            reply->asked = name;
        }
    }
}

static void on_heartbeat(void *ctx, enum status st, const struct pg_result *const *results,
                         const struct err *err)
{
    struct waiting *w = ctx;
    struct worker_heartbeat_reply reply = {.is_dead = false};
    struct err no_memory = {.status = STATUS_OK};
    autofree const char **names = NULL;
    autofree struct worker_cancel *cancels = NULL;
    autofree struct worker_weight *weights = NULL;
    if (st == STATUS_OK) {
        size_t room = (size_t)pg_row_count(results[0]) + 1;
        names = calloc(2 * room, sizeof *names);
        cancels = calloc(room, sizeof *cancels);
        weights = calloc(room, sizeof *weights);
        if (names == NULL || cancels == NULL || weights == NULL) {
            st = err_fail(&no_memory, STATUS_NOMEM, "no memory for the reply to a heartbeat");
            err = &no_memory;
        } else {
            read_reply(results[0], &reply, names, cancels, weights);
        }
    }
    w->heartbeat(w->ctx, st, &reply, err);
    free(w);
}

static void put_heartbeat(struct params *p, const struct worker_heartbeat *b)
{
    const char *names[WORKER_KINDS_MAX];
    for (size_t i = 0; i < b->kind_count; i++) {
        names[i] = b->kinds[i].name;
    }
    params_uuid(p, b->worker_id);
    params_i64(p, b->stale_us);
    params_bool(p, b->is_quiet);
    params_bool(p, b->lost_pop);
    params_i32(p, b->running);
    params_i64_array(p, b->held_fences, b->held_count);
    params_text_array(p, names, NULL, b->kind_count);
    params_i32(p, b->lock_nodes);
    params_i32(p, b->lock_nodes_voting);
    params_i32(p, b->uncommitted);
    params_i64(p, b->uncommitted_us);
    params_text(p, b->trouble != NULL ? b->trouble : "");
    params_i64(p, clock_wall_us());
    params_i32(p, b->spare_least);
    params_i64(p, b->ready_oldest_us);
    params_text_array(p, b->refused, NULL, b->refused_count);
}

enum status worker_store_heartbeat(struct pg *pg, const struct worker_heartbeat *b,
                                   worker_heartbeat_cb *done, void *ctx, struct err *err)
{
    if (b->kind_count > WORKER_KINDS_MAX) {
        return err_fail(err, STATUS_INVALID, "%zu kinds: at most %d", b->kind_count,
                        WORKER_KINDS_MAX);
    }
    struct params p = {.count = 0};
    struct pg_request request = {.step_count = 1};
    put_heartbeat(&p, b);
    enum status st = params_step(&p, &SQL_WORKER_HEARTBEAT, &request.steps[0], err);
    if (st == STATUS_OK) {
        struct waiting *w = waiting_new((struct waiting){.heartbeat = done, .ctx = ctx}, err);
        st = w == NULL ? STATUS_NOMEM : send_for(pg, &request, on_heartbeat, w, err);
    }
    params_release(&p);
    return st;
}

/* ---- listen ---- */

enum status worker_store_listen(struct pg *pg, const char *channel, bool is_on,
                                worker_done_cb *done, void *ctx, struct err *err)
{
    char sql[64];
    struct pg_statement statement = {.name = "", .sql = sql};
    struct pg_request request = {.steps = {{.statement = &statement}}, .step_count = 1};
    (void)snprintf(sql, sizeof sql, "%s %s", is_on ? "LISTEN" : "UNLISTEN", channel);
    struct waiting *w = waiting_new((struct waiting){.done = done, .ctx = ctx}, err);
    return w == NULL ? STATUS_NOMEM : send_for(pg, &request, on_done, w, err);
}

/* ---- ending ---- */

enum status worker_store_stopped(struct pg *pg, const char *worker_id, worker_done_cb *done,
                                 void *ctx, struct err *err)
{
    return send_by_id(pg, &SQL_WORKER_STOPPED, worker_id, done, ctx, err);
}

static void tell_handed_back(struct waiting *w, const struct pg_result *rows)
{
    for (int row = 0; row < pg_row_count(rows); row++) {
        struct handed_back job = {.id = pg_i64(rows, row, 0),
                                  .queue = pg_text(rows, row, 1, NULL),
                                  .kind = pg_text(rows, row, 2, NULL),
                                  .priority = (int)pg_i64(rows, row, 3),
                                  .ready_at_unix_us = pg_time_us(rows, row, 4)};
        w->handed_back(w->ctx, &job);
    }
}

static void on_handed_back(void *ctx, enum status st, const struct pg_result *const *results,
                           const struct err *err)
{
    struct waiting *w = ctx;
    for (int step = 1; st == STATUS_OK && step < 3; step++) { /* after SQL_PLAN_ANEW */
        tell_handed_back(w, results[step]);
    }
    w->done(w->ctx, st, err);
    free(w);
}

enum status worker_store_hand_back_all(struct pg *pg, const char *dead_worker_id,
                                       handed_back_cb *each, worker_done_cb *done, void *ctx,
                                       struct err *err)
{
    struct params p = {.count = 0};
    struct pg_request request = {.steps = {{.statement = &SQL_PLAN_ANEW}}, .step_count = 1};
    enum status st = step_by_id(&p, &SQL_WORKER_HAND_BACK, dead_worker_id, &request, err);
    if (st != STATUS_OK) {
        return st;
    }
    request.steps[request.step_count++].statement = &SQL_LIMIT_LEAKED;
    struct waiting *w =
        waiting_new((struct waiting){.handed_back = each, .done = done, .ctx = ctx}, err);
    return w == NULL ? STATUS_NOMEM : send_for(pg, &request, on_handed_back, w, err);
}

static bool is_backend_gone(const struct pg_result *rows)
{
    for (int row = 0; row < pg_row_count(rows); row++) {
        if (pg_is_null(rows, row, 0) || !pg_bool(rows, row, 0)) {
            return false;
        }
    }
    return true;
}

static void report_predecessor(const struct waiting *w, const struct pg_result *const *results)
{
    const struct pg_result *row = results[1];
    const struct pg_result *running = results[3]; /* after SQL_PLAN_ANEW */
    size_t count = (size_t)pg_row_count(running);
    autofree int64_t *ids = calloc(count + 1, sizeof *ids);
    if (ids == NULL) {
        w->ended(w->ctx, STATUS_NOMEM, NULL, NULL, 0);
        return;
    }
    for (size_t i = 0; i < count; i++) {
        ids[i] = pg_i64(running, (int)i, 0);
    }
    size_t len = 0;
    w->ended(w->ctx, STATUS_OK, pg_text(row, 0, 0, &len), ids, count);
}

static void on_predecessor(void *ctx, enum status st, const struct pg_result *const *results,
                           const struct err *err)
{
    (void)err;
    struct waiting *w = ctx;
    if (st != STATUS_OK) {
        w->ended(w->ctx, st, NULL, NULL, 0);
    } else if (!is_backend_gone(results[0])) {
        w->ended(w->ctx, STATUS_UNAVAILABLE, NULL, NULL, 0);
    } else if (pg_row_count(results[1]) == 0) {
        w->ended(w->ctx, STATUS_NOT_FOUND, NULL, NULL, 0);
    } else {
        report_predecessor(w, results);
    }
    free(w);
}

enum status worker_store_end_predecessor(struct pg *pg, const char *worker_id, predecessor_cb *done,
                                         void *ctx, struct err *err)
{
    struct params params[3] = {{.count = 0}};
    struct pg_request request = {.step_count = 0};
    enum status st = step_by_id(&params[0], &SQL_WORKER_END_BACKEND, worker_id, &request, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = step_by_id(&params[1], &SQL_WORKER_DEAD, worker_id, &request, err);
    if (st != STATUS_OK) {
        return st;
    }
    request.steps[request.step_count++].statement = &SQL_PLAN_ANEW;
    st = step_by_id(&params[2], &SQL_WORKER_RUNNING, worker_id, &request, err);
    if (st != STATUS_OK) {
        return st;
    }
    struct waiting *w = waiting_new((struct waiting){.ended = done, .ctx = ctx}, err);
    return w == NULL ? STATUS_NOMEM : send_for(pg, &request, on_predecessor, w, err);
}
