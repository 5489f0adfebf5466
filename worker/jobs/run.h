/* SPDX-License-Identifier: Apache-2.0
 *
 * From the end of a run to the release of its lease: turns the end into a finish, and releases the
 * lease once the finish is committed. */
#ifndef CLAIMD_WORKER_JOBS_RUN_H
#define CLAIMD_WORKER_JOBS_RUN_H

#include "base/log.h"
#include "worker/slots/slot.h"

struct job_in_hand;
struct worker;

struct runs {
    struct complaint died_complaint; /* runners that died */
    struct complaint kept_complaint; /* results that PostgreSQL does not accept now */
};

extern const struct slot_events run_slot_events;

/* Ends a claimed job that never reached a handler: it is not charged, and its hint is put back. */
void run_hand_back(struct worker *w, struct job_in_hand *job);
/* Ends a claimed job for good, before it reached a handler. */
void run_fail(struct worker *w, struct job_in_hand *job, const struct err *why);
/* The job is now first in its runner's queue. */
void run_begun(struct worker *w, struct job_in_hand *job, int64_t now_us);
/* Returns the time from the request to stop, because of a timeout or a cancel, until the kill. */
int64_t run_grace_us(const struct worker *w, const struct job_in_hand *job);
/* Returns when its runner must end itself (fault.A4). */
int64_t run_kill_at_us(const struct worker *w, const struct job_in_hand *job, int64_t now_us);
/* Passes that time to the runners of all jobs that run. */
void run_limit_all(struct worker *w, int64_t now_us);

void run_tick(struct worker *w, int64_t now_us);

/* Lets go of a job: releases its lease and frees the record. */
void run_let_go(struct worker *w, struct job_in_hand *job);

#endif
