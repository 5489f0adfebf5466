/* SPDX-License-Identifier: Apache-2.0
 *
 * claimctl kinds. */
#include "ctl/commands/pause.h"
#include "ctl/commands/retention.h"
#include "ctl/core/table.h"
#include "ctl/options/job_check.h"
#include "ctl/options/job_options.h"
#include "ctl/options/limit_options.h"
#include "model/job.h"
#include "sql/queries.h"

enum status kinds_list(struct ctl *ctl, const struct ctl_args *args, struct err *err)
{
    static const struct table_column columns[] = {{"kind", CELL_TEXT},
                                                  {"plugin", CELL_TEXT},
                                                  {"version", CELL_TEXT},
                                                  {"paused", CELL_BOOL},
                                                  {"workers", CELL_NUMBER},
                                                  {"max_attempts", CELL_NUMBER},
                                                  {"max_crashes", CELL_NUMBER | CELL_WIDE},
                                                  {"timeout_s", CELL_SECONDS},
                                                  {"at_most_once", CELL_BOOL | CELL_WIDE},
                                                  {"set_by_hand", CELL_TEXT | CELL_LIST},
                                                  {"kept", CELL_TEXT | CELL_LIST},
                                                  {"runs", CELL_NUMBER | CELL_WIDE},
                                                  {"mean_s", CELL_SECONDS},
                                                  {"p95_s", CELL_SECONDS},
                                                  {"announced", CELL_BOOL | CELL_WIDE},
                                                  {"updated_at", CELL_TIME | CELL_WIDE}};
    (void)args;
    auto_admin struct admin *a = NULL;
    auto_table struct table table = TABLE("kinds", columns);
    enum status st = ctl_session(ctl, &a, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = ctl_now(a, &table.now_us, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = table_query(&table, a, &SQL_ADMIN_KINDS, NULL, err);
    if (st != STATUS_OK) {
        return st;
    }
    const struct table *const tables[] = {&table};
    return tables_print(tables, 1, ctl->is_json, ctl->out, err);
}

enum status kinds_show(struct ctl *ctl, const struct ctl_args *args, struct err *err)
{
    static const struct table_column columns[] = {
        {"kind", CELL_TEXT},           {"plugin", CELL_TEXT},       {"version", CELL_TEXT},
        {"announced", CELL_BOOL},      {"workers", CELL_NUMBER},    {"max_attempts", CELL_NUMBER},
        {"max_crashes", CELL_NUMBER},  {"timeout_s", CELL_SECONDS}, {"grace_s", CELL_SECONDS},
        {"backoff", CELL_TEXT},        {"keep_log", CELL_TEXT},     {"at_most_once", CELL_BOOL},
        {"set_by_hand", CELL_TEXT},    {"of_plugin", CELL_JSON},    {"max_running", CELL_NUMBER},
        {"starts_per_s", CELL_NUMBER}, {"paused", CELL_BOOL},       {"paused_at", CELL_TIME},
        {"paused_by", CELL_TEXT},      {"runs", CELL_NUMBER},       {"mean_s", CELL_SECONDS},
        {"p95_s", CELL_SECONDS},       {"since_at", CELL_TIME},     {"updated_at", CELL_TIME}};
    const char *name = args->words[0];
    auto_admin struct admin *a = NULL;
    auto_table struct table kind = TABLE("kind", columns);
    auto_table struct table rules = {.name = "retention"};
    const struct table *const tables[] = {&kind, &rules};
    kind.is_record = true;
    enum status st = job_kind_check(name, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = ctl_session(ctl, &a, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = ctl_now(a, &kind.now_us, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = table_query(&kind, a, &SQL_ADMIN_KIND_SHOW, &name, err);
    if (st == STATUS_OK && kind.row_count == 0) {
        st = err_fail(err, STATUS_NOT_FOUND,
                      "kind %s not found: no worker has announced it, and nothing is set for it",
                      name);
    }
    if (st != STATUS_OK) {
        return st;
    }
    st = retention_rules(a, "kind", name, &rules, err);
    if (st != STATUS_OK) {
        return st;
    }
    return tables_print(tables, ARRAY_COUNT(tables), ctl->is_json, ctl->out, err);
}

enum status kinds_pause(struct ctl *ctl, const struct ctl_args *args, struct err *err)
{
    return pause_set(ctl, "kind", &SQL_ADMIN_KIND_PAUSE, args->words[0], true, err);
}

enum status kinds_resume(struct ctl *ctl, const struct ctl_args *args, struct err *err)
{
    return pause_set(ctl, "kind", &SQL_ADMIN_KIND_PAUSE, args->words[0], false, err);
}

enum status kinds_limit(struct ctl *ctl, const struct ctl_args *args, struct err *err)
{
    static const struct table_column columns[] = {{"kind", CELL_TEXT},
                                                  {"max_running", CELL_NUMBER},
                                                  {"running", CELL_NUMBER},
                                                  {"starts_per_s", CELL_NUMBER},
                                                  {"may_start_now", CELL_NUMBER}};
    static const struct limit_statements statements = {.running = &SQL_ADMIN_KIND_LIMIT,
                                                       .rate = &SQL_ADMIN_KIND_RATE};
    const char *kind = args->words[0];
    struct limit_options limits;
    auto_admin struct admin *a = NULL;
    auto_table struct table table = TABLE("kind", columns);
    const struct table *const tables[] = {&table};
    table.is_record = true;
    enum status st = limit_options_read(args, KEY_RUNNING_MAX, &limits, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = job_kind_check(kind, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = ctl_session(ctl, &a, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = limit_options_set(a, kind, &limits, &statements, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = table_query(&table, a, &SQL_ADMIN_KIND_LIMITS, &kind, err);
    if (st != STATUS_OK) {
        return st;
    }
    return tables_print(tables, 1, ctl->is_json, ctl->out, err);
}

/* Of which attempts. */
static enum status check_keep_log(const char *which, struct err *err)
{
    bool is_known = which == NULL || strcmp(which, "all") == 0 || strcmp(which, "failed") == 0 ||
                    strcmp(which, "default") == 0;
    return is_known ? STATUS_OK
                    : err_fail(err, STATUS_INVALID,
                               "--keep-log: must be all, failed or default, is %.32s", which);
}

struct times { /* intervals, or "default"; "" = not given */
    char timeout[48];
    char grace[48];
};

static enum status read_settings(const struct ctl_args *args, struct times *ret, struct err *err)
{
    enum status st = ctl_option_attempts(args, "max-attempts", err);
    if (st != STATUS_OK) {
        return st;
    }
    st = ctl_option_attempts(args, "max-crashes", err);
    if (st != STATUS_OK) {
        return st;
    }
    st = check_keep_log(ctl_value(args, "keep-log"), err);
    if (st != STATUS_OK) {
        return st;
    }
    st = ctl_option_backoff(args, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = ctl_option_timeout(args, ret->timeout, sizeof ret->timeout, err);
    if (st != STATUS_OK) {
        return st;
    }
    return ctl_option_grace(args, ret->grace, sizeof ret->grace, err);
}

enum status kinds_set(struct ctl *ctl, const struct ctl_args *args, struct err *err)
{
    static const struct table_column columns[] = {
        {"kind", CELL_TEXT},          {"announced", CELL_BOOL},    {"max_attempts", CELL_NUMBER},
        {"max_crashes", CELL_NUMBER}, {"timeout_s", CELL_SECONDS}, {"grace_s", CELL_SECONDS},
        {"backoff", CELL_TEXT},       {"keep_log", CELL_TEXT},     {"set_by_hand", CELL_TEXT}};
    struct times times;
    auto_admin struct admin *a = NULL;
    auto_admin_rows struct admin_rows *rows = NULL;
    auto_table struct table table = TABLE("kind", columns);
    const struct table *const tables[] = {&table};
    table.is_record = true;
    const char *keep = ctl_value(args, "keep-completed");
    if (args->given_count == 0 || (keep != NULL && args->given_count > 1)) {
        return err_fail(err, STATUS_INVALID,
                        "allowed: either --keep-completed, or some of the other options");
    }
    if (keep != NULL) {
        return retention_keep_completed(ctl, args->words[0], keep, err);
    }
    enum status st = read_settings(args, &times, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = ctl_session(ctl, &a, err);
    if (st != STATUS_OK) {
        return st;
    }
    const char *const params[] = {args->words[0],
                                  ctl_value(args, "max-attempts"),
                                  ctl_value(args, "max-crashes"),
                                  times.timeout[0] != '\0' ? times.timeout : NULL,
                                  ctl_value(args, "backoff"),
                                  ctl_value(args, "keep-log"),
                                  times.grace[0] != '\0' ? times.grace : NULL};
    st = ctl_written(admin_query(a, &SQL_ADMIN_KIND_SET, params, &rows, err), err);
    if (st != STATUS_OK) {
        return st;
    }
    st = table_query(&table, a, &SQL_ADMIN_KIND_SETTINGS, params, err);
    if (st != STATUS_OK) {
        return st;
    }
    return tables_print(tables, 1, ctl->is_json, ctl->out, err);
}
