/* SPDX-License-Identifier: Apache-2.0
 *
 * claimctl queues; queues clear is in jobs_act.c. */
#include "base/parse.h"
#include "ctl/commands/overview.h"
#include "ctl/commands/pause.h"
#include "ctl/commands/retention.h"
#include "ctl/core/agree.h"
#include "ctl/options/limit_options.h"
#include "model/job.h"
#include "sql/queries.h"

#define QUEUE_RUNNING_MAX 10000
#define WEIGHT_MAX 100

enum status queues(struct ctl *ctl, const struct ctl_args *args, struct err *err)
{
    (void)args;
    auto_admin struct admin *a = NULL;
    auto_table struct table table = {0};
    enum status st = ctl_session(ctl, &a, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = overview_queues(a, &table, err);
    if (st != STATUS_OK) {
        return st;
    }
    const struct table *const tables[] = {&table};
    return tables_print(tables, 1, ctl->is_json, ctl->out, err);
}

/* The one row of all that has this name. */
static enum status find(const struct table *all, const char *name, struct table *ret,
                        struct err *err)
{
    for (size_t row = 0; row < all->row_count; row++) {
        if (strcmp(table_cell(all, row, 0), name) == 0) {
            const char *const *cells = (const char *const *)&all->cells[row * all->column_count];
            ret->columns = all->columns;
            ret->column_count = all->column_count;
            return table_add(ret, cells, err);
        }
    }
    return err_fail(err, STATUS_NOT_FOUND,
                    "queue %s not found: it has no open job, no worker and no setting", name);
}

static enum status fill_show(struct admin *a, const char *name, struct table *queue,
                             struct table *kinds, struct table *workers, struct err *err)
{
    auto_table struct table all = {0};
    enum status st = overview_queues(a, &all, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = find(&all, name, queue, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = table_query(kinds, a, &SQL_ADMIN_QUEUE_KINDS, &name, err);
    if (st != STATUS_OK) {
        return st;
    }
    return table_query(workers, a, &SQL_ADMIN_QUEUE_WORKERS, &name, err);
}

static const struct table_column limit_columns[] = {
    {"name", CELL_TEXT},           {"max_running", CELL_NUMBER},   {"places_taken", CELL_NUMBER},
    {"starts_per_s", CELL_NUMBER}, {"may_start_now", CELL_NUMBER}, {"max_open", CELL_NUMBER},
    {"open_jobs", CELL_COUNT},     {"weight", CELL_NUMBER},        {"paused", CELL_BOOL},
    {"paused_at", CELL_TIME},      {"paused_by", CELL_TEXT}};

/* One row in any case. */
static enum status fill_limits(struct admin *a, const char *name, struct table *ret,
                               struct err *err)
{
    ret->is_record = true;
    enum status st = ctl_now(a, &ret->now_us, err);
    if (st != STATUS_OK) {
        return st;
    }
    return table_query(ret, a, &SQL_ADMIN_QUEUE_LIMITS, &name, err);
}

static enum status print_limits(struct ctl *ctl, struct admin *a, const char *queue,
                                struct err *err)
{
    auto_table struct table table = TABLE("queue", limit_columns);
    const struct table *const tables[] = {&table};
    enum status st = fill_limits(a, queue, &table, err);
    if (st != STATUS_OK) {
        return st;
    }
    return tables_print(tables, 1, ctl->is_json, ctl->out, err);
}

enum status queues_show(struct ctl *ctl, const struct ctl_args *args, struct err *err)
{
    static const struct table_column kind_columns[] = {
        {"kind", CELL_TEXT},        {"priority", CELL_NUMBER},  {"available", CELL_NUMBER},
        {"scheduled", CELL_NUMBER}, {"retryable", CELL_NUMBER}, {"waiting", CELL_NUMBER},
        {"running", CELL_NUMBER},   {"paused", CELL_BOOL}};
    static const struct table_column worker_columns[] = {
        {"host", CELL_TEXT},    {"pid", CELL_NUMBER}, {"running", CELL_NUMBER},
        {"slots", CELL_NUMBER}, {"quiet", CELL_BOOL}, {"worker_id", CELL_TEXT | CELL_WIDE}};
    static const struct table_column run_columns[] = {{"kind", CELL_TEXT},
                                                      {"runs", CELL_NUMBER},
                                                      {"mean_s", CELL_SECONDS},
                                                      {"p95_s", CELL_SECONDS},
                                                      {"since_at", CELL_TIME}};
    const char *name = args->words[0];
    auto_admin struct admin *a = NULL;
    auto_table struct table queue = {.name = "queue", .is_record = true};
    auto_table struct table kinds = TABLE("kinds", kind_columns);
    auto_table struct table workers = TABLE("workers", worker_columns);
    auto_table struct table limits = TABLE("limits", limit_columns);
    auto_table struct table rules = {.name = "retention"};
    auto_table struct table runs = TABLE("runs", run_columns);
    const struct table *const tables[] = {&queue, &limits, &rules, &kinds, &runs, &workers};
    enum status st = job_queue_check(name, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = ctl_session(ctl, &a, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = fill_limits(a, name, &limits, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = fill_show(a, name, &queue, &kinds, &workers, err);
    if (st != STATUS_OK) {
        return st;
    }
    runs.now_us = limits.now_us;
    st = table_query(&runs, a, &SQL_ADMIN_QUEUE_RUNS, &name, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = retention_rules(a, "queue", name, &rules, err);
    if (st != STATUS_OK) {
        return st;
    }
    return tables_print(tables, ARRAY_COUNT(tables), ctl->is_json, ctl->out, err);
}

/* One by its name, or all. */
static enum status set_paused(struct ctl *ctl, const struct ctl_args *args, bool is_paused,
                              struct err *err)
{
    bool is_all = ctl_value(args, "all") != NULL;
    if (is_all == (args->word_count > 0)) {
        return err_fail(err, STATUS_INVALID, "allowed: either the name of a queue or --all");
    }
    if (!is_all) {
        return pause_set(ctl, "queue", &SQL_ADMIN_QUEUE_PAUSE, args->words[0], is_paused, err);
    }
    enum status st = ctl_agree(
        args, is_paused ? "All queues will be paused." : "All queues will be resumed.", err);
    if (st != STATUS_OK) {
        return st;
    }
    return pause_set_all(ctl, "queues", &SQL_ADMIN_QUEUES_PAUSE_ALL, is_paused, err);
}

enum status queues_pause(struct ctl *ctl, const struct ctl_args *args, struct err *err)
{
    return set_paused(ctl, args, true, err);
}

enum status queues_resume(struct ctl *ctl, const struct ctl_args *args, struct err *err)
{
    return set_paused(ctl, args, false, err);
}

enum status queues_limit(struct ctl *ctl, const struct ctl_args *args, struct err *err)
{
    const char *queue = args->words[0];
    static const struct limit_statements statements = {.running = &SQL_ADMIN_QUEUE_LIMIT,
                                                       .rate = &SQL_ADMIN_QUEUE_RATE,
                                                       .max_open = &SQL_ADMIN_QUEUE_OPEN};
    struct limit_options limits;
    auto_admin struct admin *a = NULL;
    enum status st = limit_options_read(args, QUEUE_RUNNING_MAX, &limits, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = job_queue_check(queue, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = ctl_session(ctl, &a, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = limit_options_set(a, queue, &limits, &statements, err);
    if (st != STATUS_OK) {
        return st;
    }
    return print_limits(ctl, a, queue, err);
}

/* A number, or `none`: NULL in PostgreSQL. */
static enum status read_weight(const char *text, const char **ret, struct err *err)
{
    int64_t n = 0;
    bool is_none = strcmp(text, "none") == 0;
    if (!is_none && parse_i64(text, strlen(text), 1, WEIGHT_MAX, &n, NULL) != STATUS_OK) {
        return err_fail(err, STATUS_INVALID, "weight '%.40s': must be 1 to %d, or none", text,
                        WEIGHT_MAX);
    }
    *ret = is_none ? NULL : text;
    return STATUS_OK;
}

enum status queues_weight(struct ctl *ctl, const struct ctl_args *args, struct err *err)
{
    const char *params[] = {args->words[0], NULL};
    auto_admin struct admin *a = NULL;
    auto_admin_rows struct admin_rows *rows = NULL;
    enum status st = job_queue_check(params[0], err);
    if (st != STATUS_OK) {
        return st;
    }
    st = read_weight(args->words[1], &params[1], err);
    if (st != STATUS_OK) {
        return st;
    }
    st = ctl_session(ctl, &a, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = ctl_written(admin_query(a, &SQL_ADMIN_QUEUE_WEIGHT, params, &rows, err), err);
    if (st != STATUS_OK) {
        return st;
    }
    return print_limits(ctl, a, params[0], err);
}
