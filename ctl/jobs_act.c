/* SPDX-License-Identifier: Apache-2.0
 *
 * claimctl jobs cancel, claimctl jobs retry. */
#include "ctl/act.h"
#include "ctl/filter.h"
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

enum status jobs_retry(struct ctl *ctl, const struct ctl_args *args, struct err *err)
{
    /* Whoever asks for the state wants them. */
    bool is_even_completed = ctl_value(args, "even-completed") != NULL || filter_is_given(args);
    const struct act act = {.verb = "retry",
                            .past = "retried",
                            .one = &SQL_ADMIN_RETRY,
                            .many = &SQL_ADMIN_RETRY_MANY,
                            .parameter = is_even_completed ? "t" : "f",
                            .states = "discarded",
                            .is_of_finished = true};
    return act_run(ctl, args, &act, err);
}
