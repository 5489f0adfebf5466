/* SPDX-License-Identifier: Apache-2.0
 *
 * Measures how long a job takes to start, in any job system. */
#ifndef CLAIMD_BENCH_LATENCY_H
#define CLAIMD_BENCH_LATENCY_H

#include "bench/workloads.h"

#define LATENCY_WARM_UP 20 /* for first connections, plans, and pages of the history */

/* `insert` returns the id of a job. `started` returns, once the job $1 has ended, when it was
 * started, by CLOCK_BOOTTIME. */
struct latency_jobs {
    struct pg_statement insert;
    struct pg_statement started;
};

/* First runs a warm-up, each job after the end of the one before. If the options have no gap, takes
 * the samples in the same way, with pauses of 20 to 80 ms. Otherwise inserts a job every gap_ms,
 * whether the one before has started or not, and queries nothing before the last one is inserted.
 * Adds p50, p90, p99, and the duration of a commit. */
enum status latency_measure(struct cluster *c, const struct latency_jobs *jobs,
                            const struct bench_options *options, json_t *result,
                            struct err *err) MUST_USE;

#endif
