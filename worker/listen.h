/* SPDX-License-Identifier: Apache-2.0
 *
 * Which sets of hints the worker listens to: those of its queues that are not paused, for the kinds
 * that it serves; and with which weights. */
#ifndef CLAIMD_WORKER_LISTEN_H
#define CLAIMD_WORKER_LISTEN_H

#include "base/log.h"
#include "config/config.h"
#include "model/job.h"
#include "store/worker_store.h"

struct worker;

struct listen {
    char paused[CONFIG_QUEUES_MAX][JOB_NAME_MAX + 1];
    size_t paused_count;
    int weights[CONFIG_QUEUES_MAX]; /* of worker.queues; 0 = none */
    bool is_told; /* a beat has said what is paused: before that nothing is asked for */
    struct complaint complaint; /* the last try failed: again with the next beat */
};

/* The stage, the kinds, what is paused or a weight has changed. */
void listen_update(struct worker *w);
/* A queue was shut or opened because of its limit. */
void listen_update_limits(struct worker *w);

/* Where it stands in worker.queues; SIZE_MAX: it isn't one of this worker's. */
size_t listen_place(const struct worker *w, const char *queue);

/* One of this worker's queues, and not paused. */
bool listen_serves(const struct worker *w, const char *queue);

bool listen_is_paused(const struct worker *w, const char *queue);

/* What a beat says of the queues. */
void listen_take(struct worker *w, const struct worker_beat_reply *reply);

#endif
