/* SPDX-License-Identifier: Apache-2.0
 *
 * Searches every order of the messages, timeouts, deaths and clocks of a small lock: 3 nodes, one
 * of which may lose its memory by a restart or while running, and two clients that want one key.
 * The decisions are not simulated: they are the library's own tally.c and lease.c. Time is in whole
 * ticks; a node's clock may run fast by as much as the drift margin allows. Nodes are
 * interchangeable, and so are the clients: states that differ only by their names count once. */
#ifndef CLAIMD_TESTS_MODEL_REDLOCK_MODEL_H
#define CLAIMD_TESTS_MODEL_REDLOCK_MODEL_H

#include "redlock/redlock.h"

struct model_options {
    unsigned extensions; /* rounds of extensions per attempt */
    bool never_flushes;  /* nodes lose their memory only by restarts */
    /* Rules that are removed, to see the check fail. */
    bool has_no_quarantine; /* lock.N1 */
    bool has_no_canary;     /* lock.N9: after the SETs */
    bool has_no_canary_of_rounds;
    bool has_no_margin; /* D of lock.A4 */
    /* Lock.A4: the deadline counts from the reply, not from before the first byte. */
    bool counts_from_the_reply;
    bool is_won_by_one;      /* lock.A7: one vote less than a quorum suffices */
    bool is_extended_by_one; /* lock.E2: likewise */
};

struct model_result {
    size_t states;
    size_t transitions;
    bool is_violated;                 /* two owners at the same time; the search ended there */
    bool is_too_big;                  /* or memory ran out: there is no result */
    size_t verdicts[REDLOCK_RESULTS]; /* attempts by their verdict, over all transitions */
    size_t extended;
    size_t lost;
    char trace[4096]; /* of a violation: one step per line, in order */
};

void model_run(const struct model_options *options, struct model_result *ret);

#endif
