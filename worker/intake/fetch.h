/* SPDX-License-Identifier: Apache-2.0
 *
 * From hints to claims: acquires the locks of their jobs, and starts the claims. */
#ifndef CLAIMD_WORKER_INTAKE_FETCH_H
#define CLAIMD_WORKER_INTAKE_FETCH_H

#include "hints/hints.h"

struct intake;

struct fetch {
    int64_t alone_until_us; /* a lock was not won: until then, send no claim beside its lock */
};

/* Locks and claims the jobs of these hints, as far as there is room; the others go back. */
void fetch_take(struct intake *in, const struct hint *list, size_t count);

#endif
