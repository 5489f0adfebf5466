/* SPDX-License-Identifier: Apache-2.0
 *
 * What the scheduler counts: all its names are in meters.c and survey.c, and in docs/metrics.md.
 * Its parts count for themselves; it is taken over when a text is made. Without a registry nothing
 * is counted. */
#ifndef CLAIMD_SCHEDULER_METERS_H
#define CLAIMD_SCHEDULER_METERS_H

#include "daemon/meters.h"
#include "scheduler/feeder.h"
#include "scheduler/lead.h"
#include "scheduler/rescuer.h"
#include "store/rescue_store.h"

/* A lease of the telemetry: ends by itself when the loop hangs. */
extern const struct metric_family meters_leader;

struct meters {
    struct metrics *registry;
    struct daemon_meters daemon;
    struct metric *fed;
    struct metric *rescues[RESCUE_LOST + 1];
    struct metric *workers_dead;
    struct metric *pass_seconds; /* counted by the feeder */
    struct metric *pass_age;
    struct metric *lanes;
    struct metric *full_pass_age;
    struct metric *full_pass_took;
    struct metric *recovered;
};

void meters_init(struct meters *m, struct metrics *registry, const struct config *config);

/* The parts may be NULL, before they are open. */
struct meters_facts {
    int64_t feed_age_us; /* of the last pass */
    bool is_pg_up;
    const struct redlock_async *lock;
    const struct lead *lead;
    const struct feeder *feeder;
    const struct rescuer *rescuer;
};
void meters_collect(struct meters *m, const struct meters_facts *facts);

#endif
