/* SPDX-License-Identifier: Apache-2.0 */
#include "store/history_store.h"

#include "base/clock.h"
#include "sql/queries.h"
#include "store/pg/params.h"

#include <stdio.h>
#include <string.h>

#define SWEEP_PAGES 25                   /* hold about a thousand jobs */
#define TIMEOUT_US (6 * 3600 * US_PER_S) /* enough to vacuum a large table */

static enum status send_one(struct pg *pg, const struct pg_statement *statement,
                            const struct pg_param *params, pg_done_cb *done, void *ctx,
                            struct err *err)
{
    struct pg_request request = {.steps = {{.statement = statement, .params = params}},
                                 .step_count = 1,
                                 .timeout_us = TIMEOUT_US,
                                 .done = done,
                                 .ctx = ctx};
    return pg_send(pg, &request, err);
}

enum status history_store_ensure(struct pg *pg, int ahead, pg_done_cb *done, void *ctx,
                                 struct err *err)
{
    char storage[4];
    struct pg_param param = pg_param_i32(ahead, storage);
    return send_one(pg, &SQL_HISTORY_ENSURE, &param, done, ctx, err);
}

enum status history_store_ensure_now(struct pg *pg, pg_done_cb *done, void *ctx, struct err *err)
{
    char storage[4];
    struct pg_param param = pg_param_i32(1, storage);
    return pg_send_one(pg, &SQL_HISTORY_ENSURE, &param, done, ctx, err);
}

/* Sends a statement that lists what is old, together with the state of the clock. */
static enum status send_list(struct pg *pg, const struct pg_statement *list, int keep,
                             pg_done_cb *done, void *ctx, struct err *err)
{
    char storage[4];
    struct pg_param param = pg_param_i32(keep, storage);
    struct pg_request request = {
        .steps = {{.statement = &SQL_HISTORY_CLOCK}, {.statement = list, .params = &param}},
        .step_count = 2,
        .timeout_us = TIMEOUT_US,
        .done = done,
        .ctx = ctx};
    return pg_send(pg, &request, err);
}

void history_clock_row(const struct pg_result *r, struct history_clock *ret)
{
    *ret =
        (struct history_clock){.now_us = pg_time_us(r, 0, 0),
                               .last = {.at_us = pg_time_us(r, 0, 1), .hold_us = pg_i64(r, 0, 2)}};
}

enum status history_store_old(struct pg *pg, int keep, pg_done_cb *done, void *ctx, struct err *err)
{
    return send_list(pg, &SQL_HISTORY_OLD, keep, done, ctx, err);
}

enum status history_store_forget(struct pg *pg, int keep, pg_done_cb *done, void *ctx,
                                 struct err *err)
{
    char storage[4];
    struct pg_param param = pg_param_i32(keep, storage);
    return send_one(pg, &SQL_HISTORY_FORGET, &param, done, ctx, err);
}

enum status history_store_fold(struct pg *pg, int keep, pg_done_cb *done, void *ctx,
                               struct err *err)
{
    char storage[4];
    struct pg_param param = pg_param_i32(keep, storage);
    return send_one(pg, &SQL_HISTORY_FOLD, &param, done, ctx, err);
}

void history_day_row(const struct pg_result *r, int row, struct history_day *ret)
{
    *ret = (struct history_day){.step = (enum history_step)pg_i64(r, row, 1)};
    (void)snprintf(ret->name, sizeof ret->name, "%s", pg_text(r, row, 0, NULL));
}

/* Guards the name, since it becomes part of a statement's text, where parameters are impossible. */
static bool is_day(const char *name)
{
    static const char prefix[] = "job_history_";
    size_t len = strlen(prefix);
    return strncmp(name, prefix, len) == 0 && strlen(name) == len + 8 &&
           strspn(name + len, "0123456789") == 8;
}

enum status history_store_remove(struct pg *pg, const struct history_day *day, pg_done_cb *done,
                                 void *ctx, struct err *err)
{
    static const char *const formats[] = {
        [HISTORY_ATTACHED] = "ALTER TABLE claimd.job_history DETACH PARTITION claimd.%s "
                             "CONCURRENTLY",
        [HISTORY_DETACH_PENDING] = "ALTER TABLE claimd.job_history DETACH PARTITION claimd.%s "
                                   "FINALIZE",
        [HISTORY_DETACHED] = "DROP TABLE claimd.%s"};
    if (!is_day(day->name)) {
        return err_fail(err, STATUS_INVALID, "'%s' is not the name of a day", day->name);
    }
    char sql[160];
    const char *format = formats[day->step];
    const char *hole = strstr(format, "%s");
    (void)snprintf(sql, sizeof sql, "%.*s%s%s", (int)(hole - format), format, day->name, hole + 2);
    struct pg_statement statement = {.name = "", .sql = sql};
    return send_one(pg, &statement, NULL, done, ctx, err);
}

/* ---- jobs with shorter retention rules ---- */

static enum status send_params(struct pg *pg, const struct pg_statement *statement,
                               struct params *p, pg_done_cb *done, void *ctx, struct err *err)
{
    struct pg_request request = {
        .step_count = 1, .timeout_us = TIMEOUT_US, .done = done, .ctx = ctx};
    enum status st = params_step(p, statement, &request.steps[0], err);
    if (st == STATUS_OK) {
        st = pg_send(pg, &request, err);
    }
    params_release(p);
    return st;
}

enum status history_store_looked(struct pg *pg, const struct history_clock *clock,
                                 const struct sweep_clock *now, pg_done_cb *done, void *ctx,
                                 struct err *err)
{
    struct params p = {.count = 0};
    params_i64(&p, clock->last.at_us);
    params_i64(&p, now->at_us);
    params_i64(&p, now->hold_us);
    return send_params(pg, &SQL_HISTORY_LOOKED, &p, done, ctx, err);
}

