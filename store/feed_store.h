/* SPDX-License-Identifier: Apache-2.0
 *
 * What the scheduler asks PostgreSQL in order to feed: a read of the queue, the state of the
 * cluster each second, the hungry flag. Requests are sent, replies are read row by
 * row within the callback of pg_send(); nothing is kept here. */
#ifndef CLAIMD_STORE_FEED_STORE_H
#define CLAIMD_STORE_FEED_STORE_H

#include "model/feed.h"
#include "store/pg/pg.h"

/* First on each new session: one plan per statement for ever, indexes only. */
enum status feed_store_session(struct pg *pg, pg_done_cb *done, void *ctx,
                               struct err *err) MUST_USE;

/* ---- a read: results[0] has feed_read_row()s, results[1] feed_lap_row()s ---- */

enum feed_read_part {
    FEED_READ_NOW,  /* us = PostgreSQL's time, after which nothing was seen */
    FEED_READ_ROW,  /* of range `range`, in order */
    FEED_READ_DUE,  /* us = when the next row of the range falls due */
    FEED_READ_LANE, /* name, priority, share: found in a gap */
};

struct feed_read_row {
    enum feed_read_part part;
    size_t range;
    int64_t id;
    int64_t us;
    const char *name; /* kind of the row, or queue of the lane; borrowed */
    bool is_available;
    int priority;
    int share;
};

#define FEED_READ_LANES_MAX 4096 /* found in one read */

struct feed_read_request {
    const struct feed_range *ranges;
    size_t range_count;
    const struct feed_gap *gaps;
    size_t gap_count;
    const struct feed_served *served; /* whose kinds laps look for */
    int64_t timeout_us;               /* 0 = the connection's default */
};

enum status feed_store_read(struct pg *pg, const struct feed *feed,
                            const struct feed_read_request *request, pg_done_cb *done, void *ctx,
                            struct err *err) MUST_USE;
void feed_read_row(const struct pg_result *r, int row, struct feed_read_row *ret);

/* Where there are ranges of laps, results[1] has their rows. */
struct feed_lap_row {
    size_t range;
    int64_t share;
    int64_t id; /* 0 = the share has none to feed */
    int64_t us;
    const char *kind; /* borrowed */
};
void feed_lap_row(const struct pg_result *r, int row, struct feed_lap_row *ret);

/* ---- each second ---- */

enum feed_tick_part { FEED_TICK_NOW, FEED_TICK_WORKER, FEED_TICK_PAUSED };

/* What there is, so that nobody asks for it where there is none. */
enum feed_tick_work {
    FEED_TICK_RATES = 1,     /* keys with a rate, or jobs that wait for two keys */
    FEED_TICK_WAKES = 2,     /* jobs that may wait no longer for others */
    FEED_TICK_BATCHES = 4,   /* closed, and not over */
    FEED_TICK_SCHEDULES = 8, /* not paused */
    FEED_TICK_NO_DAY = 16,   /* of the history, for today or tomorrow */
    FEED_TICK_HOLD = 32,     /* nothing of the history is deleted */
    FEED_TICK_EXPIRED = 64   /* jobs that have not begun by their deadline */
};

struct feed_tick_row {
    enum feed_tick_part part;
    const char *name;   /* NOW: transactions that write, by commas; worker_id; queue */
    const char *queues; /* WORKER, separated by commas */
    const char *kinds;
    bool is_dead;
    bool is_stale;
    int64_t number; /* NOW: T_max in µs; WORKER: lost pops */
    int64_t age_us; /* WORKER: of its last beat */
    unsigned work;  /* NOW: of enum feed_tick_work */
    int64_t us;     /* NOW: PostgreSQL's time; WORKER: last beat */
};

enum status feed_store_tick(struct pg *pg, pg_done_cb *done, void *ctx, struct err *err) MUST_USE;
void feed_tick_row(const struct pg_result *r, int row, struct feed_tick_row *ret);

/* ---- writes ---- */

/* Frees limits that no run holds, and tells batches of jobs that are gone. */
enum status feed_store_repair(struct pg *pg, pg_done_cb *done, void *ctx, struct err *err) MUST_USE;

/* What keys with a rate, and two keys at once, allow by now, `most` at most: rescue_freed_row(). */
enum status feed_store_next_rated(struct pg *pg, int32_t most, pg_done_cb *done, void *ctx,
                                  struct err *err) MUST_USE;

enum status feed_store_hungry(struct pg *pg, bool is_hungry, pg_done_cb *done, void *ctx,
                              struct err *err) MUST_USE;

#endif
