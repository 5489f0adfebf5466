/* SPDX-License-Identifier: Apache-2.0
 *
 * claimctl schedules set. */
#include "ctl/commands/schedules.h"

#include "ctl/options/given.h"
#include "ctl/options/job_check.h"
#include "model/job.h"

/* The schema checks cron, zone, keys and policies; but it cannot see that on_conflict was given,
 * since the default is a value like others. */
static enum status read_schedule(struct given *g, struct verb_call *call, struct err *err)
{
    const struct ctl_args *args = g->args;
    bool is_unique = ctl_value(args, "unique") != NULL || ctl_value(args, "unique-by") != NULL;
    verb_put(call, "name", args->words[0]);
    verb_put(call, "kind", args->words[1]);
    verb_put(call, "cron", args->words[2]);
    verb_put(call, "timeout", given_interval(g, "timeout", 1000, JOB_TIMEOUT_MAX_US));
    verb_put(call, "missed_window", given_interval(g, "missed-window", 1000, JOB_TIMEOUT_MAX_US));
    verb_put(call, "unique_for", given_interval(g, "unique-for", 1000, JOB_TIMEOUT_MAX_US));
    verb_put(call, "jitter", given_interval(g, "jitter", 0, SCHEDULE_JITTER_MAX_US));
    verb_put(call, "grace", given_interval(g, "grace", 1000, JOB_TIMEOUT_MAX_US));
    verb_put(call, "args", given_json(g, "args", job_args_check));
    verb_put(call, "metadata", given_json(g, "metadata", job_metadata_check));
    verb_put(call, "priority", given_number(g, "priority", 0, JOB_PRIORITY_MAX));
    verb_put(call, "max_attempts", given_number(g, "max-attempts", 1, INT32_MAX));
    if (!is_unique && ctl_value(args, "on-conflict") != NULL) {
        err_set(err, STATUS_INVALID, 0, "--on-conflict needs --unique or --unique-by");
    }
    verb_put(call, "unique_by", given_array(g, "unique-by", true));
    verb_put(call, "tags", given_tags(g, "tag"));
    given_rest(g, call);
    return err->status;
}

enum status schedules_set(struct ctl *ctl, const struct ctl_args *args, struct err *err)
{
    auto_given struct given given = GIVEN(args, err);
    struct verb_call call = {.verb = &VERB_SCHEDULE_SET};
    enum status st = read_schedule(&given, &call, err);
    if (st != STATUS_OK) {
        return st;
    }
    return ctl_run_call(ctl, args, &call, err);
}
