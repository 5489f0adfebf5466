/* SPDX-License-Identifier: Apache-2.0
 *
 * A heap of items by their time, the earliest one on top. An item is a member of the object for
 * which it stands, its owner. */
#ifndef CLAIMD_REDLOCK_RULES_HEAP_H
#define CLAIMD_REDLOCK_RULES_HEAP_H

#include "base/err.h"

#include <stddef.h>
#include <stdint.h>

struct heap_item {
    int64_t wake_us;
    size_t at; /* index; HEAP_NONE = in no heap */
    void *owner;
};

struct heap {
    struct heap_item **items;
    size_t count;
    size_t cap;
};

#define HEAP_NONE SIZE_MAX

void heap_release(struct heap *h);
void heap_item_init(struct heap_item *item, void *owner);
/* Makes room for `count` items in all: heap_put() can't fail afterwards. */
enum status heap_reserve(struct heap *h, size_t count, struct err *err) MUST_USE;
struct heap_item *heap_top(const struct heap *h); /* returns NULL if empty */
/* Inserts the item, or moves it if it is in the heap already. */
void heap_put(struct heap *h, struct heap_item *item, int64_t wake_us);
void heap_remove(struct heap *h, struct heap_item *item); /* accepts an item that is not in it */

#endif
