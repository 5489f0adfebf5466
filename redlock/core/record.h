/* SPDX-License-Identifier: Apache-2.0
 *
 * Records the life of locks for the recorder (base/recorder.h); does nothing while that is off. */
#ifndef CLAIMD_REDLOCK_CORE_RECORD_H
#define CLAIMD_REDLOCK_CORE_RECORD_H

#include "base/recorder.h"
#include "redlock/core/core.h"

void record_acquire(const struct redlock_batch *b);
void record_acquired(const struct redlock_batch *b, size_t index);
void record_extend(const struct redlock_batch *b, size_t index);
/* The masks have a bit for each node that gave this answer in the round. */
void record_extended(const struct redlock_batch *b, size_t index, enum extend_verdict verdict,
                     unsigned confirmed, unsigned denied, unsigned failed);
void record_release(const struct redlock_batch *b, size_t index);
/* Records that a release did not find our value on a node. */
void record_not_found(const struct redlock_batch *b, size_t index, size_t node, bool is_others,
                      bool is_again);

#endif
