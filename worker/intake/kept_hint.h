/* SPDX-License-Identifier: Apache-2.0
 *
 * A popped hint that is kept for a while. */
#ifndef CLAIMD_WORKER_INTAKE_KEPT_HINT_H
#define CLAIMD_WORKER_INTAKE_KEPT_HINT_H

#include "hints/hints.h"
#include "model/job.h"

#include <stdio.h>

struct kept_hint {
    int64_t id;
    int64_t score;
    char queue[JOB_NAME_MAX + 1];
    char kind[JOB_NAME_MAX +
              1]; /* kind of the set that it was popped from; "" = the queue's own set */
};

static inline void kept_hint_set(struct kept_hint *k, const struct hint *h)
{
    k->id = h->id;
    k->score = h->score;
    (void)snprintf(k->queue, sizeof k->queue, "%s", h->queue);
    (void)snprintf(k->kind, sizeof k->kind, "%s", h->kind == NULL ? "" : h->kind);
}

/* Returns it as a hint that borrows its names. */
static inline struct hint kept_hint_as_hint(const struct kept_hint *k)
{
    return (struct hint){.id = k->id,
                         .score = k->score,
                         .queue = k->queue,
                         .kind = k->kind[0] == '\0' ? NULL : k->kind};
}

#endif
