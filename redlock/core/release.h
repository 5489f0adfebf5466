/* SPDX-License-Identifier: Apache-2.0
 *
 * Keys that are being released. A release is a group of keys of one or several batches, released in
 * one turn of the loop. It is sent to every node to which the keys' SETs were ever sent, and kept
 * until each of these nodes has acknowledged it, or until the keys have ended by their ttl anyway
 * (lock.R4). release.c manages releases, release_send.c the requests and replies. */
#ifndef CLAIMD_REDLOCK_CORE_RELEASE_H
#define CLAIMD_REDLOCK_CORE_RELEASE_H

#include "redlock/core/core.h"

struct release_item {
    struct redlock_batch *batch; /* holds a reference */
    uint16_t index;
    uint16_t counted; /* bit per node whose answer was counted */
    /* bit per node without our value, to be asked whether another owner has the key */
    uint16_t unclear;
};

struct release_part { /* the context of one node's request */
    struct release *release;
    size_t node;
    bool hands_over; /* uses the script for a line, not a plain release */
    bool has_failed;
    size_t asked_at; /* the item that the next reply is about */
};

struct release {
    struct release *prev;
    struct release *next;
    struct redlock_async *lock;
    uint64_t seq;
    int64_t expires_us;
    int64_t sent_us;
    unsigned asked; /* bit per node to which it must be sent */
    unsigned to_send;
    unsigned unanswered; /* bit per node that may have carried out an earlier try */
    /* Bit per node that has acknowledged it and gets it once more (lock.R1). */
    unsigned repeated;
    int64_t repeat_us;  /* earliest time of that repetition */
    unsigned in_flight; /* bit per node; also RELEASE_TELLING */
    size_t teller;      /* this node notifies the waiter after the head of the line (lock.L7) */
    bool has_tellers;   /* some of its keys have a callback */
    struct release_part parts[REDLOCK_NODES_MAX];
    size_t count;
    struct release_item items[];
};

#define RELEASE_TELLING (1U << 31)

static inline struct key *release_key(const struct release_item *item)
{
    return &item->batch->keys[item->index];
}

/* In release_send.c: false = it can't be sent now. */
bool release_send(struct release *r, size_t node);

/* In release.c: ends the node's part, for good or until it is sent again. */
void release_part_over(struct release_part *part, bool is_acknowledged);

#endif
