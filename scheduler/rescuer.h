/* SPDX-License-Identifier: Apache-2.0
 *
 * Moves the jobs of dead workers once both witnesses agree (ARCHITECTURE §6): the worker's row says
 * dead, and the job's Redlock was won. It finds the jobs by walking over the open ones in pages;
 * jobs whose lease still stands are tried again until it has expired. A walk every full_pass_us
 * also finds jobs that run under a live worker that does not know of them. */
#ifndef CLAIMD_SCHEDULER_RESCUER_H
#define CLAIMD_SCHEDULER_RESCUER_H

#include "redlock/redlock_async.h"
#include "scheduler/feeder.h"
#include "scheduler/services.h"
#include "store/rescue_store.h"

struct rescuer;

struct rescuer_options {
    uv_loop_t *loop;
    struct pg *pg;              /* borrowed, like the next three */
    struct redlock_async *lock; /* for the jobs' locks, with the workers' ttl */
    struct hints *hints;
    struct feeder *feeder; /* knows which set a hint belongs to */
    const char *prefix;
    int64_t retry_us;      /* jobs whose lease still stands are tried again after this */
    int64_t held_after_us; /* a job that has run for this long must be in its worker's heartbeat */
    int64_t doubt_us; /* … or, if it is missing in two walks at least this far apart, it is moved */
};

enum status rescuer_open(const struct rescuer_options *options, struct rescuer **ret,
                         struct err *err) MUST_USE;
void rescuer_close(struct rescuer *r); /* accepts NULL; no reply may arrive afterwards */

/* Marks workers whose heartbeats are stale as dead, and moves the jobs of dead workers, while this
 * scheduler leads. When that ends, waiting jobs are forgotten, and requests in flight complete
 * under the protection of the fence. */
extern const struct service rescuer_service;

struct rescuer_counters {
    uint64_t moved[RESCUE_LOST + 1]; /* by enum rescue_outcome */
    uint64_t workers_dead;
};
const struct rescuer_counters *rescuer_counters(const struct rescuer *r);

#endif
