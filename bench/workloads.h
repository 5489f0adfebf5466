/* SPDX-License-Identifier: Apache-2.0
 *
 * The workloads; bench/README.md describes what each measures. */
#ifndef CLAIMD_BENCH_WORKLOADS_H
#define CLAIMD_BENCH_WORKLOADS_H

#include "bench/cluster.h"

#include <jansson.h>

struct bench_options {
    int64_t jobs;
    int64_t samples;
    int64_t seconds;
    int64_t rounds;
    int64_t rate;
    bool has_rounds; /* --rounds was given: drain then compares, in turns */
    int64_t gap_ms;  /* latency: between inserts; 0: one job after the end of the other */
    bool is_json;
    bool is_quick;
    bool is_busy_fine;
    const char *results; /* all: the folder for results, or NULL */
    bool is_unkept;
    const char *only; /* --only: a part of the names to run; NULL = all */
    struct cluster_options cluster;
};

/* Receives an open cluster without daemons, and adds its findings to `result`. CONFLICT: it ran to
 * its end, but the totals do not match. */
typedef enum status workload_fn(struct cluster *c, const struct bench_options *options,
                                json_t *result, struct err *err);

workload_fn drain_run;
workload_fn latency_run;
workload_fn idle_run;
workload_fn scraped_run;
workload_fn fairness_run;
workload_fn features_run;
workload_fn scale_run;
workload_fn limit_run;
workload_fn peers_run;
workload_fn realistic_run;
workload_fn start_run;
workload_fn strategies_run;
workload_fn skip_locked_run; /* one of the strategies: in batches, by 4 clients */
workload_fn steady_run;
workload_fn enqueue_run;
workload_fn horizon_run;
workload_fn backlog_run;
workload_fn deferred_run;
workload_fn hoard_run;
workload_fn far_run;
workload_fn handlers_run;
workload_fn map_run;
workload_fn peers_python_run; /* the part of peers with handlers in Python, for claimd as well */

/* These need no cluster and print their own results; they return the exit code. */
int locks_run(const struct bench_options *options);
int all_run(const struct bench_options *options);

/* Adds the peak sizes of the daemons, which must still run. */
void workload_add_rss(const struct cluster *c, json_t *result);

/* ---- compare.c ---- */
/* Adds each contender's values, their medians, and the goals. A failure in one round ends it. */
enum status compare_drains(const struct bench_options *options, json_t *result,
                           struct err *err) MUST_USE;

/* ---- plots.c ---- */
/* Writes throughput, scale and start (.dat) into the folder, as far as there are results for them,
 * and draws each as .svg if gnuplot is installed. */
void plots_draw(const char *folder, const json_t *results);

/* ---- quiet.c ---- */
/* Observes for three seconds. *ret_share = share of all CPU time that was used, including by other
 * users of the same hardware. `ret_who` names the process that used most. UNAVAILABLE: /proc cannot
 * be read. */
enum status quiet_look(double *ret_share, char *ret_who, size_t size, struct err *err) MUST_USE;

#endif
