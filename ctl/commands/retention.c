/* SPDX-License-Identifier: Apache-2.0
 *
 * claimctl queues retain, kinds retain, kinds set: how long finished jobs are kept. */
#include "ctl/commands/retention.h"

#include "base/clock.h"
#include "base/parse.h"
#include "model/job.h"
#include "sql/queries.h"

#define DAY_US (86400 * US_PER_S)
#define DAYS_MAX 3650

struct rule {
    const char *scope;
    const char *name;
    const char *state; /* NULL: all */
    char keep[32];     /* an interval; empty: the default */
};

/* `none` means that nothing is kept, which only completed jobs of a kind may be. */
static enum status read_keep(const char *text, struct rule *rule, struct err *err)
{
    bool may_be_none = strcmp(rule->scope, "kind") == 0 && rule->state != NULL &&
                       strcmp(rule->state, "completed") == 0;
    int64_t us = 0;
    if (strcmp(text, "default") == 0) {
        return STATUS_OK;
    }
    if (strcmp(text, "none") == 0 && may_be_none) {
        (void)snprintf(rule->keep, sizeof rule->keep, "0 days");
        return STATUS_OK;
    }
    if (parse_duration_us(text, &us, NULL) != STATUS_OK || us % DAY_US != 0 || us < DAY_US ||
        us > DAYS_MAX * DAY_US) {
        return err_fail(err, STATUS_INVALID, "'%.40s': must be whole days, 1d to %dd, or default%s",
                        text, DAYS_MAX,
                        may_be_none ? ", or none" : "; none is for completed jobs of a kind");
    }
    (void)snprintf(rule->keep, sizeof rule->keep, "%lld days", (long long)(us / DAY_US));
    return STATUS_OK;
}

static enum status check_state(const char *state, struct err *err)
{
    static const char *const states[] = {"completed", "discarded", "cancelled"};
    for (size_t i = 0; state != NULL && i < ARRAY_COUNT(states); i++) {
        if (strcmp(state, states[i]) == 0) {
            return STATUS_OK;
        }
    }
    return state == NULL
               ? STATUS_OK
               : err_fail(err, STATUS_INVALID,
                          "--state '%.40s': must be completed, discarded or cancelled", state);
}

enum status retention_rules(struct admin *a, const char *scope, const char *name, struct table *ret,
                            struct err *err)
{
    static const struct table_column columns[] = {{"state", CELL_TEXT}, {"days", CELL_NUMBER}};
    const char *const params[] = {scope, name};
    ret->columns = columns;
    ret->column_count = ARRAY_COUNT(columns);
    return table_query(ret, a, &SQL_ADMIN_RETENTION, params, err);
}

static enum status print_rules(struct ctl *ctl, struct admin *a, const struct rule *rule,
                               struct err *err)
{
    auto_table struct table table = {.name = "rules"};
    const struct table *const tables[] = {&table};
    enum status st = retention_rules(a, rule->scope, rule->name, &table, err);
    if (st != STATUS_OK) {
        return st;
    }
    return tables_print(tables, 1, ctl->is_json, ctl->out, err);
}

/* `keep` NULL: only shows. */
static enum status retain(struct ctl *ctl, struct rule *rule, const char *keep, struct err *err)
{
    bool is_queue = strcmp(rule->scope, "queue") == 0;
    auto_admin struct admin *a = NULL;
    auto_admin_rows struct admin_rows *rows = NULL;
    enum status st = is_queue ? job_queue_check(rule->name, err) : job_kind_check(rule->name, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = check_state(rule->state, err);
    if (st == STATUS_OK && keep != NULL) {
        st = read_keep(keep, rule, err);
    }
    if (st != STATUS_OK) {
        return st;
    }
    st = ctl_session(ctl, &a, err);
    if (st == STATUS_OK && keep != NULL) {
        const char *const params[] = {rule->name, rule->keep[0] != '\0' ? rule->keep : NULL,
                                      rule->state};
        st = ctl_written(admin_query(a, is_queue ? &SQL_ADMIN_QUEUE_RETAIN : &SQL_ADMIN_KIND_RETAIN,
                                     params, &rows, err),
                         err);
    }
    if (st != STATUS_OK) {
        return st;
    }
    return print_rules(ctl, a, rule, err);
}

enum status queues_retain(struct ctl *ctl, const struct ctl_args *args, struct err *err)
{
    struct rule rule = {
        .scope = "queue", .name = args->words[0], .state = ctl_value(args, "state")};
    return retain(ctl, &rule, args->word_count > 1 ? args->words[1] : NULL, err);
}

enum status retention_keep_completed(struct ctl *ctl, const char *kind, const char *keep,
                                     struct err *err)
{
    struct rule rule = {.scope = "kind", .name = kind, .state = "completed"};
    return retain(ctl, &rule, keep, err);
}

enum status kinds_retain(struct ctl *ctl, const struct ctl_args *args, struct err *err)
{
    struct rule rule = {.scope = "kind", .name = args->words[0], .state = ctl_value(args, "state")};
    return retain(ctl, &rule, args->word_count > 1 ? args->words[1] : NULL, err);
}
