/* SPDX-License-Identifier: Apache-2.0
 *
 * Recycles blocks of memory by size class, so that a program in steady state allocates nothing. The
 * memory kept is bounded; further blocks and large ones are malloc'ed and freed as usual. A pool
 * has one owner and no locking. Under AddressSanitizer nothing is kept, so that every use after
 * free is detected. */
#ifndef CLAIMD_BASE_POOL_H
#define CLAIMD_BASE_POOL_H

#include <stddef.h>

#define POOL_CLASSES 10 /* class c: up to 128 bytes · 2^c */

struct pool_block;

/* The zero value is an empty pool. */
struct pool {
    struct pool_block *kept[POOL_CLASSES];
    size_t counts[POOL_CLASSES];
};

void *pool_take(struct pool *p, size_t size); /* returns zeroed memory; NULL = out of memory */
void *pool_take_unset(struct pool *p, size_t size);
void pool_give(struct pool *p, void *memory); /* returns a block to the pool; accepts NULL */
void pool_release(struct pool *p);            /* frees the kept blocks */

#endif
