/* SPDX-License-Identifier: Apache-2.0
 *
 * Two sources that must not be confused: rand_bytes() for values that must be unpredictable
 * (tokens, lock.K1), and a small seeded generator for jitter, whose seed a test can fix. */
#ifndef CLAIMD_BASE_RAND_H
#define CLAIMD_BASE_RAND_H

#include "base/err.h"

#include <stdint.h>

/* Fills the whole buffer with getrandom(2), or returns UNAVAILABLE. */
enum status rand_bytes(void *ret_bytes, size_t len, struct err *err) MUST_USE;

/* Writes a random UUID (RFC 9562, version 4) as text, or returns UNAVAILABLE. */
#define RAND_UUID_SIZE 37
enum status rand_uuid(char ret[RAND_UUID_SIZE], struct err *err) MUST_USE;

struct rand {
    uint64_t state;
};

void rand_seed(struct rand *r, uint64_t seed);
void rand_seed_from_system(struct rand *r); /* falls back to the clock and pid: for jitter only */
uint64_t rand_next(struct rand *r);

/* Returns a uniform value in [0, bound); 0 for bound ≤ 0. */
int64_t rand_below(struct rand *r, int64_t bound);

/* Returns value ± percent, uniformly distributed: jitter for periods (lock.W1). */
int64_t rand_jitter(struct rand *r, int64_t value, int percent);

#endif
