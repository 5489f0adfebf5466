/* SPDX-License-Identifier: Apache-2.0
 *
 * claimctl batches. */
#include "base/parse.h"
#include "ctl/ctl.h"
#include "ctl/table.h"
#include "sql/queries.h"

static const struct table_column columns[] = {{"id", CELL_NUMBER},
                                              {"name", CELL_TEXT},
                                              {"state", CELL_TEXT},
                                              {"jobs", CELL_NUMBER},
                                              {"open", CELL_NUMBER},
                                              {"succeeded", CELL_NUMBER},
                                              {"failed", CELL_NUMBER},
                                              {"cancelled", CELL_NUMBER},
                                              {"opened_at", CELL_TIME},
                                              {"over_at", CELL_TIME},
                                              {"follow_up_job", CELL_NUMBER | CELL_WIDE},
                                              {"error", CELL_TEXT | CELL_LONG}};

static enum status open_for(struct ctl *ctl, const char *id, struct admin **ret, struct err *err)
{
    int64_t number = 0;
    enum status st = parse_i64(id, strlen(id), 1, INT64_MAX, &number, err);
    if (st != STATUS_OK) {
        err_prefix(err, "batch '%.32s'", id);
        return st;
    }
    return ctl_session(ctl, ret, err);
}

enum status batches_list(struct ctl *ctl, const struct ctl_args *args, struct err *err)
{
    auto_admin struct admin *a = NULL;
    auto_table struct table table = TABLE("batches", columns);
    const struct table *const tables[] = {&table};
    (void)args;
    enum status st = ctl_session(ctl, &a, err);
    if (st != STATUS_OK) {
        return st;
    }
    const char *all[] = {NULL};
    st = table_query(&table, a, &SQL_ADMIN_BATCHES, all, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = ctl_now(a, &table.now_us, err);
    if (st != STATUS_OK) {
        return st;
    }
    return tables_print(tables, 1, ctl->is_json, ctl->out, err);
}

enum status batches_show(struct ctl *ctl, const struct ctl_args *args, struct err *err)
{
    static const struct table_column job_columns[] = {
        {"id", CELL_NUMBER},      {"kind", CELL_TEXT},
        {"state", CELL_TEXT},     {"after", CELL_TEXT | CELL_LONG},
        {"attempt", CELL_NUMBER}, {"error", CELL_TEXT | CELL_LONG}};
    const char *id = args->words[0];
    auto_admin struct admin *a = NULL;
    auto_table struct table batch = TABLE("batch", columns);
    auto_table struct table jobs = TABLE("jobs", job_columns);
    const struct table *const tables[] = {&batch, &jobs};
    batch.is_record = true;
    enum status st = open_for(ctl, id, &a, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = table_query(&batch, a, &SQL_ADMIN_BATCHES, &id, err);
    if (st != STATUS_OK) {
        return st;
    }
    if (batch.row_count == 0) {
        return err_fail(err, STATUS_NOT_FOUND, "batch %s not found", id);
    }
    st = ctl_now(a, &batch.now_us, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = table_query(&jobs, a, &SQL_ADMIN_BATCH_JOBS, &id, err);
    if (st != STATUS_OK) {
        return st;
    }
    return tables_print(tables, ARRAY_COUNT(tables), ctl->is_json, ctl->out, err);
}

/* One statement about one batch, whose answer is a number of jobs. */
static enum status act(struct ctl *ctl, const struct ctl_args *args,
                       const struct pg_statement *statement, const char *format, struct err *err)
{
    static const struct table_column count_columns[] = {{"jobs", CELL_NUMBER}};
    const char *params[] = {args->words[0]};
    auto_admin struct admin *a = NULL;
    auto_admin_rows struct admin_rows *rows = NULL;
    auto_table struct table table = TABLE("batch", count_columns);
    const struct table *const tables[] = {&table};
    enum status st = open_for(ctl, params[0], &a, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = ctl_written(admin_query(a, statement, params, &rows, err), err);
    if (st != STATUS_OK) {
        return st;
    }
    if (!ctl->is_json) {
        (void)fprintf(ctl->out, "batch %s: %s %s\n", params[0], admin_value(rows, 0, 0), format);
        return STATUS_OK;
    }
    st = table_add_rows(&table, rows, err);
    if (st != STATUS_OK) {
        return st;
    }
    return tables_print(tables, 1, true, ctl->out, err);
}

enum status batches_close(struct ctl *ctl, const struct ctl_args *args, struct err *err)
{
    return act(ctl, args, &SQL_ADMIN_BATCH_CLOSE, "open jobs; none can be added", err);
}
