/* SPDX-License-Identifier: Apache-2.0
 *
 * Moves what dead workers were running, once both witnesses agree (ARCHITECTURE §6): the row of the
 * worker says dead, and the job's Redlock could be won. The jobs are found by walking the open ones
 * in pages; those whose lease still stands are tried again until it has run out. The same walk, at
 * longer distance, finds jobs that run under a live worker that does not know of them. */
#ifndef CLAIMD_SCHEDULER_RESCUER_H
#define CLAIMD_SCHEDULER_RESCUER_H

#include "redlock/redlock_async.h"
#include "scheduler/feeder.h"
#include "scheduler/services.h"
#include "store/rescue_store.h"

struct rescuer;

struct rescuer_options {
    uv_loop_t *loop;
    struct pg *pg;              /* borrowed, as the next three */
    struct redlock_async *lock; /* of the jobs, with the workers' ttl */
    struct hints *hints;
    struct feeder *feeder; /* knows where hints go */
    const char *prefix;
    int64_t retry_us;      /* leases that stand are tried again after this */
    int64_t held_after_us; /* a job that runs for so long must be in its worker's beat */
    int64_t doubt_us;      /* … and be missing in two walks so far apart */
};

enum status rescuer_open(const struct rescuer_options *options, struct rescuer **ret,
                         struct err *err) MUST_USE;
void rescuer_close(struct rescuer *r); /* accepts NULL; replies under way must not come any more */

/* Leads: marks workers dead whose beats are stale, and moves the jobs of those that are. What waits
 * when it ends is forgotten, what is under way ends fenced. */
extern const struct service rescuer_service;

struct rescuer_counters {
    uint64_t moved[RESCUE_LOST + 1]; /* by enum rescue_outcome */
    uint64_t workers_dead;
};
const struct rescuer_counters *rescuer_counters(const struct rescuer *r);

#endif
