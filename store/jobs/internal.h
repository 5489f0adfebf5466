/* SPDX-License-Identifier: Apache-2.0
 *
 * The job store and its parts: job_store.c is its surface, turn.c what it sends and when. A recheck
 * and a fetch of args call the functions below, and leave the struct alone. */
#ifndef CLAIMD_STORE_JOBS_INTERNAL_H
#define CLAIMD_STORE_JOBS_INTERNAL_H

#include "base/rand.h"
#include "store/jobs/batch.h"
#include "store/jobs/gather.h"
#include "store/jobs/job_store.h"
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

    /* What is submitted in one turn of the loop leaves together at the turn's end. */
    uv_prepare_t prepare;
    uv_check_t check;
    uv_timer_t timer;
    int handle_count;
    int request_count; /* pg still holds a pointer to us */
    bool is_closed;

    struct finish_queue waiting;
    struct gather gather;
    struct finish_queue locked; /* until locked_until_us */
    int64_t locked_until_us;
    struct suspects suspects;
    size_t unsettled;
    size_t unsettled_bytes;
    struct claim_queue claims;
    struct claim_queue limited; /* what a claim has left out for a limit: claimed on its own */
    struct claim_outlook outlook;
    struct kind_cache kinds;
    struct args_queue args;

    /* At most one batch is in flight: the next one gathers meanwhile. */
    struct batch batch;
    bool is_in_flight;
    int64_t fence_checked_us;  /* the session whose fences are surely new: its pg_up_since_us() */
    int64_t fence_checking_us; /* the one of the batch in flight that sees to it */
    int64_t fence_known;       /* the highest that a claim of ours has drawn */
    struct claim_queue lost;   /* claims whose answer was lost: read back before anything else */
    int64_t lost_fence;        /* fence_known when they were sent */
    char lost_worker_id[JOB_WORKER_ID_SIZE];

    bool is_claims_turn;
    bool was_limited; /* the batch before: others have their turn */
    freed_cb *on_freed;
    void *ctx;
    int64_t careful_until_us;
    int64_t blocked_until_us;
    int64_t backoff_us;
    struct err trouble; /* why we back off */
    struct rand rand;
    struct job_store_counters counters;
};

/* Each of these calls back, so the caller's own state must be in order before. */
void store_settle_finish(struct job_store *s, struct finish *f, enum finish_verdict verdict);
void store_answer_claim(struct job_store *s, struct claim *c);
void store_answer_claims(struct job_store *s, struct claim_queue *q, enum claim_refusal rest);

/* Its ids that aren't settled were found to have a limit: it is sent once more, alone. */
void store_claim_limited(struct job_store *s, struct claim *c);

/* A run that somebody's session has locked, or of which nothing is known: tried again soon. */
void store_keep_locked(struct job_store *s, struct finish *f);

enum status store_send(struct job_store *s, struct pg_request *request, pg_done_cb *done, void *ctx,
                       struct err *err) MUST_USE;
/* One statement; the caller keeps the parameters. */
enum status store_send_one(struct job_store *s, const struct pg_statement *statement,
                           const struct params *p, pg_done_cb *done, void *ctx,
                           struct err *err) MUST_USE;
/* At the end of a turn of the loop: sends what waits, if nothing is in flight. */
void store_flush(struct job_store *s);
/* First in each pg_done_cb: false when the store was closed and nobody is left to answer. */
bool store_request_ended(struct job_store *s);

/* ---- recheck.c ---- */
struct recheck;

/* NULL: no memory. */
struct recheck *recheck_new(struct job_store *s, const struct kind_cache *kinds);

/* Both take it. Of a claim only the ids that are not settled are asked for. */
void recheck_add_finish(struct recheck *r, struct finish *f);
void recheck_add_claim(struct recheck *r, struct claim *c);

/* Takes it; accepts NULL. Once the rows are here, or can't be had, all finishes are settled or kept
 * to be tried again, and all claims are answered. One without any is just freed. */
void recheck_send(struct recheck *r);

#endif
