/* SPDX-License-Identifier: Apache-2.0
 *
 * How the worker belongs to the cluster: its row, the heartbeat of that row, and the kinds that it
 * serves. */
#ifndef CLAIMD_WORKER_MEMBERSHIP_MEMBERSHIP_H
#define CLAIMD_WORKER_MEMBERSHIP_MEMBERSHIP_H

#include "worker/env.h"
#include "worker/jobs/active_jobs.h"
#include "worker/membership/heartbeat.h"
#include "worker/membership/kinds.h"
#include "worker/membership/registration.h"

/* What it needs from outside. */
struct membership_env {
    struct servers *servers;
    struct standing *standing;
    struct due *due;
    struct active_jobs *active; /* reported by heartbeats */

    void *ctx; /* of all that follows */
    /* The runners, by the index of their slot; see slot_is_current() and slot_replace(). */
    size_t (*runner_count)(void *ctx);
    bool (*runner_is_current)(void *ctx, size_t runner);
    void (*replace_runner)(void *ctx, size_t runner);
    /* Connects to the lock nodes: the cluster is joined. */
    enum status (*open_lock)(void *ctx, int64_t ttl_max_us, struct err *err);
    /* Puts back the hint of a predecessor's job. */
    void (*put_back)(void *ctx, const struct hint *hint);
    /* Returns the lowest number of spare slots since the previous heartbeat. */
    int (*spare_least)(void *ctx);
    /* A heartbeat was answered; the reply is borrowed. */
    void (*answered)(void *ctx, const struct worker_heartbeat_reply *reply);
    /* Logs why the worker can't do its work, and ends it. */
    void (*fail)(void *ctx, int exit_code, const char *why);
};

struct membership {
    struct membership_env env;
    struct registration registration;
    struct heartbeat heartbeat;
    struct kinds kinds;
};

enum status membership_open(struct membership *m, const struct membership_env *env,
                            struct err *err) MUST_USE;
/* Closes its handles. The kinds stay until membership_release(). */
void membership_close(struct membership *m);
void membership_release(struct membership *m);

#endif
