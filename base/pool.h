/* SPDX-License-Identifier: Apache-2.0
 *
 * Recycles blocks of memory by size, so that a program in steady state allocates nothing. What is
 * kept is bounded; blocks beyond that, and large ones, are allocated and freed as usual. One owner,
 * no locking. Under AddressSanitizer nothing is kept, so that it sees every use after free. */
#ifndef CLAIMD_BASE_POOL_H
#define CLAIMD_BASE_POOL_H

#include <stddef.h>

#define POOL_CLASSES 10 /* of blocks of up to 128 bytes · 2^class */

struct pool_block;

/* The zero value is an empty one. */
struct pool {
    struct pool_block *kept[POOL_CLASSES];
    size_t counts[POOL_CLASSES];
};

void *pool_take(struct pool *p, size_t size); /* zeroed; NULL = no memory */
void *pool_take_unset(struct pool *p, size_t size);
void pool_give(struct pool *p, void *memory); /* what pool_take() gave; accepts NULL */
void pool_release(struct pool *p);            /* frees what is kept */

#endif
