/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/db.h"

#include "base/clock.h"

#include <assert.h>

#define OPEN_US (10 * US_PER_S)
#define REQUEST_US (600 * US_PER_S) /* for inserting millions of rows */

enum status db_open(struct db *db, uv_loop_t *loop, const char *conninfo,
                    const bool *is_interrupted, struct err *err)
{
    *db = (struct db){.loop = loop, .is_interrupted = is_interrupted};
    struct pg_options options = {.loop = loop,
                                 .conninfo = conninfo,
                                 .application_name = "claimd-bench",
                                 .timeout_us = REQUEST_US};
    enum status st = pg_open(&options, &db->pg, err);
    if (st != STATUS_OK) {
        return st;
    }
    int64_t end_us = clock_boot_us() + OPEN_US;
    while (!pg_is_up(db->pg) && !*is_interrupted && clock_boot_us() < end_us) {
        (void)uv_run(loop, UV_RUN_ONCE);
    }
    return pg_is_up(db->pg) ? STATUS_OK
                            : err_fail(err, STATUS_UNAVAILABLE, "no session with PostgreSQL");
}

void db_close(struct db *db)
{
    pg_close(TAKE(db->pg));
}

static void read_row(struct db *db, const struct pg_result *result, int n, int64_t *ret_row)
{
    for (int i = 0; i < db->columns; i++) {
        ret_row[i] = pg_is_null(result, n, i) ? 0 : pg_i64(result, n, i);
    }
}

static void on_done(void *ctx, enum status st, const struct pg_result *const *results,
                    const struct err *err)
{
    struct db *db = ctx;
    db->done_us = clock_boot_us();
    db->is_done = true;
    db->st = st;
    if (st != STATUS_OK) {
        db->err = *err;
        return;
    }
    db->row_count = pg_row_count(results[0]);
    if (db->row_count > 0) {
        read_row(db, results[0], 0, db->row);
    }
    for (int n = 0; db->on_row != NULL && n < db->row_count; n++) {
        int64_t row[DB_COLUMNS_MAX];
        read_row(db, results[0], n, row);
        db->on_row(db->ctx, row);
    }
}

enum status db_query(struct db *db, const struct pg_statement *statement,
                     const struct pg_param *params, int columns, struct err *err)
{
    struct pg_request request = {
        .steps = {{.statement = statement, .params = params}},
        .step_count = 1,
        .done = on_done,
        .ctx = db,
    };
    assert(columns <= DB_COLUMNS_MAX);
    db->columns = columns;
    db->is_done = false;
    db->row_count = 0;
    db->err = (struct err){0};
    memset(db->row, 0, sizeof db->row);
    enum status st = pg_send(db->pg, &request, err);
    while (st == STATUS_OK && !db->is_done) {
        if (*db->is_interrupted) {
            return err_fail(err, STATUS_UNAVAILABLE, "interrupted");
        }
        (void)uv_run(db->loop, UV_RUN_ONCE);
    }
    if (st != STATUS_OK) {
        return st;
    }
    db->commits++;
    if (db->st != STATUS_OK) {
        err_set(err, db->st, 0, "%s: %s", statement->name, db->err.msg);
    }
    return db->st;
}

enum status db_each(struct db *db, const struct pg_statement *statement,
                    const struct pg_param *params, int columns, db_row_cb *on_row, void *ctx,
                    struct err *err)
{
    db->on_row = on_row;
    db->ctx = ctx;
    enum status st = db_query(db, statement, params, columns, err);
    db->on_row = NULL;
    return st;
}
