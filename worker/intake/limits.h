/* SPDX-License-Identifier: Apache-2.0
 *
 * Jobs whose limit is reached. PostgreSQL decides that when they are claimed; this part takes care
 * of their hints.
 * - Exclusive keys: the hint of a refused job is dropped; the run that frees the key pushes the
 *   next one.
 * - Queues: hints stay in Redis, in their order. A worker that was refused leaves the queue alone
 *   for a while; when one of its own runs ends, it tries one job at once. It finds places that
 *   other workers free by trying one job now and then.
 * - Both: a job that is claimed ahead holds its places while it waits. If claims are refused
 *   although claimed jobs wait for runners, fewer jobs are claimed ahead. */
#ifndef CLAIMD_WORKER_INTAKE_LIMITS_H
#define CLAIMD_WORKER_INTAKE_LIMITS_H

#include "base/err.h"
#include "config/config.h"
#include "hints/hints.h"
#include "model/job.h"
#include "store/jobs/job_store.h"
#include "worker/intake/capacity.h"

#include <string.h>
#include <uv.h>

struct intake;
struct active_job;

/* A queue that a claim found full. */
struct full_queue {
    char name[JOB_NAME_MAX + 1];
    size_t credit;         /* how many jobs of it may be tried */
    int64_t shut_until_us; /* BOOTTIME; 0 = open */
    int64_t wait_us;       /* the last pause; it grows while nothing is claimed */
    int64_t refused_us;    /* BOOTTIME; the last refusal */
};

/* For each priority, the score that was last popped from a queue. The next job of a key that
 * becomes free gets a score just behind it, so that a chain of jobs with one key delays no other
 * job, whether of its own tenant or of another. */
struct popped_queue {
    char name[JOB_NAME_MAX + 1];
    int64_t score[JOB_PRIORITY_MAX + 1]; /* 0 = nothing popped yet */
};

struct limits {
    struct popped_queue popped[CONFIG_QUEUES_MAX];
    size_t popped_count;
    size_t popped_last; /* where the last look-up succeeded; nearly always right for the next */
    struct full_queue full[CONFIG_QUEUES_MAX];
    size_t full_count;
    bool is_changed; /* some queue was shut or opened since listen_update() */
    uv_timer_t timer;

    size_t ahead_max; /* most jobs to claim ahead, because of limits */
};

void limits_popped(struct intake *in, const struct hint *hint);

/* Called by the job store when a run has ended and this job may be claimed now; its context is the
 * intake. */
void limits_freed(void *intake, const struct freed_job *job);

/* Pushes the hint of a job that may be claimed now within a limit. */
void limits_return_next(struct intake *in, const struct freed_job *job);

enum status limits_open(struct intake *in, struct err *err) MUST_USE;
void limits_close(struct intake *in);

/* Call when a job was refused because this queue is full. */
void limits_full(struct intake *in, const char *queue);
/* True if a hint of this queue may be tried; otherwise put it back. */
bool limits_take(struct intake *in, const char *queue);
void limits_claimed(struct intake *in, const struct active_job *job);
void limits_ended(struct intake *in, const struct active_job *job);
/* True if nothing of this queue may be tried now. */
static inline bool limits_is_shut(const struct limits *l, const char *queue)
{
    for (size_t i = 0; i < l->full_count; i++) {
        if (strcmp(l->full[i].name, queue) == 0) {
            return l->full[i].shut_until_us > 0;
        }
    }
    return false;
}
/* Call when a claim has been answered and its jobs wait for runners. `refused`: because of
 * limits. */
void limits_answered(struct intake *in, size_t claimed, size_t refused);
/* Returns how many of `want` ids may be tried now. */
size_t limits_want(const struct intake *in, const struct capacity_facts *f, size_t want);
/* Call once after a series of the above: updates which queues are popped. */
void limits_update(struct intake *in);

#endif
