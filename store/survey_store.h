/* SPDX-License-Identifier: Apache-2.0
 *
 * A survey of all queues, for gauges. It reads every open job once, so the caller must make it
 * seldom, and on a connection on which nothing else waits. */
#ifndef CLAIMD_STORE_SURVEY_STORE_H
#define CLAIMD_STORE_SURVEY_STORE_H

#include "store/pg/pg.h"

enum survey_part {
    SURVEY_CLUSTER,
    SURVEY_QUEUE,
    SURVEY_UNSERVED,
    SURVEY_TABLE,
    SURVEY_BESIDE,  /* a job that is due although a worker has an idle slot for it */
    SURVEY_CLAIMED, /* jobs that one worker has claimed although another one could run them */
    SURVEY_MAP
};

struct survey_row {
    enum survey_part part;
    const char *queue;    /* all but CLUSTER, TABLE and MAP; borrowed */
    const char *map;      /* MAP: its name, borrowed */
    const char *kind;     /* UNSERVED */
    int64_t live_workers; /* CLUSTER */
    int64_t stale_workers;
    int64_t days_ahead;
    int64_t available; /* QUEUE, UNSERVED: due jobs */
    int64_t scheduled; /* QUEUE */
    int64_t retryable;
    int64_t waiting; /* for other jobs */
    int64_t running;
    int64_t oldest_due_us; /* QUEUE: how long the oldest has been due; 0 = none is due */
    bool is_paused;
    int64_t oldest_running_us; /* QUEUE: how long the oldest has run; 0 = none runs */
    int64_t table_bytes;       /* TABLE: of open jobs */
    int64_t dead_rows;
    int64_t inserted;
    int64_t job; /* BESIDE: the job, as it is now */
    int64_t version;
    int64_t fence;
    /* BESIDE: how long the worker has had an idle slot; CLAIMED: how long both conditions have
     * lasted */
    int64_t idle_us;
    int64_t open; /* MAP: rows that have not ended, and how the others did */
    int64_t completed;
    int64_t failed;
    int64_t cancelled;
};

/* Makes a survey. The rows are in results[SURVEY_RESULT]. At most SURVEY_QUEUES_MAX queues have
 * rows of their own; those with fewer open jobs are combined into one row, "other". */
#define SURVEY_RESULT 1
#define SURVEY_QUEUES_MAX 39
#define SURVEY_UNSERVED_MAX 200
#define SURVEY_MAPS_MAX 50 /* the newest */
enum status survey_store_read(struct pg *pg, int64_t timeout_us, pg_done_cb *done, void *ctx,
                              struct err *err) MUST_USE;
void survey_store_row(const struct pg_result *r, int row, struct survey_row *ret);

#endif
