/* SPDX-License-Identifier: Apache-2.0
 *
 * A worker's writes to jobs: claim and finish. Requests that arrive while one round trip is in
 * flight wait; the next segment carries all of them and has one commit.
 * Every write after the claim is fenced (lock.G3), and checks the worker's id as well.
 *
 * It handles the hard cases, so that callers only see verdicts:
 * - A row is locked by another session (55P03): the segment is repeated with SKIP LOCKED, by id,
 *   and so are those of the next 10 s (INTERFACES rule 4). Skipped rows are kept and tried again.
 * - The connection is lost after sending: the outcome is read back by fence, then the write is
 *   repeated or settled (ARCHITECTURE §4.11).
 * - A row refuses its data: the segment is bisected, and the one offender fails with "result
 *   refused" (§4.9).
 * - A failover: before a session's first claim, the fence moves past those that the lost primary
 *   issued.
 * - Any other refusal, or PostgreSQL is unreachable: everything is kept and tried again, with
 *   backoff.
 *
 * One thread, one loop; never blocks. */
#ifndef CLAIMD_STORE_JOBS_JOB_STORE_H
#define CLAIMD_STORE_JOBS_JOB_STORE_H

#include "model/job.h"
#include "store/pg/pg.h"

struct job_store;

/* A job that may be claimed now, because a run that ended has freed its limit: push its hint. The
 * texts are borrowed until the callback returns. */
struct freed_job {
    int64_t id;
    const char *queue;
    const char *kind;
    int priority;
    int64_t ready_at_unix_us;
};
typedef void freed_cb(void *ctx, const struct freed_job *job);

struct job_store_options {
    struct pg *pg; /* borrowed; see job_store_on_up() */
    uv_loop_t *loop;
    const char *worker_id; /* uuid text; copied; changed by job_store_set_worker() */
    freed_cb *on_freed;    /* called after the commit; may be NULL */
    void *ctx;             /* for on_freed */
};

enum status job_store_open(const struct job_store_options *options, struct job_store **ret,
                           struct err *err) MUST_USE;
/* Closes the store and drops what waits, without calling back. Accepts NULL. */
void job_store_close(struct job_store *s);
void job_store_set_worker(struct job_store *s, const char *worker_id);
/* Tries again what was kept. Call it from pg_options.on_up. */
void job_store_on_up(struct job_store *s);

/* ---- claim ---- */

struct claimed_job {
    int64_t id;
    int64_t fence;
    const char *worker_id; /* under which it was claimed; pass it on in job_finish */
    int attempt;           /* number of this attempt, charged */
    int crashes;
    /* the job's own settings where it has some, else those of its kind */
    struct kind_settings settings;
    int priority;
    int64_t ready_at_unix_us;
    int64_t attempted_at_unix_us; /* PostgreSQL's clock; pass it on in job_finish */
    const char *queue;
    const char *kind;
    const char *args; /* JSON text as PostgreSQL writes it; NULL: fetch it with job_store_args() */
    size_t args_len;
    /* job.flags; pass them on in job_finish, since the end of the run may have to free something */
    int flags;
    int64_t key_row;    /* pg_tid() of the row that holds its key; 0 = not known */
    int64_t second_row; /* the same for its second key */
    int64_t place;
    int generation;
    int64_t created_at_unix_us;
    const char *tags;     /* JSON text; NULL: none */
    const char *metadata; /* JSON text; NULL: none, or large, so that it comes with the args */
};

/* Why an id was not claimed, looked up in the same commit or right after it. */
enum claim_refusal {
    /* Finished, cancelled, unknown, running, or without an attempt left (then it is discarded,
     * lock.G5): drop the hint. */
    CLAIM_GONE,
    CLAIM_LATER, /* not due yet: drop the hint, the job is fed when it is due */
    /* its limit is reached: drop the hint, and ask QUESTION_NEXT when its lease is gone */
    CLAIM_LIMITED,
    /* As many jobs of its queue run as its limit allows: put the hint back, and leave the queue
     * alone for a while. */
    CLAIM_QUEUE_FULL,
    /* Available and due, but locked, of a kind not asked for, or not to be claimed ahead: put the
     * hint back. */
    CLAIM_PUT_BACK,
    /* PostgreSQL refused or is unreachable; nothing was claimed: put the hint back later */
    CLAIM_NOT_TRIED
};

