/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes progress, checkpoints and the last 4 KiB of logs from the shared pages to job_live, in
 * groups, each job at most once a second; when its attempt ends, once more without the log.
 * Finishes never wait for it. */
#ifndef CLAIMD_WORKER_JOBS_LIVE_H
#define CLAIMD_WORKER_JOBS_LIVE_H

#include "base/log.h"

#include <stdbool.h>
#include <stdint.h>

struct jobs;
struct active_job;

struct live {
    bool is_in_flight;
    int64_t alone_until_us; /* sends jobs one by one until then, since a group was refused */
    struct complaint complaint;
};

void live_tick(struct jobs *j, int64_t now_us);

/* Writes the last report of an attempt that has ended. Call it before the job's finish is sent,
 * while its slot still has the page. */
void live_take_end(struct jobs *j, struct active_job *job, bool is_done);

#endif
