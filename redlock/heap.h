/* SPDX-License-Identifier: Apache-2.0
 *
 * Batches by the time at which each must be looked at next, earliest on top. */
#ifndef CLAIMD_REDLOCK_HEAP_H
#define CLAIMD_REDLOCK_HEAP_H

#include "base/err.h"
#include "redlock/redlock_async.h"

struct heap {
    struct redlock_batch **items;
    size_t count;
    size_t cap;
};

#define HEAP_NONE SIZE_MAX

void heap_release(struct heap *h);
/* Room for `count` batches in all: heap_put() can't fail afterwards. */
enum status heap_reserve(struct heap *h, size_t count, struct err *err) MUST_USE;
struct redlock_batch *heap_top(const struct heap *h); /* NULL when empty */
/* Inserts, or moves after its time changed. */
void heap_put(struct heap *h, struct redlock_batch *b);
void heap_remove(struct heap *h, struct redlock_batch *b); /* accepts one that is not in it */

#endif
