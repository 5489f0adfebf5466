/* SPDX-License-Identifier: Apache-2.0
 *
 * From hints to claimed jobs: how many to ask for, their locks, then their claims. */
#ifndef CLAIMD_WORKER_FETCH_H
#define CLAIMD_WORKER_FETCH_H

#include "hints/hints.h"

struct worker;

/* Of hints_popper: how many more ids, and what came. */
size_t fetch_want(void *worker);
void fetch_popped(void *worker, const struct hint *list, size_t count);

/* Something changed that may let more be asked for. */
void fetch_poke(struct worker *w);

#endif
