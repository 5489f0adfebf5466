/* SPDX-License-Identifier: Apache-2.0
 *
 * The lease of an active job. */
#ifndef CLAIMD_WORKER_JOBS_LEASE_H
#define CLAIMD_WORKER_JOBS_LEASE_H

#include "redlock/redlock_async.h"
#include "worker/jobs/active_jobs.h"

static inline bool lease_is_lost(const struct active_job *job)
{
    return job->batch == NULL ||
           redlock_batch_state(job->batch, job->lease_index) == REDLOCK_STATE_LOST;
}

/* True if no other worker can have the job's lock. */
static inline bool lease_is_held(const struct active_job *job, int64_t now_us)
{
    return !lease_is_lost(job) && redlock_batch_deadline_us(job->batch, job->lease_index) > now_us;
}

/* Starts to release it, if there is one. */
static inline void lease_release(const struct active_job *job)
{
    if (job->batch != NULL) {
        redlock_batch_release(job->batch, job->lease_index);
    }
}

#endif
