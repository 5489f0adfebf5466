/* SPDX-License-Identifier: Apache-2.0
 *
 * Hints that lead nowhere: of jobs that were cancelled while queued, or written by a stranger. A
 * lock and a claim for each would hold up what is behind them. So where claims find nothing else,
 * ids are popped by the hundred and PostgreSQL is asked which jobs there are; the others are
 * dropped, as a claim would have. */
#ifndef CLAIMD_WORKER_SIFT_H
#define CLAIMD_WORKER_SIFT_H

#include "hints/hints.h"
#include "worker/kept_hint.h"

struct worker;

struct sift {
    size_t gone; /* refused in a row because there is no such job */
    bool is_on;
    struct kept_hint asked[HINTS_POP_MAX];
    bool is_open[HINTS_POP_MAX];
    size_t asked_count;
};

/* What a claim came to. */
void sift_claimed(struct worker *w, size_t claimed, size_t gone, size_t refused);

/* How many ids to pop where `want` jobs are wanted. */
size_t sift_want(const struct worker *w, size_t want);

/* False: not now, the caller sees to these hints. Else fetch_take() gets those that are worth a
 * lock, as far as there is room. */
bool sift_popped(struct worker *w, const struct hint *list, size_t count);

bool sift_is_idle(const struct worker *w);

#endif
