/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/jobs_in_hand.h"

#include "base/clock.h"

#include <assert.h>

struct job_in_hand *in_hand_find(const struct jobs_in_hand *h, int64_t id)
{
    struct job_in_hand *job = NULL;
    HASH_FIND(hh, h->by_id, &id, sizeof id, job);
    return job;
}

struct job_in_hand *in_hand_add(struct jobs_in_hand *h, int64_t id)
{
    if (in_hand_find(h, id) != NULL) {
        return NULL;
    }
    struct job_in_hand *job = calloc(1, sizeof *job);
    if (job == NULL) {
        return NULL;
    }
    job->id = id;
    job->phase = IN_HAND_LOCKING;
    job->since_us = clock_boot_us();
    HASH_ADD(hh, h->by_id, id, sizeof job->id, job);
    h->count[IN_HAND_LOCKING]++;
    return job;
}

void in_hand_remove(struct jobs_in_hand *h, struct job_in_hand *job)
{
    assert(job->phase != IN_HAND_READY);
    HASH_DELETE(hh, h->by_id, job);
    h->count[job->phase]--;
    free(job->args);
    free(job->tags);
    free(job->metadata);
    free(job->checkpoint);
    free(job);
}

void in_hand_set_phase(struct jobs_in_hand *h, struct job_in_hand *job, enum in_hand_phase phase)
{
    h->count[job->phase]--;
    h->count[phase]++;
    job->phase = phase;
    job->since_us = clock_boot_us();
}

void in_hand_push_ready(struct jobs_in_hand *h, struct job_in_hand *job)
{
    in_hand_set_phase(h, job, IN_HAND_READY);
    ready_jobs_push(&h->ready, job);
}

struct job_in_hand *in_hand_take_ready(struct jobs_in_hand *h)
{
    return ready_jobs_pop(&h->ready);
}

size_t in_hand_total(const struct jobs_in_hand *h)
{
    return HASH_CNT(hh, h->by_id);
}
