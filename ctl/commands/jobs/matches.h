/* SPDX-License-Identifier: Apache-2.0
 *
 * The jobs that a filter chose, by id and queue, and which queues were found to be full. */
#ifndef CLAIMD_CTL_MATCHES_H
#define CLAIMD_CTL_MATCHES_H

#include "base/buf.h"

#include <stdbool.h>

#define MATCHES_MAX 10000000
#define MATCH_QUEUES_MAX 1000 /* tracked queues; jobs of further queues are always tried */

struct matches {
    struct buf ids;    /* int64_t, in the order in which they were added: the newest first */
    struct buf places; /* per job, the index of its queue in `queues`, or MATCH_QUEUES_MAX */
    struct buf queues; /* struct match_queue */
    size_t last;       /* the index that was looked up last */
};

struct match_queue {
    char name[64 + 1];
    struct err full; /* why it is full; OK: it is not */
};

void matches_init(struct matches *m);
void matches_release(struct matches *m);

int64_t matches_count(const struct matches *m);
enum status matches_add(struct matches *m, int64_t id, const char *queue, struct err *err) MUST_USE;

/* Counts the index from the oldest job. */
int64_t matches_id(const struct matches *m, int64_t index);
/* Returns why there is no room for this job; NULL: its queue was not found full. */
const struct err *matches_full(const struct matches *m, int64_t index);
void matches_note_full(struct matches *m, int64_t index, const struct err *why);

#endif
