/* SPDX-License-Identifier: Apache-2.0
 *
 * Hints of jobs whose lock is held, by another worker or by this one. The holder takes care of the
 * job, so such a hint is dropped. But the run may have ended before its lock was released, and its
 * job may be due again, after its backoff or a retry. So a moment later PostgreSQL is asked which
 * of the jobs wait, and their hints are put back. */
#ifndef CLAIMD_WORKER_INTAKE_HELD_HINTS_H
#define CLAIMD_WORKER_INTAKE_HELD_HINTS_H

#include "base/err.h"
#include "worker/intake/kept_hint.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#define HELD_HINTS_MAX 500

struct intake;

struct held_hints {
    struct kept_hint gathering[HELD_HINTS_MAX];
    size_t gathered;
    struct kept_hint asked[HELD_HINTS_MAX];
    size_t asked_count;
    uv_timer_t timer;
};

enum status held_hints_open(struct intake *in, struct err *err) MUST_USE;
void held_hints_close(struct intake *in);

/* Drops the hint if there are HELD_HINTS_MAX already: a full pass finds jobs that wait. */
void held_hints_add(struct intake *in, const struct hint *hint);
bool held_hints_is_idle(const struct intake *in);

#endif