struct refused_job {
    int64_t id;
    enum claim_refusal why;
    const char *queue; /* with PUT_BACK and QUEUE_FULL: where its hint belongs; else NULL */
    const char *kind;
    int priority;
    int64_t ready_at_unix_us;
};

/* Answers a claim. Every id asked for is in exactly one of the two lists, which are borrowed until
 * the callback returns. */
typedef void claim_cb(void *ctx, const struct claimed_job *jobs, size_t count,
                      const struct refused_job *refused, size_t refused_count);

struct claim_request {
    const int64_t *ids;       /* copied; the caller holds the lease of each */
    size_t count;             /* ≤ 500 */
    const char *const *kinds; /* served; copied */
    size_t kind_count;
    /* ids[ahead_from…] are claimed ahead of a free runner: that leaves out at_most_once kinds and
     * jobs at their last attempt (INTERFACES rule 3); = count if there are none. */
    size_t ahead_from;
    claim_cb *done;
    void *ctx;
};

/* Requests a claim. LIMIT if too much waits, INVALID without ids or with a name that no kind can
 * have, NOMEM. Never calls back from inside this call. */
enum status job_store_claim(struct job_store *s, const struct claim_request *request,
                            struct err *err) MUST_USE;

/* True if nothing waits and nothing is in flight: a request made now is sent at the end of this
 * turn of the loop. */
bool job_store_is_idle(const struct job_store *s);

/* ---- finish ---- */

enum finish_kind {
    FINISH_COMPLETED, /* → history */
    FINISH_RETRY,     /* → available after delay_us; recorded in job_attempt */
    FINISH_DISCARDED, /* → history; recorded in job_attempt */
    FINISH_CANCELLED, /* → history as `cancelled`; recorded in job_attempt */
    FINISH_SNOOZE, /* → available after delay_us, attempt given back; recorded without its log */
    FINISH_HAND_BACK, /* → available now, attempt given back, not recorded */
    /* Completed jobs that are not kept (`is_unkept`) → nothing is left. The store chooses this
     * kind: callers ask for COMPLETED, and get COMPLETED in the reply. */
    FINISH_DROPPED,
    FINISH_KIND_COUNT
};

/* The properties of each kind of finish. */
struct finish_kind_facts {
    const char *name;        /* used in logs and metrics */
    const char *recorded_as; /* the recorder's word (docs/reliability.md) */
    const char *state;       /* in the history; NULL = the job stays open */
    const char *outcome;     /* outcome in job_attempt; NULL = that of the finish */
    bool is_attempt_kept; /* the run is found by its row in job_attempt, not by the job's state */
    bool is_wanted;       /* the handler or an operator wanted it: no failure */
};
extern const struct finish_kind_facts finish_kinds[FINISH_KIND_COUNT];

struct job_finish {
    int64_t id;
    int64_t fence;
    /* as claimed; checked too, because a server that lost fences may issue them again */
    const char *worker_id;
    int attempt;
    /* As claimed: bounds how far back the history is read; 0 = all of it. */
    int64_t attempted_at_unix_us;
    enum finish_kind kind;
    int flags; /* as claimed, like the next three */
    int64_t key_row;
    int64_t second_row;
    int64_t place;
    bool crashed;   /* the runner died: crashes + 1; with HAND_BACK: a strike */
    bool overran;   /* COMPLETED: after its timeout, which is recorded */
    bool keeps_log; /* COMPLETED: its log, if there is one, is recorded, unless the job is unkept */
    bool is_unkept; /* COMPLETED: only counted, unless other jobs or a batch need it */
    bool may_group; /* may be delayed a few ms to join a group commit: no other job depends on it */
    /* COMPLETED: delete its row in job_live, too; other kinds of finish do so anyway */
    bool has_live;
    const char *outcome; /* for job_attempt: "failed", "crashed", "timeout", "lost"… */
    int64_t delay_us;    /* RETRY, SNOOZE: clamped to 0…JOB_DELAY_US_MAX */
    const char *result;  /* JSON text or NULL */
    size_t result_len;
    const char *error; /* or NULL; error and log_tail are cleaned to valid UTF-8 without NUL here */
    size_t error_len;
    const char *log_tail; /* or NULL */
    size_t log_tail_len;
};

