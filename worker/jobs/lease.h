/* SPDX-License-Identifier: Apache-2.0
 *
 * The lease of a job in hand. */
#ifndef CLAIMD_WORKER_JOBS_LEASE_H
#define CLAIMD_WORKER_JOBS_LEASE_H

#include "redlock/redlock_async.h"
#include "worker/jobs/jobs_in_hand.h"

static inline bool lease_is_lost(const struct job_in_hand *job)
{
    return job->batch == NULL ||
           redlock_batch_state(job->batch, job->lease_index) == REDLOCK_STATE_LOST;
}

/* True if no other worker can have the job's lock. */
static inline bool lease_is_held(const struct job_in_hand *job, int64_t now_us)
{
    return !lease_is_lost(job) && redlock_batch_deadline_us(job->batch, job->lease_index) > now_us;
}

/* Starts to release it, if there is one. */
static inline void lease_release(const struct job_in_hand *job)
{
    if (job->batch != NULL) {
        redlock_batch_release(job->batch, job->lease_index);
    }
}

#endif
