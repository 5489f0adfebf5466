/* SPDX-License-Identifier: Apache-2.0
 *
 * claimctl jobs edit. */
#include "ctl/args_file.h"
#include "ctl/filter.h"
#include "ctl/job_check.h"
#include "ctl/job_options.h"
#include "ctl/job_time.h"
#include "ctl/jobs.h"
#include "ctl/table.h"
#include "model/job.h"
#include "sql/queries.h"

struct edit {
    struct buf args_room;
    struct buf metadata_room;
    struct buf tags;
    const char *args;     /* JSON; NULL = stays */
    const char *metadata; /* "null" = none any more */
    char delay[48];
    char timeout[48];    /* "default" = the kind's, as of backoff */
    const char *backoff; /* NULL = stays */
};

static enum status read_json(struct edit *e, const struct ctl_args *args, struct err *err)
{
    enum status st = args_file_read("args", ctl_value(args, "args"), &e->args_room, &e->args, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = e->args != NULL ? job_args_check(e->args, strlen(e->args), err) : STATUS_OK;
    if (st != STATUS_OK) {
        return st;
    }
    st = args_file_read("metadata", ctl_value(args, "metadata"), &e->metadata_room, &e->metadata,
                        err);
    if (st != STATUS_OK || e->metadata == NULL || strcmp(e->metadata, "null") == 0) {
        return st;
    }
    return job_metadata_check(e->metadata, strlen(e->metadata), err);
}

/* An empty text alone: none. */
static enum status read_tags(struct edit *e, const struct ctl_args *args, struct err *err)
{
    size_t count = 0;
    size_t empty_count = 0;
    for (size_t i = 0; i < args->given_count; i++) {
        bool is_tag = strcmp(args->given[i].name, "tag") == 0;
        count += is_tag;
        empty_count += is_tag && args->given[i].value[0] == '\0';
    }
    if (empty_count == 0) {
        return filter_array(args, "tag", false, &e->tags, err);
    }
    if (count > 1) {
        return err_fail(err, STATUS_INVALID,
                        "--tag: '' is not allowed beside another; allowed: texts, or '' alone for "
                        "no tags");
    }
    return buf_append_text(&e->tags, "{}", err);
}

static enum status read_times(struct edit *e, const struct ctl_args *args, struct err *err)
{
    const char *at = ctl_value(args, "at");
    if (at != NULL && ctl_value(args, "delay") != NULL) {
        return err_fail(err, STATUS_INVALID, "allowed: either --at or --delay");
    }
    enum status st = at != NULL ? job_time_check(at, err) : STATUS_OK;
    if (st != STATUS_OK) {
        return st;
    }
    st = ctl_option_interval(args, "delay", 0, JOB_DELAY_MAX_US, e->delay, sizeof e->delay, err);
    if (st != STATUS_OK) {
        return st;
    }
    return ctl_option_timeout(args, e->timeout, sizeof e->timeout, err);
}

/* An empty text, as of keys: none of its own. */
static enum status read_backoff(struct edit *e, const struct ctl_args *args, struct err *err)
{
    e->backoff = ctl_value(args, "backoff");
    if (e->backoff != NULL && e->backoff[0] == '\0') {
        e->backoff = "default";
        return STATUS_OK;
    }
    return ctl_option_backoff(args, err);
}

static enum status read_numbers(const struct ctl_args *args, struct err *err)
{
    enum status st = ctl_option_number(args, "priority", 0, JOB_PRIORITY_MAX, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = ctl_option_attempts(args, "max-attempts", err);
    if (st != STATUS_OK) {
        return st;
    }
    return ctl_option_number(args, "expect", 1, INT32_MAX, err);
}

/* What needs no server. */
static enum status read_edit(struct edit *e, const struct ctl_args *args, struct err *err)
{
    const char *queue = ctl_value(args, "queue");
    enum status st = jobs_check_id(args->words[0], err);
    if (st != STATUS_OK) {
        return st;
    }
    size_t others = ctl_value(args, "expect") != NULL ? 1 : 0;
    others += ctl_value(args, "apply") != NULL ? 1 : 0;
    if (args->given_count == others) {
        return err_fail(err, STATUS_INVALID,
                        "nothing to change: name an option such as --priority");
    }
    const char *apply = ctl_value(args, "apply");
    if (apply != NULL && strcmp(apply, "now") != 0 && strcmp(apply, "next") != 0) {
        return err_fail(err, STATUS_INVALID, "--apply: '%.40s' is not allowed; allowed: now, next",
                        apply);
    }
    st = read_numbers(args, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = queue != NULL ? job_queue_check(queue, err) : STATUS_OK;
    if (st != STATUS_OK) {
        return st;
    }
    st = read_times(e, args, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = read_backoff(e, args, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = read_tags(e, args, err);
    if (st != STATUS_OK) {
        return st;
    }
    return read_json(e, args, err);
}

static enum status do_edit(struct ctl *ctl, const struct ctl_args *args, const struct edit *e,
                           struct err *err)
{
    static const struct table_column columns[] = {{"id", CELL_NUMBER}, {"version", CELL_NUMBER}};
    const char *const params[] = {args->words[0],
                                  e->args,
                                  ctl_value(args, "priority"),
                                  ctl_value(args, "queue"),
                                  ctl_value(args, "at"),
                                  e->delay[0] != '\0' ? e->delay : NULL,
                                  ctl_value(args, "max-attempts"),
                                  e->timeout[0] != '\0' ? e->timeout : NULL,
                                  e->tags.len > 0 ? buf_at(&e->tags) : NULL,
                                  e->metadata,
                                  ctl_value(args, "expect"),
                                  e->backoff,
                                  ctl_value(args, "exclusive"),
                                  ctl_value(args, "apply"),
                                  ctl_value(args, "share")};
    auto_admin struct admin *a = NULL;
    auto_admin_rows struct admin_rows *rows = NULL;
    auto_table struct table table = TABLE("job", columns);
    table.is_record = true;
    enum status st = ctl_session(ctl, &a, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = ctl_written(admin_query(a, &SQL_ADMIN_EDIT, params, &rows, err), err);
    if (st != STATUS_OK) {
        return st;
    }
    const char *const values[] = {args->words[0], admin_value(rows, 0, 0)};
    if (values[1] == NULL) {
        return err_fail(err, STATUS_NOT_FOUND, "job %s not found", values[0]);
    }
    st = table_add(&table, values, err);
    if (st != STATUS_OK) {
        return st;
    }
    const struct table *const tables[] = {&table};
    return tables_print(tables, 1, ctl->is_json, ctl->out, err);
}

enum status jobs_edit(struct ctl *ctl, const struct ctl_args *args, struct err *err)
{
    struct edit e = {
        .args_room = BUF_INIT(0), .metadata_room = BUF_INIT(0), .tags = BUF_INIT(JOB_METADATA_MAX)};
    enum status st = read_edit(&e, args, err);
    if (st == STATUS_OK) {
        st = do_edit(ctl, args, &e, err);
    }
    buf_release(&e.args_room);
    buf_release(&e.metadata_room);
    buf_release(&e.tags);
    return st;
}
