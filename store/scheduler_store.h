/* SPDX-License-Identifier: Apache-2.0
 *
 * The row of one scheduler process: what it says of itself, for doctor. Nothing is decided by
 * it. */
#ifndef CLAIMD_STORE_SCHEDULER_STORE_H
#define CLAIMD_STORE_SCHEDULER_STORE_H

#include "store/pg/pg.h"

#define SCHEDULER_NEVER INT64_C(-1)

struct scheduler_report {
    const char *scheduler_id; /* uuid text */
    int64_t stale_us;         /* from when on it counts as silent */
    const char *host;
    const char *version;
    int pid;
    const char *fingerprint; /* of its list of lock nodes */
    int64_t leads_us;        /* for so long; NEVER: a standby */
    int64_t passed_us;       /* the last good pass was so long ago */
    int64_t full_age_us;     /* since the last complete full pass began, else since it leads */
    int64_t full_took_us;    /* 0 = there was none */
    int64_t lanes;           /* that the leader knows */
    const char *lap_queue;   /* the queue with the longest laps, "" = none has any … */
    int64_t lap_us;          /* … and how long one takes */
    int lock_nodes;
    int lock_nodes_voting;
    int64_t clock_step_us;  /* the last jump of PostgreSQL's clock, … */
    int64_t stepped_us;     /* … so long ago */
    const char *last_error; /* of PostgreSQL; "" = none */
};

/* CONFLICT: the cluster has other lock nodes by now (lock.N8); err names both lists. `pg_us` is
 * PostgreSQL's clock. */
typedef void scheduler_reported_cb(void *ctx, enum status st, int64_t pg_us, const struct err *err);

struct scheduler_saying {
    const char *fingerprint; /* borrowed until `done`, as is this struct */
    scheduler_reported_cb *done;
    void *ctx;
};

enum status scheduler_store_report(struct pg *pg, const struct scheduler_report *report,
                                   struct scheduler_saying *saying, struct err *err) MUST_USE;

/* Sent, and not waited for: the connection may be closed right after. Where that loses it, the row
 * goes stale. */
void scheduler_store_gone(struct pg *pg, const char *scheduler_id);

#endif
