/* SPDX-License-Identifier: Apache-2.0
 *
 * Parts of results that several workloads share. */
#ifndef CLAIMD_BENCH_REPORT_H
#define CLAIMD_BENCH_REPORT_H

#include "bench/cluster.h"

#include <jansson.h>

/* Sorts the times; adds `<prefix>p50_ms`, p90, p99 and max. `count` must not be 0. */
void report_times(json_t *result, const char *prefix, int64_t *us, size_t count);

/* Adds the CPU time per job by kind of process; returns the sum. */
double report_cpu(json_t *result, const struct cluster_cpu *from, const struct cluster_cpu *to,
                  double jobs);

#endif
