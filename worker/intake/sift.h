/* SPDX-License-Identifier: Apache-2.0
 *
 * Filters hints whose jobs no longer exist (cancelled while queued, or forged). Locking and
 * claiming each would hold up the hints behind them. So while claims find nothing else, ids are
 * popped by the hundred and PostgreSQL is asked which of these jobs exist. The other hints are
 * dropped, as after a claim. */
#ifndef CLAIMD_WORKER_INTAKE_SIFT_H
#define CLAIMD_WORKER_INTAKE_SIFT_H

#include "hints/hints.h"

struct intake;
struct question;

struct sift {
    size_t gone; /* refused in a row because the job does not exist */
    bool is_on;
};

/* A worker that meets only a few such hints, as after a cancel, continues to lock them: sifting
 * would ask PostgreSQL twice for the jobs that exist. */
#define SIFT_GONE_MANY 50

/* Call with the result of each claim. */
static inline void sift_claimed(struct sift *s, size_t claimed, size_t gone, size_t refused)
{
    s->gone = claimed == 0 && gone == refused ? s->gone + gone : 0;
    s->is_on = s->is_on || s->gone >= SIFT_GONE_MANY;
}

/* Returns how many ids to pop if `want` jobs are wanted. */
size_t sift_want(const struct intake *in, size_t want);

/* Returns false if it does not take these hints now; the caller handles them. */
bool sift_popped(struct intake *in, const struct hint *list, size_t count);

/* Takes the answer: fetch_take() gets the hints whose jobs exist, as far as there is room. */
void sift_take(struct intake *in, const struct question *q);

#endif
