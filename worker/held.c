/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/held.h"

#include "base/clock.h"

#include <assert.h>

struct held_job *held_find(const struct held_jobs *h, int64_t id)
{
    struct held_job *job = NULL;
    HASH_FIND(hh, h->by_id, &id, sizeof id, job);
    return job;
}

struct held_job *held_add(struct held_jobs *h, int64_t id)
{
    if (held_find(h, id) != NULL) {
        return NULL;
    }
    struct held_job *job = calloc(1, sizeof *job);
    if (job == NULL) {
        return NULL;
    }
    job->id = id;
    job->phase = HELD_LOCKING;
    job->since_us = clock_boot_us();
    HASH_ADD(hh, h->by_id, id, sizeof job->id, job);
    h->count[HELD_LOCKING]++;
    return job;
}

void held_remove(struct held_jobs *h, struct held_job *job)
{
    assert(job->phase != HELD_READY);
    HASH_DELETE(hh, h->by_id, job);
    h->count[job->phase]--;
    free(job->args);
    free(job);
}

void held_set_phase(struct held_jobs *h, struct held_job *job, enum held_phase phase)
{
    h->count[job->phase]--;
    h->count[phase]++;
    job->phase = phase;
    job->since_us = clock_boot_us();
}

void held_push_ready(struct held_jobs *h, struct held_job *job)
{
    held_set_phase(h, job, HELD_READY);
    job->next = NULL;
    if (h->ready_last == NULL) {
        h->ready_first = job;
    } else {
        h->ready_last->next = job;
    }
    h->ready_last = job;
}

struct held_job *held_take_ready(struct held_jobs *h)
{
    struct held_job *job = h->ready_first;
    if (job != NULL) {
        h->ready_first = job->next;
        h->ready_last = h->ready_first == NULL ? NULL : h->ready_last;
        job->next = NULL;
    }
    return job;
}

size_t held_total(const struct held_jobs *h)
{
    return HASH_CNT(hh, h->by_id);
}
