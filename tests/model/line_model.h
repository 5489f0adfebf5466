/* SPDX-License-Identifier: Apache-2.0
 *
 * Searches every order of events for a line of waiters: commands run, and answers and messages
 * arrive, in any order that connections allow; clients die or give up; offers expire; lines and
 * messages get lost; rounds are cut short; a client without a line takes what is free. The
 * decisions are not simulated: they are redlock/rules/line_rules.c. The model has no time:
 * redlock_model.h covers that a holder's lease outlasts its critical section, so leases of living
 * clients do not expire here. */
#ifndef CLAIMD_TESTS_MODEL_LINE_MODEL_H
#define CLAIMD_TESTS_MODEL_LINE_MODEL_H

#include "line_world.h"

struct line_result {
    size_t states;
    size_t transitions;
    size_t drained;   /* states on the way to one in which all are served */
    bool is_too_big;  /* or memory ran out: there is no result */
    const char *what; /* the violated rule; NULL = none */
    size_t confirms;  /* confirmations, over all transitions */
    char trace[8192]; /* of a violation: one step per line, in order */
};

/* Checks in all states that there are never two holders, that no client overtakes another, and
 * that, once faults have ended, fair schedules serve every living client. Gives up the search
 * beyond `states_max`. */
void line_model_run(const struct line_world *world, size_t states_max, struct line_result *ret);

#endif
