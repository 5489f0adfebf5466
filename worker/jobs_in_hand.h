/* SPDX-License-Identifier: Apache-2.0
 *
 * The jobs that this worker has in its hands, from a popped id to a committed end: one record each,
 * found by id, counted by phase. What they mean is decided elsewhere; nothing here does I/O. */
#ifndef CLAIMD_WORKER_JOBS_IN_HAND_H
#define CLAIMD_WORKER_JOBS_IN_HAND_H

#include "model/job.h"
#include "store/jobs/job_store.h"

#include <uthash.h>

/* What is counted and shown of a job's way through the worker. */
enum in_hand_phase {
    IN_HAND_LOCKING,   /* popped; its lock is being asked for, and perhaps its claim */
    IN_HAND_CLAIMING,  /* the claim is under way, and the lock has its verdict */
    IN_HAND_FETCHING,  /* claimed; its large args are on their way */
    IN_HAND_READY,     /* claimed; waits for a runner */
    IN_HAND_RUNNING,   /* a runner has it */
    IN_HAND_FINISHING, /* ended; its finish isn't committed yet */
    IN_HAND_PHASE_COUNT
};

/* The way itself; jobs_in_hand.c has the table of which event leads where. */
enum in_hand_state {
    HAND_NONE, /* of the table alone */
    HAND_LOCKING,
    HAND_ASKING_BOTH,   /* its lock and its claim at once (docs/decisions/0020) */
    HAND_CLAIMED_EARLY, /* it is claimed, and the lock's verdict is awaited */
    HAND_UNFIT_EARLY,   /* the same, but it can't be run here */
    HAND_REFUSED_EARLY, /* it was not claimed, and the lock's verdict is awaited */
    HAND_CLAIMING,
    HAND_CLAIMED,
    HAND_REFUSED,
    HAND_FETCHING,
    HAND_READY,
    HAND_SENT,  /* a runner has it, and may have others before it */
    HAND_BEGUN, /* no other is before it */
    HAND_FINISHING
};

enum in_hand_event {
    ON_ASKED_BESIDE, /* its claim was asked for beside its lock */
    ON_VERDICT,      /* of its lock, won or not */
    ON_CLAIMED,
    ON_CLAIMED_UNFIT, /* for want of memory, or since an edit had moved it elsewhere */
    ON_REFUSED,       /* its claim */
    ON_ARGS_ASKED,
    ON_READY, /* it has all that it needs; or its runner gave it back */
    ON_SENT,
    ON_BEGUN,
    ON_END, /* whatever it was doing: from here on its finish is awaited */
    IN_HAND_EVENT_COUNT
};

/* What is to be done then. */
enum in_hand_action {
    DO_NOTHING,
    DO_CLAIM, /* if its lock was won; else let it go */
    DO_GO_ON, /* to its args, or a runner */
    DO_HAND_BACK,
    DO_LET_GO
};

/* Where its hint goes if the job is not run here. */
enum hint_goes {
    HINT_BACK,   /* to the set that it came from */
    HINT_KEPT,   /* somebody else has its lock: for a while nowhere (worker/taken_hints.h) */
    HINT_TO_KIND /* to the set of its kind, at once: another worker may have a runner for it */
};

struct slot;
struct kind_metrics;
struct run_length;
struct redlock_batch;
struct relock;

struct job_in_hand {
    int64_t id;
    enum in_hand_state state;
    int64_t since_us; /* it came into its phase */
    int64_t score;    /* of the hint, to put it back */
    char queue[JOB_NAME_MAX + 1];
    char hint_kind[JOB_NAME_MAX + 1]; /* of the set that it came from; "" = the queue's own */
    enum hint_goes hint_goes;
    bool is_placed; /* not claimed ahead: there is a runner for it alone */

    struct redlock_batch *batch; /* its lease; NULL while a lost one is being taken anew */
    size_t lease_index;
    const struct relock *relock; /* the request that takes a lost one anew; NULL = none */

