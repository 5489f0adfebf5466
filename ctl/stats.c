/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl/ctl.h"
#include "ctl/table.h"
#include "sql/queries.h"

enum status stats(struct ctl *ctl, const struct ctl_args *args, struct err *err)
{
    (void)args;
    static const struct table_column queue_columns[] = {
        {"queue", CELL_TEXT},       {"available", CELL_NUMBER}, {"scheduled", CELL_NUMBER},
        {"retryable", CELL_NUMBER}, {"running", CELL_NUMBER},   {"oldest_due_s", CELL_NUMBER},
        {"paused", CELL_BOOL}};
    static const struct table_column finished_columns[] = {{"minutes", CELL_NUMBER},
                                                           {"completed", CELL_NUMBER},
                                                           {"discarded", CELL_NUMBER},
                                                           {"cancelled", CELL_NUMBER},
                                                           {"per_s", CELL_NUMBER}};
    auto_admin struct admin *a = NULL;
    auto_admin_rows struct admin_rows *queue_rows = NULL;
    auto_admin_rows struct admin_rows *finished_rows = NULL;
    auto_table struct table queues = TABLE("queues", queue_columns);
    auto_table struct table finished = TABLE("finished", finished_columns);
    enum status st = ctl_session(ctl, &a, err);
    if (st == STATUS_OK) {
        st = admin_query(a, &SQL_ADMIN_STATS_QUEUES, NULL, &queue_rows, err);
    }
    if (st == STATUS_OK) {
        st = table_add_rows(&queues, queue_rows, err);
    }
    if (st == STATUS_OK) {
        st = admin_query(a, &SQL_ADMIN_STATS_FINISHED, NULL, &finished_rows, err);
    }
    if (st == STATUS_OK) {
        st = table_add_rows(&finished, finished_rows, err);
    }
    const struct table *const tables[] = {&queues, &finished};
    return st == STATUS_OK ? tables_print(tables, 2, ctl->is_json, ctl->out, err) : st;
}
