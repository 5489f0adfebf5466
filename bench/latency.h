/* SPDX-License-Identifier: Apache-2.0
 *
 * How long a job takes to start, whoever runs it. */
#ifndef CLAIMD_BENCH_LATENCY_H
#define CLAIMD_BENCH_LATENCY_H

#include "bench/workloads.h"

#define LATENCY_WARM_UP 20 /* first connections, first plans, first pages of the history */

/* `insert` returns a job's id; `started`, once the job $1 has ended, when it was started, by
 * CLOCK_BOOTTIME. */
struct latency_jobs {
    struct pg_statement insert;
    struct pg_statement started;
};

/* A warm-up, one job after the end of the other. Then the samples: without a gap in the options
 * like that too, with pauses of 20 to 80 ms; else one every so many ms, whether the one before has
 * started or not, and nothing is asked before the last was inserted. Adds p50, p90, p99, and what a
 * commit costs. */
enum status latency_measure(struct cluster *c, const struct latency_jobs *jobs,
                            const struct bench_options *options, json_t *result,
                            struct err *err) MUST_USE;

#endif
