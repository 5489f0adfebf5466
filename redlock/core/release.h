/* SPDX-License-Identifier: Apache-2.0
 *
 * Keys that are being released. A release is a group of keys of one or several batches, released in
 * one turn of the loop. It is sent to every node that was ever sent their SETs, and kept until each
 * of these nodes has acknowledged it, or until the keys have ended by their ttl anyway (lock.R4).
 * release.c has its life, release_send.c the requests and replies. */
#ifndef CLAIMD_REDLOCK_CORE_RELEASE_H
#define CLAIMD_REDLOCK_CORE_RELEASE_H

#include "redlock/core/core.h"

struct release_item {
    struct redlock_batch *batch; /* referenced */
    uint16_t index;
    uint16_t counted; /* bit per node whose answer is in the counters */
    uint16_t unclear; /* bit per node without our copy, to be asked for another owner's */
};

struct release_part { /* the context of one node's request */
    struct release *release;
    size_t node;
    bool hands_over; /* by the script for a line, not by a plain release */
    bool has_failed;
    size_t asked_at; /* the item that the next answer is about */
};

struct release {
    struct release *prev;
    struct release *next;
    struct redlock_async *lock;
    uint64_t seq;
    int64_t expires_us;
    int64_t sent_us;
    unsigned asked; /* bit per node that it is for */
    unsigned to_send;
    /* Bit per node that has acknowledged it and is to be sent it once more (lock.R1). */
    unsigned repeated;
    int64_t repeat_us;  /* not before */
    unsigned in_flight; /* bit per node, and RELEASE_TELLING */
    size_t teller;      /* this node tells the one after the head of the line (lock.L7) */
    bool has_tellers;   /* some keys have a callback */
    struct release_part parts[REDLOCK_NODES_MAX];
    size_t count;
    struct release_item items[];
};

#define RELEASE_TELLING (1U << 31)

static inline struct key *release_key(const struct release_item *item)
{
    return &item->batch->keys[item->index];
}

/* release_send.c: false = it can't be sent now. */
bool release_send(struct release *r, size_t node);

/* release.c: the node's part is over, for good or until it is sent again. */
void release_part_over(struct release_part *part, bool is_acknowledged);

#endif
