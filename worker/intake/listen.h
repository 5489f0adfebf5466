/* SPDX-License-Identifier: Apache-2.0
 *
 * Decides which sets of hints the worker listens to, and with which weights: the sets of its queues
 * that are not paused, for the kinds that it serves. */
#ifndef CLAIMD_WORKER_INTAKE_LISTEN_H
#define CLAIMD_WORKER_INTAKE_LISTEN_H

#include "base/log.h"
#include "config/config.h"
#include "model/job.h"
#include "store/worker_store.h"

struct intake;

struct listen {
    char paused[CONFIG_QUEUES_MAX][JOB_NAME_MAX + 1];
    size_t paused_count;
    int weights[CONFIG_QUEUES_MAX]; /* by position in worker.queues; 0 = none */
    /* A reply to a heartbeat has named the paused queues; until then, it listens to nothing. */
    bool is_told;
    struct complaint complaint; /* the last try failed; the next heartbeat repeats it */
};

/* Call when the stage, the kinds, the paused queues or a weight have changed. */
void listen_update(struct intake *in);
/* Call when a queue was shut or opened because of its limit. */
void listen_update_limits(struct intake *in);

/* Returns the queue's position in worker.queues; SIZE_MAX if this worker does not have it. */
size_t listen_place(const struct intake *in, const char *queue);

/* True if the queue is one of this worker's and not paused. */
bool listen_serves(const struct intake *in, const char *queue);

bool listen_is_paused(const struct intake *in, const char *queue);

/* Takes the paused queues and the weights from the reply to a heartbeat. */
void listen_take(struct intake *in, const struct worker_heartbeat_reply *reply);

#endif
