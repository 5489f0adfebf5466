/* SPDX-License-Identifier: Apache-2.0
 *
 * claimctl jobs cancel, jobs retry, jobs delete, queues clear and batches cancel. */
#include "ctl/commands/jobs/act.h"
#include "ctl/options/filter.h"
#include "model/job.h"
#include "sql/queries.h"

#define OF_OPEN .allowed = "waiting, scheduled, retryable, available, running", .which = "open"
#define OF_FINISHED .allowed = "completed, cancelled, discarded", .which = "finished"

enum status jobs_cancel(struct ctl *ctl, const struct ctl_args *args, struct err *err)
{
    const struct act act = {.past = "cancelled",
                            .one = &SQL_ADMIN_CANCEL,
                            .many = &SQL_ADMIN_CANCEL_MANY,
                            .states = "waiting,scheduled,retryable,available,running",
                            OF_OPEN};
    return act_run(ctl, args, &act, err);
}

/* Cancels as `jobs cancel` does, with the word of the command as the value of that option. */
static enum status cancel_of(struct ctl *ctl, const struct ctl_args *args, const char *option,
                             const struct act *act, struct err *err)
{
    struct ctl_args chosen = *args;
    if (chosen.given_count == CTL_GIVEN_MAX) {
        return err_fail(err, STATUS_INVALID, "more than %d options", CTL_GIVEN_MAX - 1);
    }
    chosen.given[chosen.given_count].name = option;
    chosen.given[chosen.given_count].value = args->words[0];
    chosen.given_count++;
    chosen.word_count = 0;
    return act_on_matches(ctl, &chosen, act, err);
}

/* Cancels the jobs that are not running. */
enum status queues_clear(struct ctl *ctl, const struct ctl_args *args, struct err *err)
{
    const struct act act = {.past = "cancelled",
                            .many = &SQL_ADMIN_CANCEL_MANY,
                            .states = "waiting,scheduled,retryable,available",
                            OF_OPEN};
    enum status st = job_queue_check(args->words[0], err);
    if (st != STATUS_OK) {
        return st;
    }
    return cancel_of(ctl, args, "queue", &act, err);
}

enum status batches_cancel(struct ctl *ctl, const struct ctl_args *args, struct err *err)
{
    struct verb_call close = {.verb = &VERB_BATCH_CLOSE};
    const struct act act = {.past = "cancelled",
                            .many = &SQL_ADMIN_CANCEL_MANY,
                            .states = "waiting,scheduled,retryable,available,running",
                            OF_OPEN,
                            .first = &close};
    enum status st = verb_set(&close, "batch", "batch", args->words[0], err);
    if (st != STATUS_OK) {
        return st;
    }
    return cancel_of(ctl, args, "batch", &act, err);
}

enum status jobs_delete(struct ctl *ctl, const struct ctl_args *args, struct err *err)
{
    const struct act act = {.past = "deleted",
                            .one = &SQL_ADMIN_DELETE,
                            .many = &SQL_ADMIN_DELETE_MANY,
                            .states = "completed,cancelled,discarded",
                            OF_FINISHED};
    return act_run(ctl, args, &act, err);
}

enum status jobs_retry(struct ctl *ctl, const struct ctl_args *args, struct err *err)
{
    bool is_filter = filter_is_given(args);
    bool is_even_completed = ctl_value(args, "even-completed") != NULL;
    if (is_filter && is_even_completed) {
        return err_fail(
            err, STATUS_INVALID,
            "--even-completed: is only for ids; options choose completed jobs by --state "
            "completed");
    }
    const struct act act = {.past = "retried",
                            .one = &SQL_ADMIN_RETRY,
                            .many = &SQL_ADMIN_RETRY_MANY,
                            .parameters = {is_even_completed || is_filter ? "t" : "f"},
                            .states = "discarded",
                            .allowed = "scheduled, retryable, completed, cancelled, discarded",
                            .which = "finished, retryable or scheduled"};
    return act_run(ctl, args, &act, err);
}
