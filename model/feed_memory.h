/* SPDX-License-Identifier: Apache-2.0
 *
 * What was fed in the last moments: a set of (id, ready time) in two generations. Forgetting an
 * entry only costs a repeated push, which adds nothing; so the set is bounded, and adding to it
 * never fails. */
#ifndef CLAIMD_MODEL_FEED_MEMORY_H
#define CLAIMD_MODEL_FEED_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FEED_MEMORY_MAX ((size_t)1 << 18) /* slots per generation */

struct feed_memory_half {
    uint64_t *slots; /* 0 = empty */
    size_t cap;
    size_t count;
};

struct feed_memory {
    struct feed_memory_half young;
    struct feed_memory_half old;
    int64_t began_us;
};

void feed_memory_release(struct feed_memory *m); /* all zeros is a valid empty memory */
void feed_memory_add(struct feed_memory *m, int64_t id, int64_t ready_us);
bool feed_memory_has(const struct feed_memory *m, int64_t id, int64_t ready_us);

/* Forgets entries that are older than `age_us`, after twice that time at the latest. */
void feed_memory_age(struct feed_memory *m, int64_t now_us, int64_t age_us);

#endif
