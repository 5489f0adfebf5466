/* SPDX-License-Identifier: Apache-2.0 */
#include "base/parse.h"
#include "ctl/ctl.h"
#include "ctl/table.h"
#include "sql/queries.h"

static enum status check_id(const char *text, struct err *err)
{
    int64_t id = 0;
    enum status st = parse_i64(text, strlen(text), 1, INT64_MAX, &id, err);
    if (st != STATUS_OK) {
        err_prefix(err, "ID");
    }
    return st;
}

static const struct table_column job_columns[] = {
    {"id", CELL_NUMBER},         {"state", CELL_TEXT},         {"situation", CELL_TEXT},
    {"kind", CELL_TEXT},         {"queue", CELL_TEXT},         {"priority", CELL_NUMBER},
    {"args", CELL_JSON},         {"tags", CELL_TEXT},          {"metadata", CELL_JSON},
    {"created_at", CELL_TEXT},   {"scheduled_at", CELL_TEXT},  {"attempted_at", CELL_TEXT},
    {"finalized_at", CELL_TEXT}, {"attempt", CELL_NUMBER},     {"max_attempts", CELL_NUMBER},
    {"crashes", CELL_NUMBER},    {"max_crashes", CELL_NUMBER}, {"timeout_s", CELL_NUMBER},
    {"at_most_once", CELL_BOOL}, {"fence", CELL_NUMBER},       {"generation", CELL_NUMBER},
    {"worker_id", CELL_TEXT},    {"host", CELL_TEXT},          {"pid", CELL_NUMBER},
    {"result", CELL_JSON},       {"error", CELL_TEXT}};

static const struct table_column attempt_columns[] = {
    {"attempt", CELL_NUMBER}, {"outcome", CELL_TEXT},    {"fence", CELL_NUMBER},
    {"host", CELL_TEXT},      {"started_at", CELL_TEXT}, {"ran_s", CELL_NUMBER},
    {"error", CELL_TEXT},     {"log_tail", CELL_TEXT}};

enum status jobs_show(struct ctl *ctl, const struct ctl_args *args, struct err *err)
{
    const char *id = args->words[0];
    auto_admin struct admin *a = NULL;
    auto_admin_rows struct admin_rows *job_rows = NULL;
    auto_admin_rows struct admin_rows *attempt_rows = NULL;
    auto_table struct table job = TABLE("job", job_columns);
    auto_table struct table attempts = TABLE("attempts", attempt_columns);
    job.is_record = true;
    enum status st = check_id(id, err);
    if (st == STATUS_OK) {
        st = ctl_session(ctl, &a, err);
    }
    if (st == STATUS_OK) {
        st = admin_query(a, &SQL_ADMIN_JOB_SHOW, &id, &job_rows, err);
    }
    if (st == STATUS_OK && admin_row_count(job_rows) == 0) {
        st = err_fail(err, STATUS_NOT_FOUND, "job %s not found", id);
    }
    if (st == STATUS_OK) {
        st = admin_query(a, &SQL_ADMIN_JOB_ATTEMPTS, &id, &attempt_rows, err);
    }
    if (st == STATUS_OK) {
        st = table_add_rows(&job, job_rows, err);
    }
    if (st == STATUS_OK) {
        st = table_add_rows(&attempts, attempt_rows, err);
    }
    const struct table *const tables[] = {&job, &attempts};
    return st == STATUS_OK ? tables_print(tables, 2, ctl->is_json, ctl->out, err) : st;
}

/* Each id for itself; the first refusal ends it and says which id that was. */
enum status jobs_cancel(struct ctl *ctl, const struct ctl_args *args, struct err *err)
{
    static const struct table_column columns[] = {{"id", CELL_NUMBER}, {"state", CELL_TEXT}};
    auto_admin struct admin *a = NULL;
    auto_table struct table table = TABLE("jobs", columns);
    enum status st = STATUS_OK;
    for (size_t i = 0; st == STATUS_OK && i < args->word_count; i++) {
        st = check_id(args->words[i], err);
    }
    if (st == STATUS_OK) {
        st = ctl_session(ctl, &a, err);
    }
    for (size_t i = 0; st == STATUS_OK && i < args->word_count; i++) {
        const char *id = args->words[i];
        auto_admin_rows struct admin_rows *rows = NULL;
        st = ctl_written(admin_query(a, &SQL_ADMIN_CANCEL, &id, &rows, err), err);
        const char *state = st == STATUS_OK ? admin_value(rows, 0, 0) : NULL;
        if (st == STATUS_OK && state == NULL) {
            st = err_fail(err, STATUS_NOT_FOUND, "job %s not found", id);
        }
        if (st == STATUS_OK) {
            const char *const values[] = {id, state};
            st = table_add(&table, values, err);
        }
    }
    const struct table *const tables[] = {&table};
    struct err print_err = {0};
    enum status printed = table.row_count > 0
                              ? tables_print(tables, 1, ctl->is_json, ctl->out, &print_err)
                              : STATUS_OK;
    if (st == STATUS_OK && printed != STATUS_OK) {
        return err_fail(err, STATUS_INTERNAL, "%s", print_err.msg);
    }
    return st;
}
