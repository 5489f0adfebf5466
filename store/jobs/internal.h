/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of the job store share: job_store.c has the surface and what waits, job_batches.c
 * the batches, job_suspects.c whose fault it is where PostgreSQL refuses one, job_rechecks.c what
 * follows where a batch left a question open. */
#ifndef CLAIMD_STORE_JOBS_INTERNAL_H
#define CLAIMD_STORE_JOBS_INTERNAL_H

#include "base/clock.h"
#include "base/rand.h"
#include "store/jobs/recheck.h"

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
    struct finish_queue locked; /* until locked_until_us */
    int64_t locked_until_us;
    struct finish_queue aside; /* suspects, each until its again_us */
    int64_t aside_until_us;    /* the first of them */
    struct err aside_trouble;
    size_t unsettled;
    size_t unsettled_bytes;
    struct claim_queue claims;
    struct kind_cache kinds;

    /* At most one batch is in flight: the next one gathers meanwhile. */
    struct batch batch;
    bool is_in_flight;
    int64_t guarded_us;      /* the session whose fences are surely new: its pg_up_since_us() */
    int64_t guarding_us;     /* the one of the batch in flight that sees to it */
    int64_t fence_known;     /* the highest that a claim of ours has drawn */
    struct claim_queue lost; /* claims whose answer was lost: read back before anything else */
    int64_t lost_fence;      /* fence_known when they were sent */
    char lost_worker_id[JOB_WORKER_ID_SIZE];

    size_t finish_max; /* below BATCH_FINISHES_MAX: looking for data that PostgreSQL refuses */
    bool is_claims_turn;
    uint64_t finish_batches; /* committed batches that had finishes */
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

/* No batch for a while, longer each time. */
void store_back_off(struct job_store *s, const struct err *why);
/* A run that somebody's session has locked, or of which nothing is known: tried again soon. */
void store_keep_locked(struct job_store *s, struct finish *f);

enum status store_send(struct job_store *s, struct pg_request *request, pg_done_cb *done, void *ctx,
                       struct err *err) MUST_USE;
/* First in each pg_done_cb: false when the store was closed and nobody is left to answer. */
bool store_request_ended(struct job_store *s);

/* A batch with finishes was refused for what may be the data of one. True: try again at once;
 * false: back off. The finish that is to blame may have left the batch. */
bool store_blame(struct job_store *s, const struct err *err);
void store_retry_aside(struct job_store *s, int64_t now_us);
/* Turns the loop at that time. */
void store_arm(struct job_store *s, int64_t at_us);

/* Sends what waits, and answers what can't be sent. */
void store_send_batch(struct job_store *s, int64_t now_us);

/* Reads back the claims in `lost`. */
void store_read_back(struct job_store *s);
/* Asks about finishes and ids that a committed batch didn't settle; takes the recheck. An empty one
 * is just freed; accepts NULL. */
void store_recheck(struct job_store *s, struct recheck *r);
/* Answers claims that are settled, gives the others to the recheck (NULL: no memory for one). */
void store_pass_on_claims(struct job_store *s, struct claim_queue *from, struct recheck *r);

#endif
