/* SPDX-License-Identifier: Apache-2.0
 *
 * The commands of claimctl queues and kinds that are more than a verb; queues clear is in
 * jobs/jobs_act.c. */
#include "ctl/core/agree.h"

/* Pauses or resumes one queue by its name, or all. */
static enum status set_paused(struct ctl *ctl, const struct ctl_args *args, bool is_paused,
                              struct err *err)
{
    const struct ctl_fixed paused = {"paused", is_paused ? "t" : "f"};
    bool is_all = ctl_value(args, "all") != NULL;
    if (is_all == (args->word_count > 0)) {
        return err_fail(err, STATUS_INVALID, "give either the name of a queue or --all");
    }
    if (!is_all) {
        return ctl_call_verb(ctl, args, &VERB_QUEUE_PAUSE, paused, err);
    }
    enum status st = ctl_agree(
        ctl, args, is_paused ? "All queues will be paused." : "All queues will be resumed.");
    if (st != STATUS_OK) {
        return st;
    }
    return ctl_call_verb(ctl, args, &VERB_QUEUES_PAUSE_ALL, paused, err);
}

enum status queues_pause(struct ctl *ctl, const struct ctl_args *args, struct err *err)
{
    return set_paused(ctl, args, true, err);
}

enum status queues_resume(struct ctl *ctl, const struct ctl_args *args, struct err *err)
{
    return set_paused(ctl, args, false, err);
}

/* --keep-completed is another form of kinds retain. */
enum status kinds_set(struct ctl *ctl, const struct ctl_args *args, struct err *err)
{
    const struct ctl_fixed none = {NULL, NULL};
    const char *keep = ctl_value(args, "keep-completed");
    if (args->given_count == 0 || (keep != NULL && args->given_count > 1)) {
        return err_fail(err, STATUS_INVALID, "give either --keep-completed or other options");
    }
    if (keep == NULL) {
        return ctl_call_verb(ctl, args, &VERB_KIND_SET, none, err);
    }
    char days[VERB_ROOM];
    char *words[] = {args->words[0], days};
    (void)snprintf(days, sizeof days, "%s", keep);
    const struct ctl_args retain = {.given = {{"state", "completed"}},
                                    .given_count = 1,
                                    .words = words,
                                    .word_count = ARRAY_COUNT(words)};
    return ctl_call_verb(ctl, &retain, &VERB_KIND_RETAIN, none, err);
}
