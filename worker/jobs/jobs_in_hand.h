/* SPDX-License-Identifier: Apache-2.0
 *
 * The jobs that this worker has in hand, from a popped id to a committed end: one record each,
 * found by id and counted by phase. Other files decide what to do with them; nothing here does
 * I/O. */
#ifndef CLAIMD_WORKER_JOBS_JOBS_IN_HAND_H
#define CLAIMD_WORKER_JOBS_JOBS_IN_HAND_H

#include "model/job.h"
#include "store/jobs/job_store.h"

#include <uthash.h>

/* The stages of a job in the worker, as they are counted and shown. */
enum in_hand_phase {
    IN_HAND_LOCKING,   /* popped; its lock, and perhaps its claim, is being asked for */
    IN_HAND_CLAIMING,  /* the lock has its verdict; the claim is in flight */
    IN_HAND_FETCHING,  /* claimed; its large args are being fetched */
    IN_HAND_READY,     /* claimed; waits for a runner */
    IN_HAND_RUNNING,   /* sent to a runner */
    IN_HAND_FINISHING, /* ended; its finish isn't committed yet */
    IN_HAND_PHASE_COUNT
};

/* The states themselves; the table of transitions is in jobs_in_hand.c. */
enum in_hand_state {
    HAND_NONE, /* no state: in the table, an event that cannot happen */
    HAND_LOCKING,
    HAND_ASKING_BOTH,   /* its lock and its claim are asked for at once (docs/decisions/0020) */
    HAND_CLAIMED_EARLY, /* claimed; the lock's verdict is outstanding */
    HAND_UNFIT_EARLY,   /* the same, but the job can't run here */
    HAND_REFUSED_EARLY, /* not claimed; the lock's verdict is outstanding */
    HAND_CLAIMING,
    HAND_CLAIMED,
    HAND_REFUSED,
    HAND_FETCHING,
    HAND_READY,
    HAND_SENT,  /* sent to a runner, perhaps behind other jobs */
    HAND_BEGUN, /* first in its runner */
    HAND_FINISHING
};

enum in_hand_event {
    ON_ASKED_BESIDE, /* its claim was sent beside its lock */
    ON_VERDICT,      /* its lock was won or not */
    ON_CLAIMED,
    ON_CLAIMED_UNFIT, /* no memory, or an edit has moved it to a queue not served here */
    ON_REFUSED,       /* the claim was refused */
    ON_ARGS_ASKED,
    ON_READY, /* it is complete, or its runner gave it back */
    ON_SENT,
    ON_BEGUN,
    ON_END, /* it ended, in whatever state: its finish is now outstanding */
    IN_HAND_EVENT_COUNT
};

/* What the caller has to do after an event. */
enum in_hand_action {
    DO_NOTHING,
    DO_CLAIM, /* if its lock was won; otherwise let it go */
    DO_GO_ON, /* fetch its args, or make it ready for a runner */
    DO_HAND_BACK,
    DO_LET_GO
};

/* Where the hint of a job goes if the job is not run here. */
enum hint_goes {
    HINT_BACK,   /* back to its set */
    HINT_KEPT,   /* nowhere for a while: its lock is held (worker/intake/taken_hints.h) */
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
    int64_t since_us; /* when it entered its phase */
    int64_t score;    /* of its hint, for putting it back */
    char queue[JOB_NAME_MAX + 1];
    char hint_kind[JOB_NAME_MAX +
                   1]; /* kind of the set that it was popped from; "" = the queue's own set */
    enum hint_goes hint_goes;
    bool is_returned; /* it has ended, and waits for a worker again: its hint goes back */
    bool is_placed;   /* not claimed ahead: a runner is reserved for it */

    struct redlock_batch *batch; /* its lease; NULL while a lost one is being acquired again */
    size_t lease_index;
    const struct relock *relock; /* the request that acquires a lost lease again; NULL = none */

    enum claim_refusal refused; /* in HAND_REFUSED_EARLY */
    int64_t fence;
    char worker_id[JOB_WORKER_ID_SIZE]; /* the worker_id under which it was claimed */
    int attempt;
    int crashes;
    int flags;       /* job.flags */
    int64_t key_row; /* this and the next two as in claimed_job */
    int64_t second_row;
    int64_t place;
    struct kind_settings settings; /* its own where set, otherwise its kind's */
    int64_t attempted_at_unix_us;
    char kind[JOB_NAME_MAX + 1];
    int64_t kinds_generation; /* of the worker's kinds when its kind was last found among them */
    char *args;
    size_t args_len;
    int generation;
    int64_t created_at_unix_us;
    char *tags; /* this and the next three: NULL = none */
    char *metadata;
    char *checkpoint;   /* from an earlier attempt */
    char *predecessors; /* the jobs that it has waited for */

