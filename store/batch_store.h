/* SPDX-License-Identifier: Apache-2.0
 *
 * The ends of waiting: of jobs for other jobs (release_jobs()) and for their start (expire_jobs()),
 * and of batches for their last job (end_batches()). All of it is done in SQL, called by the
 * leading scheduler. */
#ifndef CLAIMD_STORE_BATCH_STORE_H
#define CLAIMD_STORE_BATCH_STORE_H

#include "store/pg/pg.h"

#define BATCHES_PER_ROUND 100
#define RELEASES_PER_ROUND 10000
#define EXPIRIES_PER_ROUND 10000

struct batch_end {
    int64_t batch;
    int64_t follow_up;   /* id of a job; 0 = none */
    int64_t outcome_job; /* id of the job of on_success or on_failure; 0 = none */
    const char *why;     /* why no job could be made; NULL = no error. Borrowed */
};

/* Ends waiting jobs and batches. The results are input of the next four functions. */
enum status batch_store_end_some(struct pg *pg, pg_done_cb *done, void *ctx,
                                 struct err *err) MUST_USE;
/* Returns the number of jobs that could not be made due, and why the last one could not.
 * Borrowed. */
int64_t batch_store_kept(const struct pg_result *const *results, const char **ret_why);
/* Returns the number of jobs that have expired. */
int64_t batch_store_expired(const struct pg_result *const *results);
int batch_store_count(const struct pg_result *const *results);
struct batch_end batch_store_end(const struct pg_result *const *results, int row);

#endif
