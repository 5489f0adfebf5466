/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl/commands/pause.h"

#include "ctl/core/table.h"

static const struct table_column columns[] = {
    {"name", CELL_TEXT}, {"paused", CELL_BOOL}, {"changed", CELL_BOOL}};

enum status pause_set(struct ctl *ctl, const char *noun, const struct pg_statement *statement,
                      const char *name, bool is_paused, struct err *err)
{
    const char *const params[] = {name, is_paused ? "t" : "f"};
    auto_admin struct admin *a = NULL;
    auto_admin_rows struct admin_rows *rows = NULL;
    auto_table struct table table = TABLE(noun, columns);
    table.is_record = true;
    enum status st = ctl_session(ctl, &a, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = ctl_written(admin_query(a, statement, params, &rows, err), err);
    if (st != STATUS_OK) {
        return st;
    }
    const char *const values[] = {name, params[1], admin_value(rows, 0, 0)};
    st = table_add(&table, values, err);
    if (st != STATUS_OK) {
        return st;
    }
    const struct table *const tables[] = {&table};
    return tables_print(tables, 1, ctl->is_json, ctl->out, err);
}

enum status pause_set_all(struct ctl *ctl, const char *noun, const struct pg_statement *statement,
                          bool is_paused, struct err *err)
{
    const char *const params[] = {is_paused ? "t" : "f"};
    auto_admin struct admin *a = NULL;
    auto_admin_rows struct admin_rows *rows = NULL;
    auto_table struct table table = TABLE(noun, columns);
    enum status st = ctl_session(ctl, &a, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = ctl_written(admin_query(a, statement, params, &rows, err), err);
    for (int row = 0; st == STATUS_OK && row < admin_row_count(rows); row++) {
        const char *const values[] = {admin_value(rows, row, 0), params[0], "t"};
        st = table_add(&table, values, err);
    }
    if (st != STATUS_OK) {
        return st;
    }
    const struct table *const tables[] = {&table};
    return tables_print(tables, 1, ctl->is_json, ctl->out, err);
}