    enum claim_refusal refused; /* of REFUSED_EARLY */
    int64_t fence;
    char worker_id[JOB_WORKER_ID_SIZE]; /* under which it was claimed */
    int attempt;
    int crashes;
    int flags;       /* job.flags */
    int64_t key_row; /* as in claimed_job, and the next two */
    int64_t second_row;
    int64_t place;
    struct kind_settings settings; /* its own where it has some */
    int64_t attempted_at_unix_us;
    char kind[JOB_NAME_MAX + 1];
    int64_t kinds_generation; /* of the worker's kinds when this one was last known among them */
    char *args;
    size_t args_len;
    int generation;
    int64_t created_at_unix_us;
    char *tags; /* NULL: none; as the next three */
    char *metadata;
    char *checkpoint;   /* of an earlier attempt */
    char *predecessors; /* the jobs that it has waited for */

    /* What it has said of itself (worker/live.h). */
    uint32_t progress_count;
    uint32_t checkpoint_count;
    int64_t said_us;        /* when that was last sent to PostgreSQL; 0 = never */
    bool is_checkpoint_bad; /* PostgreSQL takes none of it */

    struct kind_metrics *metrics; /* of its kind, once it is claimed */
    struct run_length *length;    /* the same; NULL: it can't be known */
    struct slot *slot;
    int64_t nonce; /* of its run in that slot */
    int64_t popped_us;
    int64_t asked_us; /* when its lock, then its claim was asked for */
    int64_t claimed_us;
    int64_t started_us;
    /* > 0: claimed under an earlier worker_id, whose last confirmed beat this was. */
    int64_t beat_frozen_us;
    int64_t cancel_us; /* > 0: when we heard that its cancel was asked for */
    unsigned stops;    /* enum run_stop */

    struct job_in_hand *prev; /* among the ready ones */
    struct job_in_hand *next;
    UT_hash_handle hh;
};

struct jobs_in_hand {
    struct job_in_hand *by_id;
    struct job_in_hand *ready; /* by score */
    bool has_weights;          /* queues have: then by score are only the ready jobs of each */
    size_t count[IN_HAND_PHASE_COUNT];
    size_t placed; /* of those that don't run yet */
};

/* NULL when the id is in our hands already or memory is short. */
struct job_in_hand *in_hand_add(struct jobs_in_hand *h, int64_t id);
struct job_in_hand *in_hand_find(const struct jobs_in_hand *h, int64_t id);
/* Frees it; never one that waits as READY. */
void in_hand_remove(struct jobs_in_hand *h, struct job_in_hand *job);

/* Something has happened to the job: takes it where the table says, and returns what is to be done.
 * It must be named there for the job's state: nothing else can happen (asserted). ON_READY: see
 * in_hand_push_ready(). */
enum in_hand_action in_hand_step(struct jobs_in_hand *h, struct job_in_hand *job,
                                 enum in_hand_event event);
enum in_hand_phase in_hand_phase(const struct job_in_hand *job);

/* There is a row of it in job_live, which its end must take along. */
static inline bool in_hand_has_live(const struct job_in_hand *job)
{
    return job->checkpoint != NULL || job->cancel_us > 0 || job->said_us > 0;
}

/* Says that it is placed, of one that no runner has yet. */
void in_hand_place(struct jobs_in_hand *h, struct job_in_hand *job);

/* READY jobs wait in the order of their scores, as their hints did: what is urgent, or comes from a
 * tenant whose turn it is, passes what was claimed ahead; of its own queue only, where queues have
 * weights: of another one those with lower scores may come without end. Taking one leaves its state
 * to the caller, who lets the next event follow at once; NULL when there is none. */
void in_hand_push_ready(struct jobs_in_hand *h, struct job_in_hand *job);
struct job_in_hand *in_hand_take_ready(struct jobs_in_hand *h);
/* This one. */
void in_hand_take(struct jobs_in_hand *h, struct job_in_hand *job);
/* One that was claimed before that time. */
struct job_in_hand *in_hand_take_waiting(struct jobs_in_hand *h, int64_t claimed_before_us);

size_t in_hand_total(const struct jobs_in_hand *h);

#endif
