/* SPDX-License-Identifier: Apache-2.0
 *
 * Waiters of one client for the same keys: one of them tries for all. */
#include "base/hash.h"
#include "redlock/core/wait.h"

static size_t bucket_of(const struct redlock_async_request *r)
{
    return hash_bytes(r->keys[0].bytes, r->keys[0].len) % QUEUE_BUCKETS;
}

static bool is_same(const struct redlock_async_request *a, const struct redlock_async_request *b)
{
    if (a->count != b->count) {
        return false;
    }
    for (size_t i = 0; i < a->count; i++) {
        if (a->keys[i].len != b->keys[i].len ||
            memcmp(a->keys[i].bytes, b->keys[i].bytes, a->keys[i].len) != 0) {
            return false;
        }
    }
    return true;
}

bool queue_join(struct redlock_wait *w)
{
    struct waits *waits = w->lock->waits;
    size_t bucket = bucket_of(&w->request);
    struct wait_queue *queue = waits->queues[bucket];
    while (queue != NULL && !is_same(&queue->first->request, &w->request)) {
        queue = queue->next;
    }
    if (queue == NULL) {
        queue = pool_take(&w->lock->pool, sizeof *queue);
        if (queue == NULL) {
            return false;
        }
        *queue = (struct wait_queue){
            .next = waits->queues[bucket], .bucket = bucket, .result = REDLOCK_HELD};
        waits->queues[bucket] = queue;
    }
    w->queue = queue;
    w->prev_in_queue = queue->last;
    *(queue->last != NULL ? &queue->last->next_in_queue : &queue->first) = w;
    queue->last = w;
    return true;
}

static void queue_free(struct redlock_async *lock, struct wait_queue *queue)
{
    struct wait_queue **link = &lock->waits->queues[queue->bucket];
    while (*link != queue) {
        link = &(*link)->next;
    }
    *link = queue->next;
    pool_give(&lock->pool, queue);
}

void queue_leave(struct redlock_wait *w)
{
    struct wait_queue *queue = TAKE(w->queue);
    if (queue == NULL) {
        return;
    }
    bool was_first = queue->first == w;
    *(w->prev_in_queue != NULL ? &w->prev_in_queue->next_in_queue : &queue->first) =
        w->next_in_queue;
    *(w->next_in_queue != NULL ? &w->next_in_queue->prev_in_queue : &queue->last) =
        w->prev_in_queue;
    if (queue->first == NULL) {
        queue_free(w->lock, queue);
    } else if (was_first) {
        wait_be_due(queue->first);
    }
}
