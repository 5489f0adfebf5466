/* SPDX-License-Identifier: Apache-2.0
 *
 * Fires the ticks of schedules, and mends schedules. All of it is done in SQL (migrations 0005 and
 * 0020), called by the leading scheduler. */
#ifndef CLAIMD_STORE_SCHEDULE_STORE_H
#define CLAIMD_STORE_SCHEDULE_STORE_H

#include "store/pg/pg.h"

#define SCHEDULES_PER_FIRE 100
#define SCHEDULES_PER_MEND 100
#define SCHEDULE_NAME_MAX 64

enum schedule_outcome {
    SCHEDULE_FIRED,   /* a job was created */
    SCHEDULE_SKIPPED, /* a job of the schedule, or one with its unique key, is still open */
    SCHEDULE_MISSED,  /* ticks from this one on were too late and were left out */
    SCHEDULE_FAILED,  /* tried again later */
    SCHEDULE_OUTCOMES,
    SCHEDULE_NEXT = SCHEDULE_OUTCOMES /* the last row: when the next call is due */
};

struct schedule_event {
    enum schedule_outcome outcome;
    const char *schedule; /* borrowed, like the next two; NULL for NEXT */
    const char *due;      /* in human-readable form */
    const char *error;    /* FAILED: the error; SKIPPED: which job has the unique key, or NULL */
    int64_t job;          /* FIRED */
    int64_t late_us;      /* how long it has been due; below 0: not due yet */
    bool is_never;        /* NEXT: no schedule is waiting */
};

/* Fires ticks; results[0]: rows of schedule_store_event(), the last of which is NEXT. */
enum status schedule_store_fire(struct pg *pg, int64_t timeout_us, pg_done_cb *done, void *ctx,
                                struct err *err) MUST_USE;
void schedule_store_event(const struct pg_result *r, int row, struct schedule_event *ret);
const char *schedule_outcome_text(enum schedule_outcome outcome);

/* A schedule that waited beyond its next tick; borrowed. The last row has no `due`: its name is the
 * one after which to continue, NULL when all schedules have been read. */
struct schedule_mended {
    const char *schedule;
    const char *was; /* in human-readable form, like `due` */
    const char *due;
};

/* Mends schedules after the name `behind` ("" to begin); results[0]: rows of
 * schedule_store_mended(). */
enum status schedule_store_mend(struct pg *pg, const char *behind, int64_t timeout_us,
                                pg_done_cb *done, void *ctx, struct err *err) MUST_USE;
void schedule_store_mended(const struct pg_result *r, int row, struct schedule_mended *ret);

#endif
