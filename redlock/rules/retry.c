/* SPDX-License-Identifier: Apache-2.0 */
#include "redlock/rules/retry.h"

#include "base/clock.h"

#define BASE_MIN_US US_PER_MS
#define BUCKET_UNIT_US 10
#define ROUNDS_MIN 100 /* with fewer there is no 99th percentile */
#define ROUND_TRIPS 4

int64_t retry_p99_us(const uint64_t latency[REDLOCK_LATENCY_BUCKETS])
{
    uint64_t count = 0;
    for (size_t i = 0; i < REDLOCK_LATENCY_BUCKETS; i++) {
        count += latency[i];
    }
    if (count < ROUNDS_MIN) {
        return 0;
    }
    uint64_t slower = count / 100; /* this many may be above it */
    size_t at = REDLOCK_LATENCY_BUCKETS - 1;
    while (at > 0 && latency[at] <= slower) {
        slower -= latency[at];
        at--;
    }
    return (int64_t)BUCKET_UNIT_US << at;
}

struct retry_terms retry_terms_of(int64_t base_us, int64_t cap_us,
                                  const uint64_t latency[REDLOCK_LATENCY_BUCKETS])
{
    int64_t least_us = ROUND_TRIPS * retry_p99_us(latency);
    if (least_us < BASE_MIN_US) {
        least_us = BASE_MIN_US;
    }
    struct retry_terms t = {.base_us = base_us < least_us ? least_us : base_us, .cap_us = cap_us};
    if (t.cap_us < t.base_us) {
        t.cap_us = t.base_us;
    }
    return t;
}

int64_t retry_delay_us(const struct retry_terms *terms, enum redlock_result result,
                       unsigned failures, size_t quorum, size_t votes, struct rand *rand)
{
    int64_t ceiling_us = terms->base_us;
    for (unsigned i = 0; i < failures && ceiling_us < terms->cap_us; i++) {
        ceiling_us *= 2;
    }
    if (ceiling_us > terms->cap_us) {
        ceiling_us = terms->cap_us;
    }
    int64_t delay_us = rand_below(rand, ceiling_us + 1);
    if (result == REDLOCK_SPLIT && votes < quorum) {
        delay_us *= 1 + (int64_t)(quorum - votes);
    }
    return delay_us;
}
