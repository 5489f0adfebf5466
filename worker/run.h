/* SPDX-License-Identifier: Apache-2.0
 *
 * From a claimed job to its released lease: it is given to an idle runner, its end becomes a
 * finish, and when that is committed the lease goes. */
#ifndef CLAIMD_WORKER_RUN_H
#define CLAIMD_WORKER_RUN_H

#include "base/log.h"
#include "worker/slot.h"

struct job_in_hand;
struct worker;

struct runs {
    int64_t mean_us;                 /* of late; how far ahead to claim goes by it */
    struct complaint died_complaint; /* runners that died */
    struct complaint kept_complaint; /* results that PostgreSQL doesn't take now */
};

extern const struct slot_events run_slot_events;

void run_dispatch(struct worker *w);

/* Ends a claimed job that never reached a handler: uncharged, its hint goes back. */
void run_hand_back(struct worker *w, struct job_in_hand *job);
void run_limit(struct worker *w, struct job_in_hand *job, int64_t now_us);

void run_tick(struct worker *w, int64_t now_us);

/* Lets go of a job: its lease is released, the record freed. */
void run_let_go(struct worker *w, struct job_in_hand *job);

#endif
