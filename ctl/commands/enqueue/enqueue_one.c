/* SPDX-License-Identifier: Apache-2.0
 *
 * claimctl enqueue KIND: one job from the command line. */
#include "ctl/commands/enqueue/enqueue_one.h"

#include "base/clock.h"
#include "ctl/commands/enqueue/served.h"
#include "ctl/core/ctl.h"
#include "ctl/core/table_text.h"
#include "ctl/options/given.h"
#include "ctl/options/job_check.h"
#include "model/backoff.h"
#include "model/job.h"

static void check_names(const struct ctl_args *args, struct err *err)
{
    struct backoff backoff;
    const char *queue = ctl_value(args, "queue");
    const char *text = ctl_value(args, "backoff");
    bool is_ok = job_kind_check(args->words[0], err) == STATUS_OK &&
                 (queue == NULL || job_queue_check(queue, err) == STATUS_OK);
    if (is_ok && text != NULL) {
        (void)!backoff_parse(text, &backoff, err);
    }
}

static enum status check_served(const struct ctl_args *args, struct admin *a, struct err *err)
{
    const char *given = ctl_value(args, "queue");
    const char *queue = given != NULL ? given : "default";
    struct served served = {.count = 0};
    served_note(&served, queue, strlen(queue), args->words[0], strlen(args->words[0]));
    return served_check(&served, a, ctl_value(args, "strict") != NULL, err);
}

/* Chooses one of the two statements. The server checks the keys themselves, and names them. */
static const struct verb *choose_verb(const struct ctl_args *args, struct err *err)
{
    bool is_unique = ctl_value(args, "unique") != NULL || ctl_value(args, "unique-by") != NULL;
    bool has_scope = ctl_value(args, "unique-for") != NULL ||
                     ctl_value(args, "unique-states") != NULL ||
                     ctl_value(args, "on-conflict") != NULL;
    if (has_scope && !is_unique) {
        err_set(err, STATUS_INVALID, 0,
                "--unique-for, --unique-states and --on-conflict need --unique or --unique-by");
    }
    return is_unique ? &VERB_ENQUEUE_UNIQUE : &VERB_ENQUEUE;
}

static enum status read_one(struct given *g, struct verb_call *call, struct err *err)
{
    verb_put(call, "kind", g->args->words[0]);
    verb_put(call, "args", given_json(g, "args", job_args_check));
    check_names(g->args, err);
    verb_put(call, "priority", given_number(g, "priority", 0, JOB_PRIORITY_MAX));
    verb_put(call, "batch", given_number(g, "batch", 1, INT64_MAX));
    verb_put(call, "max_attempts", given_number(g, "max-attempts", 1, INT32_MAX));
    given_either(g, "at", "delay");
    verb_put(call, "at", given_time(g, "at"));
    verb_put(call, "delay", given_interval(g, "delay", 0, JOB_DELAY_MAX_US));
    verb_put(call, "timeout", given_interval(g, "timeout", 1000, JOB_TIMEOUT_MAX_US));
    verb_put(call, "grace",
             given_interval(g, "grace", US_PER_MS, JOB_KIND_GRACE_MS_MAX * US_PER_MS));
    given_either(g, "expires-at", "expires-in");
    verb_put(call, "expires_at", given_time(g, "expires-at"));
    verb_put(call, "expires_in", given_interval(g, "expires-in", 1000, JOB_DELAY_MAX_US));
    verb_put(call, "after", given_ids(g, "after"));
    verb_put(call, "tags", given_tags(g, "tag"));
    verb_put(call, "metadata", given_json(g, "metadata", job_metadata_check));
    verb_put(call, "unique_for", given_interval(g, "unique-for", 1000, JOB_TIMEOUT_MAX_US));
    verb_put(call, "unique_by", given_array(g, "unique-by", true));
    given_rest(g, call);
    return err->status;
}

enum status enqueue_one(struct ctl *ctl, const struct ctl_args *args, struct err *err)
{
    auto_given struct given given = GIVEN(args, err);
    auto_admin struct admin *a = NULL;
    auto_answer struct answer answer = {.count = 0};
    struct verb_call call = {.verb = choose_verb(args, err)};
    enum status st = read_one(&given, &call, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = ctl_session(ctl, &a, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = check_served(args, a, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = verb_run(&call, a, &answer, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = answer_print(&answer, ctl->is_json, ctl->out, err);
    const struct table *job = &answer.tables[0];
    bool was_there =
        call.verb == &VERB_ENQUEUE_UNIQUE && strcmp(table_value(job, 0, "inserted"), "t") != 0;
    if (st == STATUS_OK && was_there && !ctl->is_json) {
        (void)fflush(ctl->out);
        (void)fprintf(stderr, "claimctl: job %s was there already\n", table_value(job, 0, "id"));
    }
    return st;
}
