/* SPDX-License-Identifier: Apache-2.0
 *
 * The rescuer's memory: dead workers and how far their rescue got, jobs to move, jobs in doubt. It
 * is only a cache, which a walk over the open jobs fills again. Pure; times are BOOTTIME µs. */
#ifndef CLAIMD_SCHEDULER_RESCUE_QUEUE_H
#define CLAIMD_SCHEDULER_RESCUE_QUEUE_H

#include "base/err.h"

#include <stddef.h>
#include <stdint.h>

#define RESCUE_QUEUE_ITEMS_MAX ((size_t)1 << 20)
#define RESCUE_QUEUE_WORKERS_MAX 4096
#define RESCUE_QUEUE_ID_SIZE 37

struct rescue_queue_item {
    int64_t id;
    int64_t fence;
    int64_t worker; /* a hash of its worker_id */
    int64_t at_us;  /* not to be moved before this time */
};

/* A worker is swept when a walk that began after its death has ended and no job is left to move. */
enum rescue_queue_stage { RESCUE_QUEUE_WAITING, RESCUE_QUEUE_WALKING, RESCUE_QUEUE_WALKED };

struct rescue_queue_worker {
    char id[RESCUE_QUEUE_ID_SIZE];
    enum rescue_queue_stage stage;
};

struct rescue_queue {
    struct rescue_queue_item *items;
    size_t item_count;
    size_t item_cap;
    struct rescue_queue_item *doubts; /* at_us: when the doubt arose */
    size_t doubt_count;
    size_t doubt_cap;
    size_t doubt_old; /* the first doubt_old entries are from the walk before */
    struct rescue_queue_worker *workers;
    size_t worker_count;
    size_t worker_cap;
};

void rescue_queue_release(struct rescue_queue *c); /* all zeros is a valid empty queue */

/* Adds a dead worker. True: it was not known. If there is no room, a later poll adds it. */
bool rescue_queue_add_worker(struct rescue_queue *c, const char *id);

/* Begins a walk. A walk finds every job again, so what was known is forgotten first. */
void rescue_queue_walk_begin(struct rescue_queue *c);
void rescue_queue_walk_fail(struct rescue_queue *c);
void rescue_queue_walk_end(struct rescue_queue *c);

/* Adds a job to be moved. A job for which there is no room is found by the next walk. */
void rescue_queue_add(struct rescue_queue *c, const struct rescue_queue_item *item);
/* Adds a job in doubt. It becomes an item if the previous walk found it too, and it has been in
 * doubt for `doubt_us` or longer. */
void rescue_queue_add_doubt(struct rescue_queue *c, const struct rescue_queue_item *found,
                            int64_t now_us, int64_t doubt_us);

/* Removes up to `max` items whose time has come. Returns how many. */
size_t rescue_queue_take(struct rescue_queue *c, int64_t now_us, struct rescue_queue_item *ret,
                         size_t max);
/* Returns the earliest time of any item; INT64_MAX = there is none. */
int64_t rescue_queue_next_us(const struct rescue_queue *c);

/* Removes up to `max` workers that are swept. Call it when no item is left. */
size_t rescue_queue_take_swept(struct rescue_queue *c, struct rescue_queue_worker *ret, size_t max);

#endif
