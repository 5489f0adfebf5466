/* SPDX-License-Identifier: Apache-2.0
 *
 * claimctl enqueue KIND: one job from the command line. */
#include "ctl/commands/enqueue/enqueue_one.h"

#include "base/buf.h"
#include "base/clock.h"
#include "ctl/commands/enqueue/served.h"
#include "ctl/core/ctl.h"
#include "ctl/core/table_text.h"
#include "ctl/options/args_file.h"
#include "ctl/options/filter.h"
#include "ctl/options/job_check.h"
#include "ctl/options/job_options.h"
#include "ctl/options/job_time.h"
#include "model/job.h"
#include "sql/queries.h"

static enum status check_names(const struct ctl_args *args, struct err *err)
{
    const char *queue = ctl_value(args, "queue");
    enum status st = job_kind_check(args->words[0], err);
    if (st != STATUS_OK || queue == NULL) {
        return st;
    }
    return job_queue_check(queue, err);
}

static enum status check_backoff(const struct ctl_args *args, struct err *err)
{
    struct backoff backoff;
    const char *text = ctl_value(args, "backoff");
    return text == NULL ? STATUS_OK : backoff_parse(text, &backoff, err);
}

static enum status check_one(const struct ctl_args *args, const char *json, struct err *err)
{
    const char *at = ctl_value(args, "at");
    enum status st = check_names(args, err);
    if (st != STATUS_OK) {
        return st;
    }
    if (json != NULL) {
        st = job_args_check(json, strlen(json), err);
    }
    if (st != STATUS_OK) {
        return st;
    }
    st = check_backoff(args, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = ctl_option_number(args, "priority", 0, JOB_PRIORITY_MAX, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = ctl_option_number(args, "batch", 1, INT64_MAX, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = ctl_option_number(args, "max-attempts", 1, INT32_MAX, err);
    if (st != STATUS_OK || at == NULL) {
        return st;
    }
    if (ctl_value(args, "delay") != NULL) {
        return err_fail(err, STATUS_INVALID, "allowed: either --at or --delay");
    }
    return job_time_check(at, err);
}

static enum status check_served(const struct ctl_args *args, struct admin *a, struct err *err)
{
    const char *given = ctl_value(args, "queue");
    const char *queue = given != NULL ? given : "default";
    struct served served = {.count = 0};
    served_note(&served, queue, strlen(queue), args->words[0], strlen(args->words[0]));
    return served_check(&served, a, ctl_value(args, "strict") != NULL, err);
}

/* The options of one job, in the words of the statements. */
struct one_job {
    const char *json; /* NULL = not given, here and below */
    struct buf json_room;
    const char *metadata;
    struct buf metadata_room;
    char delay[48]; /* intervals; empty = not given */
    char timeout[48];
    char unique_for[48];
    char expires_in[48];
    char grace[48];
    struct buf tags; /* array literals; empty = not given */
    struct buf unique_by;
    struct buf after;
    bool is_unique;
};

static void one_job_release(struct one_job *one)
{
    buf_release(&one->json_room);
    buf_release(&one->metadata_room);
    buf_release(&one->tags);
    buf_release(&one->unique_by);
    buf_release(&one->after);
}
#define auto_one_job CLEANUP(one_job_release)

/* Which of the two statements; the keys themselves are checked by the server, which names them. */
static enum status read_unique(const struct ctl_args *args, struct one_job *one, struct err *err)
{
    enum status st = ctl_option_interval(args, "unique-for", 1000, JOB_TIMEOUT_MAX_US,
                                         one->unique_for, sizeof one->unique_for, err);
    if (st != STATUS_OK) {
        return st;
    }
    one->is_unique = ctl_value(args, "unique") != NULL || ctl_value(args, "unique-by") != NULL;
    bool has_scope = ctl_value(args, "unique-for") != NULL ||
                     ctl_value(args, "unique-states") != NULL ||
                     ctl_value(args, "on-conflict") != NULL;
    if (has_scope && !one->is_unique) {
        return err_fail(err, STATUS_INVALID,
                        "--unique-for, --unique-states and --on-conflict need --unique or "
                        "--unique-by");
    }
    return filter_array(args, "unique-by", true, &one->unique_by, err);
}

static enum status read_one(const struct ctl_args *args, struct one_job *one, struct err *err)
{
    enum status st =
        args_file_read("args", ctl_value(args, "args"), &one->json_room, &one->json, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = check_one(args, one->json, err);
    if (st != STATUS_OK) {
        return st;
    }
    st =
        ctl_option_interval(args, "delay", 0, JOB_DELAY_MAX_US, one->delay, sizeof one->delay, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = ctl_option_interval(args, "timeout", 1000, JOB_TIMEOUT_MAX_US, one->timeout,
                             sizeof one->timeout, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = ctl_option_interval(args, "grace", US_PER_MS, JOB_KIND_GRACE_MS_MAX * US_PER_MS,
                             one->grace, sizeof one->grace, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = ctl_option_expiry(args, false, one->expires_in, sizeof one->expires_in, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = ctl_option_ids(args, "after", err);
    if (st != STATUS_OK) {
        return st;
    }
    st = filter_array(args, "after", true, &one->after, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = filter_tags(args, &one->tags, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = args_file_read("metadata", ctl_value(args, "metadata"), &one->metadata_room,
                        &one->metadata, err);
    if (st == STATUS_OK && one->metadata != NULL) {
        st = job_metadata_check(one->metadata, strlen(one->metadata), err);
    }
    if (st != STATUS_OK) {
        return st;
    }
    return read_unique(args, one, err);
}

static const char *text_of(const struct buf *b)
{
    return b->len > 0 ? buf_at(b) : NULL;
}

static enum status print_one(struct ctl *ctl, const struct one_job *one,
                             const struct admin_rows *rows, struct err *err)
{
    static const struct table_column columns[] = {{"id", CELL_NUMBER}, {"inserted", CELL_BOOL}};
    auto_table struct table table = TABLE("job", columns);
    const struct table *const tables[] = {&table};
    const char *id = admin_value(rows, 0, 0);
    if (!ctl->is_json) {
        (void)fprintf(ctl->out, "%s\n", id);
        if (one->is_unique && strcmp(admin_value(rows, 0, 1), "t") != 0) {
            (void)fflush(ctl->out);
            (void)fprintf(stderr, "claimctl: job %s was there already\n", id);
        }
        return STATUS_OK;
    }
    table.is_record = true;
    table.column_count = one->is_unique ? 2 : 1;
    enum status st = table_add_rows(&table, rows, err);
    if (st != STATUS_OK) {
        return st;
    }
    return tables_print(tables, 1, true, ctl->out, err);
}

static enum status store_one(struct ctl *ctl, const struct ctl_args *args,
                             const struct one_job *one, struct admin *a, struct err *err)
{
    const char *params[] = {args->words[0],
                            one->json,
                            ctl_value(args, "queue"),
                            ctl_value(args, "priority"),
                            ctl_value(args, "at"),
                            one->delay[0] != '\0' ? one->delay : NULL,
                            ctl_value(args, "max-attempts"),
                            one->timeout[0] != '\0' ? one->timeout : NULL,
                            text_of(&one->tags),
                            ctl_value(args, "backoff"),
                            one->metadata,
                            ctl_value(args, "exclusive"),
                            ctl_value(args, "share"),
                            text_of(&one->after),
                            ctl_value(args, "if-dead"),
                            ctl_value(args, "batch"),
                            ctl_value(args, "expires-at"),
                            one->expires_in[0] != '\0' ? one->expires_in : NULL,
                            ctl_value(args, "second"),
                            one->grace[0] != '\0' ? one->grace : NULL,
                            ctl_value(args, "unique"), /* from here on only of the second */
                            text_of(&one->unique_by),
                            one->unique_for[0] != '\0' ? one->unique_for : NULL,
                            ctl_value(args, "unique-states"),
                            ctl_value(args, "on-conflict")};
    auto_admin_rows struct admin_rows *rows = NULL;
    enum status st =
        verb_written(admin_query(a, one->is_unique ? &SQL_ADMIN_ENQUEUE_UNIQUE : &SQL_ADMIN_ENQUEUE,
                                 params, &rows, err),
                     err);
    if (st != STATUS_OK) {
        return st;
    }
    return print_one(ctl, one, rows, err);
}

enum status enqueue_one(struct ctl *ctl, const struct ctl_args *args, struct err *err)
{
    auto_admin struct admin *a = NULL;
    auto_one_job struct one_job one = {.json_room = BUF_INIT(0),
                                       .metadata_room = BUF_INIT(0),
                                       .tags = BUF_INIT(FILTER_LIST_MAX),
                                       .unique_by = BUF_INIT(FILTER_LIST_MAX),
                                       .after = BUF_INIT(FILTER_LIST_MAX)};
    enum status st = read_one(args, &one, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = ctl_session(ctl, &a, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = check_served(args, a, err);
    if (st != STATUS_OK) {
        return st;
    }
    return store_one(ctl, args, &one, a, err);
}
