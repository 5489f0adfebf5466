/* SPDX-License-Identifier: Apache-2.0
 *
 * Delays before the next try (lock.A14). Pure, except for the generator that is passed in. */
#ifndef CLAIMD_REDLOCK_RULES_RETRY_H
#define CLAIMD_REDLOCK_RULES_RETRY_H

#include "base/rand.h"
#include "redlock/redlock_async.h"

struct retry_terms {
    int64_t base_us;
    int64_t cap_us;
};

/* Returns the upper bound of the bucket with the 99th percentile; 0 = not known yet. */
int64_t retry_p99_us(const uint64_t latency[REDLOCK_LATENCY_BUCKETS]);

/* Computes base and cap. The base is at least 4 · p99 of the rounds won so far, once there are
 * enough of them; the cap is never below the base. `latency`: as in struct redlock_counters. */
struct retry_terms retry_terms_of(int64_t base_us, int64_t cap_us,
                                  const uint64_t latency[REDLOCK_LATENCY_BUCKETS]);

/* Returns a delay from U(0, min(cap, base · 2^failures)); `failures` counts those in a row before
 * this one. After SPLIT the delay is multiplied by 1 + Q − votes, so that the contender with more
 * votes tries again sooner. */
int64_t retry_delay_us(const struct retry_terms *terms, enum redlock_result result,
                       unsigned failures, size_t quorum, size_t votes, struct rand *rand);

#endif
