/* SPDX-License-Identifier: Apache-2.0
 *
 * The second read: why did a claim not get these ids, and why did a finish not find these runs? It
 * decides by what the rows say now (GUARANTEES 2.3), then answers in the job store's place. */
#ifndef CLAIMD_STORE_JOBS_RECHECK_H
#define CLAIMD_STORE_JOBS_RECHECK_H

#include "store/jobs/claim.h"
#include "store/jobs/finish.h"

struct recheck;

/* NULL: no memory. */
struct recheck *recheck_new(struct job_store *s, const struct kind_cache *kinds);

/* Both take it. Of a claim only the ids that are not settled are asked for. */
void recheck_add_finish(struct recheck *r, struct finish *f);
void recheck_add_claim(struct recheck *r, struct claim *c);

/* Takes it; accepts NULL. Once the rows are here, or can't be had, all finishes are settled or kept
 * to be tried again, and all claims are answered. One without any is just freed. */
void recheck_send(struct recheck *r);

#endif
