/* SPDX-License-Identifier: Apache-2.0
 *
 * Parameters of a batch's statements, gathered from many structs into arrays. */
#ifndef CLAIMD_STORE_JOBS_COLUMNS_H
#define CLAIMD_STORE_JOBS_COLUMNS_H

#include "store/jobs/batch.h"

#include <assert.h>

#define BATCH_HELD_MAX (2 * BATCH_FINISHES_MAX) /* a run with two keys comes twice */

static_assert(BATCH_CLAIMS_MAX <= BATCH_HELD_MAX, "columns hold all claims");

/* Columns of the statements, gathered from many structs; the largest batch fits. */
struct columns {
    int64_t ids[BATCH_HELD_MAX];
    int64_t fences[BATCH_HELD_MAX];
    int64_t numbers[BATCH_FINISHES_MAX];
    int64_t key_rows[BATCH_HELD_MAX];
    int64_t places[BATCH_HELD_MAX];
    const char *texts[BATCH_FINISHES_MAX];
    size_t lens[BATCH_FINISHES_MAX];
};

/* Of the statement for finishes of one list; its parameters begin with ids and rising fences, the
 * last is the worker. */
void columns_put_finishes(struct params *p, const struct finish_list *list, size_t kind,
                          struct columns *columns);

#endif
