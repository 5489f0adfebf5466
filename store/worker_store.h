/* SPDX-License-Identifier: Apache-2.0
 *
 * The worker's own row: registered once per process under a new worker_id, updated by a heartbeat
 * every 2 s. */
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
    const char *commands; /* worker.commands, as JSON; NULL = none */
    /* the fingerprint with which the worker joined the cluster; NULL = "" */
    const char *lock_nodes;
};

/* CONFLICT, from a registration: the cluster has other lock nodes by now (lock.N8). */
typedef void worker_done_cb(void *ctx, enum status st, const struct err *err);
enum status worker_store_register(struct pg *pg, const struct worker_registration *r,
                                  worker_done_cb *done, void *ctx, struct err *err) MUST_USE;

#define WORKER_REFUSED_MAX 16 /* refused files of handlers that are reported */

struct worker_heartbeat {
    const char *worker_id;
    int64_t stale_us;
    bool is_quiet;
    bool lost_pop; /* requests a full pass from the scheduler (crash.W0) */
    int running;
    /* runs that have lasted longer than T, which a walk of the rescuer checks */
    const int64_t *held_fences;
    size_t held_count;
    const struct worker_kind *kinds; /* the served kinds; only their names are written */
    size_t kind_count;
    /* For doctor: */
    int lock_nodes;
    int lock_nodes_voting;
    int uncommitted;            /* ends of runs that wait for their commit */
    int64_t uncommitted_us;     /* how long the oldest of them has waited */
    const char *trouble;        /* why they wait; NULL = "" */
    const char *const *refused; /* "FILE: why" for each file that is not served */
    size_t refused_count;
    /* For the survey (inv.L9): */
    int spare_least; /* lowest number of idle slots without a job since the last heartbeat */
    /* how long the oldest claimed job has waited for a runner; 0 = none waits */
    int64_t ready_oldest_us;
};

/* A run that is to be cancelled. */
struct worker_cancel {
    int64_t id;
    int64_t fence;
};

struct worker_weight {
    const char *queue;
    int weight;
};

struct worker_heartbeat_reply {
    bool is_dead; /* the row is marked dead or is gone: start over under a new id */
    const char *const *paused_queues;
    size_t paused_count;
    const struct worker_weight *weights; /* those of its queues that have one */
    size_t weight_count;
    const char *const *paused_kinds; /* in the whole cluster */
    size_t paused_kind_count;
    const char *asked;                   /* an operator's request: "quiet", "drain"; "" = none */
    const struct worker_cancel *cancels; /* of jobs that run under this worker's id */
    size_t cancel_count;
};
typedef void worker_heartbeat_cb(void *ctx, enum status st,
                                 const struct worker_heartbeat_reply *reply, const struct err *err);
enum status worker_store_heartbeat(struct pg *pg, const struct worker_heartbeat *b,
                                   worker_heartbeat_cb *done, void *ctx, struct err *err) MUST_USE;

/* Makes this session LISTEN or UNLISTEN. */
enum status worker_store_listen(struct pg *pg, const char *channel, bool is_on,
                                worker_done_cb *done, void *ctx, struct err *err) MUST_USE;

/* Records a clean end in the row, so that its heartbeat need not become stale first. */
enum status worker_store_stopped(struct pg *pg, const char *worker_id, worker_done_cb *done,
                                 void *ctx, struct err *err) MUST_USE;

/* Ends the predecessor of a restarted worker. The worker holds the lock of its state directory, so
 * the predecessor is dead: ends its backends, marks it dead, and returns its token prefix and the
 * ids of the rows that run under its id. After the leases were freed, hand them back. */
typedef void predecessor_cb(void *ctx, enum status st, const char *token_prefix, const int64_t *ids,
                            size_t count);
enum status worker_store_end_predecessor(struct pg *pg, const char *worker_id, predecessor_cb *done,
                                         void *ctx, struct err *err) MUST_USE;

/* A job that is available again. It is behind the feed's cursor, so its hint must be pushed. */
struct handed_back {
    int64_t id;
    int64_t ready_at_unix_us;
    int priority;
    const char *queue; /* borrowed, like kind */
    const char *kind;
};
typedef void handed_back_cb(void *ctx, const struct handed_back *job);
/* Calls `each` for the jobs that are available again and for those whose limit this has freed, then
 * `done`. */
enum status worker_store_hand_back_all(struct pg *pg, const char *dead_worker_id,
                                       handed_back_cb *each, worker_done_cb *done, void *ctx,
                                       struct err *err) MUST_USE;

#endif
