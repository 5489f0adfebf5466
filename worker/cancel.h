/* SPDX-License-Identifier: Apache-2.0
 *
 * Cancels of jobs that run here. They are asked for in PostgreSQL (job_live), and a beat's answer
 * names them. A NOTIFY only makes the next beat come at once: it may be lost, and anybody can send
 * one. It is listened for only while a run takes long: PostgreSQL wakes each session that listens
 * for each NOTIFY of its database, hence for each job that is brought in on an idle system. */
#ifndef CLAIMD_WORKER_CANCEL_H
#define CLAIMD_WORKER_CANCEL_H

#include "store/worker_store.h"

#include <stdbool.h>

#define CANCEL_CHANNEL "claimd_cancel" /* payload: the job's id */

struct worker;
struct job_in_hand;

struct cancel {
    bool is_in_flight; /* LISTEN or UNLISTEN */
    bool is_listening;
    int64_t long_run_us; /* when a run was last seen that takes long; 0 = never */
};

void cancel_session_up(struct worker *w); /* it listens to nothing */
void cancel_tick(struct worker *w, int64_t now_us);
void cancel_take_notify(struct worker *w, const char *payload);
void cancel_take(struct worker *w, const struct worker_beat_reply *reply);

/* True once its grace has passed since the handler was asked to stop. */
bool cancel_is_kill_due(const struct worker *w, const struct job_in_hand *job, int64_t now_us);

#endif