enum status history_store_to_sweep(struct pg *pg, int keep, pg_done_cb *done, void *ctx,
                                   struct err *err)
{
    return send_list(pg, &SQL_HISTORY_TO_SWEEP, keep, done, ctx, err);
}

void history_sweep_row(const struct pg_result *r, int row, struct history_sweep *ret)
{
    *ret = (struct history_sweep){.age_days = (int)pg_i64(r, row, 1)};
    (void)snprintf(ret->day, sizeof ret->day, "%s", pg_text(r, row, 0, NULL));
    (void)snprintf(ret->rules, sizeof ret->rules, "%s", pg_text(r, row, 2, NULL));
}

enum status history_store_sweep(struct pg *pg, const struct history_sweep *sweep, int keep,
                                pg_done_cb *done, void *ctx, struct err *err)
{
    struct params p = {.count = 0};
    params_text(&p, sweep->day);
    params_i32(&p, sweep->age_days);
    params_i32(&p, keep);
    params_i64(&p, sweep->page);
    params_i32(&p, SWEEP_PAGES);
    return send_params(pg, &SQL_HISTORY_SWEEP, &p, done, ctx, err);
}

void history_sweep_note(const struct pg_result *r, struct history_sweep *sweep)
{
    sweep->page = pg_i64(r, 0, 0);
    sweep->deleted += pg_i64(r, 0, 1);
    sweep->left_over += pg_i64(r, 0, 2);
}

enum status history_store_swept(struct pg *pg, const struct history_sweep *sweep, pg_done_cb *done,
                                void *ctx, struct err *err)
{
    struct params p = {.count = 0};
    params_text(&p, sweep->day);
    params_i32(&p, sweep->age_days);
    params_text(&p, sweep->rules);
    params_bool(&p, sweep->left_over == 0);
    return send_params(pg, &SQL_HISTORY_SWEPT, &p, done, ctx, err);
}

/* Does not truncate the table: truncation waits for readers, and others would wait behind it. */
enum status history_store_vacuum_day(struct pg *pg, const struct history_sweep *sweep,
                                     pg_done_cb *done, void *ctx, struct err *err)
{
    char name[HISTORY_NAME_SIZE];
    char sql[160];
    (void)snprintf(name, sizeof name, "job_history_%.4s%.2s%.2s", sweep->day, sweep->day + 5,
                   sweep->day + 8);
    if (!is_day(name)) {
        return err_fail(err, STATUS_INVALID, "'%s' is not the name of a day", name);
    }
    (void)snprintf(sql, sizeof sql, "VACUUM (TRUNCATE false, SKIP_LOCKED true) claimd.%s", name);
    struct pg_statement statement = {.name = "", .sql = sql};
    return send_one(pg, &statement, NULL, done, ctx, err);
}

/* ---- indexes ---- */

enum status history_store_unindexed(struct pg *pg, pg_done_cb *done, void *ctx, struct err *err)
{
    return send_one(pg, &SQL_HISTORY_UNINDEXED, NULL, done, ctx, err);
}

void history_index_row(const struct pg_result *r, int row, struct history_index *ret)
{
    *ret = (struct history_index){.is_broken = pg_bool(r, row, 2)};
    (void)snprintf(ret->day, sizeof ret->day, "%s", pg_text(r, row, 0, NULL));
    (void)snprintf(ret->column, sizeof ret->column, "%s", pg_text(r, row, 1, NULL));
}

/* Returns how to index a column of sql/queries/history/unindexed.sql. The indexes are as small as
 * possible: most jobs complete and have neither tags nor metadata, kinds and queues repeat, and
 * rows are stored in the order of their ends. */
static const char *index_form(const char *column)
{
    static const struct {
        const char *column;
        const char *form;
    } forms[] = {{"tags", "gin (tags) WHERE tags IS NOT NULL"},
                 {"metadata", "gin (metadata jsonb_path_ops) WHERE metadata IS NOT NULL"},
                 {"failed", "btree (id) WHERE state <> 'completed'"},
                 {"kind", "btree (kind)"},
                 {"queue", "btree (queue)"},
                 {"ended", "brin (finalized_at)"}};
    for (size_t i = 0; i < ARRAY_COUNT(forms); i++) {
        if (strcmp(forms[i].column, column) == 0) {
            return forms[i].form;
        }
    }
    return NULL;
}

enum status history_store_index(struct pg *pg, const struct history_index *index, pg_done_cb *done,
                                void *ctx, struct err *err)
{
    const char *form = index_form(index->column);
    if (!is_day(index->day) || form == NULL) {
        return err_fail(err, STATUS_INVALID, "no index of '%s' on '%s'", index->column, index->day);
    }
    char sql[320];
    if (index->is_broken) {
        (void)snprintf(sql, sizeof sql, "DROP INDEX CONCURRENTLY IF EXISTS claimd.%s_%s",
                       index->day, index->column);
    } else {
        (void)snprintf(sql, sizeof sql, "CREATE INDEX CONCURRENTLY %s_%s ON claimd.%s USING %s",
                       index->day, index->column, index->day, form);
    }
    struct pg_statement statement = {.name = "", .sql = sql};
    return send_one(pg, &statement, NULL, done, ctx, err);
}

enum status history_store_dead_rows(struct pg *pg, pg_done_cb *done, void *ctx, struct err *err)
{
    return send_one(pg, &SQL_HISTORY_DEAD_ROWS, NULL, done, ctx, err);
}

enum status history_store_vacuum(struct pg *pg, pg_done_cb *done, void *ctx, struct err *err)
{
    return send_one(pg, &SQL_HISTORY_VACUUM, NULL, done, ctx, err);
}
