/* SPDX-License-Identifier: Apache-2.0
 *
 * One request for locks: one lock of one or several keys, or a lock of its own for each key. Each
 * of these locks is a part of the request. take.c has the caller's side, request.c the thread's. */
#ifndef CLAIMD_REDLOCK_CLIENT_REQUEST_H
#define CLAIMD_REDLOCK_CLIENT_REQUEST_H

#include "redlock/client/client.h"

struct part {
    struct request *request;
    struct redlock_lock *lock;
    bool is_decided;
    bool has_entered; /* the lock is one that its owner had already */
    enum redlock_result result;
};

struct request {
    struct call call;     /* first */
    struct request *prev; /* all that are under way */
    struct request *next;
    struct redlock_client *client;
    struct redlock_request asked;
    redlock_done *done; /* NULL = its caller waits */
    void *ctx;
    int64_t begun_us;
    size_t open;               /* what the thread waits for */
    struct redlock_wait *wait; /* NULL before and after */
    struct slot *slots; /* of a semaphore or a reader, one for each key; else NULL (slots.c) */
    size_t slot_first;
    size_t slots_tried;
    size_t slots_open;
    bool has_slot;
    struct redlock_wait *gate_wait; /* NULL before and after (readers.c) */
    struct redlock_batch *gate;     /* that it holds; NULL = it doesn't */
    int tries;
    enum redlock_result result;
    struct redlock_report *reports; /* one for each part; NULL = unwanted */
    size_t part_count;
    struct part *parts;
    size_t key_count;               /* that the nodes are asked for */
    struct redlock_async_key *keys; /* sorted */
    uint16_t *places;               /* with `each`: whose part each of them is */
    char *bytes;                    /* of the keys, if they are not the caller's */
};

/* One of the keys of a request for any of several (slots.c). */
struct slot {
    struct request *request;
    struct redlock_wait *wait; /* NULL before and after */
};

struct redlock_key request_key(const struct redlock_request *q, size_t index);

/* Decides the part; `why` follows the result's text in its report. */
void part_fail(struct part *p, enum redlock_result result, const char *why);
/* Does the owner have its keys already? True: that decides the part. */
bool part_enter(struct part *p, const struct redlock_async_key *keys, size_t count);
bool part_lacks_fence(const struct part *p);

void request_fail_undecided(struct request *r, enum redlock_result result, const char *why);
void request_deliver(struct redlock_client *c, struct mail *mail); /* on the thread */
/* Fills what is known at the end, publishes locks, and recycles the handles that nobody gets. */
void request_conclude(struct request *r);
/* What redlock_start() has made: calls `done` soon, and frees it then. */
void request_tell_soon(struct request *r);
void request_free(struct request *r);

/* ---- request.c, for slots.c ---- */
/* What the core is asked for, without its callback. */
struct redlock_async_request request_asks(const struct request *r);
struct redlock_wait_options request_waits(int64_t deadline_us, redlock_async_waited_cb *done,
                                          void *ctx);
int64_t request_deadline_us(const struct request *r); /* 0 = it doesn't wait */
bool request_is_cancelled(const struct request *r);
/* The core has refused to ask, with a negative errno: decides the parts that are not decided. */
void request_refused(struct request *r, int code, const char *why);
void part_decide(struct part *p, enum redlock_result result);
void part_got(struct part *p);           /* its lock is bound: it is won, once it has its fence */
void request_end_one(struct request *r); /* of those that `open` counts */

/* ---- slots.c ---- */
/* Names the slots, which are the request's keys; of readers and writers also the gate, which is
 * the key after the last one, to a writer one of the keys. False: no memory. */
bool slots_name(struct request *r);
bool slots_enter(struct request *r); /* part_enter() for any of them */
/* On the thread. True: it will end with request_end_one(). Else it is decided. */
bool slots_ask(struct request *r);
void slots_cancel(struct request *r);

/* ---- readers.c ---- */
bool readers_ask(struct request *r); /* as slots_ask() */
void readers_cancel(struct request *r);
void readers_leave_gate(struct request *r); /* if it has it */

#endif
