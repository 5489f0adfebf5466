/* SPDX-License-Identifier: Apache-2.0
 *
 * A scheduler's parts, for scheduler.c and telemetry.c. */
#ifndef CLAIMD_SCHEDULER_SCHEDULER_INTERNAL_H
#define CLAIMD_SCHEDULER_SCHEDULER_INTERNAL_H

#include "daemon/daemon.h"
#include "daemon/telemetry.h"
#include "scheduler/news.h"
#include "scheduler/report.h"
#include "scheduler/roll_call.h"
#include "scheduler/scheduler.h"
#include "scheduler/scheduler_metrics.h"
#include "scheduler/services.h"
#include "store/cluster_store.h"

#define CONNINFO_MAX (2 * CONFIG_PATH_MAX)

enum stage { STAGE_STARTING, STAGE_READY, STAGE_STOPPING };

struct scheduler {
    const struct config *config;
    uv_loop_t loop;
    uv_signal_t signals[3];
    uv_timer_t reload;
    uv_timer_t deadline; /* of the start, of what `ready` tells, then of the end */
    enum stage stage;
    int exit_code;
    bool is_leader;
    int64_t leader_us; /* since when */
    char conninfo[CONNINFO_MAX];
    char fingerprint[CLUSTER_FINGERPRINT_MAX];
    struct cluster_join join;
    struct complaint pg_complaint;
    struct daemon_hints hints_said;
    struct daemon_quorum quorum_said;
    struct err pg_down_why; /* the last one */
    int64_t ready_since_us;
    bool is_ready_said;
    struct telemetry *telemetry;
    struct pg *pg;
    struct hints *hints;
    struct redlock_async *lock;
    struct lead *lead;
    struct feeder *feeder;
    struct rescuer *rescuer;
    struct roll_call *roll_call;
    struct news news;
    struct services services;
    struct report *report;
    struct scheduler_metrics metrics;
};

/* What of the Redis nodes no single event tells: quorum_lost, quorum_back, hints_up. */
void scheduler_log_nodes(struct scheduler *s);

enum status scheduler_telemetry(struct scheduler *s, struct err *err) MUST_USE;

/* Since the last pass of the feed that ended well, or since it leads; 0 = it doesn't lead. */
int64_t scheduler_feed_age_us(const struct scheduler *s);

#endif
