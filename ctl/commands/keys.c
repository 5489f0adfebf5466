/* SPDX-License-Identifier: Apache-2.0
 *
 * claimctl keys: exclusive keys, who holds them, and their limits. */
#include "ctl/core/table.h"
#include "ctl/options/limit_options.h"
#include "sql/queries.h"

static const struct table_column key_columns[] = {{"key", CELL_TEXT},
                                                  {"max_running", CELL_NUMBER},
                                                  {"running", CELL_NUMBER},
                                                  {"starts_per_s", CELL_NUMBER},
                                                  {"may_start_now", CELL_NUMBER},
                                                  {"pattern", CELL_TEXT}};

enum status keys_list(struct ctl *ctl, const struct ctl_args *args, struct err *err)
{
    (void)args;
    auto_admin struct admin *a = NULL;
    auto_table struct table table = TABLE("keys", key_columns);
    const struct table *const tables[] = {&table};
    enum status st = ctl_session(ctl, &a, err);
    if (st != STATUS_OK) {
        return st;
    }
    const char *const params[] = {NULL};
    st = table_query(&table, a, &SQL_ADMIN_KEYS, params, err);
    if (st != STATUS_OK) {
        return st;
    }
    return tables_print(tables, 1, ctl->is_json, ctl->out, err);
}

enum status keys_show(struct ctl *ctl, const struct ctl_args *args, struct err *err)
{
    static const struct table_column job_columns[] = {
        {"job", CELL_NUMBER}, {"state", CELL_TEXT},      {"kind", CELL_TEXT},
        {"queue", CELL_TEXT}, {"priority", CELL_NUMBER}, {"attempted_at", CELL_TIME}};
    const char *key = args->words[0];
    auto_admin struct admin *a = NULL;
    auto_table struct table table = TABLE("key", key_columns);
    auto_table struct table jobs = TABLE("jobs", job_columns);
    const struct table *const tables[] = {&table, &jobs};
    table.is_record = true;
    enum status st = ctl_session(ctl, &a, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = table_query(&table, a, &SQL_ADMIN_KEYS, &key, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = ctl_now(a, &jobs.now_us, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = table_query(&jobs, a, &SQL_ADMIN_KEY_JOBS, &key, err);
    if (st != STATUS_OK) {
        return st;
    }
    return tables_print(tables, ARRAY_COUNT(tables), ctl->is_json, ctl->out, err);
}

enum status keys_limit(struct ctl *ctl, const struct ctl_args *args, struct err *err)
{
    const char *key = args->words[0];
    static const struct limit_statements statements = {.running = &SQL_ADMIN_KEY_LIMIT,
                                                       .rate = &SQL_ADMIN_KEY_RATE};
    struct limit_options limits;
    auto_admin struct admin *a = NULL;
    auto_table struct table table = TABLE("key", key_columns);
    const struct table *const tables[] = {&table};
    table.is_record = true;
    enum status st = limit_options_read(args, KEY_RUNNING_MAX, &limits, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = ctl_session(ctl, &a, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = limit_options_set(a, key, &limits, &statements, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = table_query(&table, a, &SQL_ADMIN_KEYS, &key, err);
    if (st != STATUS_OK) {
        return st;
    }
    return tables_print(tables, 1, ctl->is_json, ctl->out, err);
}
