/* SPDX-License-Identifier: Apache-2.0
 *
 * Searches every order in which the rows of a small queue can come and go while a leader feeds
 * them. Rows are written early and committed late, claimed, handed back with and without a hint,
 * and edited unnoticed; reads fail at any point, hints vanish, ticks are missed, leaders change,
 * PostgreSQL's clock steps. The decisions are not simulated: they are the real model/feed*.c. What
 * scheduler/ does around them is in feed_world.c. */
#ifndef CLAIMD_TESTS_MODEL_FEED_MODEL_H
#define CLAIMD_TESTS_MODEL_FEED_MODEL_H

#include "feed_world.h"

struct feed_model_options {
    struct world_rules rules;
    unsigned clock_steps; /* of PostgreSQL's clock, back or forward */
    bool has_no_silence;  /* each move pushes its hint, and rows are not edited */
    bool has_no_loss;     /* no lost hints or cut-off walks, which both request a full pass */
    bool has_no_time;     /* time stands still */
    size_t steps_max;     /* most events in a row; 0 = until the last state */
};

struct feed_model_result {
    size_t states;
    size_t transitions;
    size_t steps;       /* all orders of this many events were searched … */
    bool is_complete;   /* … or of any number */
    bool is_violated;   /* the search ended there */
    bool is_too_big;    /* or memory ran out: there is no result */
    const char *what;   /* the violated rule */
    size_t full_passes; /* completed ones, over all transitions */
    size_t rests;       /* states with a waiting row, from which rest_run() was run */
    size_t recovered;   /* … in which the full pass found the row */
    char trace[8192];   /* of a violation: one step per line, in order */
};

void feed_model_run(const struct feed_model_options *options, struct feed_model_result *ret);

#endif
