/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl/commands/jobs/jobs.h"

#include "base/parse.h"
#include "ctl/commands/jobs/job_log.h"
#include "ctl/core/table.h"
#include "sql/queries.h"

#define VALUE_SHOWN_MAX 1000 /* bytes of args, metadata and result */

enum status jobs_check_id(const char *text, struct err *err)
{
    int64_t id = 0;
    enum status st = parse_i64(text, strlen(text), 1, INT64_MAX, &id, err);
    if (st != STATUS_OK) {
        err_prefix(err, "ID");
    }
    return st;
}

static const struct table_column job_columns[] = {
    {"id", CELL_NUMBER},          {"state", CELL_TEXT},          {"situation", CELL_TEXT},
    {"kind", CELL_TEXT},          {"queue", CELL_TEXT},          {"priority", CELL_NUMBER},
    {"args", CELL_JSON},          {"tags", CELL_TEXT},           {"metadata", CELL_JSON},
    {"unique_key", CELL_TEXT},    {"exclusive_key", CELL_TEXT},  {"second_key", CELL_TEXT},
    {"share_key", CELL_TEXT},     {"backoff", CELL_TEXT},        {"created_at", CELL_TEXT},
    {"scheduled_at", CELL_TEXT},  {"attempted_at", CELL_TEXT},   {"finalized_at", CELL_TEXT},
    {"attempt", CELL_NUMBER},     {"max_attempts", CELL_NUMBER}, {"crashes", CELL_NUMBER},
    {"max_crashes", CELL_NUMBER}, {"timeout_s", CELL_SECONDS},   {"grace_s", CELL_SECONDS},
    {"owner", CELL_TEXT},         {"at_most_once", CELL_BOOL},   {"fence", CELL_NUMBER},
    {"generation", CELL_NUMBER},  {"version", CELL_NUMBER},      {"worker_id", CELL_TEXT},
    {"host", CELL_TEXT},          {"pid", CELL_NUMBER},          {"result", CELL_JSON},
    {"error", CELL_TEXT},         {"progress", CELL_NUMBER},     {"doing", CELL_TEXT},
    {"checkpoint", CELL_JSON}};

static const struct table_column before_columns[] = {
    {"job", CELL_NUMBER}, {"kind", CELL_TEXT}, {"state", CELL_TEXT}};

static const struct table_column timeline_columns[] = {{"at", CELL_TEXT},
                                                       {"after_s", CELL_SECONDS},
                                                       {"event", CELL_TEXT},
                                                       {"attempt", CELL_NUMBER},
                                                       {"host", CELL_TEXT},
                                                       {"generation", CELL_NUMBER | CELL_HIDDEN},
                                                       {"detail", CELL_TEXT | CELL_PROSE}};

static const struct table_column attempt_columns[] = {{"attempt", CELL_NUMBER},
                                                      {"generation", CELL_NUMBER | CELL_WIDE},
                                                      {"outcome", CELL_TEXT},
                                                      {"fence", CELL_NUMBER},
                                                      {"host", CELL_TEXT | CELL_WIDE},
                                                      {"started_at", CELL_TIME},
                                                      {"ran_s", CELL_SECONDS},
                                                      {"error", CELL_TEXT | CELL_LONG},
                                                      {"log_tail", CELL_TEXT | CELL_HIDDEN}};

static const struct table_column edit_columns[] = {{"version", CELL_NUMBER},
                                                   {"edited_at", CELL_TIME},
                                                   {"edited_by", CELL_TEXT},
                                                   {"applied_at", CELL_TIME | CELL_WIDE},
                                                   {"before", CELL_JSON | CELL_LONG},
                                                   {"after", CELL_JSON | CELL_LONG},
                                                   {"generation", CELL_NUMBER | CELL_HIDDEN}};

