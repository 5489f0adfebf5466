/* SPDX-License-Identifier: Apache-2.0 */
#include "redis/requests.h"

void requests_reset(struct requests *q)
{
    *q = (struct requests){.pool = q->pool};
}

void requests_release(struct requests *q)
{
    pool_release(&q->pool);
}

struct request *request_new(struct requests *q, size_t tail_len)
{
    return pool_take_unset(&q->pool, sizeof(struct request) + tail_len);
}

void request_drop(struct requests *q, struct request *r)
{
    pool_give(&q->pool, r);
}

void requests_push(struct requests *q, struct request *r)
{
    r->deadline_us = INT64_MAX;
    request_queue_push(&q->queue, r);
    q->first_unsent = q->first_unsent != NULL ? q->first_unsent : r;
    q->bytes += r->len;
}

struct request *requests_pop(struct requests *q)
{
    struct request *r = request_queue_pop(&q->queue);
    if (q->first_unsent == r) {
        q->first_unsent = q->queue.first;
    }
    q->bytes -= r->len;
    return r;
}

int64_t requests_written(struct requests *q, int64_t now_us)
{
    int64_t earliest_us = INT64_MAX;
    for (struct request *r = TAKE(q->first_unsent); r != NULL; r = r->next) {
        r->deadline_us = now_us + r->timeout_us;
        earliest_us = r->deadline_us < earliest_us ? r->deadline_us : earliest_us;
    }
    return earliest_us;
}

int64_t requests_earliest_us(const struct requests *q)
{
    int64_t earliest_us = INT64_MAX;
    for (const struct request *r = q->queue.first; r != NULL; r = r->next) {
        earliest_us = r->deadline_us < earliest_us ? r->deadline_us : earliest_us;
    }
    return earliest_us;
}

void request_end(struct requests *q, struct request *r, enum status st)
{
    if (r->on_done != NULL) {
        r->on_done(r->ctx, st);
    }
    pool_give(&q->pool, r);
}

void requests_end_all(struct requests *q, int64_t now_us)
{
    struct request_queue all = q->queue;
    requests_reset(q);
    for (struct request *r = request_queue_pop(&all); r != NULL; r = request_queue_pop(&all)) {
        request_end(q, r, r->deadline_us <= now_us ? STATUS_TIMEOUT : STATUS_UNAVAILABLE);
    }
}
