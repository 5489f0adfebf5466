/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/intake/limits.h"

#include "base/clock.h"
#include "base/timer.h"
#include "model/hint.h"
#include "worker/intake/intake.h"

#include <stdio.h>

#define SHUT_FIRST_US (20 * US_PER_MS)
#define SHUT_MAX_US (500 * US_PER_MS)
#define CREDIT_WON 2 /* tries per place won, unless a job was refused recently */
#define LATELY_US (200 * US_PER_MS)

/* ---- exclusive keys ---- */

static struct popped_queue *find_popped(struct limits *l, const char *queue)
{
    for (size_t n = 0; n < l->popped_count; n++) {
        size_t i = (l->popped_last + n) % l->popped_count;
        if (strcmp(l->popped[i].name, queue) == 0) {
            l->popped_last = i;
            return &l->popped[i];
        }
    }
    return NULL;
}

void limits_popped(struct intake *in, const struct hint *hint)
{
    struct limits *l = &in->limits;
    if (hint_score_ms(hint->score) == 0) {
        return; /* popped before and given back: its score says nothing about ranks */
    }
    struct popped_queue *q = find_popped(l, hint->queue);
    if (q == NULL && l->popped_count < ARRAY_COUNT(l->popped)) {
        q = &l->popped[l->popped_count++];
        *q = (struct popped_queue){.score = {0}};
        (void)snprintf(q->name, sizeof q->name, "%s", hint->queue);
    }
    if (q != NULL) {
        q->score[hint_score_priority(hint->score)] = hint->score;
    }
}

static int64_t score_of_next(struct limits *l, const struct freed_job *job)
{
    const struct popped_queue *q = find_popped(l, job->queue);
    int64_t popped = q == NULL ? 0 : q->score[job->priority];
    return popped > 0 ? popped + 1 : hint_score(job->priority, job->ready_at_unix_us);
}

/* Puts the hint into the queue's own set: a worker that does not serve the kind passes it on. */
void limits_return_next(struct intake *in, const struct freed_job *job)
{
    hint_return_add(in, &(struct hint){.id = job->id,
                                       .score = score_of_next(&in->limits, job),
                                       .queue = job->queue});
}

void limits_freed(void *intake, const struct freed_job *job)
{
    struct intake *in = intake;
    if (in->env.standing->stage != WORKER_CLOSING) {
        limits_return_next(in, job);
        hint_return_now(in);
    }
}

/* ---- queues ---- */

static struct full_queue *find_full(struct intake *in, const char *queue)
{
    struct limits *l = &in->limits;
    for (size_t i = 0; i < l->full_count; i++) {
        if (strcmp(l->full[i].name, queue) == 0) {
            return &l->full[i];
        }
    }
    return NULL;
}

static void on_timer(uv_timer_t *timer)
{
    struct intake *in = timer->data;
    struct limits *l = &in->limits;
    int64_t now_us = clock_boot_us();
    for (size_t i = 0; i < l->full_count; i++) {
        struct full_queue *q = &l->full[i];
        if (q->shut_until_us > 0 && q->shut_until_us <= now_us) {
            q->shut_until_us = 0;
            q->credit = 1;
        }
    }
    l->is_changed = true; /* restarts the timer in case it fired early */
    limits_update(in);
}

static void shut(struct intake *in, struct full_queue *q)
{
    q->credit = 0;
    if (q->shut_until_us == 0) {
        q->wait_us = q->wait_us == 0 ? SHUT_FIRST_US : q->wait_us * 2;
        q->wait_us = q->wait_us < SHUT_MAX_US ? q->wait_us : SHUT_MAX_US;
        q->shut_until_us = clock_boot_us() + rand_jitter(in->env.rand, q->wait_us, 20);
        in->limits.is_changed = true;
    }
}

static void open_for(struct intake *in, struct full_queue *q, size_t jobs)
{
    in->limits.is_changed = in->limits.is_changed || q->shut_until_us > 0;
    q->shut_until_us = 0;
    q->wait_us = 0;
    q->credit += jobs;
}

void limits_full(struct intake *in, const char *queue)
{
    struct limits *l = &in->limits;
    struct full_queue *q = find_full(in, queue);
    if (q == NULL && l->full_count < ARRAY_COUNT(l->full)) {
        q = &l->full[l->full_count++];
        *q = (struct full_queue){.credit = 0};
        (void)snprintf(q->name, sizeof q->name, "%s", queue);
    }
    if (q != NULL) {
        q->refused_us = clock_boot_us();
        shut(in, q);
    }
}

bool limits_take(struct intake *in, const char *queue)
{
    struct full_queue *q = find_full(in, queue);
    if (q == NULL) {
        return true;
    }
    if (q->credit == 0) {
        shut(in, q);
        return false;
    }
    q->credit--;
    return true;
}

void limits_claimed(struct intake *in, const struct active_job *job)
{
    struct full_queue *q = find_full(in, job->queue);
    if (q == NULL) {
        return;
    }
    if ((job->flags & JOB_FLAG_PLACE) != 0) {
        open_for(in, q, clock_boot_us() - q->refused_us > LATELY_US ? CREDIT_WON : 0);
        return;
    }
    in->limits.is_changed = true; /* the queue has no limit any more */
    *q = in->limits.full[--in->limits.full_count];
}

void limits_ended(struct intake *in, const struct active_job *job)
{
    struct full_queue *q = (job->flags & JOB_FLAG_PLACE) != 0 ? find_full(in, job->queue) : NULL;
    if (q != NULL) {
        open_for(in, q, 1);
    }
}

/* ---- how much ---- */

void limits_answered(struct intake *in, size_t claimed, size_t refused)
{
    size_t most = (size_t)in->env.servers->config->worker.claim_ahead;
    const struct capacity_answer answer = {.claimed = claimed,
                                           .refused = refused,
                                           .has_work = in->env.active->count[ACTIVE_READY] > 0};
    in->limits.ahead_max = capacity_ahead_max(in->limits.ahead_max, &answer, most);
}

size_t limits_want(const struct intake *in, const struct capacity_facts *f, size_t want)
{
    const struct limits *l = &in->limits;
    size_t credit = 0;
    for (size_t i = 0; i < l->full_count; i++) {
        credit += l->full[i].credit;
    }
    if (l->full_count < in->env.servers->config->worker.queue_count || credit >= want) {
        return want; /* any number of jobs of the other queues may be tried */
    }
    return capacity_try(f, credit);
}

void limits_update(struct intake *in)
{
    struct limits *l = &in->limits;
    if (!l->is_changed || in->env.standing->stage == WORKER_CLOSING) {
        return;
    }
    l->is_changed = false;
    int64_t first_us = INT64_MAX;
    for (size_t i = 0; i < l->full_count; i++) {
        int64_t until_us = l->full[i].shut_until_us;
        first_us = until_us > 0 && until_us < first_us ? until_us : first_us;
    }
    if (first_us < INT64_MAX) {
        int64_t wait_us = first_us - clock_boot_us();
        timer_start(&l->timer, on_timer, wait_us > 0 ? (uint64_t)(wait_us / US_PER_MS) + 1 : 0, 0);
    }
    hint_return_now(in); /* other workers may have a place for hints that go back */
    listen_update_limits(in);
}

enum status limits_open(struct intake *in, struct err *err)
{
    in->limits.ahead_max = (size_t)in->env.servers->config->worker.claim_ahead;
    return timer_open(in->env.servers->loop, &in->limits.timer, in, "limits", err);
}

void limits_close(struct intake *in)
{
    uv_close((uv_handle_t *)&in->limits.timer, NULL);
}
