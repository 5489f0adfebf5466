/* SPDX-License-Identifier: Apache-2.0
 *
 * The end of waiting: of jobs for others (release_jobs()) and for their start (expire_jobs()), of
 * batches for their last job (end_batches()). All that is in SQL, for the leading scheduler. */
#ifndef CLAIMD_STORE_BATCH_STORE_H
#define CLAIMD_STORE_BATCH_STORE_H

#include "store/pg/pg.h"

#define BATCHES_PER_ROUND 100
#define RELEASES_PER_ROUND 10000
#define EXPIRIES_PER_ROUND 10000

struct batch_end {
    int64_t batch;
    int64_t follow_up;   /* a job; 0 = none */
    int64_t outcome_job; /* the same, of on_success or on_failure */
    const char *why;     /* none could be made; NULL = all is well. Borrowed */
};

/* The results are for the next four. */
enum status batch_store_end_some(struct pg *pg, pg_done_cb *done, void *ctx,
                                 struct err *err) MUST_USE;
/* Jobs that could not be made due, and why the last one could not. Borrowed. */
int64_t batch_store_kept(const struct pg_result *const *results, const char **ret_why);
/* Jobs that have expired. */
int64_t batch_store_expired(const struct pg_result *const *results);
int batch_store_count(const struct pg_result *const *results);
struct batch_end batch_store_end(const struct pg_result *const *results, int row);

#endif
