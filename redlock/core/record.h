/* SPDX-License-Identifier: Apache-2.0
 *
 * What the recorder is told of locks (base/recorder.h); nothing while it is off. */
#ifndef CLAIMD_REDLOCK_CORE_RECORD_H
#define CLAIMD_REDLOCK_CORE_RECORD_H

#include "base/recorder.h"
#include "redlock/core/core.h"

void record_acquire(const struct redlock_batch *b);
void record_acquired(const struct redlock_batch *b, size_t index);
void record_extend(const struct redlock_batch *b, size_t index);
/* The masks have a bit per node that answered so in this round. */
void record_extended(const struct redlock_batch *b, size_t index, enum extend_verdict verdict,
                     unsigned confirmed, unsigned denied, unsigned failed);
void record_release(const struct redlock_batch *b, size_t index);
/* A copy of ours that a release did not find. */
void record_not_found(const struct redlock_batch *b, size_t index, size_t node, bool is_others);

#endif
