/* SPDX-License-Identifier: Apache-2.0
 *
 * What a process counts, and its text for Prometheus (exposition format 0.0.4:
 * https://prometheus.io/docs/instrumenting/exposition_formats/). A family is a constant of the code
 * that counts. A series of it (one value per label) is looked up once and then counted through its
 * pointer: an add, no lock, no allocation. Everything here belongs to the loop's thread; other
 * threads see only a text that was rendered for them (INTERFACES rule 10).
 *
 *     static const struct metric_family finished = {.name = "claimd_jobs_finished_total",
 *         .help = "…", .type = METRIC_COUNTER, .labels = {"kind", "outcome"}};
 *     metric_add(metrics_series(m, &finished, "checksum", "completed"), 1);
 *
 * Names follow https://prometheus.io/docs/practices/naming/; all are listed in docs/metrics.md, and
 * a test compares. Label values come from outside (kinds, queues, nodes): they are escaped, and a
 * family holds METRICS_SERIES_MAX series; further ones are counted under "other", except gauges,
 * which are left out. */
#ifndef CLAIMD_METRICS_METRICS_H
#define CLAIMD_METRICS_METRICS_H

#include "base/buf.h"

#include <stdint.h>

#define METRICS_SERIES_MAX 200 /* per family */
#define METRIC_LABELS_MAX 3

enum metric_type { METRIC_COUNTER, METRIC_GAUGE, METRIC_HISTOGRAM };

struct metric_family {
    const char *name; /* unique in a registry, "claimd_…"; counters end in _total */
    const char *help;
    enum metric_type type;
    const char *labels[METRIC_LABELS_MAX]; /* NULL = no such label */
    const double *bounds; /* histograms: upper bounds, rising, 0-ended; NULL = metric_seconds */
};

/* 100 µs to 1 h, for durations of everything from a lock to a job. */
extern const double metric_seconds[];

struct metrics;
struct metric; /* one series, owned by its registry */

enum status metrics_open(struct metrics **ret, struct err *err) MUST_USE;
void metrics_close(struct metrics *m); /* NULL is fine */

/* The series of these label values (NULL for a label that the family doesn't have), made at its
 * first use. NULL without a registry or memory: every function below takes that as "not
 * counted". */
struct metric *metrics_series(struct metrics *m, const struct metric_family *family,
                              const char *value1, const char *value2);
struct metric *metrics_series_of(struct metrics *m, const struct metric_family *family,
                                 const char *const given[METRIC_LABELS_MAX]);

void metric_add(struct metric *counter, uint64_t n);
/* Takes over the present value of a counter that is kept elsewhere. */
void metric_take(struct metric *counter, uint64_t total);
void metric_take_us(struct metric *counter, int64_t total_us); /* a duration; shown in seconds */
void metric_set(struct metric *gauge, double value);
void metric_raise(struct metric *gauge, double value);        /* unless it has more */
void metric_observe_us(struct metric *histogram, int64_t us); /* a duration; shown in seconds */
void metric_observe(struct metric *histogram, double value);

/* Forgets all series of a family, such as gauges per queue whose queues may be gone by now. Their
 * pointers are invalid afterwards. */
void metrics_forget(struct metrics *m, const struct metric_family *family);

/* Appends the text of all families, in the order of their first use. LIMIT when `out` is full. */
enum status metrics_render(const struct metrics *m, struct buf *out, struct err *err) MUST_USE;

#endif
