/* SPDX-License-Identifier: Apache-2.0
 *
 * Hints of jobs that somebody has: their lock is held, or they are in our own hands. Whoever has a
 * job sees to it, so such a hint is dropped; but a run may have ended already, with its lock not
 * yet released, and the job be retried, by its backoff or by somebody, in these milliseconds. So
 * PostgreSQL is asked, a moment later, which of them wait, and the hints of those go back. */
#ifndef CLAIMD_WORKER_TAKEN_HINTS_H
#define CLAIMD_WORKER_TAKEN_HINTS_H

#include "base/err.h"
#include "worker/kept_hint.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#define TAKEN_HINTS_MAX 500

struct worker;

struct taken_hints {
    struct kept_hint gathering[TAKEN_HINTS_MAX];
    size_t gathered;
    struct kept_hint asked[TAKEN_HINTS_MAX];
    size_t asked_count;
    uv_timer_t timer;
};

enum status taken_hints_open(struct worker *w, struct err *err) MUST_USE;
void taken_hints_close(struct worker *w);

/* Beyond TAKEN_HINTS_MAX it is dropped: a full pass finds what waits. */
void taken_hints_add(struct worker *w, const struct hint *hint);
bool taken_hints_is_idle(const struct worker *w);

#endif
