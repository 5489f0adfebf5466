/* SPDX-License-Identifier: Apache-2.0
 *
 * What a worker does to jobs: claim and finish, batched naturally. While one round trip is in
 * flight, finishes and claims gather; the next segment carries all of them and has one commit.
 * Every write after the claim is fenced (lock.G3), and checks the worker's id as well.
 *
 * It handles the hard cases, so that callers only see verdicts:
 *  - A row is locked by some session (55P03): the segment is repeated with SKIP LOCKED, by id, and
 *    so are those of the next 10 s (INTERFACES rule 4). Skipped rows are kept and tried again.
 *  - The connection is lost after sending: read back by fence, then repeated or settled
 *    (ARCHITECTURE §4.11).
 *  - A row refuses its data: bisected, the one offender fails with "result refused" (§4.9).
 *  - A failover: before a session's first claim, the fence moves past what the lost primary gave
 *    out.
 *  - Any other refusal, or PostgreSQL is away: everything is kept and tried again, with backoff.
 * One thread, one loop; never blocks. */
#ifndef CLAIMD_STORE_JOBS_JOB_STORE_H
#define CLAIMD_STORE_JOBS_JOB_STORE_H

#include "model/job.h"
#include "store/pg/pg.h"

struct job_store;

/* May be claimed from now on, since a run that ended has freed its limit: push its hint. The texts
 * are borrowed until it returns. */
struct freed_job {
    int64_t id;
    const char *queue;
    const char *kind;
    int priority;
    int64_t ready_at_unix_us;
};
typedef void freed_cb(void *ctx, const struct freed_job *job);

struct job_store_options {
    struct pg *pg; /* borrowed; the job store must be told of pg's up and down, see below */
    uv_loop_t *loop;
    const char *worker_id; /* uuid text; copied; changed by job_store_set_worker() */
    freed_cb *on_freed;    /* after the commit; NULL: nobody wants to know */
    void *ctx;             /* of on_freed */
};

enum status job_store_open(const struct job_store_options *options, struct job_store **ret,
                           struct err *err) MUST_USE;
/* Accepts NULL; drops what waits, without calling back. */
void job_store_close(struct job_store *s);
void job_store_set_worker(struct job_store *s, const char *worker_id);
/* Call from pg_options.on_up: what was kept is tried again. */
void job_store_on_up(struct job_store *s);

/* ---- claim ---- */

struct claimed_job {
    int64_t id;
    int64_t fence;
    const char *worker_id; /* under which it was claimed; give it back in job_finish */
    int attempt;           /* this one, charged */
    int crashes;
    struct kind_settings settings; /* its own where it has some */
    int priority;
    int64_t ready_at_unix_us;
    int64_t attempted_at_unix_us; /* PostgreSQL's clock; give it back in job_finish */
    const char *queue;
    const char *kind;
    const char *args; /* JSON text as it is now; NULL: fetch it by job_store_args() */
    size_t args_len;
    int flags; /* job.flags; give them back in job_finish: its end may have to free something, */
    int64_t key_row;    /* which stands there: pg_tid(); 0 = it isn't known where */
    int64_t second_row; /* of its second key */
    int64_t place;
    int generation;
    int64_t created_at_unix_us;
    const char *tags;     /* JSON text; NULL: none */
    const char *metadata; /* the same; large ones come with the args */
};

/* Why an id that was asked for was not claimed, looked up in the same commit or right after it. */
enum claim_refusal {
    /* Finished, cancelled, unknown, running, or without an attempt left (it is discarded then,
       lock.G5): drop the hint. */
    CLAIM_GONE,
    CLAIM_LATER,   /* not due yet: drop, it is fed when it is */
    CLAIM_LIMITED, /* its limit is reached: drop; ask job_store_next() when its lease is gone */
    /* So many jobs of its queue run as may: put back, and leave the queue alone for a while. */
    CLAIM_QUEUE_FULL,
    /* Available and due, but locked, of a kind not asked for, or not to be claimed ahead. */
    CLAIM_PUT_BACK,
    CLAIM_NOT_TRIED /* PostgreSQL refused or is away; nothing was claimed: put back later */
};

struct refused_job {
    int64_t id;
    enum claim_refusal why;
    const char *queue; /* with PUT_BACK and QUEUE_FULL: where its hint belongs; else NULL */
    const char *kind;
    int priority;
    int64_t ready_at_unix_us;
};

/* Borrowed until it returns. Every id asked for is in exactly one of the two lists. */
typedef void claim_cb(void *ctx, const struct claimed_job *jobs, size_t count,
                      const struct refused_job *refused, size_t refused_count);

struct claim_request {
    const int64_t *ids;       /* copied; the caller holds the lease of each */
    size_t count;             /* ≤ 500 */
    const char *const *kinds; /* served; copied */
    size_t kind_count;
    /* ids[ahead_from…] are claimed ahead of a free runner: not at_most_once kinds, nor jobs at
     * their last attempt (INTERFACES rule 3); = count when none are. */
    size_t ahead_from;
    claim_cb *done;
    void *ctx;
};

/* LIMIT when too much waits, INVALID without ids or with what is no kind's name, NOMEM. Never calls
 * back from inside. */
enum status job_store_claim(struct job_store *s, const struct claim_request *request,
                            struct err *err) MUST_USE;

/* Nothing waits and nothing is under way: what is asked for now is sent at the end of this turn. */
bool job_store_is_idle(const struct job_store *s);

/* ---- finish ---- */

