/* SPDX-License-Identifier: Apache-2.0
 *
 * claimctl jobs cancel. */
#include "ctl/act.h"
#include "sql/queries.h"

enum status jobs_cancel(struct ctl *ctl, const struct ctl_args *args, struct err *err)
{
    const struct act act = {.verb = "cancel",
                            .past = "cancelled",
                            .one = &SQL_ADMIN_CANCEL,
                            .many = &SQL_ADMIN_CANCEL_MANY,
                            .states = "scheduled,retryable,available"};
    return act_run(ctl, args, &act, err);
}
