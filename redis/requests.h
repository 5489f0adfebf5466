/* SPDX-License-Identifier: Apache-2.0
 *
 * Requests in flight on one connection, in the order of their replies. Deadlines count from the
 * write on: our own delay before it is not the server's fault. No I/O. */
#ifndef CLAIMD_REDIS_REQUESTS_H
#define CLAIMD_REDIS_REQUESTS_H

#include "base/fifo.h"
#include "base/pool.h"
#include "redis/redis.h"

struct request {
    struct request *next;
    int64_t timeout_us;
    int64_t deadline_us; /* INT64_MAX until written */
    size_t reply_count;
    size_t replies_seen;
    size_t len; /* counts against REDIS_IN_FLIGHT_BYTES_MAX */
    redis_reply_cb *on_reply;
    redis_done_cb *on_done;
    void *ctx;
    const struct redis_script *script; /* sent whole after NOSCRIPT; NULL = none, or already done */
    size_t word_count;
    size_t tail_len;
    char tail[]; /* of a script call: RESP from the number of keys on */
};

DEFINE_FIFO(request_queue, request);

struct requests {
    struct request_queue queue;
    struct request *first_unsent; /* waits for the end of the turn; NULL = none */
    size_t bytes;
    struct pool pool;
};

void requests_reset(struct requests *q);   /* empties it, keeps its memory */
void requests_release(struct requests *q); /* frees its memory; the queue must be empty */
/* Returns a request with room for a tail, not filled in; NULL if memory runs out. */
struct request *request_new(struct requests *q, size_t tail_len);
/* frees a request that was never pushed */
void request_drop(struct requests *q, struct request *r);
void requests_push(struct requests *q, struct request *r);
struct request *requests_pop(struct requests *q); /* the queue must not be empty */

/* Starts the deadlines of requests that are written now. Returns the earliest of them, INT64_MAX =
 * none. */
int64_t requests_written(struct requests *q, int64_t now_us);
int64_t requests_earliest_us(const struct requests *q);

void request_end(struct requests *q, struct request *r, enum status st);
/* Empties the queue, then ends each request: TIMEOUT for those past their deadline, UNAVAILABLE for
 * the others. */
void requests_end_all(struct requests *q, int64_t now_us);

#endif
