/* SPDX-License-Identifier: Apache-2.0
 *
 * Results on their way from a runner to its worker, in the shared page: one side puts, the other
 * takes, neither waits, and what was put outlives the runner. The worker checks everything as if an
 * enemy had written it. */
#ifndef CLAIMD_WORKER_RESULT_RING_H
#define CLAIMD_WORKER_RESULT_RING_H

#include "worker/protocol.h"

/* The runner's side: all of it, or false where there is no room until the worker has taken some;
 * len ≤ RUNNER_RING_BYTES. */
bool result_ring_put(struct runner_page *page, const char *bytes, size_t len);

/* The worker's: appends what is new to `in`; *taken is its own count, that the page can't change.
 * INVALID: the runner's count can't be true. */
enum status result_ring_take(struct runner_page *page, uint64_t *taken, struct buf *in,
                             struct err *err) MUST_USE;

#endif
