/* SPDX-License-Identifier: Apache-2.0
 *
 * Every order of events for a line of waiters: commands run and answers and messages are heard in
 * any order that connections allow, clients die or give up, offers end, lines and messages get
 * lost, rounds are cut short, a client that knows no line takes what is free. The
 * decisions are not simulated: they are redlock/rules/line_rules.c. The model has no time: that
 * what a holder counts on outlasts its section is redlock_model.h's part, so leases of the living
 * don't end here. */
#ifndef CLAIMD_TESTS_MODEL_LINE_MODEL_H
#define CLAIMD_TESTS_MODEL_LINE_MODEL_H

#include "line_world.h"

struct line_result {
    size_t states;
    size_t transitions;
    size_t drained;   /* states on the way to where everybody is served */
    bool is_too_big;  /* or out of memory: no result */
    const char *what; /* is violated; NULL = nothing */
    size_t confirms;  /* over all transitions */
    char trace[8192]; /* of a violation: one step per line, the first one first */
};

/* In all states: never two holders; nobody passes who was behind; and once faults have ended, fair
 * schedules serve everybody who lives. `states_max`: the search is given up beyond. */
void line_model_run(const struct line_world *world, size_t states_max, struct line_result *ret);

#endif
