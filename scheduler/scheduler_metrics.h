/* SPDX-License-Identifier: Apache-2.0
 *
 * The metrics of the scheduler. All names are in scheduler_metrics.c and survey.c, and in
 * docs/metrics.md. The parts keep their own counters, which are copied when a text is made. Without
 * a registry nothing is counted. */
#ifndef CLAIMD_SCHEDULER_SCHEDULER_METRICS_H
#define CLAIMD_SCHEDULER_SCHEDULER_METRICS_H

#include "daemon/daemon_metrics.h"
#include "scheduler/feeder.h"
#include "scheduler/lead.h"
#include "scheduler/rescuer.h"
#include "store/rescue_store.h"

/* Shown through a lease of the telemetry, so that it ends by itself when the loop hangs. */
extern const struct metric_family scheduler_metrics_leader;

struct scheduler_metrics {
    struct metrics *registry;
    struct daemon_metrics daemon;
    struct metric *fed;
    struct metric *rescues[RESCUE_LOST + 1];
    struct metric *workers_dead;
    struct metric *pass_seconds; /* the feeder observes it */
    struct metric *pass_age;
    struct metric *lanes;
    struct metric *full_pass_age;
    struct metric *full_pass_took;
    struct metric *recovered;
};

void scheduler_metrics_init(struct scheduler_metrics *m, struct metrics *registry,
                            const struct config *config);

/* The parts may be NULL until they are open. */
struct scheduler_metrics_facts {
    int64_t feed_age_us; /* age of the last pass */
    bool is_pg_up;
    const struct redlock_async *lock;
    const struct lead *lead;
    const struct feeder *feeder;
    const struct rescuer *rescuer;
};
void scheduler_metrics_collect(struct scheduler_metrics *m,
                               const struct scheduler_metrics_facts *facts);

#endif