enum finish_kind {
    FINISH_COMPLETED, /* → history */
    FINISH_RETRY,     /* → available after delay_us; recorded in job_attempt */
    FINISH_DISCARDED, /* → history; recorded in job_attempt */
    FINISH_CANCELLED, /* the same, as `cancelled` */
    FINISH_SNOOZE, /* → available after delay_us, attempt given back; recorded without its log */
    FINISH_HAND_BACK, /* → available now, attempt given back, not recorded */
    /* Completed ones that are not kept (`is_unkept`) → nothing is left. The store finds out which:
     * they are asked for and answered as COMPLETED. */
    FINISH_DROPPED,
    FINISH_KIND_COUNT
};

/* What is known of each kind of finish. */
struct finish_kind_facts {
    const char *name;        /* in logs and metrics */
    const char *recorded_as; /* the recorder's word (docs/reliability.md) */
    const char *state;       /* in the history; NULL = the job stays open */
    const char *outcome;     /* in job_attempt, whatever the finish says; NULL = what it says */
    bool is_attempt_kept; /* the run is known by its row in job_attempt, not by the job's state */
    bool is_wanted;       /* by its handler or an operator: no failure */
};
extern const struct finish_kind_facts finish_kinds[FINISH_KIND_COUNT];

struct job_finish {
    int64_t id;
    int64_t fence;
    const char *worker_id; /* as claimed: a server that lost fences may give them out again */
    int attempt;
    /* As claimed: bounds how far back history is read; 0 = all of it. */
    int64_t attempted_at_unix_us;
    enum finish_kind kind;
    int flags; /* as claimed, and the next three */
    int64_t key_row;
    int64_t second_row;
    int64_t place;
    bool crashed;        /* death of the runner: crashes + 1; HAND_BACK: a strike */
    bool overran;        /* COMPLETED: after its timeout; that is recorded */
    bool keeps_log;      /* COMPLETED: if it has logged, that is recorded, unless it is unkept */
    bool is_unkept;      /* COMPLETED: only counted, where nobody else asks for it */
    bool may_gather;     /* may be delayed a few ms to join a batch: no other job depends on it */
    bool has_live;       /* COMPLETED: a row in job_live goes, too; other ends look for it anyway */
    const char *outcome; /* "failed", "crashed", "timeout", "lost"…: goes to job_attempt */
    int64_t delay_us;    /* with RETRY, SNOOZE: 0…JOB_DELAY_US_MAX, to which others are brought */
    const char *result;  /* JSON text or NULL */
    size_t result_len;
    const char *error; /* or NULL; both are cleaned to valid UTF-8 without NUL here */
    size_t error_len;
    const char *log_tail; /* or NULL */
    size_t log_tail_len;
};

enum finish_verdict {
    FINISH_ACCEPTED,
    /* Found done by ourselves: an earlier commit whose reply was lost, or in the handler's own
       transaction. */
    FINISH_ALREADY,
    FINISH_STALE,  /* another fence, or moved by somebody: dropped (lock.G3) */
    FINISH_REFUSED /* accepted as a failure, "result refused": PostgreSQL takes no such text */
};

struct finish_reply {
    int64_t id;
    int64_t fence;
    enum finish_verdict verdict;
    enum finish_kind kind; /* as it was recorded: REFUSED may have made another of it */
};

typedef void finish_cb(void *ctx, const struct finish_reply *reply);

/* One job; copied. Called back after its commit, perhaps much later: it is kept through outages.
 * LIMIT at 10,000 waiting, NOMEM. Never calls back from inside. */
enum status job_store_finish(struct job_store *s, const struct job_finish *finish, finish_cb *done,
                             void *ctx, struct err *err) MUST_USE;
size_t job_store_waiting(const struct job_store *s); /* finishes not settled yet */

/* ---- what did not come with the claim: what is large, a checkpoint, predecessors ---- */

/* Texts are JSON, borrowed; all but args may be NULL. */
struct job_args {
    const char *args;
    size_t args_len;
    const char *metadata;
    const char *checkpoint;
    const char *predecessors;
    const char *too_long; /* LIMIT: the name of what is too long for any handler */
};

/* NOT_FOUND: stale. UNAVAILABLE: try again. LIMIT: the job can't run. The texts are NULL then. */
typedef void args_cb(void *ctx, enum status st, const struct job_args *args);
enum status job_store_args(struct job_store *s, int64_t id, int64_t fence, args_cb *done, void *ctx,
                           struct err *err) MUST_USE;

/* ---- limits ---- */

/* Of jobs that were refused as LIMITED, at most 500, once the release of their leases was
 * acknowledged: calls `each` for what may be claimed within the same limits by now, whose hint may
 * have been dropped because of those leases. Then `done`; UNAVAILABLE: nobody knows. */
typedef void next_cb(void *ctx, enum status st);
enum status job_store_next(struct job_store *s, const int64_t *ids, size_t count, freed_cb *each,
                           next_cb *done, void *ctx, struct err *err) MUST_USE;

/* The same for those of these jobs, at most 500, that are available and due. */
enum status job_store_due(struct job_store *s, const int64_t *ids, size_t count, freed_cb *each,
                          next_cb *done, void *ctx, struct err *err) MUST_USE;

/* The same for those, at most 500, that there are and that have not ended. */
enum status job_store_find(struct job_store *s, const int64_t *ids, size_t count, freed_cb *each,
                           next_cb *done, void *ctx, struct err *err) MUST_USE;

struct job_store_counters {
    uint64_t claimed;
    uint64_t stale; /* fenced_total */
    uint64_t refused;
    uint64_t commits;
    uint64_t locked_repeats;
    uint64_t unknown_outcomes;
    uint64_t refused_batches; /* batches that PostgreSQL refused, for whatever reason */
};
const struct job_store_counters *job_store_counters(const struct job_store *s);

/* What PostgreSQL said when it refused the last segment, for whoever logs it: finishes are kept
 * meanwhile. NULL while all is well; borrowed until the loop's next turn. */
const struct err *job_store_trouble(const struct job_store *s);

#endif
