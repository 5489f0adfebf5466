/* SPDX-License-Identifier: Apache-2.0
 *
 * Days of the history and the vacuum of `job`: slow statements, for a connection of their own that
 * has neither lock nor statement timeout. */
#ifndef CLAIMD_STORE_HISTORY_STORE_H
#define CLAIMD_STORE_HISTORY_STORE_H

#include "model/sweep_clock.h"
#include "store/pg/pg.h"

#define HISTORY_NAME_SIZE 64

/* Makes what is missing of the days from today to `ahead` days on. results[0]: how many it made. */
enum status history_store_ensure(struct pg *pg, int ahead, pg_done_cb *done, void *ctx,
                                 struct err *err) MUST_USE;

/* The days of today and tomorrow, on a connection with timeouts. */
enum status history_store_ensure_now(struct pg *pg, pg_done_cb *done, void *ctx,
                                     struct err *err) MUST_USE;

/* What is said of PostgreSQL's clock beside a list of what is old: the clock as of that list, and
 * what was stored at the last look. */
struct history_clock {
    int64_t now_us;
    struct sweep_clock last;
};
void history_clock_row(const struct pg_result *r, struct history_clock *ret);
/* Stores what came of a look, unless another came between. */
enum status history_store_looked(struct pg *pg, const struct history_clock *clock,
                                 const struct sweep_clock *now, pg_done_cb *done, void *ctx,
                                 struct err *err) MUST_USE;

/* How a day goes: detached without waiting for readers, an interrupted detach finished, dropped. */
enum history_step { HISTORY_ATTACHED, HISTORY_DETACH_PENDING, HISTORY_DETACHED };

struct history_day {
    char name[HISTORY_NAME_SIZE];
    enum history_step step;
};

/* Days older than `keep` days and all rules, empty ones, and interrupted ones; results[0]: a
 * history_clock_row(); results[1]: rows of history_day_row(). */
enum status history_store_old(struct pg *pg, int keep, pg_done_cb *done, void *ctx,
                              struct err *err) MUST_USE;
void history_day_row(const struct pg_result *r, int row, struct history_day *ret);

/* Failed attempts and ended workers older than `keep` days. */
enum status history_store_forget(struct pg *pg, int keep, pg_done_cb *done, void *ctx,
                                 struct err *err) MUST_USE;

/* Counts of jobs that are not kept: minutes become hours, those older than `keep` days go. */
enum status history_store_fold(struct pg *pg, int keep, pg_done_cb *done, void *ctx,
                               struct err *err) MUST_USE;

/* The next step of a day's removal. INVALID: not the name of a day. */
enum status history_store_remove(struct pg *pg, const struct history_day *day, pg_done_cb *done,
                                 void *ctx, struct err *err) MUST_USE;

/* A day of which jobs are deleted whose rules are shorter than those of others. */
struct history_sweep {
    char day[16]; /* 2026-01-31 */
    char rules[40];
    int age_days;
    int64_t page; /* the next one; -1: it has been looked through */
    int64_t deleted;
    int64_t left_over;
};

/* The next one; results[0]: a history_clock_row(); results[1]: at most one row of
 * history_sweep_row(). */
enum status history_store_to_sweep(struct pg *pg, int keep, pg_done_cb *done, void *ctx,
                                   struct err *err) MUST_USE;
void history_sweep_row(const struct pg_result *r, int row, struct history_sweep *ret);

/* Deletes from its next pages; results[0] is for history_sweep_note(). */
enum status history_store_sweep(struct pg *pg, const struct history_sweep *sweep, int keep,
                                pg_done_cb *done, void *ctx, struct err *err) MUST_USE;
void history_sweep_note(const struct pg_result *r, struct history_sweep *sweep);

/* Once it has been looked through: this is recorded, or its dead rows are vacuumed. */
enum status history_store_swept(struct pg *pg, const struct history_sweep *sweep, pg_done_cb *done,
                                void *ctx, struct err *err) MUST_USE;
enum status history_store_vacuum_day(struct pg *pg, const struct history_sweep *sweep,
                                     pg_done_cb *done, void *ctx, struct err *err) MUST_USE;

/* Days that are over get the indexes by which people search: beside everybody else's work, but only
 * once all transactions that are open have ended. Until then it waits, and so does its caller. */
struct history_index {
    char day[HISTORY_NAME_SIZE];
    char column[16];
    bool is_broken; /* an attempt was interrupted: its rest goes first */
};

/* The next one that is missing; results[0]: at most one row of history_index_row(). */
enum status history_store_unindexed(struct pg *pg, pg_done_cb *done, void *ctx,
                                    struct err *err) MUST_USE;
void history_index_row(const struct pg_result *r, int row, struct history_index *ret);

/* Its next step. INVALID: not the name of a day, or no column that is indexed. */
enum status history_store_index(struct pg *pg, const struct history_index *index, pg_done_cb *done,
                                void *ctx, struct err *err) MUST_USE;

/* Dead and live rows of `job`: results[0], columns 0 and 1 (no row: no statistics yet). */
enum status history_store_dead_rows(struct pg *pg, pg_done_cb *done, void *ctx,
                                    struct err *err) MUST_USE;
enum status history_store_vacuum(struct pg *pg, pg_done_cb *done, void *ctx,
                                 struct err *err) MUST_USE;

#endif
