/* SPDX-License-Identifier: Apache-2.0
 *
 * Hints of jobs that somebody has: their lock is held, or they are in our own hands. Whoever has a
 * job sees to it, so such a hint is dropped; but a run may have ended already, with its lock not
 * yet released, and the job be retried, by its backoff or by somebody, in these milliseconds. So
 * PostgreSQL is asked, a moment later, which of them wait, and the hints of those go back. */
#ifndef CLAIMD_WORKER_HELD_H
#define CLAIMD_WORKER_HELD_H

#include "base/err.h"
#include "worker/kept_hint.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#define HELD_MAX 500

struct worker;

struct held {
    struct kept_hint gathering[HELD_MAX];
    size_t gathered;
    struct kept_hint asked[HELD_MAX];
    size_t asked_count;
    uv_timer_t timer;
};

enum status held_open(struct worker *w, struct err *err) MUST_USE;
void held_close(struct worker *w);

/* Beyond HELD_MAX it is dropped: a full pass finds what waits. */
void held_add(struct worker *w, const struct hint *hint);
bool held_is_idle(const struct worker *w);

#endif
