/* SPDX-License-Identifier: Apache-2.0
 *
 * Jobs whose limit is reached. PostgreSQL decides that when they are claimed; this part takes care
 * of their hints.
 *  - Exclusive keys: the hint of a refused job is dropped; whoever frees the key pushes the next.
 *  - Queues: hints stay in Redis, in their order. A worker that was refused leaves the queue alone
 *    for a while; when one of its own runs ends, it tries one job at once. Places that others free
 *    are found by trying one job now and then.
 *  - Both: a job that is claimed ahead holds its places while it waits. If claims are refused
 *    although there is work in hand, less is claimed ahead. */
#ifndef CLAIMD_WORKER_LIMITS_H
#define CLAIMD_WORKER_LIMITS_H

#include "base/err.h"
#include "config/config.h"
#include "hints/hints.h"
#include "model/job.h"
#include "store/jobs/job_store.h"
#include "worker/capacity.h"

#include <uv.h>

#define LIMITS_REFUSED_MAX 500

struct worker;
struct job_in_hand;

/* A queue that a claim found full. */
struct full_queue {
    char name[JOB_NAME_MAX + 1];
    size_t credit;         /* so many jobs of it may be tried */
    int64_t shut_until_us; /* BOOTTIME; 0 = open */
    int64_t wait_us;       /* the last time, which grows as long as nothing is claimed */
    int64_t refused_us;    /* BOOTTIME; the last time */
};

/* The last score of each priority that was popped of a queue: what comes next of a key goes behind
 * that, so that neither its tenant's chains nor those of others hold anybody up. */
struct popped_queue {
    char name[JOB_NAME_MAX + 1];
    int64_t score[JOB_PRIORITY_MAX + 1]; /* 0 = none yet */
};

struct limits {
    struct popped_queue popped[CONFIG_QUEUES_MAX];
    size_t popped_count;
    size_t popped_last; /* nearly always the next one's, too */
    struct full_queue full[CONFIG_QUEUES_MAX];
    size_t full_count;
    bool is_changed; /* what is shut, since listen_update() */
    uv_timer_t timer;

    int64_t refused[LIMITS_REFUSED_MAX];
    size_t refused_count;
    bool is_asking;

    size_t ahead_max; /* claimed ahead, as far as limits go */
};

void limits_popped(struct worker *w, const struct hint *hint);

/* Of the job store: a run has ended, and this job may be claimed now. */
void limits_freed(void *worker, const struct freed_job *job);

/* A job whose limit is reached, and whose lease is being released: until that is acknowledged
 * whoever gets its hint finds it held, and drops it. Then limits_ask() asks what comes next. */
void limits_refused(struct worker *w, int64_t id);
void limits_ask(struct worker *w);

enum status limits_open(struct worker *w, struct err *err) MUST_USE;
void limits_close(struct worker *w);

/* A job of this queue was refused because of it. */
void limits_full(struct worker *w, const char *queue);
/* May a hint of this queue be tried? Else it goes back. */
bool limits_take(struct worker *w, const char *queue);
void limits_claimed(struct worker *w, const struct job_in_hand *job);
void limits_ended(struct worker *w, const struct job_in_hand *job);
bool limits_is_shut(struct worker *w, const char *queue);
/* A claim was answered, and its jobs wait for their runners: so many were refused for a limit. */
void limits_answered(struct worker *w, size_t claimed, size_t refused);
/* Returns how many of `want` ids may be tried now. */
size_t limits_want(const struct worker *w, const struct capacity_facts *f, size_t want);
/* Call once after a series of the above: updates which queues are popped. */
void limits_update(struct worker *w);

#endif
