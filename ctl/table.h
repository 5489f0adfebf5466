/* SPDX-License-Identifier: Apache-2.0
 *
 * What commands print: one model, shown as an aligned table or as JSON. All tables of a command
 * make one JSON document: {"jobs": [{…}, …]}; a record (one row) is an object instead of an array.
 */
#ifndef CLAIMD_CTL_TABLE_H
#define CLAIMD_CTL_TABLE_H

#include "base/err.h"
#include "store/admin.h"

#include <stdio.h>

enum cell_type {
    CELL_TEXT,
    CELL_NUMBER,
    CELL_BOOL, /* "t" or "f", as PostgreSQL says it */
    CELL_JSON  /* JSON text, kept as it is */
};

struct table_column {
    const char *name; /* key in JSON; the heading is the same in capitals */
    enum cell_type type;
};

#define TABLE_COLUMNS_MAX 32

struct table {
    const char *name;
    const struct table_column *columns;
    size_t column_count;
    bool is_record; /* one row, shown as "name value" lines */
    char **cells;   /* row by row; NULL = no value */
    size_t row_count;
    size_t row_room;
};

#define TABLE(table_name, table_columns)                  \
    {                                                     \
        .name = (table_name), .columns = (table_columns), \
        .column_count = ARRAY_COUNT(table_columns)        \
    }
#define auto_table CLEANUP(table_release)
void table_release(struct table *t);

/* Copies one value per column. NOMEM. */
enum status table_add(struct table *t, const char *const *values, struct err *err) MUST_USE;
/* All rows of a result whose columns are those of the table, in order. */
enum status table_add_rows(struct table *t, const struct admin_rows *rows,
                           struct err *err) MUST_USE;

enum status tables_print(const struct table *const *tables, size_t count, bool is_json, FILE *out,
                         struct err *err) MUST_USE;

#endif
