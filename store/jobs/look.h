/* SPDX-License-Identifier: Apache-2.0
 *
 * The second look: why did a claim not get these ids, and why did a finish not find these runs?
 * Reads only; decides by what the rows say now (GUARANTEES 2.3). No I/O of its own. */
#ifndef CLAIMD_STORE_JOBS_LOOK_H
#define CLAIMD_STORE_JOBS_LOOK_H

#include "store/jobs/round.h"

struct look {
    void *owner;
    struct finish_queue finishes;
    struct claim_queue claims;
    struct params params[2];
    int64_t exhausted[ROUND_CLAIMS_MAX]; /* found available without an attempt left (lock.G5) */
    size_t exhausted_count;
};

struct look *look_new(void *owner); /* NULL: no memory */
void look_free(struct look *l);     /* frees what it still holds; accepts NULL */
bool look_is_empty(const struct look *l);

/* NOMEM, LIMIT. */
enum status look_build(struct look *l, struct pg_request *request, struct err *err) MUST_USE;

enum look_verdict { LOOK_ALREADY, LOOK_STALE, LOOK_LOCKED };
typedef void look_verdict_fn(void *owner, struct finish *f, enum look_verdict verdict);

/* Gives each finish to `each` (which owns it then) and settles every id of the claims. NOMEM:
 * nothing was done. */
enum status look_settle(struct look *l, const struct kind_cache *kinds,
                        const struct pg_result *const *results, look_verdict_fn *each,
                        struct err *err) MUST_USE;

#endif
