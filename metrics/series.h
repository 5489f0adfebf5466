/* SPDX-License-Identifier: Apache-2.0
 *
 * The structs of a registry, shared by metrics.c, which counts, and render.c, which only reads. */
#ifndef CLAIMD_METRICS_SERIES_H
#define CLAIMD_METRICS_SERIES_H

#include "metrics/metrics.h"

#define METRIC_VALUE_MAX 256 /* bytes of a label value; longer ones are truncated */
#define METRIC_BUCKETS 64    /* of the hash table of a family's series */

struct metric {
    const struct metric_family *family;
    struct metric *next;             /* in order of creation */
    struct metric *same_hash;        /* in the same hash bucket */
    char *values[METRIC_LABELS_MAX]; /* owned; not escaped */
    uint64_t total;     /* a counter's value, or a histogram's number of observations */
    double number;      /* a gauge's value, a histogram's sum, or a counter's seconds */
    size_t bound_count; /* of a histogram */
    uint64_t counts[];  /* a histogram's observations per bucket; not cumulative */
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
