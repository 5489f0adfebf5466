/* SPDX-License-Identifier: Apache-2.0
 *
 * The active jobs of this worker, from a popped id to a committed end: one record each,
 * found by id and counted by phase. Other files decide what to do with them; nothing here does
 * I/O. */
#ifndef CLAIMD_WORKER_JOBS_ACTIVE_JOBS_H
#define CLAIMD_WORKER_JOBS_ACTIVE_JOBS_H

#include "model/job.h"
#include "store/jobs/job_store.h"

#include <uthash.h>

/* The stages of a job in the worker, as they are counted and shown. */
enum active_phase {
    ACTIVE_LOCKING,   /* popped; its lock, and perhaps its claim, is being asked for */
    ACTIVE_CLAIMING,  /* the lock has its verdict; the claim is in flight */
    ACTIVE_FETCHING,  /* claimed; its large args are being fetched */
    ACTIVE_READY,     /* claimed; waits for a runner */
    ACTIVE_RUNNING,   /* sent to a runner */
    ACTIVE_FINISHING, /* ended; its finish isn't committed yet */
    ACTIVE_PHASE_COUNT
};

/* The states themselves; the table of transitions is in active_jobs.c. */
enum active_state {
    STATE_NONE, /* no state: in the table, an event that cannot happen */
    STATE_LOCKING,
    STATE_ASKING_BOTH,   /* its lock and its claim are asked for at once (docs/decisions/0020) */
    STATE_CLAIMED_EARLY, /* claimed; the lock's verdict is outstanding */
    STATE_UNFIT_EARLY,   /* the same, but the job can't run here */
    STATE_REFUSED_EARLY, /* not claimed; the lock's verdict is outstanding */
    STATE_CLAIMING,
    STATE_CLAIMED,
    STATE_REFUSED,
    STATE_FETCHING,
    STATE_READY,
    STATE_SENT,  /* sent to a runner, perhaps behind other jobs */
    STATE_BEGUN, /* first in its runner */
    STATE_FINISHING
};

enum active_event {
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
    ACTIVE_EVENT_COUNT
};

/* What the caller has to do after an event. */
enum active_action {
    DO_NOTHING,
    DO_CLAIM, /* if its lock was won; otherwise let it go */
    DO_GO_ON, /* fetch its args, or make it ready for a runner */
    DO_HAND_BACK,
    DO_LET_GO
};

/* Where the hint of a job goes if the job is not run here. */
enum hint_goes {
    HINT_BACK,   /* back to its set */
    HINT_KEPT,   /* nowhere for a while: its lock is held (worker/intake/let_go.h) */
    HINT_TO_KIND /* to the set of its kind, at once: another worker may have a runner for it */
};

struct slot;
struct kind_metrics;
struct run_length;
struct redlock_batch;
struct relock;

struct active_job {
    int64_t id;
    enum active_state state;
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

    enum claim_refusal refused; /* in STATE_REFUSED_EARLY */
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

    /* Progress, checkpoints and the log that the run has reported (worker/jobs/live.h). */
    uint32_t progress_count;
    uint32_t checkpoint_count;
    int64_t log_total;      /* how much of its log was there when its end was last taken */
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
    int64_t heartbeat_frozen_us;
    int64_t cancel_us; /* > 0: when this worker learned of the request to cancel it */
    unsigned stops;    /* enum run_stop */

    const char *too_long; /* leaving: what is too long for any handler, a literal; NULL = nothing */

    struct active_job *prev; /* in the list of ready jobs; `next` also in the other two */
    struct active_job *next;
    UT_hash_handle hh;
};

struct active_jobs {
    struct active_job *by_id;
    struct active_job *ready;   /* sorted by score */
    struct active_job *leaving; /* claimed, and to be ended before they reach a runner */
    struct active_job *ended;   /* not active any more; see active_end() */
    bool has_weights; /* a queue has a weight: `ready` is sorted by score only within each queue */
    size_t count[ACTIVE_PHASE_COUNT];
    size_t placed; /* placed jobs that are not running yet */
};

/* Returns NULL if the id is active already or if there is no memory. */
struct active_job *active_add(struct active_jobs *h, int64_t id);
struct active_job *active_find(const struct active_jobs *h, int64_t id);
/* Frees the job, which must not be STATE_READY. */
void active_remove(struct active_jobs *h, struct active_job *job);

/* Moves a job whose end is committed to those that have ended: it is not active any more, but what
 * follows from its end can still be read. */
void active_end(struct active_jobs *h, struct active_job *job);
/* Returns NULL if there is none. The caller frees it by active_free(). */
struct active_job *active_take_ended(struct active_jobs *h);
void active_free(struct active_job *job);
/* Frees those that nobody has taken. */
void active_release(struct active_jobs *h);

/* Notes that a claimed job, which is on no list, is to be handed back or, if `too_long` is set, to
 * fail. active_take_leaving() returns NULL if there is none; the caller applies ON_END at once. */
void active_leave(struct active_jobs *h, struct active_job *job);
struct active_job *active_take_leaving(struct active_jobs *h);

/* Applies an event to the job: moves it to the next state in the table and returns the action to
 * take. The table must have an entry for the event in this state (asserted). For ON_READY call
 * active_push_ready() instead. */
enum active_action active_step(struct active_jobs *h, struct active_job *job,
                               enum active_event event);
enum active_phase active_phase(const struct active_job *job);

/* True if the job has a row in job_live, which its end must delete. */
static inline bool active_has_live(const struct active_job *job)
{
    return job->checkpoint != NULL || job->cancel_us > 0 || job->said_us > 0;
}

/* Marks a job that no runner has yet as placed. */
void active_place(struct active_jobs *h, struct active_job *job);

/* Ready jobs are sorted by score, as their hints were: an urgent job, or one of a tenant with a
 * lower rank, overtakes jobs that were claimed earlier. If queues have weights, it overtakes only
 * jobs of its own queue, since jobs of another queue with lower scores might never cease.
 * active_take_ready() returns NULL if there is none. A job that is taken stays STATE_READY: the
 * caller applies its next event at once. */
void active_push_ready(struct active_jobs *h, struct active_job *job);
struct active_job *active_take_ready(struct active_jobs *h);
/* Takes this job out of the ready ones. */
void active_take(struct active_jobs *h, struct active_job *job);
/* Takes a job that was claimed before that time; NULL if there is none. */
struct active_job *active_take_waiting(struct active_jobs *h, int64_t claimed_before_us);

/* Call when the worker_id ends under which jobs were claimed: they keep the time of its last
 * confirmed heartbeat. */
void active_freeze(struct active_jobs *h, int64_t heartbeat_confirmed_us);

/* Returns how long the oldest claimed job has waited for a runner; 0 = none waits. */
int64_t active_ready_oldest_us(const struct active_jobs *h, int64_t now_us);

size_t active_total(const struct active_jobs *h);

#endif
