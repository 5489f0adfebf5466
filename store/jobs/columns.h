/* SPDX-License-Identifier: Apache-2.0
 *
 * Parameters of a segment's statements, collected from many structs into arrays. */
#ifndef CLAIMD_STORE_JOBS_COLUMNS_H
#define CLAIMD_STORE_JOBS_COLUMNS_H

#include "store/jobs/segment.h"

#include <assert.h>

#define SEGMENT_HELD_MAX (2 * SEGMENT_FINISHES_MAX) /* a run with two keys has two entries */

static_assert(SEGMENT_CLAIMS_MAX <= SEGMENT_HELD_MAX, "columns hold all claims");

/* Arrays for the columns of the statements; the largest segment fits. */
struct columns {
    int64_t ids[SEGMENT_HELD_MAX];
    int64_t fences[SEGMENT_HELD_MAX];
    int64_t numbers[SEGMENT_FINISHES_MAX];
    int64_t key_rows[SEGMENT_HELD_MAX];
    int64_t places[SEGMENT_HELD_MAX];
    const char *texts[SEGMENT_FINISHES_MAX];
    size_t lens[SEGMENT_FINISHES_MAX];
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
