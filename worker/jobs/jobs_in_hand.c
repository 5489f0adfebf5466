/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/jobs/jobs_in_hand.h"

#include "base/clock.h"

#include <assert.h>
#include <string.h>
#include <utlist.h>

/* ---- states of a job ---- */

/* For each state: the phase as which it is shown, and for each event that can happen in it, the
 * next state and the action to take. */
static const struct {
    enum in_hand_phase seen_as;
    struct {
        enum in_hand_state next;
        enum in_hand_action action;
    } on[IN_HAND_EVENT_COUNT];
} states[] = {
    [HAND_LOCKING] = {.seen_as = IN_HAND_LOCKING,
                      .on = {[ON_ASKED_BESIDE] = {HAND_ASKING_BOTH, DO_NOTHING},
                             [ON_VERDICT] = {HAND_CLAIMING, DO_CLAIM}}},
    [HAND_ASKING_BOTH] = {.seen_as = IN_HAND_LOCKING,
                          .on = {[ON_VERDICT] = {HAND_CLAIMING, DO_NOTHING},
                                 [ON_CLAIMED] = {HAND_CLAIMED_EARLY, DO_NOTHING},
                                 [ON_CLAIMED_UNFIT] = {HAND_UNFIT_EARLY, DO_NOTHING},
                                 [ON_REFUSED] = {HAND_REFUSED_EARLY, DO_NOTHING}}},
    [HAND_CLAIMED_EARLY] = {.seen_as = IN_HAND_LOCKING,
                            .on = {[ON_VERDICT] = {HAND_CLAIMED, DO_GO_ON}}},
    [HAND_UNFIT_EARLY] = {.seen_as = IN_HAND_LOCKING,
                          .on = {[ON_VERDICT] = {HAND_CLAIMED, DO_HAND_BACK}}},
    [HAND_REFUSED_EARLY] = {.seen_as = IN_HAND_LOCKING,
                            .on = {[ON_VERDICT] = {HAND_REFUSED, DO_LET_GO}}},
    [HAND_CLAIMING] = {.seen_as = IN_HAND_CLAIMING,
                       .on = {[ON_CLAIMED] = {HAND_CLAIMED, DO_GO_ON},
                              [ON_CLAIMED_UNFIT] = {HAND_CLAIMED, DO_HAND_BACK},
                              [ON_REFUSED] = {HAND_REFUSED, DO_LET_GO}}},
    [HAND_CLAIMED] = {.seen_as = IN_HAND_CLAIMING,
                      .on = {[ON_ARGS_ASKED] = {HAND_FETCHING, DO_NOTHING},
                             [ON_READY] = {HAND_READY, DO_NOTHING},
                             [ON_END] = {HAND_FINISHING, DO_NOTHING}}},
    [HAND_REFUSED] = {.seen_as = IN_HAND_CLAIMING},
    [HAND_FETCHING] =
        {.seen_as = IN_HAND_FETCHING,
         .on = {[ON_READY] = {HAND_READY, DO_NOTHING}, [ON_END] = {HAND_FINISHING, DO_NOTHING}}},
    [HAND_READY] =
        {.seen_as = IN_HAND_READY,
         .on = {[ON_SENT] = {HAND_SENT, DO_NOTHING}, [ON_END] = {HAND_FINISHING, DO_NOTHING}}},
    [HAND_SENT] =
        {.seen_as = IN_HAND_RUNNING,
         .on = {[ON_BEGUN] = {HAND_BEGUN, DO_NOTHING}, [ON_READY] = {HAND_READY, DO_NOTHING}}},
    [HAND_BEGUN] = {.seen_as = IN_HAND_RUNNING, .on = {[ON_END] = {HAND_FINISHING, DO_NOTHING}}},
    [HAND_FINISHING] = {.seen_as = IN_HAND_FINISHING},
};

enum in_hand_phase in_hand_phase(const struct job_in_hand *job)
{
    return states[job->state].seen_as;
}

static bool counts_as_placed(const struct job_in_hand *job, enum in_hand_phase phase)
{
    return job->is_placed && phase <= IN_HAND_READY;
}

