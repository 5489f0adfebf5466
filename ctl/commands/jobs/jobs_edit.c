/* SPDX-License-Identifier: Apache-2.0
 *
 * claimctl jobs edit: edits one job, or all that the options choose. */
#include "ctl/commands/jobs/act.h"
#include "ctl/commands/jobs/jobs.h"
#include "ctl/core/table_text.h"
#include "ctl/options/filter.h"
#include "ctl/options/given.h"
#include "ctl/options/job_check.h"
#include "model/job.h"

/* Options for new values. With an id, their shorter names mean the same; without one, the shorter
 * names choose jobs. */
#define NEW_QUEUE "set-queue"
#define NEW_TAG "set-tag"
#define NEW_METADATA "set-metadata"

/* Options that are passed on unchanged. */
static const char *const plain[] = {"exclusive", "share", "second", "apply"};

static enum status check_metadata(const char *json, size_t len, struct err *err)
{
    bool is_none = strcmp(json, "null") == 0;
    return is_none ? STATUS_OK : job_metadata_check(json, len, err);
}

/* A single empty text means no tags. */
static const char *read_tags(struct given *g)
{
    size_t count = 0;
    size_t empty_count = 0;
    for (size_t i = 0; i < g->args->given_count; i++) {
        bool is_tag = strcmp(g->args->given[i].name, NEW_TAG) == 0;
        count += is_tag;
        empty_count += is_tag && g->args->given[i].value[0] == '\0';
    }
    if (empty_count > 0 && count > 1) {
        err_set(g->err, STATUS_INVALID, 0,
                "--tag: '' is not allowed beside another; allowed: texts, or '' alone for no tags");
    }
    return empty_count > 0 ? "{}" : given_array(g, NEW_TAG, false);
}

/* An empty text removes the value: the job has no key of its own, or never expires. */
static bool is_empty(const struct ctl_args *args, const char *name)
{
    const char *text = ctl_value(args, name);
    return text != NULL && text[0] == '\0';
}

static bool is_any_value(const struct ctl_args *args)
{
    static const char *const names[] = {"args",         "priority", NEW_QUEUE,    "at",
                                        "delay",        "timeout",  NEW_TAG,      NEW_METADATA,
                                        "max-attempts", "backoff",  "share",      "exclusive",
                                        "second",       "grace",    "expires-at", "expires-in"};
    for (size_t i = 0; i < ARRAY_COUNT(names); i++) {
        if (ctl_value(args, names[i]) != NULL) {
            return true;
        }
    }
    return false;
}

static void check_words(const struct ctl_args *args, struct err *err)
{
    const char *queue = ctl_value(args, NEW_QUEUE);
    const char *apply = ctl_value(args, "apply");
    if (args->word_count > 0 && jobs_check_id(args->words[0], err) != STATUS_OK) {
        return;
    }
    if (!is_any_value(args)) {
        err_set(err, STATUS_INVALID, 0,
                "nothing to change: name an option such as --priority or --set-queue");
    }
    if (apply != NULL && strcmp(apply, "now") != 0 && strcmp(apply, "next") != 0) {
        err_set(err, STATUS_INVALID, 0, "--apply: '%.40s' is not allowed; allowed: now, next",
                apply);
    }
    if (queue != NULL && err->status == STATUS_OK) {
        (void)!job_queue_check(queue, err);
    }
}

/* Reads and checks everything that needs no server. */
static enum status read_edit(struct given *g, struct verb_call *call, struct err *err)
{
    check_words(g->args, err);
    verb_put(call, "priority", given_number(g, "priority", 0, JOB_PRIORITY_MAX));
    verb_put(call, "max_attempts", given_attempts(g, "max-attempts"));
    verb_put(call, "expect", given_number(g, "expect", 1, INT32_MAX));
    verb_put(call, "queue", ctl_value(g->args, NEW_QUEUE));
    given_either(g, "at", "delay");
    verb_put(call, "at", given_time(g, "at"));
    verb_put(call, "delay", given_interval(g, "delay", 0, JOB_DELAY_MAX_US));
    verb_put(call, "timeout", given_timeout(g));
    verb_put(call, "grace", given_grace(g));
    given_either(g, "expires-at", "expires-in");
    bool is_never = is_empty(g->args, "expires-at");
    verb_put(call, "expires_at", is_never ? "" : given_time(g, "expires-at"));
    verb_put(call, "expires_in", given_interval(g, "expires-in", 1000, JOB_DELAY_MAX_US));
    verb_put(call, "backoff", is_empty(g->args, "backoff") ? "default" : given_backoff(g));
    verb_put(call, "tags", read_tags(g));
    verb_put(call, "args", given_json(g, "args", job_args_check));
    verb_put(call, "metadata", given_json(g, NEW_METADATA, check_metadata));
    for (size_t i = 0; i < ARRAY_COUNT(plain); i++) {
        verb_put(call, plain[i], ctl_value(g->args, plain[i]));
    }
    return err->status;
}

