/* SPDX-License-Identifier: Apache-2.0
 *
 * The rescuer's memory: dead workers and how far their rescue got, jobs to move, jobs in doubt.
 * Only a cache: a walk over the open jobs makes it anew. Pure; BOOTTIME µs. */
#ifndef CLAIMD_SCHEDULER_CASELOAD_H
#define CLAIMD_SCHEDULER_CASELOAD_H

#include "base/err.h"

#include <stddef.h>
#include <stdint.h>

#define CASELOAD_ITEMS_MAX ((size_t)1 << 20)
#define CASELOAD_WORKERS_MAX 4096
#define CASELOAD_ID_SIZE 37

struct caseload_item {
    int64_t id;
    int64_t fence;
    int64_t worker; /* a hash of its worker_id */
    int64_t at_us;  /* not before */
};

/* Swept when a walk that began after its death has ended and nothing is left to move. */
enum caseload_stage { CASELOAD_WAITING, CASELOAD_WALKING, CASELOAD_WALKED };

struct caseload_worker {
    char id[CASELOAD_ID_SIZE];
    enum caseload_stage stage;
};

struct caseload {
    struct caseload_item *items;
    size_t item_count;
    size_t item_cap;
    struct caseload_item *doubts; /* at_us: in doubt since */
    size_t doubt_count;
    size_t doubt_cap;
    size_t doubt_old; /* the first so many are of the walk before */
    struct caseload_worker *workers;
    size_t worker_count;
    size_t worker_cap;
};

void caseload_release(struct caseload *c); /* zero is a valid empty one */

/* True: it was not known. Beyond the bound it is left for later. */
bool caseload_add_worker(struct caseload *c, const char *id);

/* A walk finds everything again, so what was known is forgotten first. */
void caseload_walk_begin(struct caseload *c);
void caseload_walk_fail(struct caseload *c);
void caseload_walk_end(struct caseload *c);

/* Found: to be moved. What does not fit is found by the next walk. */
void caseload_add(struct caseload *c, const struct caseload_item *item);
/* Found in doubt: becomes an item when the walk before had it too, `doubt_us` ago or longer. */
void caseload_add_doubt(struct caseload *c, const struct caseload_item *found, int64_t now_us,
                        int64_t doubt_us);

/* Takes out up to `max` items whose time has come. */
size_t caseload_take(struct caseload *c, int64_t now_us, struct caseload_item *ret, size_t max);
/* When the next one's time comes; INT64_MAX = there is none. */
int64_t caseload_next_us(const struct caseload *c);

/* Takes out up to `max` workers that are swept: call it when no item is left. */
size_t caseload_take_swept(struct caseload *c, struct caseload_worker *ret, size_t max);

#endif
