/* SPDX-License-Identifier: Apache-2.0 */
#include "verbs/table.h"

#include <assert.h>
#include <jansson.h>

void table_release(struct table *t)
{
    for (size_t i = 0; i < t->row_count * t->column_count; i++) {
        free(t->cells[i]);
    }
    free(t->cells);
    t->cells = NULL;
    t->row_count = 0;
    t->row_room = 0;
}

const char *table_cell(const struct table *t, size_t row, size_t column)
{
    return t->cells[row * t->column_count + column];
}

const char *table_value(const struct table *t, size_t row, const char *column)
{
    size_t i = 0;
    while (i < t->column_count && strcmp(t->columns[i].name, column) != 0) {
        i++;
    }
    assert(i < t->column_count);
    return table_cell(t, row, i);
}

enum status table_add(struct table *t, const char *const *values, struct err *err)
{
    assert(t->column_count <= TABLE_COLUMNS_MAX);
    if (t->row_count == t->row_room) {
        size_t room = t->row_room == 0 ? 32 : 2 * t->row_room;
        char **cells = reallocarray(t->cells, room * t->column_count, sizeof *cells);
        if (cells == NULL) {
            return err_fail(err, STATUS_NOMEM, "out of memory");
        }
        t->cells = cells;
        t->row_room = room;
    }
    char **row = t->cells + t->row_count * t->column_count;
    memset(row, 0, t->column_count * sizeof *row);
    t->row_count++;
    for (size_t i = 0; i < t->column_count; i++) {
        row[i] = values[i] == NULL ? NULL : strdup(values[i]);
        if (values[i] != NULL && row[i] == NULL) {
            return err_fail(err, STATUS_NOMEM, "out of memory");
        }
    }
    return STATUS_OK;
}

enum status table_add_rows(struct table *t, const struct admin_rows *rows, struct err *err)
{
    int sources[TABLE_COLUMNS_MAX];
    for (size_t i = 0; i < t->column_count; i++) {
        sources[i] = admin_column(rows, t->columns[i].name);
        if (sources[i] < 0) {
            return err_fail(err, STATUS_INTERNAL, "%s: the statement gives no column '%s'", t->name,
                            t->columns[i].name);
        }
    }
    for (int row = 0; row < admin_row_count(rows); row++) {
        const char *values[TABLE_COLUMNS_MAX];
        for (size_t i = 0; i < t->column_count; i++) {
            values[i] = admin_value(rows, row, sources[i]);
        }
        enum status st = table_add(t, values, err);
        if (st != STATUS_OK) {
            return st;
        }
    }
    return STATUS_OK;
}

/* ---- JSON ---- */

static void put_text(struct text *out, const char *text)
{
    json_auto_t *string = json_string(text); /* NULL if it is not UTF-8 */
    autofree char *quoted = string == NULL ? NULL : json_dumps(string, JSON_ENCODE_ANY);
    if (quoted == NULL) {
        err_set(&out->err, STATUS_INTERNAL, 0, "a value is not UTF-8");
        return;
    }
    text_put_bytes(out, quoted, strlen(quoted));
}

static void put_cell(struct text *out, int type, const char *value)
{
    if (value == NULL) {
        text_put(out, "null");
    } else if (type == CELL_BOOL) {
        text_put(out, value[0] == 't' ? "true" : "false");
    } else if (type == CELL_TEXT || type == CELL_TIME) {
        put_text(out, value);
    } else {
        text_put(out, "%s", value + (type == CELL_COUNT && value[0] == '~'));
    }
}

static void put_table(struct text *out, const struct table *t)
{
    const char *before_first = t->is_record ? "" : "\n    ";
    text_put(out, "\"%s\": %s", t->name, t->is_record ? "" : "[");
    for (size_t row = 0; row < t->row_count; row++) {
        text_put(out, "%s{", row > 0 ? ",\n    " : before_first);
        for (size_t i = 0; i < t->column_count; i++) {
            text_put(out, "%s\"%s\": ", i > 0 ? ", " : "", t->columns[i].name);
            put_cell(out, t->columns[i].type & CELL_TYPE_MASK, table_cell(t, row, i));
        }
        text_put(out, "}");
    }
    text_put(out, t->is_record ? "" : "]");
}

void tables_put_json(const struct table *const *tables, size_t count, struct text *out)
{
    text_put(out, "{");
    for (size_t i = 0; i < count; i++) {
        text_put(out, "%s", i > 0 ? ",\n " : "");
        put_table(out, tables[i]);
    }
    text_put(out, "}\n");
}
