/* SPDX-License-Identifier: Apache-2.0
 *
 * When a worker is ready, and what /readyz says of it. */
#ifndef CLAIMD_WORKER_READY_H
#define CLAIMD_WORKER_READY_H

#include "daemon/health.h"

#include <stdint.h>

struct worker;

struct ready {
    int64_t awaited_since_us; /* registered, but not said so yet; 0 = said, or not registered */
    /* Nothing could be claimed since then …; 0 = a claim has succeeded. */
    int64_t setbacks_since_us;
    int64_t setback_us; /* … the last time that it was tried */
};

/* There is a row: from now on the worker is ready once enough nodes have been heard of. */
void ready_await(struct worker *w);
void ready_check(struct worker *w); /* says so when it is */

/* Of telemetry: the checks of /readyz. */
void ready_fill(void *worker, struct health *ret);

/* Lock or claim of a batch failed as a whole; what has been claimed ends a row of those. */
void ready_setback(struct worker *w, int64_t now_us);

#endif
