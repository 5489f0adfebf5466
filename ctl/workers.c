/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl/ctl.h"
#include "ctl/table.h"
#include "sql/queries.h"

enum status workers(struct ctl *ctl, const struct ctl_args *args, struct err *err)
{
    static const struct table_column columns[] = {{"host", CELL_TEXT},
                                                  {"pid", CELL_NUMBER},
                                                  {"state", CELL_TEXT},
                                                  {"beat_age_s", CELL_SECONDS},
                                                  {"running", CELL_NUMBER},
                                                  {"slots", CELL_NUMBER},
                                                  {"queues", CELL_TEXT | CELL_LONG},
                                                  {"kinds", CELL_TEXT | CELL_LONG},
                                                  {"version", CELL_TEXT | CELL_WIDE},
                                                  {"started_at", CELL_TIME | CELL_WIDE},
                                                  {"worker_id", CELL_TEXT | CELL_WIDE}};
    const char *const params[] = {ctl_value(args, "all") != NULL ? "t" : "f"};
    auto_admin struct admin *a = NULL;
    auto_admin_rows struct admin_rows *rows = NULL;
    auto_table struct table table = TABLE("workers", columns);
    enum status st = ctl_session(ctl, &a, err);
    if (st == STATUS_OK) {
        st = ctl_now(a, &table.now_us, err);
    }
    if (st == STATUS_OK) {
        st = admin_query(a, &SQL_ADMIN_WORKERS, params, &rows, err);
    }
    if (st == STATUS_OK) {
        st = table_add_rows(&table, rows, err);
    }
    const struct table *const tables[] = {&table};
    return st == STATUS_OK ? tables_print(tables, 1, ctl->is_json, ctl->out, err) : st;
}
