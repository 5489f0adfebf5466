/* SPDX-License-Identifier: Apache-2.0
 *
 * The metrics of a process, and their text for Prometheus (exposition format 0.0.4:
 * https://prometheus.io/docs/instrumenting/exposition_formats/). A family is a constant in the code
 * that counts. Each of its series (one per combination of label values) is looked up once and then
 * counted through its pointer: one addition, no lock, no allocation. Everything here belongs to the
 * loop's thread; other threads see only a text that was rendered for them (INTERFACES rule 10).
 *
 *   static const struct metric_family finished = {.name = "claimd_jobs_finished_total",
 *       .help = "…", .type = METRIC_COUNTER, .labels = {"kind", "outcome"}};
 *   metric_add(metrics_series(m, &finished, "checksum", "completed"), 1);
 *
 * Names follow https://prometheus.io/docs/practices/naming/; docs/metrics.md lists all of them, and
 * a test compares. Label values (kinds, queues, nodes) come from outside, so they are escaped, and
 * a family holds at most METRICS_SERIES_MAX series. Beyond that, counters and histograms are
 * counted under "other", and gauges are dropped. */
#ifndef CLAIMD_METRICS_METRICS_H
#define CLAIMD_METRICS_METRICS_H

#include "base/buf.h"

#include <stdint.h>

#define METRICS_SERIES_MAX 200 /* per family */
#define METRIC_LABELS_MAX 3

enum metric_type { METRIC_COUNTER, METRIC_GAUGE, METRIC_HISTOGRAM };

struct metric_family {
    const char *name; /* unique in a registry, "claimd_…"; a counter's ends in _total */
    const char *help;
    enum metric_type type;
    const char *labels[METRIC_LABELS_MAX]; /* NULL = no such label */
    /* histograms: increasing upper bounds, ended by 0; NULL = metric_seconds */
    const double *bounds;
};

/* Bounds from 100 µs to 1 h, for all durations from a lock to a job. */
extern const double metric_seconds[];

struct metrics;
struct metric; /* one series, owned by its registry */

enum status metrics_open(struct metrics **ret, struct err *err) MUST_USE;
void metrics_close(struct metrics *m); /* accepts NULL */

/* Returns the series with these label values (NULL for a label that the family doesn't have),
 * creating it at first use. Returns NULL without a registry or memory; all functions below accept
 * that and count nothing. */
struct metric *metrics_series(struct metrics *m, const struct metric_family *family,
                              const char *value1, const char *value2);
struct metric *metrics_series_of(struct metrics *m, const struct metric_family *family,
                                 const char *const given[METRIC_LABELS_MAX]);

void metric_add(struct metric *counter, uint64_t n);
/* Sets a counter to the total that is kept elsewhere. */
void metric_take(struct metric *counter, uint64_t total);
void metric_take_us(struct metric *counter, int64_t total_us); /* a duration, exported in seconds */
void metric_set(struct metric *gauge, double value);
void metric_raise(struct metric *gauge, double value);        /* keeps a larger value */
void metric_observe_us(struct metric *histogram, int64_t us); /* a duration, exported in seconds */
void metric_observe(struct metric *histogram, double value);

/* Deletes all series of a family, such as gauges per queue whose queues may no longer exist.
 * Pointers to them become invalid. */
void metrics_forget(struct metrics *m, const struct metric_family *family);

/* Appends the text of all families, in the order of their first use. Returns LIMIT if `out` is
 * full. */
enum status metrics_render(const struct metrics *m, struct buf *out, struct err *err) MUST_USE;

#endif
