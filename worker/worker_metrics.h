/* SPDX-License-Identifier: Apache-2.0
 *
 * The metrics of the worker; all names are in worker_metrics.c and in docs/metrics.md. Code that
 * decides something counts it at once, through a series that was looked up before. What libraries
 * count, and states, are copied when a text is made. Without a registry nothing is counted. */
#ifndef CLAIMD_WORKER_WORKER_METRICS_H
#define CLAIMD_WORKER_WORKER_METRICS_H

#include "daemon/daemon_metrics.h"
#include "store/jobs/job_store.h"
#include "worker/jobs/active_jobs.h"

#define WORKER_METRICS_KINDS_MAX 512 /* served in its queues over its life; plugins may change */
#define WORKER_METRICS_KIND_MORE "other" /* all further kinds, as in metrics/ */

/* Why an id that was asked for was not claimed. */
enum refusal {
    REFUSED_HELD, /* by the nodes: another worker has it */
    REFUSED_SPLIT,
    REFUSED_NO_QUORUM,
    REFUSED_EXPIRED,
    REFUSED_GONE, /* this and the following by PostgreSQL */
    REFUSED_LOCKED,
    REFUSED_UNSERVED,
    REFUSED_LIMITED,
    REFUSED_NOT_TRIED,
    REFUSAL_COUNT
};

/* The series of one kind in one queue. */
struct kind_metrics {
    char queue[JOB_NAME_MAX + 1];
    char kind[JOB_NAME_MAX + 1];
    struct metric *finished[FINISH_KIND_COUNT];
    struct metric *timeouts;
    struct metric *wait;
    struct metric *run; /* this and the next are shared by all queues */
    struct metric *attempts;
};

struct worker_metrics {
    struct metrics *registry;
    struct daemon_metrics daemon;
    struct metric *refused[REFUSAL_COUNT];
    struct metric *put_back;
    struct metric *runner_deaths;
    struct metric *lock;
    struct metric *claim;
    struct metric *finish;
    struct metric *batch;

    struct metric *popped;
    struct metric *junk;
    struct metric *pops_lost;
    struct metric *claimed;
    struct metric *stale;
    struct metric *results_refused;
    struct metric *leases_lost;
    struct metric *slots;
    struct metric *slots_busy;
    struct metric *jobs[ACTIVE_PHASE_COUNT];
    struct metric *draining;
    struct metric *kinds_served;
    struct metric *plugins_refused;
    struct metric *runners_cpu;
    struct metric *runners_memory;

    struct kind_metrics kinds[WORKER_METRICS_KINDS_MAX]; /* kinds of which a job was claimed */
    size_t kind_count;
    struct kind_metrics *last_kind;
};

void worker_metrics_init(struct worker_metrics *m, struct metrics *registry,
                         const struct config *config);

/* Returns the series of a kind that this worker serves, valid for its life. Never NULL. */
struct kind_metrics *worker_metrics_kind(struct worker_metrics *m, const char *queue,
                                         const char *kind);

#endif
