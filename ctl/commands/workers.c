/* SPDX-License-Identifier: Apache-2.0
 *
 * claimctl workers. */
#include "ctl/commands/overview.h"
#include "ctl/core/agree.h"
#include "sql/queries.h"

enum status workers(struct ctl *ctl, const struct ctl_args *args, struct err *err)
{
    auto_admin struct admin *a = NULL;
    auto_table struct table table = {0};
    enum status st = ctl_session(ctl, &a, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = overview_workers(a, ctl_value(args, "all") != NULL, &table, err);
    if (st != STATUS_OK) {
        return st;
    }
    const struct table *const tables[] = {&table};
    return tables_print(tables, 1, ctl->is_json, ctl->out, err);
}

/* Several on a host are asked only where a person agrees. */
static enum status agree(struct admin *a, const struct ctl_args *args, const char *what,
                         struct err *err)
{
    const char *const params[] = {args->words[0], what, "t"};
    char question[64];
    auto_admin_rows struct admin_rows *rows = NULL;
    if (!ctl_is_asking(args)) {
        return STATUS_OK;
    }
    enum status st = admin_query(a, &SQL_ADMIN_WORKER_ASK, params, &rows, err);
    if (st != STATUS_OK || admin_row_count(rows) < 2) {
        return st;
    }
    (void)snprintf(question, sizeof question, "%d workers will be asked to %s.",
                   admin_row_count(rows), strcmp(what, "quiet") == 0 ? "be quiet" : what);
    return ctl_agree(args, question, err);
}

/* Of one worker, or of all on a host; they hear it with the answer to their next beat. */
static enum status ask(struct ctl *ctl, const struct ctl_args *args, const char *what,
                       struct err *err)
{
    static const struct table_column columns[] = {
        {"host", CELL_TEXT}, {"pid", CELL_NUMBER}, {"worker_id", CELL_TEXT}};
    const char *who = args->words[0];
    bool is_dry = ctl_value(args, "dry-run") != NULL;
    const char *const params[] = {who, what, is_dry ? "t" : "f"};
    auto_admin struct admin *a = NULL;
    auto_admin_rows struct admin_rows *rows = NULL;
    auto_table struct table table = TABLE("asked", columns);
    enum status st = ctl_session(ctl, &a, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = is_dry ? STATUS_OK : agree(a, args, what, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = ctl_written(admin_query(a, &SQL_ADMIN_WORKER_ASK, params, &rows, err), err);
    if (st != STATUS_OK) {
        return st;
    }
    if (admin_row_count(rows) == 0) {
        return err_fail(err, STATUS_NOT_FOUND, "no live worker has the host or id '%.80s'", who);
    }
    st = table_add_rows(&table, rows, err);
    if (st != STATUS_OK) {
        return st;
    }
    const struct table *const tables[] = {&table};
    return tables_print(tables, 1, ctl->is_json, ctl->out, err);
}

enum status workers_quiet(struct ctl *ctl, const struct ctl_args *args, struct err *err)
{
    return ask(ctl, args, "quiet", err);
}

enum status workers_resume(struct ctl *ctl, const struct ctl_args *args, struct err *err)
{
    return ask(ctl, args, "resume", err);
}

enum status workers_drain(struct ctl *ctl, const struct ctl_args *args, struct err *err)
{
    return ask(ctl, args, "drain", err);
}
