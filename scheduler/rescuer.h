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
    int64_t walk_every_us; /* whoever is dead */
};

enum status rescuer_open(const struct rescuer_options *options, struct rescuer **ret,
                         struct err *err) MUST_USE;
void rescuer_close(struct rescuer *r); /* accepts NULL; replies under way must not come any more */

/* Leading begins; until then, and after rescuer_stop(), nothing new is begun. */
void rescuer_start(struct rescuer *r);

/* Each second while this scheduler leads: marks workers dead whose beats are stale, and rescues the
 * jobs of those that are. */
void rescuer_tick(struct rescuer *r, const struct roll *roll);

/* Takes effect at the next tick. */
void rescuer_set_walk(struct rescuer *r, int64_t walk_every_us);

struct rescuer_counters {
    uint64_t moved[RESCUE_LOST + 1]; /* by enum rescue_outcome */
    uint64_t workers_dead;
};
const struct rescuer_counters *rescuer_counters(const struct rescuer *r);

/* No longer the leader: what waits is forgotten, what is under way ends fenced. */
void rescuer_stop(struct rescuer *r);

#endif
