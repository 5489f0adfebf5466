/* SPDX-License-Identifier: Apache-2.0
 *
 * Enforces deadlines: danger, timeout and drain of running handlers (worker/jobs/danger.h), lost
 * leases, and jobs that a runner does not start in time. Its timer is the worker's tick. */
#ifndef CLAIMD_WORKER_JOBS_DEADLINES_H
#define CLAIMD_WORKER_JOBS_DEADLINES_H

#include "base/err.h"
#include "redlock/redlock_async.h"
#include "worker/jobs/danger.h"

#include <uv.h>

struct job_in_hand;
struct worker;

struct deadlines {
    uv_timer_t timer; /* the tick */
    struct danger_limits limits;
};

enum status deadlines_start(struct worker *w, struct err *err) MUST_USE;
void deadlines_stop(struct worker *w);

/* Called by redlock_async when the state of a lease changes. */
void deadlines_on_lease(void *worker, struct redlock_batch *batch, size_t index, void *user,
                        enum redlock_state state);

struct danger_facts deadlines_facts(const struct worker *w, const struct job_in_hand *job);

#endif
