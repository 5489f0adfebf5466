/* SPDX-License-Identifier: Apache-2.0 */
#include "redlock/heap.h"

#include "redlock/core.h"

#include <assert.h>

#define HEAP_CAP_MIN 64

void heap_release(struct heap *h)
{
    free(h->items);
    *h = (struct heap){0};
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
    struct redlock_batch **items = realloc(h->items, cap * sizeof(struct redlock_batch *));
    if (items == NULL) {
        return err_fail(err, STATUS_NOMEM, "redlock: no memory for %zu batches", cap);
    }
    h->items = items;
    h->cap = cap;
    return STATUS_OK;
}

struct redlock_batch *heap_top(const struct heap *h)
{
    return h->count > 0 ? h->items[0] : NULL;
}

static void place(struct heap *h, size_t at, struct redlock_batch *b)
{
    h->items[at] = b;
    b->heap_at = at;
}

static void move_up(struct heap *h, struct redlock_batch *b)
{
    size_t at = b->heap_at;
    while (at > 0 && h->items[(at - 1) / 2]->wake_us > b->wake_us) {
        place(h, at, h->items[(at - 1) / 2]);
        at = (at - 1) / 2;
    }
    place(h, at, b);
}

static void move_down(struct heap *h, struct redlock_batch *b)
{
    size_t at = b->heap_at;
    for (;;) {
        size_t child = 2 * at + 1;
        if (child + 1 < h->count && h->items[child + 1]->wake_us < h->items[child]->wake_us) {
            child++;
        }
        if (child >= h->count || h->items[child]->wake_us >= b->wake_us) {
            break;
        }
        place(h, at, h->items[child]);
        at = child;
    }
    place(h, at, b);
}

void heap_put(struct heap *h, struct redlock_batch *b)
{
    if (b->heap_at == HEAP_NONE) {
        assert(h->count < h->cap);
        place(h, h->count++, b);
    }
    move_up(h, b);
    move_down(h, b);
}

void heap_remove(struct heap *h, struct redlock_batch *b)
{
    if (b->heap_at == HEAP_NONE) {
        return;
    }
    struct redlock_batch *last = h->items[--h->count];
    if (last != b) {
        place(h, b->heap_at, last);
        move_up(h, last);
        move_down(h, last);
    }
    b->heap_at = HEAP_NONE;
}
