/* SPDX-License-Identifier: Apache-2.0
 *
 * One session for the queries of the benchmarks. Its calls run the loop until the answer
 * arrives. */
#ifndef CLAIMD_BENCH_DB_H
#define CLAIMD_BENCH_DB_H

#include "store/pg/pg.h"

#define DB_COLUMNS_MAX 12

/* `row` is valid only during the call. */
typedef void db_row_cb(void *ctx, const int64_t *row);

struct db {
    uv_loop_t *loop;
    struct pg *pg;
    const bool *is_interrupted; /* ends every wait */
    bool is_done;
    enum status st;
    struct err err;
    int columns;
    int row_count;
    db_row_cb *on_row;
    void *ctx;                   /* for on_row */
    int64_t row[DB_COLUMNS_MAX]; /* the first row */
    int64_t done_us;             /* BOOTTIME when the answer arrived */
    int64_t commits;             /* answered requests so far */
};

enum status db_open(struct db *db, uv_loop_t *loop, const char *conninfo,
                    const bool *is_interrupted, struct err *err) MUST_USE;
void db_close(struct db *db); /* accepts a zeroed one */

/* Reads `columns` columns of the answer, all int8. NULL is 0; without a row, all are 0. */
enum status db_query(struct db *db, const struct pg_statement *statement,
                     const struct pg_param *params, int columns, struct err *err) MUST_USE;
/* As above, but calls `on_row` for every row. */
enum status db_each(struct db *db, const struct pg_statement *statement,
                    const struct pg_param *params, int columns, db_row_cb *on_row, void *ctx,
                    struct err *err) MUST_USE;

#endif
