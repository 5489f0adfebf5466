/* SPDX-License-Identifier: Apache-2.0
 *
 * Cancels of jobs that run here. They are requested in PostgreSQL (job_live), and the reply to a
 * heartbeat names them. A NOTIFY only makes the worker send its next heartbeat at once: it may be
 * lost, and any client can send one. The worker listens only while a run takes long: PostgreSQL
 * wakes each listening session for each NOTIFY of its database, hence, on an idle system, for each
 * job that is inserted. */
#ifndef CLAIMD_WORKER_JOBS_CANCEL_H
#define CLAIMD_WORKER_JOBS_CANCEL_H

#include "store/worker_store.h"

#include <stdbool.h>

#define CANCEL_CHANNEL "claimd_cancel" /* payload: the job's id */

struct jobs;
struct active_job;

struct cancel {
    bool is_in_flight; /* a LISTEN or UNLISTEN */
    bool is_listening;
    int64_t long_run_us; /* when a tick last found a long run; 0 = never */
};

void cancel_session_up(struct jobs *j); /* a new session listens to nothing */
void cancel_tick(struct jobs *j, int64_t now_us);
void cancel_take_notify(struct jobs *j, const char *payload);
/* Notes the cancels that a heartbeat has brought; cancel_act() then asks their handlers to end. */
void cancel_take(struct jobs *j, const struct worker_heartbeat_reply *reply);
void cancel_act(struct jobs *j);

/* Returns the time from the request to stop, because of a timeout or a cancel, until the kill. */
int64_t cancel_grace_us(const struct jobs *j, const struct active_job *job);

/* True once the job's grace has passed since its handler was asked to stop. */
bool cancel_is_kill_due(const struct jobs *j, const struct active_job *job, int64_t now_us);

#endif
