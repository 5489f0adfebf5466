/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl/commands/jobs/jobs.h"

#include "base/parse.h"
#include "ctl/commands/jobs/job_log.h"
#include "ctl/core/table_text.h"
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

/* A value of a megabyte would scroll everything else away. */
static enum status shorten(char **cell, struct err *err)
{
    size_t len = *cell == NULL ? 0 : strlen(*cell);
    size_t keep = VALUE_SHOWN_MAX;
    char *shorter = NULL;
    if (len <= VALUE_SHOWN_MAX) {
        return STATUS_OK;
    }
    while (((unsigned char)(*cell)[keep] & 0xc0) == 0x80) { /* inside a character */
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

/* Indexes of tables of VERB_JOB_SHOW. */
enum { JOB = 0, ATTEMPTS = 3, EDITS = 4 };

static enum status print_job(struct ctl *ctl, struct answer *answer, bool is_full,
                             const struct job_log *log, struct err *err)
{
    if (ctl->is_json) {
        return answer_print(answer, true, ctl->out, err);
    }
    enum status st = is_full ? STATUS_OK : shorten_values(&answer->tables[JOB], err);
    if (st == STATUS_OK && !is_full) {
        st = shorten_values(&answer->tables[EDITS], err);
    }
    if (st != STATUS_OK) {
        return st;
    }
    st = answer_print(answer, false, ctl->out, err);
    if (st != STATUS_OK) {
        return st;
    }
    return job_log_print(log, &answer->tables[JOB], &answer->tables[ATTEMPTS], ctl->out, err);
}

enum status jobs_show(struct ctl *ctl, const struct ctl_args *args, struct err *err)
{
    const char *id = args->words[0];
    const struct job_log log = {ctl_value(args, "log"), ctl_value(args, "generation")};
    struct verb_call call = {.verb = &VERB_JOB_SHOW, .params = {id}};
    auto_admin struct admin *a = NULL;
    auto_answer struct answer answer = {.count = 0};
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
    st = verb_run(&call, a, &answer, err);
    if (st != STATUS_OK) {
        return st;
    }
    if (answer.tables[JOB].row_count == 0) {
        return fail_absent(a, id, err);
    }
    return print_job(ctl, &answer, ctl_value(args, "full") != NULL, &log, err);
}
