/* SPDX-License-Identifier: Apache-2.0 */
#include "redlock/rules/heap.h"

#include "base/cleanup.h"

#include <assert.h>

#define HEAP_CAP_MIN 64

void heap_release(struct heap *h)
{
    free(h->items);
    *h = (struct heap){0};
}

void heap_item_init(struct heap_item *item, void *owner)
{
    *item = (struct heap_item){.wake_us = INT64_MAX, .at = HEAP_NONE, .owner = owner};
}

enum status heap_reserve(struct heap *h, size_t count, struct err *err)
{
    if (count <= h->cap) {
        return STATUS_OK;
    }
    size_t cap = h->cap > 0 ? h->cap : HEAP_CAP_MIN;
    while (cap < count) {
        cap *= 2;
    }
    struct heap_item **items = realloc(h->items, cap * sizeof(struct heap_item *));
    if (items == NULL) {
        return err_fail(err, STATUS_NOMEM, "redlock: no memory for %zu deadlines", cap);
    }
    h->items = items;
    h->cap = cap;
    return STATUS_OK;
}

struct heap_item *heap_top(const struct heap *h)
{
    return h->count > 0 ? h->items[0] : NULL;
}

static void place(struct heap *h, size_t at, struct heap_item *item)
{
    h->items[at] = item;
    item->at = at;
}

static void move_up(struct heap *h, struct heap_item *item)
{
    size_t at = item->at;
    while (at > 0 && h->items[(at - 1) / 2]->wake_us > item->wake_us) {
        place(h, at, h->items[(at - 1) / 2]);
        at = (at - 1) / 2;
    }
    place(h, at, item);
}

static void move_down(struct heap *h, struct heap_item *item)
{
    size_t at = item->at;
    for (;;) {
        size_t child = 2 * at + 1;
        if (child + 1 < h->count && h->items[child + 1]->wake_us < h->items[child]->wake_us) {
            child++;
        }
        if (child >= h->count || h->items[child]->wake_us >= item->wake_us) {
            break;
        }
        place(h, at, h->items[child]);
        at = child;
    }
    place(h, at, item);
}

void heap_put(struct heap *h, struct heap_item *item, int64_t wake_us)
{
    item->wake_us = wake_us;
    if (item->at == HEAP_NONE) {
        assert(h->count < h->cap);
        place(h, h->count++, item);
    }
    move_up(h, item);
    move_down(h, item);
}

void heap_remove(struct heap *h, struct heap_item *item)
{
    if (item->at == HEAP_NONE) {
        return;
    }
    struct heap_item *last = h->items[--h->count];
    if (last != item) {
        place(h, item->at, last);
        move_up(h, last);
        move_down(h, last);
    }
    item->at = HEAP_NONE;
}
