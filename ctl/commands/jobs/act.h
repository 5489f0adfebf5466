/* SPDX-License-Identifier: Apache-2.0
 *
 * Acts on jobs, which are named by id or chosen by a filter. Each job is independent: if one is
 * refused, the others are still done. */
#ifndef CLAIMD_CTL_ACT_H
#define CLAIMD_CTL_ACT_H

#include "ctl/core/ctl.h"

#define ACT_PARAMETERS_MAX 19

struct act {
    const char *past; /* "cancelled" */
    /* $1 = id; returns the state, NULL = no such job. */
    const struct pg_statement *one;
    /* $1 = ids; refused as a whole if one of them is refused. */
    const struct pg_statement *many;
    const char *parameters[ACT_PARAMETERS_MAX]; /* from $2 on, for both statements */
    const struct verb_call *first; /* runs before the matches are worked on; NULL = nothing */
    const char *states;            /* the states that are meant without --state */
    const char *allowed;           /* all that --state may name */
    const char *which;             /* the states in one word: "open" */
};

/* Builds the parameters of its statements: `first` as $1, then its own. */
void act_parameters(const struct act *act, const char *first,
                    const char *ret_params[1 + ACT_PARAMETERS_MAX]);

/* Acts on the ids in args->words; if there are none, on the jobs that the filter chooses. */
enum status act_run(struct ctl *ctl, const struct ctl_args *args, const struct act *act,
                    struct err *err) MUST_USE;

enum status act_on_ids(struct ctl *ctl, const struct ctl_args *args, const struct act *act,
                       struct err *err) MUST_USE;
enum status act_on_matches(struct ctl *ctl, const struct ctl_args *args, const struct act *act,
                           struct err *err) MUST_USE;

/* True if the connection is lost or the whole act is not permitted: then the other jobs are not
 * even tried. */
bool act_is_end(const struct err *why);
/* Returns the refusal that decides the exit code: one that may be retried, then one that was not
 * possible, then a missing job. */
enum status act_worse(enum status a, enum status b);

#endif