enum finish_verdict {
    FINISH_ACCEPTED,
    /* This worker has already finished the job: by an earlier commit whose reply was lost, or in
     * the handler's own transaction. */
    FINISH_ALREADY,
    FINISH_STALE,  /* the fence differs, or another process moved the job: dropped (lock.G3) */
    FINISH_REFUSED /* accepted as the failure "result refused": PostgreSQL can't store the text */
};

struct finish_reply {
    int64_t id;
    int64_t fence;
    enum finish_verdict verdict;
    enum finish_kind kind; /* as recorded: REFUSED may have changed it */
};

typedef void finish_cb(void *ctx, const struct finish_reply *reply);

/* Finishes one job; the data are copied. Calls back after the commit, perhaps much later: the
 * finish is kept through outages. LIMIT if 10,000 wait, NOMEM. Never calls back from inside this
 * call. */
enum status job_store_finish(struct job_store *s, const struct job_finish *finish, finish_cb *done,
                             void *ctx, struct err *err) MUST_USE;
size_t job_store_waiting(const struct job_store *s); /* number of finishes not settled yet */

/* ---- fetching what did not come with the claim: large args, a checkpoint, predecessors ---- */

/* Texts are JSON, borrowed; all but args may be NULL. */
struct job_args {
    const char *args;
    size_t args_len;
    const char *metadata;
    const char *checkpoint;
    const char *predecessors;
    const char *too_long; /* LIMIT: the name of what is too long for any handler */
};

/* NOT_FOUND: the run is stale. UNAVAILABLE: try again. LIMIT: the job can't run. If st is not OK,
 * the texts are NULL. */
typedef void args_cb(void *ctx, enum status st, const struct job_args *args);
enum status job_store_args(struct job_store *s, int64_t id, int64_t fence, args_cb *done, void *ctx,
                           struct err *err) MUST_USE;

/* ---- questions about jobs ---- */

enum job_question {
    QUESTION_EXISTS, /* which of these jobs exist and have not ended */
    QUESTION_DUE,    /* which of these jobs are available and due */
    /* Which jobs may be claimed by now in place of these, which were refused as LIMITED. Ask when
     * the release of their leases was acknowledged: a hint may have been dropped because of those
     * leases. */
    QUESTION_NEXT,
    QUESTION_COUNT
};

/* Asks about at most 500 jobs. Calls `each` for every job that the answer names, then `done`;
 * UNAVAILABLE: not known. */
typedef void answered_cb(void *ctx, enum status st);
enum status job_store_ask(struct job_store *s, enum job_question question, const int64_t *ids,
                          size_t count, freed_cb *each, answered_cb *done, void *ctx,
                          struct err *err) MUST_USE;

struct job_store_counters {
    uint64_t claimed;
    uint64_t stale; /* shown as fenced_total */
    uint64_t refused;
    uint64_t commits;
    uint64_t locked_repeats;
    uint64_t unknown_outcomes;
    uint64_t refused_segments; /* segments that PostgreSQL refused, for any reason */
};
const struct job_store_counters *job_store_counters(const struct job_store *s);

/* Returns what PostgreSQL said when it refused the last segment, for logging; finishes are kept
 * meanwhile. NULL = no trouble; borrowed until the next turn of the loop. */
const struct err *job_store_trouble(const struct job_store *s);

#endif
