/* SPDX-License-Identifier: Apache-2.0
 *
 * claimctl kinds. */
#include "ctl/pause.h"
#include "ctl/table.h"
#include "sql/queries.h"

enum status kinds_list(struct ctl *ctl, const struct ctl_args *args, struct err *err)
{
    static const struct table_column columns[] = {{"kind", CELL_TEXT},
                                                  {"plugin", CELL_TEXT},
                                                  {"version", CELL_TEXT},
                                                  {"paused", CELL_BOOL},
                                                  {"workers", CELL_NUMBER},
                                                  {"max_attempts", CELL_NUMBER},
                                                  {"max_crashes", CELL_NUMBER | CELL_WIDE},
                                                  {"timeout_s", CELL_SECONDS},
                                                  {"at_most_once", CELL_BOOL | CELL_WIDE},
                                                  {"updated_at", CELL_TIME | CELL_WIDE}};
    (void)args;
    auto_admin struct admin *a = NULL;
    auto_table struct table table = TABLE("kinds", columns);
    enum status st = ctl_session(ctl, &a, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = ctl_now(a, &table.now_us, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = table_query(&table, a, &SQL_ADMIN_KINDS, NULL, err);
    if (st != STATUS_OK) {
        return st;
    }
    const struct table *const tables[] = {&table};
    return tables_print(tables, 1, ctl->is_json, ctl->out, err);
}

enum status kinds_pause(struct ctl *ctl, const struct ctl_args *args, struct err *err)
{
    return pause_set(ctl, "kind", &SQL_ADMIN_KIND_PAUSE, args->words[0], true, err);
}

enum status kinds_resume(struct ctl *ctl, const struct ctl_args *args, struct err *err)
{
    return pause_set(ctl, "kind", &SQL_ADMIN_KIND_PAUSE, args->words[0], false, err);
}
