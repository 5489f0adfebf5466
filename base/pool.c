/* SPDX-License-Identifier: Apache-2.0 */
#include "base/pool.h"

#include <stdalign.h>
#include <stdlib.h>
#include <string.h>

#define LEAST_BYTES ((size_t)128)
#define CLASS_NONE POOL_CLASSES /* too large to keep */

#if defined(__SANITIZE_ADDRESS__)
#define KEPT_BYTES_MAX ((size_t)0)
#else
#define KEPT_BYTES_MAX ((size_t)256 << 10) /* per class */
#endif

struct pool_block {
    struct pool_block *next;
    size_t class;
    alignas(max_align_t) char bytes[];
};

static size_t class_of(size_t size)
{
    size_t class = 0;
    while (class < CLASS_NONE && size > LEAST_BYTES << class) {
        class ++;
    }
    return class;
}

void *pool_take_unset(struct pool *p, size_t size)
{
    size_t class = class_of(size);
    struct pool_block *b = class < CLASS_NONE ? p->kept[class] : NULL;
    if (b != NULL) {
        p->kept[class] = b->next;
        p->counts[class]--;
        return b->bytes;
    }
    b = malloc(sizeof *b + (class < CLASS_NONE ? LEAST_BYTES << class : size));
    if (b == NULL) {
        return NULL;
    }
    b->class = class;
    return b->bytes;
}

void *pool_take(struct pool *p, size_t size)
{
    void *memory = pool_take_unset(p, size);
    if (memory != NULL) {
        memset(memory, 0, size);
    }
    return memory;
}

void pool_give(struct pool *p, void *memory)
{
    if (memory == NULL) {
        return;
    }
    struct pool_block *b =
        (struct pool_block *)(void *)((char *)memory - offsetof(struct pool_block, bytes));
    size_t class = b->class;
    if (class == CLASS_NONE || (p->counts[class] + 1) * (LEAST_BYTES << class) > KEPT_BYTES_MAX) {
        free(b);
        return;
    }
    b->next = p->kept[class];
    p->kept[class] = b;
    p->counts[class]++;
}

void pool_release(struct pool *p)
{
    for (size_t i = 0; i < POOL_CLASSES; i++) {
        while (p->kept[i] != NULL) {
            struct pool_block *b = p->kept[i];
            p->kept[i] = b->next;
            free(b);
        }
        p->counts[i] = 0;
    }
}
