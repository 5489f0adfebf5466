/* SPDX-License-Identifier: Apache-2.0
 *
 * One request for locks: one lock of one or several keys, or a lock of its own for each key. Each
 * of these locks is a part of the request. take.c has the caller's side, request.c the thread's. */
#ifndef CLAIMD_REDLOCK_REQUEST_H
#define CLAIMD_REDLOCK_REQUEST_H

#include "redlock/client.h"

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
    enum redlock_result result;
    struct redlock_report *reports; /* one for each part; NULL = unwanted */
    size_t part_count;
    struct part *parts;
    size_t key_count;               /* that the nodes are asked for */
    struct redlock_async_key *keys; /* sorted */
    uint16_t *places;               /* with `each`: whose part each of them is */
    char *bytes;                    /* of the keys, if they had to be copied */
};

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

#endif
