/* SPDX-License-Identifier: Apache-2.0
 *
 * From the end of a run to the release of its lease: turns the end into a finish, and releases the
 * lease once the finish is committed. */
#ifndef CLAIMD_WORKER_JOBS_RUN_H
#define CLAIMD_WORKER_JOBS_RUN_H

#include "base/log.h"
#include "worker/slots/slot.h"

struct active_job;
struct jobs;

struct runs {
    struct complaint died_complaint; /* runners that died */
    struct complaint kept_complaint; /* results that PostgreSQL does not accept now */
};

/* The events of slots; see struct slot_events. `jobs` is the struct jobs. */
void run_on_room(void *jobs, struct slot *slot);
void run_on_ended(void *jobs, struct slot *slot, void *user, const struct slot_run *run);
void run_on_returned(void *jobs, struct slot *slot, void *user);
void run_on_died(void *jobs, struct slot *slot, int pid, const char *text);

/* Ends the jobs that leave before they reached a handler (active_leave()). */
void run_end_leaving(struct jobs *j);

/* Ends a claimed job that never reached a handler: it is not charged, and its hint is put back. */
void run_hand_back(struct jobs *j, struct active_job *job);
/* Ends a claimed job for good, before it reached a handler. */
void run_fail(struct jobs *j, struct active_job *job, const struct err *why);
/* The job is now first in its runner's queue. */
void run_begun(struct jobs *j, struct active_job *job, int64_t now_us);
/* Returns when its runner must end itself (fault.A4). */
int64_t run_kill_at_us(const struct jobs *j, const struct active_job *job, int64_t now_us);
/* Passes that time to the runners of all jobs that run. */
void run_limit_all(struct jobs *j, int64_t now_us);

void run_tick(struct jobs *j, int64_t now_us);

#endif
