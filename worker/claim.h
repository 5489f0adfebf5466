/* SPDX-License-Identifier: Apache-2.0
 *
 * Claims in PostgreSQL, and what comes of them: claimed jobs become ready for a runner, hints of
 * the others are dropped or put back. A claim is asked for with the lease in hand, or beside its
 * lock (fetch.c, docs/decisions/0020). */
#ifndef CLAIMD_WORKER_CLAIM_H
#define CLAIMD_WORKER_CLAIM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct job_in_hand;
struct worker;

/* Of jobs in our hands; ids[ahead_from…] are claimed ahead of a free runner. False: none was asked
 * for. */
bool claim_ask(struct worker *w, const int64_t *ids, size_t count, size_t ahead_from);

/* Of a claim that was asked for beside its lock and answered first, once the lock's verdict is
 * there: of a job that was claimed, of one that was refused. */
void claim_go_on(struct worker *w, struct job_in_hand *job);
void claim_let_refused_go(struct worker *w, struct job_in_hand *job);

/* Before ready jobs are given to runners: those that were claimed ahead and turn out to be long get
 * a place, or are handed back. */
void claim_place_long(struct worker *w);

#endif
