/* SPDX-License-Identifier: Apache-2.0
 *
 * Parameters of a batch's statements, collected from many structs into arrays. */
#ifndef CLAIMD_STORE_JOBS_COLUMNS_H
#define CLAIMD_STORE_JOBS_COLUMNS_H

#include "store/jobs/segment.h"

#include <assert.h>

#define BATCH_HELD_MAX (2 * BATCH_FINISHES_MAX) /* a run with two keys has two entries */

static_assert(BATCH_CLAIMS_MAX <= BATCH_HELD_MAX, "columns hold all claims");

/* Arrays for the columns of the statements; the largest batch fits. */
struct columns {
    int64_t ids[BATCH_HELD_MAX];
    int64_t fences[BATCH_HELD_MAX];
    int64_t numbers[BATCH_FINISHES_MAX];
    int64_t key_rows[BATCH_HELD_MAX];
    int64_t places[BATCH_HELD_MAX];
    const char *texts[BATCH_FINISHES_MAX];
    size_t lens[BATCH_FINISHES_MAX];
};

/* Each appends one parameter: an array with one field of all finishes of a list. */
typedef void columns_fn(struct params *p, const struct finish_list *list, struct columns *columns);
columns_fn columns_results;
columns_fn columns_outcomes; /* as stored in job_attempt */
columns_fn columns_errors;
columns_fn columns_logs;
columns_fn columns_delays;
columns_fn columns_crashed;

#endif
