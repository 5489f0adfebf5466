/* SPDX-License-Identifier: Apache-2.0
 *
 * The output of verbs: one model for aligned tables (ctl/core/table_text.h) and JSON. All tables of
 * a verb make one JSON document: {"jobs": [{…}, …]}; a record (one row) is an object instead of an
 * array. */
#ifndef CLAIMD_VERBS_TABLE_H
#define CLAIMD_VERBS_TABLE_H

#include "base/text.h"
#include "store/admin.h"

enum cell_type {
    CELL_TEXT,
    CELL_NUMBER,
    CELL_BOOL,    /* "t" or "f", as PostgreSQL writes it */
    CELL_JSON,    /* JSON text, unchanged */
    CELL_SECONDS, /* a number; on a terminal "3m12s", without the _s of its name */
    CELL_TIME,    /* a text; on a terminal "3m12s ago", without the _at of its name */
    CELL_COUNT    /* a number; "~5000" = estimated, in JSON without the ~ */
};
/* Flags added to a type, for a column that does not fit. None of them applies to JSON. The first
 * three apply only on a terminal, where a line below the table names what was left out or cut. Any
 * other text that does not fit is broken into lines. */
#define CELL_WIDE 0x100   /* left out if there is no room */
#define CELL_LONG 0x200   /* cut off if there is no room */
#define CELL_LIST 0x1000  /* broken after its commas */
#define CELL_PROSE 0x400  /* the last column: broken between words, and at its newlines */
#define CELL_HIDDEN 0x800 /* only in JSON */
#define CELL_OUT 0x2000   /* always left out, and named like a column without room */
#define CELL_EXTRA 0x4000 /* only present if it is chosen by name */
#define CELL_TYPE_MASK 0xff

struct table_column {
    const char *name; /* key in JSON; the heading is the same in upper case */
    int type;
};

#define TABLE_COLUMNS_MAX 40

struct table {
    const char *name;
    const struct table_column *columns;
    size_t column_count;
    bool is_record; /* one row, shown as "name value" lines */
    int64_t now_us; /* PostgreSQL's clock, for CELL_TIME on a terminal; 0 = unchanged */
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

/* Copies one value per column. NOMEM on failure. */
enum status table_add(struct table *t, const char *const *values, struct err *err) MUST_USE;
/* Adds all rows of a result, whose columns are found by name. INTERNAL if one is missing. */
enum status table_add_rows(struct table *t, const struct admin_rows *rows,
                           struct err *err) MUST_USE;

/* Returns a borrowed value; NULL = no value. */
const char *table_cell(const struct table *t, size_t row, size_t column);

/* Finds the value by the name of its column, which must exist. */
const char *table_value(const struct table *t, size_t row, const char *column);

/* Appends JSON. Sets INTERNAL in `out` if a value is not UTF-8. */
void tables_put_json(const struct table *const *tables, size_t count, struct text *out);

#endif
