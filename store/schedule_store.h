/* SPDX-License-Identifier: Apache-2.0
 *
 * Firing the ticks of schedules, and mending them: all that is in SQL (migrations 0005 and 0020),
 * for the leading scheduler. */
#ifndef CLAIMD_STORE_SCHEDULE_STORE_H
#define CLAIMD_STORE_SCHEDULE_STORE_H

#include "store/pg/pg.h"

#define SCHEDULES_PER_FIRE 100
#define SCHEDULES_PER_MEND 100
#define SCHEDULE_NAME_MAX 64

enum schedule_outcome {
    SCHEDULE_FIRED,   /* a job was made */
    SCHEDULE_SKIPPED, /* a job of it is still open, or one with its unique key */
    SCHEDULE_MISSED,  /* ticks from here on were too late, and left out */
    SCHEDULE_FAILED,  /* tried again later */
    SCHEDULE_OUTCOMES,
    SCHEDULE_NEXT = SCHEDULE_OUTCOMES /* the last row: when there is something to do again */
};

struct schedule_event {
    enum schedule_outcome outcome;
    const char *schedule; /* borrowed, as the next two; NULL of NEXT */
    const char *due;      /* as people read it */
    const char *error;    /* of FAILED; of SKIPPED: which job has the unique key, or NULL */
    int64_t job;          /* of FIRED */
    int64_t late_us;      /* since it is due; below 0: not yet */
    bool is_never;        /* of NEXT: there is no schedule that waits */
};

/* results[0]: rows of schedule_store_event(), NEXT at the end. */
enum status schedule_store_fire(struct pg *pg, int64_t timeout_us, pg_done_cb *done, void *ctx,
                                struct err *err) MUST_USE;
void schedule_store_event(const struct pg_result *r, int row, struct schedule_event *ret);
const char *schedule_outcome_text(enum schedule_outcome outcome);

/* One that waited beyond its next tick; borrowed. The last row has no `due`: its name is the one
 * behind which to go on, NULL when all have been looked at. */
struct schedule_mended {
    const char *schedule;
    const char *was; /* as people read it, as `due` */
    const char *due;
};

/* results[0]: rows of schedule_store_mended(). `behind`: "" to begin. */
enum status schedule_store_mend(struct pg *pg, const char *behind, int64_t timeout_us,
                                pg_done_cb *done, void *ctx, struct err *err) MUST_USE;
void schedule_store_mended(const struct pg_result *r, int row, struct schedule_mended *ret);

#endif
