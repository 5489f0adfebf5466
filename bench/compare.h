/* SPDX-License-Identifier: Apache-2.0
 *
 * Workloads that are run in turns, A B C A B C …, each time on servers of their own, so that what
 * the machine does meanwhile hits all of them alike, and nothing of one is left for the next. */
#ifndef CLAIMD_BENCH_COMPARE_H
#define CLAIMD_BENCH_COMPARE_H

#include "bench/workloads.h"

struct comparison;

/* What this workload is compared with when --rounds is said; NULL: it has rounds of its own, or
 * none. */
const struct comparison *compare_find(const char *workload);

/* Adds each contender's values, their medians, and the goals. What fails in one round ends it. */
enum status compare(const struct comparison *what, const struct bench_options *options,
                    json_t *result, struct err *err) MUST_USE;

#endif
