/* SPDX-License-Identifier: Apache-2.0
 *
 * claimctl workers, claimctl queues. */
#include "ctl/overview.h"

enum status workers(struct ctl *ctl, const struct ctl_args *args, struct err *err)
{
    auto_admin struct admin *a = NULL;
    auto_table struct table table = {0};
    enum status st = ctl_session(ctl, &a, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = overview_workers(a, ctl_value(args, "all") != NULL, &table, err);
    if (st != STATUS_OK) {
        return st;
    }
    const struct table *const tables[] = {&table};
    return tables_print(tables, 1, ctl->is_json, ctl->out, err);
}

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
