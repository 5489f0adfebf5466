/* SPDX-License-Identifier: Apache-2.0
 *
 * Medians and percentiles. Each function sorts its input. */
#ifndef CLAIMD_BENCH_FIGURES_H
#define CLAIMD_BENCH_FIGURES_H

#include <stddef.h>
#include <stdint.h>

/* The results are undefined if count is 0. */
double figures_median(double *values, size_t count);
double figures_percentile(double *values, size_t count, size_t percent);
int64_t figures_percentile_us(int64_t *us, size_t count, size_t percent);

#endif
