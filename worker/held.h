/* SPDX-License-Identifier: Apache-2.0
 *
 * Hints of jobs that somebody has: their lock is held, or they are in our own hands. Whoever has a
 * job sees to it, so such a hint is dropped; but a run may have ended already, with its lock not
 * yet released, and the job be retried, by its backoff or by somebody, in these milliseconds. So
 * PostgreSQL is asked, a moment later, which of them wait, and the hints of those go back. */
#ifndef CLAIMD_WORKER_HELD_H
#define CLAIMD_WORKER_HELD_H

#include "base/err.h"
#include "model/job.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#define HELD_MAX 500

struct worker;

struct held_hint {
    int64_t id;
    int64_t score;
    char queue[JOB_NAME_MAX + 1];
    char kind[JOB_NAME_MAX + 1]; /* of the set that it came from; "" = the queue's own */
};

struct held {
    struct held_hint gathering[HELD_MAX];
    size_t gathered;
    struct held_hint asked[HELD_MAX];
    size_t asked_count;
    uv_timer_t timer;
};

enum status held_open(struct worker *w, struct err *err) MUST_USE;
void held_close(struct worker *w);

/* Beyond HELD_MAX it is dropped: a full pass finds what waits. `kind` may be NULL. */
void held_add(struct worker *w, int64_t id, int64_t score, const char *queue, const char *kind);
bool held_is_idle(const struct worker *w);

#endif
