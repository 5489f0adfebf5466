/* SPDX-License-Identifier: Apache-2.0
 *
 * What a recheck and a fetch of args ask of the job store. */
#ifndef CLAIMD_STORE_JOBS_INTERNAL_H
#define CLAIMD_STORE_JOBS_INTERNAL_H

#include "store/jobs/claim.h"
#include "store/jobs/finish.h"
#include "store/pg/params.h"

/* Each of these calls back, so the caller's own state must be in order before. */
void store_settle_finish(struct job_store *s, struct finish *f, enum finish_verdict verdict);
void store_answer_claims(struct job_store *s, struct claim_queue *q, enum claim_refusal rest);

/* Its ids that aren't settled were found to have a limit: it is sent once more, alone. */
void store_claim_limited(struct job_store *s, struct claim *c);

/* A run that somebody's session has locked, or of which nothing is known: tried again soon. */
void store_keep_locked(struct job_store *s, struct finish *f);

enum status store_send(struct job_store *s, struct pg_request *request, pg_done_cb *done, void *ctx,
                       struct err *err) MUST_USE;
/* One statement; the caller keeps the parameters. */
enum status store_send_one(struct job_store *s, const struct pg_statement *statement,
                           const struct params *p, pg_done_cb *done, void *ctx,
                           struct err *err) MUST_USE;
/* First in each pg_done_cb: false when the store was closed and nobody is left to answer. */
bool store_request_ended(struct job_store *s);

#endif