/* A text of a megabyte would scroll all else away. */
static enum status shorten(char **cell, struct err *err)
{
    size_t len = *cell == NULL ? 0 : strlen(*cell);
    size_t keep = VALUE_SHOWN_MAX;
    char *shorter = NULL;
    if (len <= VALUE_SHOWN_MAX) {
        return STATUS_OK;
    }
    while (((unsigned char)(*cell)[keep] & 0xc0) == 0x80) { /* inside of a character */
        keep--;
    }
    if (asprintf(&shorter, "%.*s… (%zu bytes, cut here; --full shows all)", (int)keep, *cell, len) <
        0) {
        return err_fail(err, STATUS_NOMEM, "out of memory");
    }
    free(*cell);
    *cell = shorter;
    return STATUS_OK;
}

static enum status shorten_values(struct table *t, struct err *err)
{
    for (size_t i = 0; i < t->row_count * t->column_count; i++) {
        bool is_value = (t->columns[i % t->column_count].type & CELL_TYPE_MASK) == CELL_JSON;
        enum status st = is_value ? shorten(&t->cells[i], err) : STATUS_OK;
        if (st != STATUS_OK) {
            return st;
        }
    }
    return STATUS_OK;
}

/* What happened to it. */
static enum status fill_past(struct admin *a, const char *id, struct table *timeline,
                             struct table *attempts, struct table *edits, struct err *err)
{
    enum status st = table_query(timeline, a, &SQL_ADMIN_JOB_TIMELINE, &id, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = table_query(attempts, a, &SQL_ADMIN_JOB_ATTEMPTS, &id, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = table_query(edits, a, &SQL_ADMIN_JOB_EDITS, &id, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = ctl_now(a, &attempts->now_us, err);
    edits->now_us = attempts->now_us;
    return st;
}

static enum status fail_absent(struct admin *a, const char *id, struct err *err)
{
    auto_admin_rows struct admin_rows *rows = NULL;
    enum status st = admin_query(a, &SQL_ADMIN_JOB_GONE, &id, &rows, err);
    if (st != STATUS_OK) {
        return st;
    }
    bool is_gone = strcmp(admin_value(rows, 0, 0), "t") == 0;
    return err_fail(err, STATUS_NOT_FOUND, "job %s %s", id,
                    is_gone ? "is gone: completed and not kept, deleted, or never committed"
                            : "not found");
}

enum status jobs_show(struct ctl *ctl, const struct ctl_args *args, struct err *err)
{
    const char *id = args->words[0];
    auto_admin struct admin *a = NULL;
    auto_table struct table job = TABLE("job", job_columns);
    auto_table struct table before = TABLE("after", before_columns);
    auto_table struct table timeline = TABLE("timeline", timeline_columns);
    auto_table struct table attempts = TABLE("attempts", attempt_columns);
    auto_table struct table edits = TABLE("edits", edit_columns);
    const struct table *const tables[] = {&job, &before, &timeline, &attempts, &edits};
    const struct job_log log = {ctl_value(args, "log"), ctl_value(args, "generation")};
    job.is_record = true;
    enum status st = jobs_check_id(id, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = job_log_check(&log, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = ctl_session(ctl, &a, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = table_query(&job, a, &SQL_ADMIN_JOB_SHOW, &id, err);
    if (st != STATUS_OK) {
        return st;
    }
    if (job.row_count == 0) {
        return fail_absent(a, id, err);
    }
    st = table_query(&before, a, &SQL_ADMIN_JOB_BEFORE, &id, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = fill_past(a, id, &timeline, &attempts, &edits, err);
    if (st != STATUS_OK) {
        return st;
    }
    if (!ctl->is_json && ctl_value(args, "full") == NULL) {
        st = shorten_values(&job, err);
        if (st != STATUS_OK) {
            return st;
        }
        st = shorten_values(&edits, err);
    }
    if (st != STATUS_OK) {
        return st;
    }
    st = tables_print(tables, ARRAY_COUNT(tables), ctl->is_json, ctl->out, err);
    if (st != STATUS_OK || ctl->is_json) {
        return st;
    }
    return job_log_print(&log, &attempts, ctl->out, err);
}
