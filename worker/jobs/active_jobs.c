/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/jobs/active_jobs.h"

#include "base/clock.h"

#include <assert.h>
#include <string.h>
#include <utlist.h>

/* ---- states of a job ---- */

/* For each state: the phase as which it is shown, and for each event that can happen in it, the
 * next state and the action to take. */
static const struct {
    enum active_phase seen_as;
    struct {
        enum active_state next;
        enum active_action action;
    } on[ACTIVE_EVENT_COUNT];
} states[] = {
    [STATE_LOCKING] = {.seen_as = ACTIVE_LOCKING,
                       .on = {[ON_ASKED_BESIDE] = {STATE_ASKING_BOTH, DO_NOTHING},
                              [ON_VERDICT] = {STATE_CLAIMING, DO_CLAIM}}},
    [STATE_ASKING_BOTH] = {.seen_as = ACTIVE_LOCKING,
                           .on = {[ON_VERDICT] = {STATE_CLAIMING, DO_NOTHING},
                                  [ON_CLAIMED] = {STATE_CLAIMED_EARLY, DO_NOTHING},
                                  [ON_CLAIMED_UNFIT] = {STATE_UNFIT_EARLY, DO_NOTHING},
                                  [ON_REFUSED] = {STATE_REFUSED_EARLY, DO_NOTHING}}},
    [STATE_CLAIMED_EARLY] = {.seen_as = ACTIVE_LOCKING,
                             .on = {[ON_VERDICT] = {STATE_CLAIMED, DO_GO_ON}}},
    [STATE_UNFIT_EARLY] = {.seen_as = ACTIVE_LOCKING,
                           .on = {[ON_VERDICT] = {STATE_CLAIMED, DO_HAND_BACK}}},
    [STATE_REFUSED_EARLY] = {.seen_as = ACTIVE_LOCKING,
                             .on = {[ON_VERDICT] = {STATE_REFUSED, DO_LET_GO}}},
    [STATE_CLAIMING] = {.seen_as = ACTIVE_CLAIMING,
                        .on = {[ON_CLAIMED] = {STATE_CLAIMED, DO_GO_ON},
                               [ON_CLAIMED_UNFIT] = {STATE_CLAIMED, DO_HAND_BACK},
                               [ON_REFUSED] = {STATE_REFUSED, DO_LET_GO}}},
    [STATE_CLAIMED] = {.seen_as = ACTIVE_CLAIMING,
                       .on = {[ON_ARGS_ASKED] = {STATE_FETCHING, DO_NOTHING},
                              [ON_READY] = {STATE_READY, DO_NOTHING},
                              [ON_END] = {STATE_FINISHING, DO_NOTHING}}},
    [STATE_REFUSED] = {.seen_as = ACTIVE_CLAIMING},
    [STATE_FETCHING] =
        {.seen_as = ACTIVE_FETCHING,
         .on = {[ON_READY] = {STATE_READY, DO_NOTHING}, [ON_END] = {STATE_FINISHING, DO_NOTHING}}},
    [STATE_READY] =
        {.seen_as = ACTIVE_READY,
         .on = {[ON_SENT] = {STATE_SENT, DO_NOTHING}, [ON_END] = {STATE_FINISHING, DO_NOTHING}}},
    [STATE_SENT] =
        {.seen_as = ACTIVE_RUNNING,
         .on = {[ON_BEGUN] = {STATE_BEGUN, DO_NOTHING}, [ON_READY] = {STATE_READY, DO_NOTHING}}},
    [STATE_BEGUN] = {.seen_as = ACTIVE_RUNNING, .on = {[ON_END] = {STATE_FINISHING, DO_NOTHING}}},
    [STATE_FINISHING] = {.seen_as = ACTIVE_FINISHING},
};

enum active_phase active_phase(const struct active_job *job)
{
    return states[job->state].seen_as;
}

static bool counts_as_placed(const struct active_job *job, enum active_phase phase)
{
    return job->is_placed && phase <= ACTIVE_READY;
}

