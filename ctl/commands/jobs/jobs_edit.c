/* SPDX-License-Identifier: Apache-2.0
 *
 * claimctl jobs edit: of one job, or of all that options choose. */
#include "ctl/commands/jobs/act.h"
#include "ctl/commands/jobs/jobs.h"
#include "ctl/core/table_text.h"
#include "ctl/options/args_file.h"
#include "ctl/options/filter.h"
#include "ctl/options/job_check.h"
#include "ctl/options/job_options.h"
#include "ctl/options/job_time.h"
#include "model/job.h"
#include "sql/queries.h"

/* Options of new values whose shorter names choose jobs where no id does. */
#define NEW_QUEUE "set-queue"
#define NEW_TAG "set-tag"
#define NEW_METADATA "set-metadata"

struct edit {
    struct buf args_room;
    struct buf metadata_room;
    struct buf tags;
    const char *args;     /* JSON; NULL = stays */
    const char *metadata; /* "null" = none any more */
    char delay[48];
    char timeout[48]; /* "default" = the kind's, as of grace and backoff */
    char grace[48];
    char expires_in[48];
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
    st = args_file_read("metadata", ctl_value(args, NEW_METADATA), &e->metadata_room, &e->metadata,
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
        bool is_tag = strcmp(args->given[i].name, NEW_TAG) == 0;
        count += is_tag;
        empty_count += is_tag && args->given[i].value[0] == '\0';
    }
    if (empty_count == 0) {
        return filter_array(args, NEW_TAG, false, &e->tags, err);
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
    st = ctl_option_timeout(args, e->timeout, sizeof e->timeout, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = ctl_option_grace(args, e->grace, sizeof e->grace, err);
    if (st != STATUS_OK) {
        return st;
    }
    return ctl_option_expiry(args, true, e->expires_in, sizeof e->expires_in, err);
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

static bool is_any_value(const struct ctl_args *args)
{
    static const char *const names[] = {"args",         "priority", NEW_QUEUE,    "at",
                                        "delay",        "timeout",  NEW_TAG,      NEW_METADATA,
                                        "max-attempts", "backoff",  "share",      "exclusive",
                                        "second",       "grace",    "expires-at", "expires-in"};
    for (size_t i = 0; i < ARRAY_COUNT(names); i++) {
        if (ctl_value(args, names[i]) != NULL) {
            return true;
        }
    }
    return false;
}

/* What needs no server. */
static enum status read_edit(struct edit *e, const struct ctl_args *args, struct err *err)
{
    const char *queue = ctl_value(args, NEW_QUEUE);
    enum status st = args->word_count > 0 ? jobs_check_id(args->words[0], err) : STATUS_OK;
    if (st != STATUS_OK) {
        return st;
    }
    if (!is_any_value(args)) {
        return err_fail(err, STATUS_INVALID,
                        "nothing to change: name an option such as --priority or --set-queue");
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

/* ---- doing ---- */

/* Of the statement, from $2 on. */
static void fill_parameters(const struct ctl_args *args, const struct edit *e, bool is_bulk,
                            const char **ret)
{
    const char *const params[ACT_PARAMETERS_MAX] = {e->args,
                                                    ctl_value(args, "priority"),
                                                    ctl_value(args, NEW_QUEUE),
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
                                                    ctl_value(args, "share"),
                                                    ctl_value(args, "second"),
                                                    e->grace[0] != '\0' ? e->grace : NULL,
                                                    ctl_value(args, "expires-at"),
                                                    e->expires_in[0] != '\0' ? e->expires_in : NULL,
                                                    is_bulk ? "t" : "f"};
    memcpy(ret, params, sizeof params);
}

static enum status edit_one(struct ctl *ctl, const char *id, const struct act *act, struct err *err)
{
    static const struct table_column columns[] = {{"id", CELL_NUMBER}, {"version", CELL_NUMBER}};
    char list[32];
    const char *params[1 + ACT_PARAMETERS_MAX];
    auto_admin struct admin *a = NULL;
    auto_admin_rows struct admin_rows *rows = NULL;
    auto_table struct table table = TABLE("job", columns);
    table.is_record = true;
    (void)snprintf(list, sizeof list, "{%s}", id);
    act_parameters(act, list, params);
    enum status st = ctl_session(ctl, &a, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = verb_written(admin_query(a, act->many, params, &rows, err), err);
    if (st != STATUS_OK) {
        return st;
    }
    if (admin_row_count(rows) == 0) {
        return err_fail(err, STATUS_NOT_FOUND, "job %s not found", id);
    }
    st = table_add_rows(&table, rows, err);
    if (st != STATUS_OK) {
        return st;
    }
    const struct table *const tables[] = {&table};
    return tables_print(tables, 1, ctl->is_json, ctl->out, err);
}

static enum status do_edit(struct ctl *ctl, const struct ctl_args *args, const struct edit *e,
                           const struct ctl_args *values, struct err *err)
{
    const char *apply = ctl_value(args, "apply");
    bool is_next = apply != NULL && strcmp(apply, "next") == 0;
    bool is_bulk = args->word_count == 0;
    struct act act = {.past = "edited",
                      .many = &SQL_ADMIN_EDIT,
                      .states = is_next ? "waiting,scheduled,retryable,available,running"
                                        : "waiting,scheduled,retryable,available",
                      .allowed = is_next ? "waiting, scheduled, retryable, available, running"
                                         : "waiting, scheduled, retryable, available",
                      .which = is_next ? "open" : "queued"};
    fill_parameters(values, e, is_bulk, act.parameters);
    if (is_bulk) {
        return act_on_matches(ctl, args, &act, err);
    }
    return ctl_value(args, "dry-run") != NULL ? act_on_ids(ctl, args, &act, err)
                                              : edit_one(ctl, args->words[0], &act, err);
}

/* ---- which, and what ---- */

static enum status check_choice(const struct ctl_args *args, struct err *err)
{
    bool is_one = args->word_count > 0;
    if (!is_one && !filter_is_given(args)) {
        return err_fail(err, STATUS_INVALID,
                        "which jobs? Name an id, or choose them with options such as --kind");
    }
    if (is_one && filter_is_given(args)) {
        return err_fail(err, STATUS_INVALID, "allowed: either an id or options that choose jobs");
    }
    if (is_one && ctl_value(args, "limit") != NULL) {
        return err_fail(err, STATUS_INVALID,
                        "--limit: goes with options that choose jobs, not an id");
    }
    if (!is_one && ctl_value(args, "expect") != NULL) {
        return err_fail(err, STATUS_INVALID, "--expect: goes with an id");
    }
    return STATUS_OK;
}

/* With an id, which leaves nothing to choose, these are the new values as well. */
static enum status name_values(struct ctl_args *values, struct err *err)
{
    static const char *const both[][2] = {
        {"queue", NEW_QUEUE}, {"tag", NEW_TAG}, {"metadata", NEW_METADATA}};
    for (size_t i = 0; values->word_count > 0 && i < ARRAY_COUNT(both); i++) {
        if (ctl_value(values, both[i][0]) != NULL && ctl_value(values, both[i][1]) != NULL) {
            return err_fail(err, STATUS_INVALID, "allowed: either --%s or --%s", both[i][0],
                            both[i][1]);
        }
        for (size_t k = 0; k < values->given_count; k++) {
            if (strcmp(values->given[k].name, both[i][0]) == 0) {
                values->given[k].name = both[i][1];
            }
        }
    }
    return STATUS_OK;
}

enum status jobs_edit(struct ctl *ctl, const struct ctl_args *args, struct err *err)
{
    struct edit e = {
        .args_room = BUF_INIT(0), .metadata_room = BUF_INIT(0), .tags = BUF_INIT(JOB_METADATA_MAX)};
    struct ctl_args values = *args;
    enum status st = name_values(&values, err);
    if (st == STATUS_OK) {
        st = check_choice(args->word_count > 0 ? &values : args, err);
    }
    if (st == STATUS_OK) {
        st = read_edit(&e, &values, err);
    }
    if (st == STATUS_OK) {
        st = do_edit(ctl, args, &e, &values, err);
    }
    buf_release(&e.args_room);
    buf_release(&e.metadata_room);
    buf_release(&e.tags);
    return st;
}
