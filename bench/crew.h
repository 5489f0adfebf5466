/* SPDX-License-Identifier: Apache-2.0
 *
 * Forked processes that begin together: the clients of a load. Each prepares, waits until all are
 * ready, works, and waits until all have ended, so that the servers' consumption can be read before
 * their sessions are closed. They die with us. */
#ifndef CLAIMD_BENCH_CREW_H
#define CLAIMD_BENCH_CREW_H

#include "bench/cluster.h"

#define CREW_MAX 64
#define CREW_COUNTS 4

struct crew_member {
    size_t index;
    int64_t counts[CREW_COUNTS]; /* the work decides what they count */
    int report_fd;
    int start_fd;   /* one byte: begin; end of file: end */
    int64_t cpu_us; /* CPU time at the beginning */
};

/* Runs in a process of its own: prepares, calls crew_ready(), works, calls crew_done(), and cleans
 * up. It must not use the cluster's loop and sessions. */
typedef enum status crew_work_fn(const void *ctx, struct crew_member *self, struct err *err);

/* The first returns when all members are ready, the second when all have done their work. */
enum status crew_ready(struct crew_member *self, struct err *err) MUST_USE;
enum status crew_done(struct crew_member *self, struct err *err) MUST_USE;

struct crew_result {
    int64_t us; /* from the common start to the end of the last member */
    int64_t cpu_us;
    int64_t postgres_us; /* CPU of the cluster's servers in that time */
    int64_t redis_us;
    int64_t counts[CREW_COUNTS]; /* sums */
};

struct crew {
    pid_t pids[CREW_MAX];
    size_t count;
    bool is_done;
    int report_fd; /* −1 = not open, also for start_fd */
    int start_fd;
    int64_t start_us;
    struct cluster_cpu before;
    struct crew_result result;
};

/* Starts the members; all are ready when it returns. `ctx` must live as long as they do. Close it
 * in any case. */
enum status crew_open(struct crew *crew, struct cluster *c, size_t count, crew_work_fn *work,
                      const void *ctx, struct err *err) MUST_USE;
enum status crew_start(struct crew *crew, const struct cluster *c, struct err *err) MUST_USE;
/* Waits until all are done. Ends with the first failure of a member, and reports that member's
 * reason. */
enum status crew_wait(struct crew *crew, struct cluster *c, struct err *err) MUST_USE;
void crew_close(struct crew *crew); /* kills the members that still run */

/* Does all of the above. */
enum status crew_run(struct cluster *c, size_t count, crew_work_fn *work, const void *ctx,
                     struct crew_result *ret, struct err *err) MUST_USE;

#endif
