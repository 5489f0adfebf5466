/* SPDX-License-Identifier: Apache-2.0
 *
 * The second read: why did a claim not get these ids, and why did a finish not find these runs?
 * Reads only; decides by what the rows say now (GUARANTEES 2.3). No I/O of its own. */
#ifndef CLAIMD_STORE_JOBS_RECHECK_H
#define CLAIMD_STORE_JOBS_RECHECK_H

#include "store/jobs/batch.h"

struct recheck {
    void *owner;
    struct finish_queue finishes;
    struct claim_queue claims;
    struct params params[2];
    int64_t exhausted[BATCH_CLAIMS_MAX]; /* found available without an attempt left (lock.G5) */
    size_t exhausted_count;
};

struct recheck *recheck_new(void *owner); /* NULL: no memory */
void recheck_free(struct recheck *r);     /* frees what it still holds; accepts NULL */
bool recheck_is_empty(const struct recheck *r);

/* NOMEM, LIMIT. */
enum status recheck_build(struct recheck *r, struct pg_request *request, struct err *err) MUST_USE;

enum recheck_verdict { RECHECK_ALREADY, RECHECK_STALE, RECHECK_LOCKED };
typedef void recheck_verdict_fn(void *owner, struct finish *f, enum recheck_verdict verdict);

/* Gives each finish to `each` (which owns it then) and settles every id of the claims. NOMEM:
 * nothing was done. */
enum status recheck_settle(struct recheck *r, const struct kind_cache *kinds,
                           const struct pg_result *const *results, recheck_verdict_fn *each,
                           struct err *err) MUST_USE;

#endif
