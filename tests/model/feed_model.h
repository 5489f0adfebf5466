/* SPDX-License-Identifier: Apache-2.0
 *
 * Every order in which the rows of a small queue can come and go while a leader feeds them: written
 * early and committed late, claimed, given back with and without a hint, edited behind everybody's
 * back; reads that fail at any point, hints that vanish, ticks that are missing, leaders that
 * change, PostgreSQL's clock that steps. Nothing is simulated of the decisions: they are
 * model/feed*.c; what scheduler/ does around them is in feed_world.c. */
#ifndef CLAIMD_TESTS_MODEL_FEED_MODEL_H
#define CLAIMD_TESTS_MODEL_FEED_MODEL_H

#include "feed_world.h"

struct feed_model_options {
    struct world_rules rules;
    unsigned clock_steps; /* of PostgreSQL's clock, back or on */
    bool has_no_silence;  /* who moves a row always pushes its hint, and nobody edits rows */
    bool has_no_loss;     /* of hints, or of a walk that was cut off: both ask for a full pass */
    bool has_no_time;     /* everything happens at one moment */
    size_t steps_max;     /* events in a row; 0 = no end but the last state */
};

struct feed_model_result {
    size_t states;
    size_t transitions;
    size_t steps;       /* all orders of so many events were searched … */
    bool is_complete;   /* … or all of any number */
    bool is_violated;   /* the search ends there */
    bool is_too_big;    /* or out of memory: no result */
    const char *what;   /* is violated */
    size_t full_passes; /* complete ones, over all transitions */
    size_t rests;       /* states with a row that waits, from which the rest was run */
    size_t recovered;   /* … in which it was the full pass that found it */
    char trace[8192];   /* of a violation: one step per line, the first one first */
};

void feed_model_run(const struct feed_model_options *options, struct feed_model_result *ret);

#endif
