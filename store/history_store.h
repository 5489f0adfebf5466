/* SPDX-License-Identifier: Apache-2.0
 *
 * The history partitions and the vacuum of `job`: slow statements, for a connection of its own that
 * has neither a lock timeout nor a statement timeout. */
#ifndef CLAIMD_STORE_HISTORY_STORE_H
#define CLAIMD_STORE_HISTORY_STORE_H

#include "model/sweep_clock.h"
#include "store/pg/pg.h"

#define HISTORY_NAME_SIZE 64

/* Creates the missing partitions from today to `ahead` days ahead. results[0]: how many were
 * created. */
enum status history_store_ensure(struct pg *pg, int ahead, pg_done_cb *done, void *ctx,
                                 struct err *err) MUST_USE;

/* Creates the missing partitions of today and tomorrow, on a connection with timeouts. */
enum status history_store_ensure_now(struct pg *pg, pg_done_cb *done, void *ctx,
                                     struct err *err) MUST_USE;

/* The state of PostgreSQL's clock that comes with a list of what is old: the clock at the time of
 * that list, and what the last check stored. */
struct history_clock {
    int64_t now_us;
    struct sweep_clock last;
};
void history_clock_row(const struct pg_result *r, struct history_clock *ret);
/* Stores the result of a check of the clock, unless another check was stored in between. */
enum status history_store_looked(struct pg *pg, const struct history_clock *clock,
                                 const struct sweep_clock *now, pg_done_cb *done, void *ctx,
                                 struct err *err) MUST_USE;

/* The steps of removing a day: detach it without waiting for readers, finish an interrupted detach,
 * drop it. */
enum history_step { HISTORY_ATTACHED, HISTORY_DETACH_PENDING, HISTORY_DETACHED };

struct history_day {
    char name[HISTORY_NAME_SIZE];
    enum history_step step;
};

/* Lists the days that are older than `keep` days and all rules, empty days, and days whose removal
 * was interrupted. results[0]: a history_clock_row(); results[1]: rows of history_day_row(). */
enum status history_store_old(struct pg *pg, int keep, pg_done_cb *done, void *ctx,
                              struct err *err) MUST_USE;
void history_day_row(const struct pg_result *r, int row, struct history_day *ret);

/* Deletes failed attempts and ended workers that are older than `keep` days. */
enum status history_store_forget(struct pg *pg, int keep, pg_done_cb *done, void *ctx,
                                 struct err *err) MUST_USE;

/* Adds up the counts of jobs that are not kept: minutes become hours, and hours older than `keep`
 * days are deleted. */
enum status history_store_fold(struct pg *pg, int keep, pg_done_cb *done, void *ctx,
                               struct err *err) MUST_USE;

/* Takes the next step of removing a day. INVALID: not the name of a day. */
enum status history_store_remove(struct pg *pg, const struct history_day *day, pg_done_cb *done,
                                 void *ctx, struct err *err) MUST_USE;

/* A day from which jobs are deleted whose retention rules are shorter than those of others. */
struct history_sweep {
    char day[16]; /* 2026-01-31 */
    char rules[40];
    int age_days;
    int64_t page; /* the next page; -1: all have been read */
    int64_t deleted;
    int64_t left_over;
};

/* Finds the next day to sweep. results[0]: a history_clock_row(); results[1]: at most one row of
 * history_sweep_row(). */
enum status history_store_to_sweep(struct pg *pg, int keep, pg_done_cb *done, void *ctx,
                                   struct err *err) MUST_USE;
void history_sweep_row(const struct pg_result *r, int row, struct history_sweep *ret);

/* Deletes jobs from the next pages of the day; results[0] is for history_sweep_note(). */
enum status history_store_sweep(struct pg *pg, const struct history_sweep *sweep, int keep,
                                pg_done_cb *done, void *ctx, struct err *err) MUST_USE;
void history_sweep_note(const struct pg_result *r, struct history_sweep *sweep);

/* Called when all pages have been read: records that, or vacuums the day's dead rows. */
enum status history_store_swept(struct pg *pg, const struct history_sweep *sweep, pg_done_cb *done,
                                void *ctx, struct err *err) MUST_USE;
enum status history_store_vacuum_day(struct pg *pg, const struct history_sweep *sweep,
                                     pg_done_cb *done, void *ctx, struct err *err) MUST_USE;

/* The indexes of past days by which people search. They are built without blocking other sessions,
 * but building one waits until all open transactions have ended, and so does its caller. */
struct history_index {
    char day[HISTORY_NAME_SIZE];
    char column[16];
    bool is_broken; /* a try was interrupted: drop what it left first */
};

/* Finds the next missing index; results[0]: at most one row of history_index_row(). */
enum status history_store_unindexed(struct pg *pg, pg_done_cb *done, void *ctx,
                                    struct err *err) MUST_USE;
void history_index_row(const struct pg_result *r, int row, struct history_index *ret);

/* Takes the next step of building it. INVALID: not the name of a day, or not an indexed column. */
enum status history_store_index(struct pg *pg, const struct history_index *index, pg_done_cb *done,
                                void *ctx, struct err *err) MUST_USE;

/* Reads the numbers of dead and live rows of `job`: results[0], columns 0 and 1 (no row: no
 * statistics yet). */
enum status history_store_dead_rows(struct pg *pg, pg_done_cb *done, void *ctx,
                                    struct err *err) MUST_USE;
enum status history_store_vacuum(struct pg *pg, pg_done_cb *done, void *ctx,
                                 struct err *err) MUST_USE;

#endif