/* ---- one job ---- */

static enum status edit_one(struct ctl *ctl, const struct ctl_args *args, struct verb_call *call,
                            struct err *err)
{
    char list[32];
    auto_admin struct admin *a = NULL;
    auto_answer struct answer answer = {.count = 0};
    (void)snprintf(list, sizeof list, "{%s}", args->words[0]);
    verb_put(call, "ids", list);
    enum status st = ctl_session(ctl, &a, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = verb_run(call, a, &answer, err);
    if (st != STATUS_OK) {
        return st;
    }
    if (answer.tables[0].row_count == 0) {
        return err_fail(err, STATUS_NOT_FOUND, "job %s not found", args->words[0]);
    }
    return answer_print(&answer, ctl->is_json, ctl->out, err);
}

static enum status do_edit(struct ctl *ctl, const struct ctl_args *args, struct verb_call *call,
                           struct err *err)
{
    const char *apply = ctl_value(args, "apply");
    bool is_next = apply != NULL && strcmp(apply, "next") == 0;
    bool is_bulk = args->word_count == 0;
    struct act act = {.past = "edited",
                      .many = VERB_EDIT.statement,
                      .states = is_next ? "waiting,scheduled,retryable,available,running"
                                        : "waiting,scheduled,retryable,available",
                      .allowed = is_next ? "waiting, scheduled, retryable, available, running"
                                         : "waiting, scheduled, retryable, available",
                      .which = is_next ? "open" : "queued"};
    verb_put(call, "all", is_bulk ? "t" : "f");
    memcpy(act.parameters, &call->params[1], sizeof act.parameters);
    if (is_bulk) {
        return act_on_matches(ctl, args, &act, err);
    }
    return ctl_value(args, "dry-run") != NULL ? act_on_ids(ctl, args, &act, err)
                                              : edit_one(ctl, args, call, err);
}

/* ---- all matching jobs ---- */

static enum status check_choice(const struct ctl_args *args, struct err *err)
{
    bool is_one = args->word_count > 0;
    if (!is_one && !filter_is_given(args)) {
        return err_fail(err, STATUS_INVALID,
                        "which jobs? Name an id, or choose them with options such as --kind");
    }
    if (is_one && filter_is_given(args)) {
        return err_fail(err, STATUS_INVALID, "give either an id or options that choose jobs");
    }
    if (is_one && ctl_value(args, "limit") != NULL) {
        return err_fail(err, STATUS_INVALID,
                        "--limit: is only for options that choose jobs, not for an id");
    }
    if (!is_one && ctl_value(args, "expect") != NULL) {
        return err_fail(err, STATUS_INVALID, "--expect: is only for an id");
    }
    return STATUS_OK;
}

/* With an id there is nothing to choose, so these options are the new values as well. */
static enum status name_values(struct ctl_args *values, struct err *err)
{
    static const char *const both[][2] = {
        {"queue", NEW_QUEUE}, {"tag", NEW_TAG}, {"metadata", NEW_METADATA}};
    for (size_t i = 0; values->word_count > 0 && i < ARRAY_COUNT(both); i++) {
        if (ctl_value(values, both[i][0]) != NULL && ctl_value(values, both[i][1]) != NULL) {
            return err_fail(err, STATUS_INVALID, "allowed: either --%s or --%s", both[i][0],
                            both[i][1]);
        }
        for (size_t k = 0; k < values->given_count; k++) {
            if (strcmp(values->given[k].name, both[i][0]) == 0) {
                values->given[k].name = both[i][1];
            }
        }
    }
    return STATUS_OK;
}

enum status jobs_edit(struct ctl *ctl, const struct ctl_args *args, struct err *err)
{
    struct ctl_args values = *args;
    auto_given struct given given = GIVEN(&values, err);
    struct verb_call call = {.verb = &VERB_EDIT};
    enum status st = name_values(&values, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = check_choice(args->word_count > 0 ? &values : args, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = read_edit(&given, &call, err);
    if (st != STATUS_OK) {
        return st;
    }
    return do_edit(ctl, args, &call, err);
}
