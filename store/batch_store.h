/* SPDX-License-Identifier: Apache-2.0
 *
 * The end of batches: all that is in SQL (end_batches()), for the leading scheduler. */
#ifndef CLAIMD_STORE_BATCH_STORE_H
#define CLAIMD_STORE_BATCH_STORE_H

#include "store/pg/pg.h"

#define BATCHES_PER_ROUND 100

struct batch_end {
    int64_t batch;
    int64_t follow_up; /* a job; 0 = none */
    const char *why;   /* none could be made; NULL = all is well. Borrowed */
};

/* results[0]: rows of batch_store_end(). */
enum status batch_store_end_some(struct pg *pg, pg_done_cb *done, void *ctx,
                                 struct err *err) MUST_USE;
struct batch_end batch_store_end(const struct pg_result *r, int row);

#endif
