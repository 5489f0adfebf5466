/* SPDX-License-Identifier: Apache-2.0
 *
 * The jobs that this worker has in its hands, from a popped id to a committed end: one record each,
 * found by id, counted by phase. What they mean is decided elsewhere; nothing here does I/O. */
#ifndef CLAIMD_WORKER_HELD_H
#define CLAIMD_WORKER_HELD_H

#include "model/job.h"

#include <uthash.h>

enum held_phase {
    HELD_LOCKING,  /* popped; its lock is being asked for */
    HELD_CLAIMING, /* lease won; the claim is under way */
    HELD_FETCHING, /* claimed; its large args are on their way */
    HELD_READY,    /* claimed; waits for a runner */
    HELD_RUNNING,
    HELD_FINISHING, /* ended; its finish isn't committed yet */
    HELD_PHASE_COUNT
};

struct slot;
struct kind_meters;
struct redlock_batch;

struct held_job {
    int64_t id;
    enum held_phase phase;
    int64_t since_us; /* it came into its phase */
    int64_t score;    /* of the hint, to put it back */
    char queue[JOB_NAME_MAX + 1];
    char hint_kind[JOB_NAME_MAX + 1]; /* of the set that it came from; "" = the queue's own */

    struct redlock_batch *batch; /* its lease; NULL while a lost one is being taken anew */
    size_t lease_index;
    bool is_relocking;

    int64_t fence;
    char worker_id[JOB_WORKER_ID_SIZE]; /* under which it was claimed */
    int attempt;
    int max_attempts;
    int crashes;
    int max_crashes;
    int64_t timeout_us;
    int64_t attempted_at_unix_us;
    bool at_most_once;
    char kind[JOB_NAME_MAX + 1];
    int64_t kinds_generation; /* of the worker's kinds when this one was last known among them */
    char *args;
    size_t args_len;

    struct kind_meters *meters; /* of its kind, once it is claimed */
    struct slot *slot;
    int64_t asked_us; /* when its lock, then its claim was asked for */
    int64_t claimed_us;
    int64_t started_us;
    int64_t beat_frozen_us; /* > 0: claimed under an earlier worker_id, whose last confirmed beat
                               this was */
    bool was_asked;         /* by us, for its lease or a drain, to come to an end */
    bool was_killed;        /* by us, for its lease or a drain */
    bool was_timed_out;

    struct held_job *next; /* in the queue of ready ones */
    UT_hash_handle hh;
};

struct held_jobs {
    struct held_job *by_id;
    struct held_job *ready_first;
    struct held_job *ready_last;
    size_t count[HELD_PHASE_COUNT];
};

/* NULL when the id is in our hands already or memory is short. */
struct held_job *held_add(struct held_jobs *h, int64_t id);
struct held_job *held_find(const struct held_jobs *h, int64_t id);
void held_remove(struct held_jobs *h,
                 struct held_job *job); /* frees; never one that waits as READY */
void held_set_phase(struct held_jobs *h, struct held_job *job, enum held_phase phase);

/* READY jobs queue up in order; taking one leaves its phase to the caller. NULL when there is
 * none. */
void held_push_ready(struct held_jobs *h, struct held_job *job);
struct held_job *held_take_ready(struct held_jobs *h);

size_t held_total(const struct held_jobs *h);

#endif
