/* SPDX-License-Identifier: Apache-2.0
 *
 * The row of one scheduler process: its status report, for doctor. Nothing is decided by it. */
#ifndef CLAIMD_STORE_SCHEDULER_STORE_H
#define CLAIMD_STORE_SCHEDULER_STORE_H

#include "store/pg/pg.h"

#define SCHEDULER_NEVER INT64_C(-1)

struct scheduler_report {
    const char *scheduler_id; /* uuid text */
    int64_t stale_us;         /* age from which the row counts as stale */
    const char *host;
    const char *version;
    int pid;
    const char *fingerprint; /* of its list of lock nodes */
    int64_t leads_us;        /* how long it has been leading; NEVER = a standby */
    int64_t passed_us;       /* age of the last successful pass */
    int64_t full_age_us;     /* since the last complete full pass began, or since leading began */
    int64_t full_took_us;    /* 0 = there was none */
    int64_t lanes;           /* known to the leader */
    const char *lap_queue;   /* the queue with the longest laps, "" = none has laps */
    int64_t lap_us;          /* how long its longest lap takes */
    int lock_nodes;
    int lock_nodes_voting;
    int64_t clock_step_us;  /* the last jump of PostgreSQL's clock */
    int64_t stepped_us;     /* age of that jump */
    const char *last_error; /* from PostgreSQL; "" = none */
};

/* Ends a report. CONFLICT: the cluster has other lock nodes by now (lock.N8); err names both lists.
 * `pg_us` is PostgreSQL's clock. */
typedef void scheduler_reported_cb(void *ctx, enum status st, int64_t pg_us, const struct err *err);

struct scheduler_saying {
    const char *fingerprint; /* borrowed until `done`, like this struct */
    scheduler_reported_cb *done;
    void *ctx;
};

enum status scheduler_store_report(struct pg *pg, const struct scheduler_report *report,
                                   struct scheduler_saying *saying, struct err *err) MUST_USE;

/* Deletes the row without waiting for the reply: the connection may be closed right after. If the
 * request is lost, the row becomes stale. */
void scheduler_store_gone(struct pg *pg, const char *scheduler_id);

#endif
