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
    /* Since when nothing could be claimed; 0 = a claim has succeeded. */
    int64_t setbacks_since_us;
    int64_t setback_us; /* when a claim was last tried in vain */
};

/* Call when the worker has a row: it becomes ready once enough nodes have been heard of. */
void ready_await(struct worker *w);
void ready_check(struct worker *w); /* announces that the worker is ready, if it is */

/* Called by telemetry: adds the checks of /readyz. */
void ready_fill(void *worker, struct health *ret);

/* Call when the lock or claim of a whole batch has failed. A claim that succeeds ends the
 * series. */
void ready_setback(struct worker *w, int64_t now_us);

#endif
