/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/figures.h"

#include <stdlib.h>

static int by_value(const void *a, const void *b)
{
    const double *x = a;
    const double *y = b;
    return (*x > *y) - (*x < *y);
}

static int by_time(const void *a, const void *b)
{
    const int64_t *x = a;
    const int64_t *y = b;
    return (*x > *y) - (*x < *y);
}

static size_t place(size_t count, size_t percent)
{
    size_t at = percent * count / 100;
    return at < count ? at : count - 1;
}

double figures_median(double *values, size_t count)
{
    qsort(values, count, sizeof values[0], by_value);
    return count % 2 == 1 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}

double figures_percentile(double *values, size_t count, size_t percent)
{
    qsort(values, count, sizeof values[0], by_value);
    return values[place(count, percent)];
}

int64_t figures_percentile_us(int64_t *us, size_t count, size_t percent)
{
    qsort(us, count, sizeof us[0], by_time);
    return us[place(count, percent)];
}
