/* SPDX-License-Identifier: Apache-2.0
 *
 * claimctl queues; queues clear is in jobs_act.c. */
#include "base/parse.h"
#include "ctl/overview.h"
#include "ctl/pause.h"
#include "model/job.h"
#include "sql/queries.h"

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
    {"paused", CELL_BOOL},         {"paused_at", CELL_TIME},       {"paused_by", CELL_TEXT}};

/* One row in any case. */
static enum status fill_limits(struct admin *a, const char *name, struct table *ret,
                               struct err *err)
{
    ret->is_record = true;
    enum status st = ctl_now(a, &ret->now_us, err);
    return st == STATUS_OK ? table_query(ret, a, &SQL_ADMIN_QUEUE_LIMITS, &name, err) : st;
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
    const char *name = args->words[0];
    auto_admin struct admin *a = NULL;
    auto_table struct table queue = {.name = "queue", .is_record = true};
    auto_table struct table kinds = TABLE("kinds", kind_columns);
    auto_table struct table workers = TABLE("workers", worker_columns);
    auto_table struct table limits = TABLE("limits", limit_columns);
    const struct table *const tables[] = {&queue, &limits, &kinds, &workers};
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
    return tables_print(tables, ARRAY_COUNT(tables), ctl->is_json, ctl->out, err);
}

enum status queues_pause(struct ctl *ctl, const struct ctl_args *args, struct err *err)
{
    return pause_set(ctl, "queue", &SQL_ADMIN_QUEUE_PAUSE, args->words[0], true, err);
}

enum status queues_resume(struct ctl *ctl, const struct ctl_args *args, struct err *err)
{
    return pause_set(ctl, "queue", &SQL_ADMIN_QUEUE_PAUSE, args->words[0], false, err);
}

/* `none` is no number: NULL in PostgreSQL. */
static const char *or_null(const char *value)
{
    return value == NULL || strcmp(value, "none") == 0 ? NULL : value;
}

struct limits {
    const char *running; /* as they were given; NULL: not */
    const char *rate;
    const char *max_open;
    char starts[16];
    char per[16]; /* an interval */
};

/* A number, `none` or nothing. */
static enum status read_count(const char *option, const char *value, int64_t max, struct err *err)
{
    int64_t n = 0;
    const char *number = or_null(value);
    if (number == NULL || parse_i64(number, strlen(number), 1, max, &n, NULL) == STATUS_OK) {
        return STATUS_OK;
    }
    return err_fail(err, STATUS_INVALID, "--%s '%.40s': must be 1 to %lld, or none", option, number,
                    (long long)max);
}

static enum status read_limits(const struct ctl_args *args, struct limits *ret, struct err *err)
{
    static const char units[] = "smhd";
    static const char *const intervals[] = {"1 s", "1 min", "1 h", "1 d"};
    int64_t n = 0;
    *ret = (struct limits){.running = ctl_value(args, "running"),
                           .rate = ctl_value(args, "rate"),
                           .max_open = ctl_value(args, "max-open")};
    const char *rate = or_null(ret->rate);
    if (ret->running == NULL && ret->rate == NULL && ret->max_open == NULL) {
        return err_fail(err, STATUS_INVALID, "queues limit needs --running, --rate or --max-open");
    }
    enum status st = read_count("running", ret->running, 10000, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = read_count("max-open", ret->max_open, 10000000, err);
    if (st != STATUS_OK || rate == NULL) {
        return st;
    }
    size_t digits = strcspn(rate, "/");
    const char *unit =
        rate[digits] == '/' && strlen(rate) == digits + 2 ? strchr(units, rate[digits + 1]) : NULL;
    if (unit == NULL || parse_i64(rate, digits, 1, 100000, &n, NULL) != STATUS_OK) {
        return err_fail(err, STATUS_INVALID,
                        "--rate '%.40s': must be 1 to 100000, then /s, /m, /h or /d; or none",
                        rate);
    }
    (void)snprintf(ret->starts, sizeof ret->starts, "%lld", (long long)n);
    (void)snprintf(ret->per, sizeof ret->per, "%s", intervals[unit - units]);
    return STATUS_OK;
}

/* A limit that is one number; NULL: it was not given. */
static enum status set_count(struct admin *a, const struct pg_statement *statement,
                             const char *queue, const char *value, struct err *err)
{
    const char *const params[] = {queue, or_null(value)};
    auto_admin_rows struct admin_rows *rows = NULL;
    if (value == NULL) {
        return STATUS_OK;
    }
    return ctl_written(admin_query(a, statement, params, &rows, err), err);
}

static enum status set_limits(struct admin *a, const char *queue, const struct limits *l,
                              struct err *err)
{
    enum status st = set_count(a, &SQL_ADMIN_QUEUE_LIMIT, queue, l->running, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = set_count(a, &SQL_ADMIN_QUEUE_OPEN, queue, l->max_open, err);
    if (st != STATUS_OK || l->rate == NULL) {
        return st;
    }
    bool is_none = l->starts[0] == '\0';
    const char *const params[] = {queue, is_none ? NULL : l->starts, is_none ? "1 s" : l->per};
    auto_admin_rows struct admin_rows *rows = NULL;
    return ctl_written(admin_query(a, &SQL_ADMIN_QUEUE_RATE, params, &rows, err), err);
}

enum status queues_limit(struct ctl *ctl, const struct ctl_args *args, struct err *err)
{
    const char *queue = args->words[0];
    struct limits limits;
    auto_admin struct admin *a = NULL;
    auto_table struct table table = TABLE("queue", limit_columns);
    const struct table *const tables[] = {&table};
    enum status st = read_limits(args, &limits, err);
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
    st = set_limits(a, queue, &limits, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = fill_limits(a, queue, &table, err);
    if (st != STATUS_OK) {
        return st;
    }
    return tables_print(tables, 1, ctl->is_json, ctl->out, err);
}
