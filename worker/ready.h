/* SPDX-License-Identifier: Apache-2.0
 *
 * Decides when a worker is ready, and fills in /readyz. */
#ifndef CLAIMD_WORKER_READY_H
#define CLAIMD_WORKER_READY_H

#include "daemon/health.h"

#include <stdint.h>

struct worker;

struct ready {
    int64_t
        awaited_since_us; /* registered, but not announced as ready; 0 = done, or not registered */
};

/* Call when the worker has a row: it becomes ready once enough nodes have been heard of. */
void ready_await(struct worker *w);
void ready_check(struct worker *w); /* announces that the worker is ready, if it is */

/* Called by telemetry: adds the checks of /readyz. */
void ready_fill(void *worker, struct health *ret);

#endif
