/* SPDX-License-Identifier: Apache-2.0
 *
 * The job store and its parts: job_store.c is its interface, turn.c decides what is sent and when.
 * recheck.c and args.c use the functions below, and leave the struct alone. */
#ifndef CLAIMD_STORE_JOBS_INTERNAL_H
#define CLAIMD_STORE_JOBS_INTERNAL_H

#include "base/rand.h"
#include "store/jobs/group_commit.h"
#include "store/jobs/job_store.h"
#include "store/jobs/segment.h"
#include "store/jobs/suspects.h"
#include "store/pg/params.h"

/* Fetches of args that have yet to be sent. */
struct args_queue {
    struct args_request *first;
    struct args_request *last;
    int in_flight;
};
void args_queue_release(struct args_queue *q);

struct job_store {
    struct pg *pg;
    uv_loop_t *loop;
    char worker_id[JOB_WORKER_ID_SIZE];

    /* All that is submitted in one turn of the loop is sent together at the end of that turn. */
    uv_prepare_t prepare;
    uv_check_t check;
    uv_timer_t timer;
    int handle_count;
    int request_count; /* requests for which pg still holds a pointer to us */
    bool is_closed;

    struct finish_queue waiting;
    struct group_commit group_commit;
    struct finish_queue locked; /* until locked_until_us */
    int64_t locked_until_us;
    struct suspects suspects;
    size_t unsettled;
    size_t unsettled_bytes;
    struct claim_queue claims;
    /* jobs that a claim left out because of a limit: claimed separately */
    struct claim_queue limited;
    struct claim_outlook outlook;
    struct kind_cache kinds;
    struct args_queue args;

    /* At most one segment is in flight; later requests go into the next one. */
    struct segment segment;
    bool is_in_flight;
    /* the session whose fences were checked to be new: its pg_up_since_us() */
    int64_t fence_checked_us;
    int64_t fence_checking_us; /* the session that the segment in flight checks */
    int64_t fence_known;       /* the highest fence that a claim of ours has drawn */
    struct claim_queue lost;   /* claims whose reply was lost: read back before anything else */
    int64_t lost_fence;        /* fence_known when they were sent */
    char lost_worker_id[JOB_WORKER_ID_SIZE];

    bool is_claims_turn;
    bool was_limited; /* the previous segment was limited: now it is the others' turn */
    freed_cb *on_freed;
    void *ctx;
    int64_t careful_until_us;
    int64_t blocked_until_us;
    int64_t backoff_us;
    struct err trouble; /* why we back off */
    struct rand rand;
    struct job_store_counters counters;
};

/* Each of these calls back, so the caller's own state must be in order before the call. */
void store_settle_finish(struct job_store *s, struct finish *f, enum finish_verdict verdict);
void store_answer_claim(struct job_store *s, struct claim *c);
void store_answer_claims(struct job_store *s, struct claim_queue *q, enum claim_refusal rest);

/* Sends a claim once more, separately: its unsettled ids were found to have a limit. */
void store_claim_limited(struct job_store *s, struct claim *c);

/* Keeps a finish whose row another session has locked, or whose outcome is unknown; it is tried
 * again soon. */
void store_keep_locked(struct job_store *s, struct finish *f);

enum status store_send(struct job_store *s, struct pg_request *request, pg_done_cb *done, void *ctx,
                       struct err *err) MUST_USE;
/* Sends one statement; the caller keeps the parameters. */
enum status store_send_one(struct job_store *s, const struct pg_statement *statement,
                           const struct params *p, pg_done_cb *done, void *ctx,
                           struct err *err) MUST_USE;
/* Sends what waits, if nothing is in flight. Called at the end of a turn of the loop. */
void store_flush(struct job_store *s);
/* Ends a request; call it first in each pg_done_cb. False: the store was closed, so there is
 * nothing to answer. */
bool store_request_ended(struct job_store *s);

/* ---- recheck.c ---- */
struct recheck;

/* Returns NULL if memory runs out. */
struct recheck *recheck_new(struct job_store *s, const struct kind_cache *kinds);

/* Both take ownership. Only the unsettled ids of a claim are read. */
void recheck_add_finish(struct recheck *r, struct finish *f);
void recheck_add_claim(struct recheck *r, struct claim *c);

/* Sends the recheck and takes ownership of it; accepts NULL. When the rows have arrived, or can't
 * be had, all finishes are settled or kept to be tried again, and all claims are answered. A
 * recheck with nothing in it is just freed. */
void recheck_send(struct recheck *r);

#endif