enum in_hand_action in_hand_step(struct jobs_in_hand *h, struct job_in_hand *job,
                                 enum in_hand_event event)
{
    enum in_hand_state next = states[job->state].on[event].next;
    enum in_hand_action action = states[job->state].on[event].action;
    assert(next != HAND_NONE);
    enum in_hand_phase from = in_hand_phase(job);
    enum in_hand_phase to = states[next].seen_as;
    job->state = next;
    if (from != to) {
        h->placed -= counts_as_placed(job, from);
        h->placed += counts_as_placed(job, to);
        h->count[from]--;
        h->count[to]++;
        job->since_us = clock_boot_us();
    }
    return action;
}

/* ---- all jobs ---- */

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
    job->state = HAND_LOCKING;
    job->since_us = clock_boot_us();
    job->popped_us = job->since_us;
    HASH_ADD(hh, h->by_id, id, sizeof job->id, job);
    h->count[IN_HAND_LOCKING]++;
    return job;
}

void in_hand_place(struct jobs_in_hand *h, struct job_in_hand *job)
{
    assert(in_hand_phase(job) <= IN_HAND_READY && !job->is_placed);
    job->is_placed = true;
    h->placed++;
}

static void unlink_job(struct jobs_in_hand *h, struct job_in_hand *job)
{
    assert(job->state != HAND_READY);
    HASH_DELETE(hh, h->by_id, job);
    h->placed -= counts_as_placed(job, in_hand_phase(job));
    h->count[in_hand_phase(job)]--;
}

void in_hand_free(struct job_in_hand *job)
{
    free(job->args);
    free(job->tags);
    free(job->metadata);
    free(job->checkpoint);
    free(job->predecessors);
    free(job);
}

void in_hand_remove(struct jobs_in_hand *h, struct job_in_hand *job)
{
    unlink_job(h, job);
    in_hand_free(job);
}

/* ---- jobs that leave ---- */

static struct job_in_hand *pop(struct job_in_hand **list)
{
    struct job_in_hand *job = *list;
    if (job != NULL) {
        *list = job->next;
    }
    return job;
}

void in_hand_end(struct jobs_in_hand *h, struct job_in_hand *job)
{
    unlink_job(h, job);
    job->next = h->ended;
    h->ended = job;
}

struct job_in_hand *in_hand_take_ended(struct jobs_in_hand *h)
{
    return pop(&h->ended);
}

void in_hand_release(struct jobs_in_hand *h)
{
    struct job_in_hand *job = NULL;
    while ((job = pop(&h->ended)) != NULL) {
        in_hand_free(job);
    }
}

void in_hand_leave(struct jobs_in_hand *h, struct job_in_hand *job)
{
    job->next = h->leaving;
    h->leaving = job;
}

struct job_in_hand *in_hand_take_leaving(struct jobs_in_hand *h)
{
    return pop(&h->leaving);
}

/* ---- jobs that wait for a runner ---- */

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

/* Inserts the job so that its queue keeps its positions among the jobs of other queues. */
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
            return; /* the usual case */
        }
        swap_ready(h, at, job);
        at = job;
    }
}

void in_hand_push_ready(struct jobs_in_hand *h, struct job_in_hand *job)
{
    (void)in_hand_step(h, job, ON_READY);
    if (h->has_weights) {
        push_within_queue(h, job);
    } else if (h->ready == NULL || h->ready->prev->score <= job->score) { /* the usual case */
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
    assert(job->state == HAND_READY);
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

void in_hand_freeze(struct jobs_in_hand *h, int64_t beat_confirmed_us)
{
    for (struct job_in_hand *job = h->by_id; job != NULL; job = job->hh.next) {
        if (job->state != HAND_LOCKING && job->beat_frozen_us == 0) {
            job->beat_frozen_us = beat_confirmed_us;
        }
    }
}

int64_t in_hand_ready_oldest_us(const struct jobs_in_hand *h, int64_t now_us)
{
    int64_t oldest_us = now_us;
    for (const struct job_in_hand *job = h->ready; job != NULL; job = job->next) {
        oldest_us = job->claimed_us < oldest_us ? job->claimed_us : oldest_us;
    }
    return now_us - oldest_us;
}

size_t in_hand_total(const struct jobs_in_hand *h)
{
    return HASH_CNT(hh, h->by_id);
}
