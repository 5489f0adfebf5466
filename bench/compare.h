/* SPDX-License-Identifier: Apache-2.0
 *
 * Drains that take turns, A B C A B C …, each on servers of its own: other load on the machine
 * affects all of them alike, and no drain leaves anything behind for the next one. */
#ifndef CLAIMD_BENCH_COMPARE_H
#define CLAIMD_BENCH_COMPARE_H

#include "bench/workloads.h"

/* Adds each contender's values, their medians, and the goals. What fails in one round ends it. */
enum status compare_drains(const struct bench_options *options, json_t *result,
                           struct err *err) MUST_USE;

#endif