    /* Progress and checkpoints that the run has reported (worker/jobs/live.h). */
    uint32_t progress_count;
    uint32_t checkpoint_count;
    int64_t said_us;        /* when they were last sent to PostgreSQL; 0 = never */
    bool is_checkpoint_bad; /* PostgreSQL rejects its checkpoint */

    struct kind_metrics *metrics; /* of its kind; set when it is claimed */
    struct run_length *length;    /* also set at the claim; NULL = unknown */
    struct slot *slot;
    int64_t nonce; /* of its run in that slot */
    int64_t popped_us;
    int64_t asked_us; /* when its lock, and later its claim, was asked for */
    int64_t claimed_us;
    int64_t started_us;
    /* > 0: it was claimed under an earlier worker_id, whose last confirmed heartbeat was sent
     * then. */
    int64_t beat_frozen_us;
    int64_t cancel_us; /* > 0: when this worker learned of the request to cancel it */
    unsigned stops;    /* enum run_stop */

    const char *too_long; /* leaving: what is too long for any handler, a literal; NULL = nothing */

    struct job_in_hand *prev; /* in the list of ready jobs; `next` also in the other two */
    struct job_in_hand *next;
    UT_hash_handle hh;
};

struct jobs_in_hand {
    struct job_in_hand *by_id;
    struct job_in_hand *ready;   /* sorted by score */
    struct job_in_hand *leaving; /* claimed, and to be ended before they reach a runner */
    struct job_in_hand *ended;   /* not in hand any more; see in_hand_end() */
    bool has_weights; /* a queue has a weight: `ready` is sorted by score only within each queue */
    size_t count[IN_HAND_PHASE_COUNT];
    size_t placed; /* placed jobs that are not running yet */
};

/* Returns NULL if the id is in hand already or if there is no memory. */
struct job_in_hand *in_hand_add(struct jobs_in_hand *h, int64_t id);
struct job_in_hand *in_hand_find(const struct jobs_in_hand *h, int64_t id);
/* Frees the job, which must not be HAND_READY. */
void in_hand_remove(struct jobs_in_hand *h, struct job_in_hand *job);

/* Moves a job whose end is committed to those that have ended: it is not in hand any more, but what
 * follows from its end can still be read. */
void in_hand_end(struct jobs_in_hand *h, struct job_in_hand *job);
/* Returns NULL if there is none. The caller frees it by in_hand_free(). */
struct job_in_hand *in_hand_take_ended(struct jobs_in_hand *h);
void in_hand_free(struct job_in_hand *job);
/* Frees those that nobody has taken. */
void in_hand_release(struct jobs_in_hand *h);

/* Notes that a claimed job, which is on no list, is to be handed back or, if `too_long` is set, to
 * fail. in_hand_take_leaving() returns NULL if there is none; the caller applies ON_END at once. */
void in_hand_leave(struct jobs_in_hand *h, struct job_in_hand *job);
struct job_in_hand *in_hand_take_leaving(struct jobs_in_hand *h);

/* Applies an event to the job: moves it to the next state in the table and returns the action to
 * take. The table must have an entry for the event in this state (asserted). For ON_READY call
 * in_hand_push_ready() instead. */
enum in_hand_action in_hand_step(struct jobs_in_hand *h, struct job_in_hand *job,
                                 enum in_hand_event event);
enum in_hand_phase in_hand_phase(const struct job_in_hand *job);

/* True if the job has a row in job_live, which its end must delete. */
static inline bool in_hand_has_live(const struct job_in_hand *job)
{
    return job->checkpoint != NULL || job->cancel_us > 0 || job->said_us > 0;
}

/* Marks a job that no runner has yet as placed. */
void in_hand_place(struct jobs_in_hand *h, struct job_in_hand *job);

/* Ready jobs are sorted by score, as their hints were: an urgent job, or one of a tenant whose turn
 * it is, overtakes jobs that were claimed earlier. If queues have weights, it overtakes only jobs
 * of its own queue, since jobs of another queue with lower scores might never cease.
 * in_hand_take_ready() returns NULL if there is none. A job that is taken stays HAND_READY: the
 * caller applies its next event at once. */
void in_hand_push_ready(struct jobs_in_hand *h, struct job_in_hand *job);
struct job_in_hand *in_hand_take_ready(struct jobs_in_hand *h);
/* Takes this job out of the ready ones. */
void in_hand_take(struct jobs_in_hand *h, struct job_in_hand *job);
/* Takes a job that was claimed before that time; NULL if there is none. */
struct job_in_hand *in_hand_take_waiting(struct jobs_in_hand *h, int64_t claimed_before_us);

/* Call when the worker_id ends under which jobs were claimed: they keep the time of its last
 * confirmed heartbeat. */
void in_hand_freeze(struct jobs_in_hand *h, int64_t beat_confirmed_us);

/* Returns how long the oldest claimed job has waited for a runner; 0 = none waits. */
int64_t in_hand_ready_oldest_us(const struct jobs_in_hand *h, int64_t now_us);

size_t in_hand_total(const struct jobs_in_hand *h);

#endif
