/* SPDX-License-Identifier: Apache-2.0
 *
 * Drains that are run in turns, A B C A B C …, each on servers of its own, so that what the machine
 * does meanwhile hits all of them alike, and nothing of one is left for the next. */
#ifndef CLAIMD_BENCH_COMPARE_H
#define CLAIMD_BENCH_COMPARE_H

#include "bench/workloads.h"

/* Adds each contender's values, their medians, and the goals. What fails in one round ends it. */
enum status compare_drains(const struct bench_options *options, json_t *result,
                           struct err *err) MUST_USE;

#endif
