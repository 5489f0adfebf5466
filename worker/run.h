/* SPDX-License-Identifier: Apache-2.0
 *
 * From the end of a run to its released lease: the end becomes a finish, and when that is committed
 * the lease goes. */
#ifndef CLAIMD_WORKER_RUN_H
#define CLAIMD_WORKER_RUN_H

#include "base/log.h"
#include "worker/slot.h"

struct job_in_hand;
struct worker;

struct runs {
    int64_t mean_us; /* of late, of short kinds; how far ahead to claim goes by it */
    struct complaint died_complaint; /* runners that died */
    struct complaint kept_complaint; /* results that PostgreSQL doesn't take now */
};

extern const struct slot_events run_slot_events;

/* Ends a claimed job that never reached a handler: uncharged, its hint goes back. */
void run_hand_back(struct worker *w, struct job_in_hand *job);
/* Ends a claimed job for good, before it reached a handler. */
void run_fail(struct worker *w, struct job_in_hand *job, const struct err *why);
/* The job is now first in its runner's queue. */
void run_begun(struct worker *w, struct job_in_hand *job, int64_t now_us);
/* Between being told to stop, by its timeout or a cancel, and being killed. */
int64_t run_grace_us(const struct worker *w, const struct job_in_hand *job);
/* When its runner is to end itself (fault.A4). */
int64_t run_kill_at_us(const struct worker *w, const struct job_in_hand *job, int64_t now_us);
/* Tells the runner that has it. */
void run_limit(struct worker *w, struct job_in_hand *job, int64_t now_us);

void run_tick(struct worker *w, int64_t now_us);

/* Lets go of a job: its lease is released, the record freed. */
void run_let_go(struct worker *w, struct job_in_hand *job);

#endif
