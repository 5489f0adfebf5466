/* SPDX-License-Identifier: Apache-2.0
 *
 * One request for locks: either one lock of one or several keys, or a separate lock for each key.
 * Each of these locks is a part of the request. take.c is the caller's side, request.c the
 * thread's. */
#ifndef CLAIMD_REDLOCK_CLIENT_REQUEST_H
#define CLAIMD_REDLOCK_CLIENT_REQUEST_H

#include "redlock/client/client.h"

struct part {
    struct request *request;
    struct redlock_lock *lock;
    bool is_decided;
    bool has_entered; /* its owner already held the lock */
    enum redlock_result result;
};

struct request {
    struct call call;     /* first member */
    struct request *prev; /* list of all requests in progress */
    struct request *next;
    struct redlock_client *client;
    struct redlock_request asked;
    redlock_done *done; /* NULL = the caller waits */
    void *ctx;
    int64_t begun_us;
    size_t open;               /* number of operations that must end before the request ends */
    struct redlock_wait *wait; /* NULL when not waiting */
    struct slot *slots; /* for a semaphore or a reader: one per key; otherwise NULL (slots.c) */
    size_t slot_first;
    size_t slots_tried;
    size_t slots_open;
    bool has_slot;
    struct redlock_wait *gate_wait; /* NULL when not waiting (readers.c) */
    struct redlock_batch *gate;     /* the gate that it holds; NULL = none */
    int tries;
    enum redlock_result result;
    struct redlock_report *reports; /* one per part; NULL = not wanted */
    size_t part_count;
    struct part *parts;
    size_t key_count;               /* keys to ask the nodes for */
    struct redlock_async_key *keys; /* sorted */
    uint16_t *places;               /* with `each`: the index of each key's part */
    char *bytes;                    /* of the keys, if they are not borrowed from the caller */
};

/* One key of a request that needs any one of several (slots.c). */
struct slot {
    struct request *request;
    struct redlock_wait *wait; /* NULL when not waiting */
};

struct redlock_key request_key(const struct redlock_request *q, size_t index);

/* Decides the part as failed; `why` follows the result's text in its report. */
void part_fail(struct part *p, enum redlock_result result, const char *why);
/* Enters the lock if the part's owner already holds its keys. Returns true if that decides the
 * part. */
bool part_enter(struct part *p, const struct redlock_async_key *keys, size_t count);
bool part_lacks_fence(const struct part *p);

void request_fail_undecided(struct request *r, enum redlock_result result, const char *why);
void request_deliver(struct redlock_client *c, struct mail *mail); /* called on the thread */
/* Fills in the results, publishes the locks, and recycles handles that were not won. */
void request_conclude(struct request *r);
/* Queues the callback `done` of a request made by redlock_start(), which is freed afterwards. */
void request_tell_soon(struct request *r);
void request_free(struct request *r);

/* ---- request.c, for slots.c ---- */
/* Returns the core's request, without its callback. */
struct redlock_async_request request_asks(const struct request *r);
struct redlock_wait_options request_waits(int64_t deadline_us, redlock_async_waited_cb *done,
                                          void *ctx);
int64_t request_deadline_us(const struct request *r); /* 0 = a single try */
bool request_is_cancelled(const struct request *r);
/* Decides the undecided parts: the core refused the request with a negative errno. */
void request_refused(struct request *r, int code, const char *why);
void part_decide(struct part *p, enum redlock_result result);
/* call it when its lock is bound: it is won, once it has its fence */
void part_got(struct part *p);
void request_end_one(struct request *r); /* ends one of the operations that `open` counts */

/* ---- slots.c ---- */
/* Names the slots, which become the request's keys. Readers and writers also get the gate: for a
 * reader it is stored after the last key, for a writer it is one of the keys. Returns false if
 * memory runs out. */
bool slots_name(struct request *r);
bool slots_enter(struct request *r); /* part_enter() for any of the slots */
/* Asks for a slot; call it on the thread. True: the request will end with request_end_one(). False:
 * it is decided. */
bool slots_ask(struct request *r);
void slots_cancel(struct request *r);

/* ---- readers.c ---- */
bool readers_ask(struct request *r); /* like slots_ask() */
void readers_cancel(struct request *r);
void readers_leave_gate(struct request *r); /* does nothing if it does not hold the gate */

#endif
