/* SPDX-License-Identifier: Apache-2.0
 *
 * The claimed jobs of the worker: gives them to runners, watches over their runs, and stores how
 * they end. */
#ifndef CLAIMD_WORKER_JOBS_JOBS_H
#define CLAIMD_WORKER_JOBS_JOBS_H

#include "worker/env.h"
#include "worker/jobs/active_jobs.h"
#include "worker/jobs/cancel.h"
#include "worker/jobs/deadlines.h"
#include "worker/jobs/dispatch.h"
#include "worker/jobs/lengths.h"
#include "worker/jobs/live.h"
#include "worker/jobs/run.h"
#include "worker/jobs/run_stats_save.h"
#include "worker/membership/kinds.h"
#include "worker/slots/slots.h"
#include "worker/worker_metrics.h"

/* What it needs from outside. */
struct jobs_env {
    struct servers *servers;
    const struct standing *standing;
    struct due *due;
    struct active_jobs *active;
    struct lengths *lengths;
    struct slots *slots;
    const struct kinds *kinds;
    struct worker_metrics *metrics;
    struct rand *rand;
};

struct jobs {
    struct jobs_env env;
    struct dispatch dispatch;
    struct runs runs;
    struct deadlines deadlines;
    struct live live;
    struct cancel cancel;
    struct run_stats_save run_stats_save;
};

enum status jobs_open(struct jobs *j, const struct jobs_env *env, struct err *err) MUST_USE;
void jobs_close(struct jobs *j);

/* Call about ten times a second. */
void jobs_tick(struct jobs *j, int64_t now_us);

#endif
