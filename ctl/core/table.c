/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl/core/table.h"

#include "base/buf.h"

#include <assert.h>
#include <jansson.h>

#define OUTPUT_MAX ((size_t)256 << 20)

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
    assert((size_t)admin_column_count(rows) == t->column_count);
    for (int r = 0; r < admin_row_count(rows); r++) {
        const char *values[TABLE_COLUMNS_MAX];
        for (size_t i = 0; i < t->column_count; i++) {
            values[i] = admin_value(rows, r, (int)i);
        }
        enum status st = table_add(t, values, err);
        if (st != STATUS_OK) {
            return st;
        }
    }
    return STATUS_OK;
}

enum status table_query(struct table *t, struct admin *a, const struct pg_statement *statement,
                        const char *const *params, struct err *err)
{
    auto_admin_rows struct admin_rows *rows = NULL;
    enum status st = admin_query(a, statement, params, &rows, err);
    if (st != STATUS_OK) {
        return st;
    }
    return table_add_rows(t, rows, err);
}

/* ---- JSON ---- */

static enum status put_json_text(struct buf *out, const char *text, struct err *err)
{
    json_auto_t *string = json_string(text); /* NULL when it isn't UTF-8 */
    autofree char *quoted = string == NULL ? NULL : json_dumps(string, JSON_ENCODE_ANY);
    if (quoted == NULL) {
        return err_fail(err, STATUS_INTERNAL, "a value is not UTF-8");
    }
    return buf_append_text(out, quoted, err);
}

static enum status put_json_cell(struct buf *out, int type, const char *value, struct err *err)
{
    if (value == NULL) {
        return buf_append_text(out, "null", err);
    }
    switch (type) {
    case CELL_BOOL:
        return buf_append_text(out, value[0] == 't' ? "true" : "false", err);
    case CELL_COUNT:
        return buf_append_text(out, value + (value[0] == '~'), err);
    case CELL_NUMBER:
    case CELL_JSON:
    case CELL_SECONDS:
        return buf_append_text(out, value, err);
    default:
        break;
    }
    return put_json_text(out, value, err);
}

static enum status put_json_row(struct buf *out, const struct table *t, size_t row, struct err *err)
{
    enum status st = buf_append_text(out, "{", err);
    if (st != STATUS_OK) {
        return st;
    }
    for (size_t i = 0; i < t->column_count; i++) {
        st = buf_printf(out, err, "%s\"%s\": ", i > 0 ? ", " : "", t->columns[i].name);
        if (st != STATUS_OK) {
            return st;
        }
        int type = t->columns[i].type & CELL_TYPE_MASK;
        st = put_json_cell(out, type, table_cell(t, row, i), err);
        if (st != STATUS_OK) {
            return st;
        }
    }
    return buf_append_text(out, "}", err);
}

static enum status put_json_table(struct buf *out, const struct table *t, struct err *err)
{
    enum status st = buf_printf(out, err, "\"%s\": %s", t->name, t->is_record ? "" : "[");
    if (st != STATUS_OK) {
        return st;
    }
    const char *before_first = t->is_record ? "" : "\n    ";
    for (size_t row = 0; row < t->row_count; row++) {
        st = buf_append_text(out, row > 0 ? ",\n    " : before_first, err);
        if (st != STATUS_OK) {
            return st;
        }
        st = put_json_row(out, t, row, err);
        if (st != STATUS_OK) {
            return st;
        }
    }
    return t->is_record ? STATUS_OK : buf_append_text(out, "]", err);
}

static enum status print_json(const struct table *const *tables, size_t count, FILE *out,
                              struct err *err)
{
    autobuf struct buf text = BUF_INIT(OUTPUT_MAX);
    enum status st = buf_append_text(&text, "{", err);
    if (st != STATUS_OK) {
        return st;
    }
    for (size_t i = 0; i < count; i++) {
        st = i > 0 ? buf_append_text(&text, ",\n ", err) : STATUS_OK;
        if (st != STATUS_OK) {
            return st;
        }
        st = put_json_table(&text, tables[i], err);
        if (st != STATUS_OK) {
            return st;
        }
    }
    st = buf_append_text(&text, "}\n", err);
    if (st != STATUS_OK) {
        return st;
    }
    if (fwrite(buf_at(&text), 1, text.len, out) != text.len) {
        return err_fail_sys(err, STATUS_INTERNAL, errno, "cannot write");
    }
    return STATUS_OK;
}

enum status tables_print(const struct table *const *tables, size_t count, bool is_json, FILE *out,
                         struct err *err)
{
    if (is_json) {
        return print_json(tables, count, out, err);
    }
    struct table_style style = table_style_of(out);
    return tables_print_text(tables, count, &style, out, err);
}
