/* SPDX-License-Identifier: Apache-2.0
 *
 * Parts of a drain, for other workloads that drain. */
#ifndef CLAIMD_BENCH_DRAIN_H
#define CLAIMD_BENCH_DRAIN_H

#include "bench/cluster.h"

#include <jansson.h>

/* Runs ANALYZE on the open jobs, and a checkpoint. */
enum status drain_settle(struct cluster *c, struct err *err) MUST_USE;

/* Inserts no-op jobs, and calls drain_settle(). */
enum status drain_fill(struct cluster *c, int64_t jobs, struct err *err) MUST_USE;

/* Starts the daemons; returns when all workers have registered and are idle. */
enum status drain_start_workers(struct cluster *c, struct err *err) MUST_USE;

/* Waits until no job is open. TIMEOUT if no claim was made for a minute. */
enum status drain_wait(struct cluster *c, struct err *err) MUST_USE;
/* Waits only for jobs with greater ids. */
enum status drain_wait_beyond(struct cluster *c, int64_t id, struct err *err) MUST_USE;

/* Reads a row of numbers into c->db.row, and counts the lock keys that are left on all masters. */
enum status drain_read_totals(struct cluster *c, const struct pg_statement *statement, int columns,
                              int64_t *ret_lock_keys, struct err *err) MUST_USE;

/* Checks that `jobs` jobs came in, all were completed at their first attempt, none is open, and no
 * lock key is left; else CONFLICT. Daemons must have ended. */
enum status drain_reconcile(struct cluster *c, int64_t jobs, json_t *result,
                            struct err *err) MUST_USE;

/* One of several compared drains. The daemons are started for each. */
struct drain_plan {
    int64_t jobs;
    const struct pg_statement *insert; /* $1 = number of jobs, int8; NULL: plain no-op jobs */
    bool waits_for_workers;            /* no job is claimed before all workers are registered */
    /* Jobs that the same daemons drain first, so that their programs have started; $1 =
     * `warm_jobs`. NULL: none. Implies waits_for_workers. */
    const struct pg_statement *warm_insert;
    int64_t warm_jobs;
    void (*on_running)(void *ctx, bool is_running); /* may be NULL */
    void *ctx;
};

struct drain_speed {
    double jobs_per_s;
    double cpu_us_per_job; /* of all processes except this one */
    double postgres_us_per_job;
    double commits_per_job; /* by the daemons */
    double redis_commands_per_job;
};

/* Runs the drain. CONFLICT: not all jobs were completed at their first attempt. */
enum status drain_timed(struct cluster *c, const struct drain_plan *plan, struct drain_speed *ret,
                        struct err *err) MUST_USE;

#endif
