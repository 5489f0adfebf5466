/* SPDX-License-Identifier: Apache-2.0
 *
 * What is done to jobs: to those named by id, or to all that a filter chooses. Each job for itself:
 * one that is refused keeps none of the others. */
#ifndef CLAIMD_CTL_ACT_H
#define CLAIMD_CTL_ACT_H

#include "ctl/core/ctl.h"

#define ACT_PARAMETERS_MAX 19

struct act {
    const char *past; /* "cancelled" */
    /* $1 = id; gives the state, NULL = no such job. */
    const struct pg_statement *one;
    /* $1 = ids; refused as a whole when one of them is. */
    const struct pg_statement *many;
    const char *parameters[ACT_PARAMETERS_MAX]; /* from $2 on, of both */
    const struct verb_call *first; /* before the matches are worked on; NULL = nothing */
    const char *states;            /* that are meant without --state */
    const char *allowed;           /* all that --state may name */
    const char *which;             /* those in a word: "open" */
};

/* The parameters of its statements: `first` as $1, then its own. */
void act_parameters(const struct act *act, const char *first,
                    const char *ret_params[1 + ACT_PARAMETERS_MAX]);

/* By the ids in args->words, else by the filter. */
enum status act_run(struct ctl *ctl, const struct ctl_args *args, const struct act *act,
                    struct err *err) MUST_USE;

enum status act_on_ids(struct ctl *ctl, const struct ctl_args *args, const struct act *act,
                       struct err *err) MUST_USE;
enum status act_on_matches(struct ctl *ctl, const struct ctl_args *args, const struct act *act,
                           struct err *err) MUST_USE;

/* The connection is gone, or nothing is allowed: the other jobs are not even tried. */
bool act_is_end(const struct err *why);
/* Which of two refusals decides the exit code: what may be tried again, then what was not possible,
 * then what isn't there. */
enum status act_worse(enum status a, enum status b);

#endif
