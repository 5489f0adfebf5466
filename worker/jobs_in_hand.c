/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/jobs_in_hand.h"

#include "base/clock.h"

#include <assert.h>
#include <string.h>
#include <utlist.h>

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
    job->popped_us = job->since_us;
    HASH_ADD(hh, h->by_id, id, sizeof job->id, job);
    h->count[IN_HAND_LOCKING]++;
    return job;
}

static bool counts_as_placed(const struct job_in_hand *job, enum in_hand_phase phase)
{
    return job->is_placed && phase <= IN_HAND_READY;
}

void in_hand_place(struct jobs_in_hand *h, struct job_in_hand *job)
{
    assert(job->phase <= IN_HAND_READY && !job->is_placed);
    job->is_placed = true;
    h->placed++;
}

void in_hand_remove(struct jobs_in_hand *h, struct job_in_hand *job)
{
    assert(job->phase != IN_HAND_READY);
    HASH_DELETE(hh, h->by_id, job);
    h->placed -= counts_as_placed(job, job->phase);
    h->count[job->phase]--;
    free(job->args);
    free(job->tags);
    free(job->metadata);
    free(job->checkpoint);
    free(job->predecessors);
    free(job);
}

void in_hand_set_phase(struct jobs_in_hand *h, struct job_in_hand *job, enum in_hand_phase phase)
{
    h->placed -= counts_as_placed(job, job->phase);
    h->placed += counts_as_placed(job, phase);
    h->count[job->phase]--;
    h->count[phase]++;
    job->phase = phase;
    job->since_us = clock_boot_us();
}

static int by_score(const struct job_in_hand *a, const struct job_in_hand *b)
{
    return a->score <= b->score ? -1 : 1;
}

static void swap_ready(struct jobs_in_hand *h, struct job_in_hand *first, struct job_in_hand *last)
{
    struct job_in_hand *next = last->next;
    DL_DELETE(h->ready, last);
    DL_PREPEND_ELEM(h->ready, first, last);
    DL_DELETE(h->ready, first);
    if (next == NULL) {
        DL_APPEND(h->ready, first);
    } else {
        DL_PREPEND_ELEM(h->ready, next, first);
    }
}

/* The places of a queue among those of others stay where they are. */
static void push_within_queue(struct jobs_in_hand *h, struct job_in_hand *job)
{
    struct job_in_hand *at = job;
    DL_APPEND(h->ready, job);
    while (at != h->ready) {
        at = at->prev;
        if (strcmp(at->queue, job->queue) != 0) {
            continue;
        }
        if (at->score <= job->score) {
            return; /* nearly always */
        }
        swap_ready(h, at, job);
        at = job;
    }
}

void in_hand_push_ready(struct jobs_in_hand *h, struct job_in_hand *job)
{
    in_hand_set_phase(h, job, IN_HAND_READY);
    if (h->has_weights) {
        push_within_queue(h, job);
    } else if (h->ready == NULL || h->ready->prev->score <= job->score) { /* nearly always */
        DL_APPEND(h->ready, job);
    } else {
        DL_INSERT_INORDER(h->ready, job, by_score);
    }
}

static struct job_in_hand *take(struct jobs_in_hand *h, struct job_in_hand *job)
{
    if (job != NULL) {
        DL_DELETE(h->ready, job);
    }
    return job;
}

struct job_in_hand *in_hand_take_ready(struct jobs_in_hand *h)
{
    return take(h, h->ready);
}

void in_hand_take(struct jobs_in_hand *h, struct job_in_hand *job)
{
    assert(job->phase == IN_HAND_READY);
    (void)take(h, job);
}

struct job_in_hand *in_hand_take_waiting(struct jobs_in_hand *h, int64_t claimed_before_us)
{
    struct job_in_hand *job = h->ready;
    while (job != NULL && job->claimed_us >= claimed_before_us) {
        job = job->next;
    }
    return take(h, job);
}

size_t in_hand_total(const struct jobs_in_hand *h)
{
    return HASH_CNT(hh, h->by_id);
}
