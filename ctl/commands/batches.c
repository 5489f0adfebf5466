/* SPDX-License-Identifier: Apache-2.0
 *
 * claimctl batches. */
#include "ctl/commands/batches.h"

#include "base/parse.h"
#include "ctl/core/ctl.h"
#include "ctl/core/table.h"
#include "ctl/options/args_file.h"
#include "ctl/options/id_list.h"
#include "ctl/options/job_check.h"
#include "sql/queries.h"

#define IDS_BYTES_MAX ((size_t)64 << 10)

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
                                              {"outcome_job", CELL_NUMBER | CELL_WIDE},
                                              {"error", CELL_TEXT | CELL_LONG}};

enum status batches_check_id(const char *text, struct err *err)
{
    int64_t id = 0;
    enum status st = parse_i64(text, strlen(text), 1, INT64_MAX, &id, err);
    if (st != STATUS_OK) {
        err_prefix(err, "batch '%.32s'", text);
    }
    return st;
}

static enum status open_for(struct ctl *ctl, const char *id, struct admin **ret, struct err *err)
{
    enum status st = batches_check_id(id, err);
    if (st != STATUS_OK) {
        return st;
    }
    return ctl_session(ctl, ret, err);
}

static enum status not_found(const char *id, struct err *err)
{
    return err_fail(err, STATUS_NOT_FOUND, "batch %s not found", id);
}

enum status batches_find(struct admin *a, const char *id, struct err *err)
{
    auto_admin_rows struct admin_rows *rows = NULL;
    enum status st = admin_query(a, &SQL_ADMIN_BATCH_FIND, &id, &rows, err);
    if (st != STATUS_OK) {
        return st;
    }
    return admin_row_count(rows) == 0 ? not_found(id, err) : STATUS_OK;
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
        return not_found(id, err);
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

/* One statement about one batch, whose answer is a number of jobs. `is_dry`: only tried. */
static enum status act(struct ctl *ctl, const char *const *params,
                       const struct pg_statement *statement, bool is_dry, const char *format,
                       struct err *err)
{
    static const struct table_column count_columns[] = {{"jobs", CELL_NUMBER}};
    auto_admin struct admin *a = NULL;
    auto_admin_rows struct admin_rows *rows = NULL;
    auto_table struct table table = TABLE("batch", count_columns);
    const struct table *const tables[] = {&table};
    enum status st = open_for(ctl, params[0], &a, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = is_dry ? admin_exec(a, "BEGIN", err) : STATUS_OK; /* the session ends, and it with it */
    if (st != STATUS_OK) {
        return st;
    }
    st = ctl_written(admin_query(a, statement, params, &rows, err), err);
    if (st != STATUS_OK) {
        return st;
    }
    if (admin_value(rows, 0, 0) == NULL) {
        return not_found(params[0], err);
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
    const char *const params[] = {args->words[0]};
    return act(ctl, params, &SQL_ADMIN_BATCH_CLOSE, false, "open jobs; none can be added", err);
}

/* The words behind the first. */
static enum status read_ids(const struct ctl_args *args, struct buf *out, struct err *err)
{
    for (size_t i = 1; i < args->word_count; i++) {
        const char *word = args->words[i];
        int64_t id = 0;
        enum status st = parse_i64(word, strlen(word), 1, INT64_MAX, &id, err);
        if (st != STATUS_OK) {
            err_prefix(err, "job '%.32s'", word);
            return st;
        }
        st = id_list_add(out, id, err);
        if (st != STATUS_OK) {
            return st;
        }
    }
    return id_list_end(out, err);
}

enum status batches_add(struct ctl *ctl, const struct ctl_args *args, struct err *err)
{
    autobuf struct buf ids = BUF_INIT(IDS_BYTES_MAX);
    enum status st = read_ids(args, &ids, err);
    if (st != STATUS_OK) {
        return st;
    }
    const char *const params[] = {args->words[0], buf_at(&ids)};
    bool is_dry = ctl_value(args, "dry-run") != NULL;
    return act(ctl, params, &SQL_ADMIN_BATCH_ADD, is_dry,
               is_dry ? "jobs would be in it" : "jobs are in it", err);
}

static enum status print_id(struct ctl *ctl, const struct admin_rows *rows, struct err *err)
{
    static const struct table_column id_columns[] = {{"id", CELL_NUMBER}};
    auto_table struct table table = TABLE("batch", id_columns);
    const struct table *const tables[] = {&table};
    table.is_record = true;
    if (!ctl->is_json) {
        (void)fprintf(ctl->out, "%s\n", admin_value(rows, 0, 0));
        return STATUS_OK;
    }
    enum status st = table_add_rows(&table, rows, err);
    if (st != STATUS_OK) {
        return st;
    }
    return tables_print(tables, 1, true, ctl->out, err);
}

/* A job that follows the batch. What else is wrong with it, the server says. */
static enum status read_job(const struct ctl_args *args, const char *option, struct buf *room,
                            const char **ret_json, struct err *err)
{
    char place[32];
    enum status st = args_file_read(option, ctl_value(args, option), room, ret_json, err);
    if (st != STATUS_OK || *ret_json == NULL) {
        return st;
    }
    (void)snprintf(place, sizeof place, "--%s: ", option);
    return job_json_check(place, *ret_json, strlen(*ret_json), err);
}

enum status batches_open(struct ctl *ctl, const struct ctl_args *args, struct err *err)
{
    static const char *const options[] = {"follow-up", "on-success", "on-failure"};
    const char *params[1 + ARRAY_COUNT(options)] = {args->word_count > 0 ? args->words[0] : NULL};
    autobuf struct buf follow_up = BUF_INIT(0);
    autobuf struct buf on_success = BUF_INIT(0);
    autobuf struct buf on_failure = BUF_INIT(0);
    struct buf *rooms[] = {&follow_up, &on_success, &on_failure};
    auto_admin struct admin *a = NULL;
    auto_admin_rows struct admin_rows *rows = NULL;
    for (size_t i = 0; i < ARRAY_COUNT(options); i++) {
        enum status st = read_job(args, options[i], rooms[i], &params[1 + i], err);
        if (st != STATUS_OK) {
            return st;
        }
    }
    enum status st = ctl_session(ctl, &a, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = ctl_written(admin_query(a, &SQL_ADMIN_BATCH_OPEN, params, &rows, err), err);
    if (st != STATUS_OK) {
        return st;
    }
    return print_id(ctl, rows, err);
}
