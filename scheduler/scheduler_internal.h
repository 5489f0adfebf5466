/* SPDX-License-Identifier: Apache-2.0
 *
 * The parts of a scheduler, for scheduler.c and telemetry.c. */
#ifndef CLAIMD_SCHEDULER_SCHEDULER_INTERNAL_H
#define CLAIMD_SCHEDULER_SCHEDULER_INTERNAL_H

#include "daemon/daemon.h"
#include "daemon/telemetry.h"
#include "scheduler/cluster_poll.h"
#include "scheduler/news.h"
#include "scheduler/report.h"
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
    uv_timer_t deadline; /* in turn for the start, for the event `ready`, and for the shutdown */
    enum stage stage;
    int exit_code;
    bool is_leader;
    int64_t leader_us; /* BOOTTIME since which it leads or stands by */
    char conninfo[CONNINFO_MAX];
    char fingerprint[CLUSTER_FINGERPRINT_MAX];
    struct cluster_join join;
    struct complaint pg_complaint;
    struct daemon_hints hints_said;
    struct daemon_quorum quorum_said;
    struct err pg_down_why; /* of the last disconnection */
    int64_t ready_since_us;
    bool is_ready_said;
    struct telemetry *telemetry;
    struct pg *pg;
    struct hints *hints;
    struct redlock_async *lock;
    struct lead *lead;
    struct feeder *feeder;
    struct rescuer *rescuer;
    struct cluster_poll *cluster_poll;
    struct news news;
    struct services services;
    struct report *report;
    struct scheduler_metrics metrics;
};

/* Logs what has no event of its own about the Redis nodes: quorum_lost, quorum_back, hints_up. */
void scheduler_log_nodes(struct scheduler *s);

enum status scheduler_telemetry(struct scheduler *s, struct err *err) MUST_USE;

/* Returns the time since the last successful pass of the feed, or since leading began; 0 = not
 * leading. */
int64_t scheduler_feed_age_us(const struct scheduler *s);

#endif
