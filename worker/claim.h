/* SPDX-License-Identifier: Apache-2.0
 *
 * Claims in PostgreSQL, and what comes of them: claimed jobs become ready for a runner, hints of
 * the others are dropped or put back. A claim is asked for with the lease in hand, or beside its
 * lock (fetch.c, docs/decisions/0020). */
#ifndef CLAIMD_WORKER_CLAIM_H
#define CLAIMD_WORKER_CLAIM_H

#include "worker/jobs_in_hand.h"

struct worker;

/* Of jobs in our hands; ids[ahead_from…] are claimed ahead of a free runner. False: none was asked
 * for. */
bool claim_ask(struct worker *w, const int64_t *ids, size_t count, size_t ahead_from);

/* What in_hand_step() wants done with a job when the later of its lock's verdict and its claim's
 * answer has come: it goes on to its args or a runner, is handed back, or let go. */
void claim_do(struct worker *w, struct job_in_hand *job, enum in_hand_action action);

/* Before ready jobs are given to runners: those that were claimed ahead and turn out to be long get
 * a place, or are handed back. */
void claim_place_long(struct worker *w);

#endif