enum active_action active_step(struct active_jobs *h, struct active_job *job,
                               enum active_event event)
{
    enum active_state next = states[job->state].on[event].next;
    enum active_action action = states[job->state].on[event].action;
    assert(next != STATE_NONE);
    enum active_phase from = active_phase(job);
    enum active_phase to = states[next].seen_as;
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

struct active_job *active_find(const struct active_jobs *h, int64_t id)
{
    struct active_job *job = NULL;
    HASH_FIND(hh, h->by_id, &id, sizeof id, job);
    return job;
}

struct active_job *active_add(struct active_jobs *h, int64_t id)
{
    if (active_find(h, id) != NULL) {
        return NULL;
    }
    struct active_job *job = calloc(1, sizeof *job);
    if (job == NULL) {
        return NULL;
    }
    job->id = id;
    job->state = STATE_LOCKING;
    job->since_us = clock_boot_us();
    job->popped_us = job->since_us;
    HASH_ADD(hh, h->by_id, id, sizeof job->id, job);
    h->count[ACTIVE_LOCKING]++;
    return job;
}

void active_place(struct active_jobs *h, struct active_job *job)
{
    assert(active_phase(job) <= ACTIVE_READY && !job->is_placed);
    job->is_placed = true;
    h->placed++;
}

static void unlink_job(struct active_jobs *h, struct active_job *job)
{
    assert(job->state != STATE_READY);
    HASH_DELETE(hh, h->by_id, job);
    h->placed -= counts_as_placed(job, active_phase(job));
    h->count[active_phase(job)]--;
}

void active_free(struct active_job *job)
{
    free(job->args);
    free(job->tags);
    free(job->metadata);
    free(job->checkpoint);
    free(job->predecessors);
    free(job);
}

void active_remove(struct active_jobs *h, struct active_job *job)
{
    unlink_job(h, job);
    active_free(job);
}

/* ---- jobs that leave ---- */

static struct active_job *pop(struct active_job **list)
{
    struct active_job *job = *list;
    if (job != NULL) {
        *list = job->next;
    }
    return job;
}

void active_end(struct active_jobs *h, struct active_job *job)
{
    unlink_job(h, job);
    job->next = h->ended;
    h->ended = job;
}

struct active_job *active_take_ended(struct active_jobs *h)
{
    return pop(&h->ended);
}

void active_release(struct active_jobs *h)
{
    struct active_job *job = NULL;
    while ((job = pop(&h->ended)) != NULL) {
        active_free(job);
    }
}

void active_leave(struct active_jobs *h, struct active_job *job)
{
    job->next = h->leaving;
    h->leaving = job;
}

struct active_job *active_take_leaving(struct active_jobs *h)
{
    return pop(&h->leaving);
}

/* ---- jobs that wait for a runner ---- */

static int by_score(const struct active_job *a, const struct active_job *b)
{
    return a->score <= b->score ? -1 : 1;
}

static void swap_ready(struct active_jobs *h, struct active_job *first, struct active_job *last)
{
    struct active_job *next = last->next;
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
static void push_within_queue(struct active_jobs *h, struct active_job *job)
{
    struct active_job *at = job;
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

void active_push_ready(struct active_jobs *h, struct active_job *job)
{
    (void)active_step(h, job, ON_READY);
    if (h->has_weights) {
        push_within_queue(h, job);
    } else if (h->ready == NULL || h->ready->prev->score <= job->score) { /* the usual case */
        DL_APPEND(h->ready, job);
    } else {
        DL_INSERT_INORDER(h->ready, job, by_score);
    }
}

static struct active_job *take(struct active_jobs *h, struct active_job *job)
{
    if (job != NULL) {
        DL_DELETE(h->ready, job);
    }
    return job;
}

struct active_job *active_take_ready(struct active_jobs *h)
{
    return take(h, h->ready);
}

void active_take(struct active_jobs *h, struct active_job *job)
{
    assert(job->state == STATE_READY);
    (void)take(h, job);
}

struct active_job *active_take_waiting(struct active_jobs *h, int64_t claimed_before_us)
{
    struct active_job *job = h->ready;
    while (job != NULL && job->claimed_us >= claimed_before_us) {
        job = job->next;
    }
    return take(h, job);
}

void active_freeze(struct active_jobs *h, int64_t heartbeat_confirmed_us)
{
    for (struct active_job *job = h->by_id; job != NULL; job = job->hh.next) {
        if (job->state != STATE_LOCKING && job->heartbeat_frozen_us == 0) {
            job->heartbeat_frozen_us = heartbeat_confirmed_us;
        }
    }
}

int64_t active_ready_oldest_us(const struct active_jobs *h, int64_t now_us)
{
    int64_t oldest_us = now_us;
    for (const struct active_job *job = h->ready; job != NULL; job = job->next) {
        oldest_us = job->claimed_us < oldest_us ? job->claimed_us : oldest_us;
    }
    return now_us - oldest_us;
}

size_t active_total(const struct active_jobs *h)
{
    return HASH_CNT(hh, h->by_id);
}
