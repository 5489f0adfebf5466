/* SPDX-License-Identifier: Apache-2.0
 *
 * Moves the jobs of dead workers (ARCHITECTURE §6). Replies are read in the callback of pg_send().
 * The caller holds the lease of every job that it moves; the fence decides. */
#ifndef CLAIMD_STORE_RESCUE_STORE_H
#define CLAIMD_STORE_RESCUE_STORE_H

#include "store/pg/pg.h"

#define RESCUE_ROUND_MAX 256

/* A worker that was marked dead.
 *
 * rescue_store_mark_dead() commits `dead` for workers whose heartbeats are still stale; its rows
 * are for rescue_marked_row(). */
struct rescue_marked {
    const char *worker_id;
    const char *host;
    int64_t silent_ms;
};
enum status rescue_store_mark_dead(struct pg *pg, const char *const *worker_ids, size_t count,
                                   pg_done_cb *done, void *ctx, struct err *err) MUST_USE;
void rescue_marked_row(const struct pg_result *r, int row, struct rescue_marked *ret);

/* Sets heartbeats that lie ahead of PostgreSQL's clock, which has gone back, to now. */
enum status rescue_store_pull_heartbeats(struct pg *pg, pg_done_cb *done, void *ctx,
                                         struct err *err) MUST_USE;

/* Records that these dead workers have no jobs left to move. */
enum status rescue_store_swept(struct pg *pg, const char *const *worker_ids, size_t count,
                               pg_done_cb *done, void *ctx, struct err *err) MUST_USE;

enum rescue_why {
    RESCUE_PAGE,    /* not a job: describes the page that was walked */
    RESCUE_DEAD,    /* its worker is dead, unknown or has ended */
    RESCUE_NOT_HELD /* its worker lives but does not know of the job */
};

struct rescue_found {
    enum rescue_why why;
    int64_t id;     /* PAGE: the last id walked, 0 at the end */
    int64_t fence;  /* PAGE: how many jobs were walked */
    int64_t worker; /* a hash of its worker_id */
};

/* Walks over `rows` open jobs after `after_id`; rows: rescue_found_row(). */
enum status rescue_store_walk(struct pg *pg, int64_t after_id, int64_t rows, int64_t held_after_us,
                              pg_done_cb *done, void *ctx, struct err *err) MUST_USE;
void rescue_found_row(const struct pg_result *r, int row, struct rescue_found *ret);

enum rescue_outcome { RESCUE_AVAILABLE, RESCUE_DISCARDED, RESCUE_LOST, RESCUE_LOCKED };

struct rescue_moved {
    int64_t id;
    enum rescue_outcome outcome;
    const char *queue;
    const char *kind;
    int priority;
    int64_t ready_us;
};

/* Moves at most RESCUE_ROUND_MAX jobs, given by id, fence and worker; rows: rescue_moved_row().
 * LOCKED jobs were left alone because another session has locked them. A job without a row no
 * longer runs under that fence. Result RESCUE_STEP_FREED: at most as many jobs whose limit was
 * freed, as rows of rescue_freed_row(); their hints must be pushed, too. */
#define RESCUE_STEP_FREED 2
enum status rescue_store_move(struct pg *pg, const struct rescue_found *jobs, size_t count,
                              pg_done_cb *done, void *ctx, struct err *err) MUST_USE;
void rescue_moved_row(const struct pg_result *r, int row, struct rescue_moved *ret);
void rescue_freed_row(const struct pg_result *r, int row, struct rescue_moved *ret);

#endif
