/* SPDX-License-Identifier: Apache-2.0
 *
 * What /readyz says of a worker. */
#ifndef CLAIMD_WORKER_READY_H
#define CLAIMD_WORKER_READY_H

#include "daemon/health.h"

#include <stdint.h>

struct worker;

void worker_ready(void *worker, struct health *ret);

/* Lock or claim of a batch failed as a whole; what has been claimed ends a row of those. */
void ready_setback(struct worker *w, int64_t now_us);

#endif
