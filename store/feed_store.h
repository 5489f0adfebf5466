/* SPDX-License-Identifier: Apache-2.0
 *
 * The scheduler's requests to PostgreSQL for feeding: reads of the queue, the state of the cluster
 * each second, the hungry flag. Replies are read row by row in the callback of pg_send(); nothing
 * is kept here. */
#ifndef CLAIMD_STORE_FEED_STORE_H
#define CLAIMD_STORE_FEED_STORE_H

#include "model/feed.h"
#include "store/pg/pg.h"

/* Sets up a session; call it first on each new one. From then on each statement is planned only
 * once, with indexes only. */
enum status feed_store_session(struct pg *pg, pg_done_cb *done, void *ctx,
                               struct err *err) MUST_USE;

/* ---- a read: results[0] holds rows of feed_read_row(), results[1] rows of feed_lap_row() ---- */

enum feed_read_part {
    FEED_READ_NOW,  /* us = PostgreSQL's time; later rows were not seen */
    FEED_READ_ROW,  /* a row of range `range`, in order */
    FEED_READ_DUE,  /* us = when the next row of the range becomes due */
    FEED_READ_LANE, /* name, priority, share of a lane found in a gap */
};

struct feed_read_row {
    enum feed_read_part part;
    size_t range;
    int64_t id;
    int64_t us;
    const char *name; /* kind of the row, or queue of the lane; borrowed */
    bool wants_hint;
    int priority;
    int share;
};

#define FEED_READ_LANES_MAX 4096 /* lanes found by one read */

struct feed_read_request {
    const struct feed_range *ranges;
    size_t range_count;
    const struct feed_gap *gaps;
    size_t gap_count;
    const struct feed_served *served; /* the kinds that laps look for */
    int64_t timeout_us;               /* 0 = the connection's default */
};

enum status feed_store_read(struct pg *pg, const struct feed *feed,
                            const struct feed_read_request *request, pg_done_cb *done, void *ctx,
                            struct err *err) MUST_USE;
void feed_read_row(const struct pg_result *r, int row, struct feed_read_row *ret);

/* One row of results[1], which exists only if there are ranges of laps. */
struct feed_lap_row {
    size_t range;
    int64_t share;
    int64_t id; /* 0 = the share has no job to feed */
    int64_t us;
    const char *kind; /* borrowed */
};
void feed_lap_row(const struct pg_result *r, int row, struct feed_lap_row *ret);

/* ---- each second ---- */

enum feed_tick_part { FEED_TICK_NOW, FEED_TICK_WORKER, FEED_TICK_PAUSED };

/* The kinds of work that exist, so that no service sends PostgreSQL a useless query. */
enum feed_tick_work {
    FEED_TICK_RATES = 1,     /* jobs that wait for their keys */
    FEED_TICK_WAKES = 2,     /* jobs that may be able to stop waiting for others */
    FEED_TICK_BATCHES = 4,   /* batches that are closed but not over */
    FEED_TICK_SCHEDULES = 8, /* schedules that are not paused */
    FEED_TICK_NO_DAY = 16,   /* the history partition of today or tomorrow is missing */
    FEED_TICK_HOLD = 32,     /* nothing may be deleted from the history */
    FEED_TICK_EXPIRED = 64,  /* jobs that have not begun by their deadline */
    FEED_TICK_MAPS = 128     /* maps that are not done */
};

struct feed_tick_row {
    enum feed_tick_part part;
    /* NOW: writing transactions, separated by commas; WORKER: worker_id; PAUSED: queue */
    const char *name;
    const char *queues; /* WORKER: separated by commas, like kinds */
    const char *kinds;
    bool is_dead;
    bool is_stale;
    int64_t number; /* NOW: T_max in µs; WORKER: lost pops */
    int64_t age_us; /* WORKER: age of its last heartbeat */
    unsigned work;  /* NOW: bits of enum feed_tick_work */
    int64_t us;     /* NOW: PostgreSQL's time; WORKER: time of its last heartbeat */
};

enum status feed_store_tick(struct pg *pg, pg_done_cb *done, void *ctx, struct err *err) MUST_USE;
void feed_tick_row(const struct pg_result *r, int row, struct feed_tick_row *ret);

/* ---- writes ---- */

/* Frees limits that no run holds, and updates batches whose jobs no longer exist. */
enum status feed_store_repair(struct pg *pg, pg_done_cb *done, void *ctx, struct err *err) MUST_USE;

/* Lists the jobs that have waited for their keys and may start by now, at most `most`, as rows of
 * rescue_freed_row(). */
enum status feed_store_next_rated(struct pg *pg, int32_t most, pg_done_cb *done, void *ctx,
                                  struct err *err) MUST_USE;

enum status feed_store_hungry(struct pg *pg, bool is_hungry, pg_done_cb *done, void *ctx,
                              struct err *err) MUST_USE;

#endif
