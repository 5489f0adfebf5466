/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl/overview.h"

enum status workers(struct ctl *ctl, const struct ctl_args *args, struct err *err)
{
    auto_admin struct admin *a = NULL;
    auto_table struct table table = {0};
    enum status st = ctl_session(ctl, &a, err);
    if (st == STATUS_OK) {
        st = overview_workers(a, ctl_value(args, "all") != NULL, &table, err);
    }
    const struct table *const tables[] = {&table};
    return st == STATUS_OK ? tables_print(tables, 1, ctl->is_json, ctl->out, err) : st;
}

enum status queues(struct ctl *ctl, const struct ctl_args *args, struct err *err)
{
    (void)args;
    auto_admin struct admin *a = NULL;
    auto_table struct table table = {0};
    enum status st = ctl_session(ctl, &a, err);
    if (st == STATUS_OK) {
        st = overview_queues(a, &table, err);
    }
    const struct table *const tables[] = {&table};
    return st == STATUS_OK ? tables_print(tables, 1, ctl->is_json, ctl->out, err) : st;
}
