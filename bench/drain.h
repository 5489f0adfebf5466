/* SPDX-License-Identifier: Apache-2.0
 *
 * Parts of a drain, for workloads that drain as well. */
#ifndef CLAIMD_BENCH_DRAIN_H
#define CLAIMD_BENCH_DRAIN_H

#include "bench/cluster.h"

#include <jansson.h>

/* Statistics of the open jobs, and a checkpoint. */
enum status drain_settle(struct cluster *c, struct err *err) MUST_USE;

/* Inserts no-op jobs, and settles. */
enum status drain_fill(struct cluster *c, int64_t jobs, struct err *err) MUST_USE;

/* Starts the daemons, until all workers have registered themselves and have come to rest. */
enum status drain_start_workers(struct cluster *c, struct err *err) MUST_USE;

/* Until no job is open. TIMEOUT when no claim was made for a minute. */
enum status drain_wait(struct cluster *c, struct err *err) MUST_USE;
/* The same of jobs with greater ids. */
enum status drain_wait_beyond(struct cluster *c, int64_t id, struct err *err) MUST_USE;

/* A row of numbers, then in c->db.row, and how many lock keys are left on all masters. */
enum status drain_read_books(struct cluster *c, const struct pg_statement *statement, int columns,
                             int64_t *ret_lock_keys, struct err *err) MUST_USE;

/* So many jobs came in, all were completed at their first attempt, nothing is open, no lock key is
 * left; else CONFLICT. Daemons must have ended. */
enum status drain_reconcile(struct cluster *c, int64_t jobs, json_t *result,
                            struct err *err) MUST_USE;

/* One of several drains that are compared. The daemons are started for each. */
struct drain_plan {
    int64_t jobs;
    const struct pg_statement *insert; /* $1 = how many, int8; NULL: no-op jobs without anything */
    bool waits_for_workers;            /* no job is claimed before all of them are there */
    /* Jobs that are drained before, by the same daemons, so that their programs have started; $1 as
     * above, `warm_jobs`. NULL: none. With these it waits for workers. */
    const struct pg_statement *warm_insert;
    int64_t warm_jobs;
    void (*on_running)(void *ctx, bool is_running); /* may be NULL */
    void *ctx;
};

struct drain_speed {
    double jobs_per_s;
    double cpu_us_per_job; /* of all processes but this one */
    double postgres_us_per_job;
    double commits_per_job; /* of the daemons */
    double redis_commands_per_job;
};

/* CONFLICT: not all jobs were done at their first attempt. */
enum status drain_timed(struct cluster *c, const struct drain_plan *plan, struct drain_speed *ret,
                        struct err *err) MUST_USE;

#endif
