/* SPDX-License-Identifier: Apache-2.0
 *
 * Parts of a drain, for workloads that drain as well. */
#ifndef CLAIMD_BENCH_DRAIN_H
#define CLAIMD_BENCH_DRAIN_H

#include "bench/cluster.h"

/* Inserts no-op jobs, and settles: statistics, a checkpoint. */
enum status drain_fill(struct cluster *c, int64_t jobs, struct err *err) MUST_USE;

/* Until no job is open. TIMEOUT when no claim was made for a minute. */
enum status drain_wait(struct cluster *c, struct err *err) MUST_USE;

#endif
