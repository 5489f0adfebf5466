/* SPDX-License-Identifier: Apache-2.0
 *
 * What a registry is made of; shared by metrics.c, which counts, and render.c, which only reads. */
#ifndef CLAIMD_METRICS_SERIES_H
#define CLAIMD_METRICS_SERIES_H

#include "metrics/metrics.h"

#define METRIC_VALUE_MAX 256 /* octets of a label's value; longer ones are cut */
#define METRIC_BUCKETS 64    /* of the table of a family's series */

struct metric {
    const struct metric_family *family;
    struct metric *next;             /* in the order of creation */
    struct metric *same_hash;        /* in the same bucket */
    char *values[METRIC_LABELS_MAX]; /* owned; as they were given */
    uint64_t total;                  /* of a counter; of a histogram, how many were observed */
    double number;      /* of a gauge; of a histogram, their sum; of a counter, its seconds */
    size_t bound_count; /* of a histogram */
    uint64_t counts[];  /* … how many up to each bound and above the one before */
};

struct metric_set {
    const struct metric_family *family;
    struct metric_set *next;
    struct metric *first;
    struct metric *last;
    size_t count;
    struct metric *by_hash[METRIC_BUCKETS];
};

struct metrics {
    struct metric_set *first;
    struct metric_set *last;
};

const double *metric_bounds(const struct metric_family *family);

#endif
