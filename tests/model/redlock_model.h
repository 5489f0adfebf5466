/* SPDX-License-Identifier: Apache-2.0
 *
 * Every order in which the messages, timeouts, deaths and clocks of a small lock can happen:
 * 3 nodes, one of which may forget all, by a restart or as it goes on, and two clients that want
 * one key. Nothing is simulated of the decisions: they are the library's own tally.c and lease.c.
 * Time is whole ticks; a node's clock may run ahead by as much as the drift margin allows. Nodes
 * are alike, and so are the clients: states that differ by their names only count once. */
#ifndef CLAIMD_TESTS_MODEL_REDLOCK_MODEL_H
#define CLAIMD_TESTS_MODEL_REDLOCK_MODEL_H

#include "redlock/redlock.h"

struct model_options {
    unsigned extensions; /* rounds of extending per attempt */
    bool never_flushes;  /* nodes forget by restarting alone */
    /* What is taken away, to see the check fail. */
    bool has_no_quarantine; /* lock.N1 */
    bool has_no_canary;     /* lock.N9: behind the SETs */
    bool has_no_canary_of_rounds;
    bool has_no_margin;         /* D of lock.A4 */
    bool counts_from_the_reply; /* lock.A4: the deadline, not from before the first byte */
    bool is_won_by_one;         /* lock.A7: a vote fewer than a quorum */
    bool is_extended_by_one;    /* lock.E2: the same */
};

struct model_result {
    size_t states;
    size_t transitions;
    bool is_violated;                 /* two owners at once; the search ends there */
    bool is_too_big;                  /* or out of memory: no result */
    size_t verdicts[REDLOCK_RESULTS]; /* attempts that ended so, over all transitions */
    size_t extended;
    size_t lost;
    char trace[4096]; /* of a violation: one step per line, the first one first */
};

void model_run(const struct model_options *options, struct model_result *ret);

#endif
