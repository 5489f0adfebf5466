/* SPDX-License-Identifier: Apache-2.0
 *
 * Passes results from a runner to its worker through the shared page: one side puts, the other
 * takes, neither waits, and the results outlive the runner. The worker checks everything as
 * untrusted input. */
#ifndef CLAIMD_PROTOCOL_RESULT_RING_H
#define CLAIMD_PROTOCOL_RESULT_RING_H

#include "protocol/protocol.h"

/* For the runner: puts all bytes, or returns false if there is no room until the worker has taken
 * some. len ≤ RUNNER_RING_BYTES. */
bool result_ring_put(struct runner_page *page, const char *bytes, size_t len);

/* For the worker: appends new bytes to `in`. *taken is the worker's own count, which the page can't
 * change. INVALID: the runner's count is impossible. */
enum status result_ring_take(struct runner_page *page, uint64_t *taken, struct buf *in,
                             struct err *err) MUST_USE;

#endif
