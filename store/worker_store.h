/* SPDX-License-Identifier: Apache-2.0
 *
 * The worker's own row: registered once per process under a new worker_id, beaten every 2 s. */
#ifndef CLAIMD_STORE_WORKER_STORE_H
#define CLAIMD_STORE_WORKER_STORE_H

#include "model/job.h"
#include "store/pg/pg.h"

#define WORKER_ID_SIZE 37 /* uuid text */

struct worker_kind { /* what the plugins announce; upserted into `kind` */
    const char *name;
    const char *plugin;
    const char *version;
    struct kind_settings settings;
};

struct worker_registration {
    const char *worker_id;
    const char *host;
    int pid;
    const char *version;
    const char *state_dir;
    const char *token_prefix;
    const char *const *queues;
    size_t queue_count;
    int slots;
    const struct worker_kind *kinds;
    size_t kind_count;
    int64_t stale_us;
    const char *lock_nodes; /* the fingerprint that the cluster was joined with; NULL = "" */
};

/* CONFLICT of a registration: the cluster has other lock nodes by now (lock.N8). */
typedef void worker_done_cb(void *ctx, enum status st, const struct err *err);
enum status worker_store_register(struct pg *pg, const struct worker_registration *r,
                                  worker_done_cb *done, void *ctx, struct err *err) MUST_USE;

#define WORKER_REFUSED_MAX 16 /* files of handlers that are told */

struct worker_beat {
    const char *worker_id;
    int64_t stale_us;
    bool is_quiet;
    bool lost_pop; /* asks the scheduler for a rewind (crash.W0) */
    int running;
    const int64_t *held_fences; /* running for longer than T: what the full pass checks */
    size_t held_count;
    const struct worker_kind *kinds; /* names only are written: the served ones */
    size_t kind_count;
    /* For doctor. */
    int lock_nodes;
    int lock_nodes_voting;
    int uncommitted;            /* ends of runs that wait for their commit … */
    int64_t uncommitted_us;     /* … the oldest for so long */
    const char *trouble;        /* why; NULL = "" */
    const char *const *refused; /* "FILE: why" of each file that is not served */
    size_t refused_count;
    /* For the survey (inv.L9). */
    int spare_least;         /* idle slots for which it had no job, the least since the last beat */
    int64_t ready_oldest_us; /* the oldest claimed job waits for a runner for so long; 0 = none */
};

/* The cancel of this run was asked for. */
struct worker_cancel {
    int64_t id;
    int64_t fence;
};

struct worker_weight {
    const char *queue;
    int weight;
};

struct worker_beat_reply {
    bool is_dead; /* the row is marked dead or gone: start over under a new id */
    const char *const *paused_queues;
    size_t paused_count;
    const struct worker_weight *weights; /* of its queues that have one */
    size_t weight_count;
    const char *const *paused_kinds; /* of the whole cluster */
    size_t paused_kind_count;
    const char *asked;                   /* by an operator: "quiet", "drain"; "" = nothing */
    const struct worker_cancel *cancels; /* of jobs that run under this id */
    size_t cancel_count;
};
typedef void worker_beat_cb(void *ctx, enum status st, const struct worker_beat_reply *reply,
                            const struct err *err);
enum status worker_store_beat(struct pg *pg, const struct worker_beat *b, worker_beat_cb *done,
                              void *ctx, struct err *err) MUST_USE;

/* LISTEN, or UNLISTEN, of this session. */
enum status worker_store_listen(struct pg *pg, const char *channel, bool is_on,
                                worker_done_cb *done, void *ctx, struct err *err) MUST_USE;

/* Clean end: the row says stopped, so nobody waits for its beat to go stale. */
enum status worker_store_stopped(struct pg *pg, const char *worker_id, worker_done_cb *done,
                                 void *ctx, struct err *err) MUST_USE;

/* A restarted worker holds the lock of its state directory, so the predecessor is dead: end its
 * backends, mark it dead, return the ids of the rows running under its id and its token prefix.
 * Then, after the leases were freed, hand back. */
typedef void predecessor_cb(void *ctx, enum status st, const char *token_prefix, const int64_t *ids,
                            size_t count);
enum status worker_store_end_predecessor(struct pg *pg, const char *worker_id, predecessor_cb *done,
                                         void *ctx, struct err *err) MUST_USE;

/* A job that is available again: it lies behind the feed's cursor, so its hint must be pushed. */
struct handed_back {
    int64_t id;
    int64_t ready_at_unix_us;
    int priority;
    const char *queue; /* borrowed, as kind */
    const char *kind;
};
typedef void handed_back_cb(void *ctx, const struct handed_back *job);
/* Calls `each` for the jobs that are available again and for those whose limit that has freed, then
 * `done`. */
enum status worker_store_hand_back_all(struct pg *pg, const char *dead_worker_id,
                                       handed_back_cb *each, worker_done_cb *done, void *ctx,
                                       struct err *err) MUST_USE;

#endif
