/* SPDX-License-Identifier: Apache-2.0
 *
 * Hints of jobs whose lock is held, by another worker or by this one. The holder takes care of the
 * job, so such a hint is dropped; but a run may have ended with its lock not yet released, and its
 * job become due again meanwhile, by its backoff or a retry. So PostgreSQL is asked a moment later
 * which of them wait, and the hints of those go back. */
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
