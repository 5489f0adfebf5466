/* SPDX-License-Identifier: Apache-2.0
 *
 * Enforces deadlines: danger, timeout and drain of running handlers (worker/jobs/danger.h), lost
 * leases, and jobs that a runner does not start in time. Its timer is the worker's tick. */
#ifndef CLAIMD_WORKER_JOBS_DEADLINES_H
#define CLAIMD_WORKER_JOBS_DEADLINES_H

#include "base/err.h"
#include "redlock/redlock_async.h"
#include "worker/jobs/danger.h"

struct active_job;
struct jobs;

struct deadlines {
    struct danger_limits limits;
};

void deadlines_open(struct jobs *j);

/* Stops and kills runs that are due, and acquires lost leases again. */
void deadlines_tick(struct jobs *j, int64_t now_us);

/* Called by redlock_async when the state of a lease changes. */
void deadlines_on_lease(struct jobs *j, struct redlock_batch *batch, size_t index, void *user,
                        enum redlock_state state);

struct danger_facts deadlines_facts(const struct jobs *j, const struct active_job *job);

#endif
