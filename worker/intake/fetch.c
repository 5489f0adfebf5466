/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/intake/fetch.h"

#include "base/clock.h"
#include "base/probe.h"
#include "base/recorder.h"
#include "model/hint.h"
#include "worker/intake/claim.h"
#include "worker/intake/intake.h"

#include <assert.h>
#include <stdio.h>

#define ALONE_US (1 * US_PER_S) /* after a lock was not won: claims wait for their locks */

/* Lets go of jobs whose locks or claims could not be asked for. */
static void let_untried_go(struct intake *in, struct active_job *const *jobs, size_t count)
{
    room_pause(in);
    metric_add(in->env.metrics->refused[REFUSED_NOT_TRIED], count);
    for (size_t i = 0; i < count; i++) {
        let_go_hint(in, jobs[i]);
        let_go_job(in, jobs[i]);
    }
}

/* ---- lock ---- */

static void count_not_won(struct intake *in, enum redlock_result verdict)
{
    switch (verdict) {
    case REDLOCK_HELD:
        metric_add(in->env.metrics->refused[REFUSED_HELD], 1);
        break;
    case REDLOCK_SPLIT:
        metric_add(in->env.metrics->refused[REFUSED_SPLIT], 1);
        break;
    case REDLOCK_NO_QUORUM:
        metric_add(in->env.metrics->refused[REFUSED_NO_QUORUM], 1);
        break;
    case REDLOCK_LOST:
        metric_add(in->env.metrics->refused[REFUSED_EXPIRED], 1);
        break;
    case REDLOCK_OK:
    case REDLOCK_CANCELLED: /* the worker is closing */
    case REDLOCK_INVALID:
    case REDLOCK_SYSTEM:
        break;
    }
}

static void take_verdict(struct intake *in, struct active_job *job, struct redlock_batch *batch,
                         size_t index)
{
    enum redlock_result verdict = redlock_batch_result(batch, index);
    if (verdict == REDLOCK_OK) {
        job->batch = batch;
        job->lease_index = index;
        return;
    }
    count_not_won(in, verdict);
    job->hint_goes = verdict == REDLOCK_HELD ? HINT_KEPT : HINT_BACK;
    in->fetch.alone_until_us = clock_boot_us() + ALONE_US;
    if (verdict == REDLOCK_NO_QUORUM || verdict == REDLOCK_LOST) {
        room_pause(in);
    }
}

/* ---- lock and claim at once ---- */

/* True if all jobs are for idle runners and nothing else is asked of PostgreSQL: the lock's round
 * trip then adds no latency. Only a job that wins both runs; one that wins only its claim is handed
 * back (docs/decisions/0020). False for a while after a lock was not won, since another worker is
 * competing. */
static bool may_ask_both(const struct intake *in)
{
    const size_t *n = in->env.active->count;
    int64_t now = clock_boot_us();
    struct capacity_facts f = room_facts(in, now);
    size_t wanted = n[ACTIVE_LOCKING] + n[ACTIVE_CLAIMING] + n[ACTIVE_FETCHING] + n[ACTIVE_READY];
    return wanted <= f.idle && job_store_is_idle(in->env.servers->store) &&
           now >= in->fetch.alone_until_us;
}

/* Returns the index of the first job that is claimed ahead: those beyond the idle runners. */
static size_t ahead_from(const struct intake *in, size_t count)
{
    struct capacity_facts f = room_facts(in, clock_boot_us());
    size_t before = in->env.active->count[ACTIVE_CLAIMING] - count +
                    in->env.active->count[ACTIVE_FETCHING] + in->env.active->count[ACTIVE_READY];
    size_t idle = f.idle > before ? f.idle - before : 0;
    return idle < count ? idle : count;
}

static void on_acquired(void *ctx, struct redlock_batch *batch)
{
    struct intake *in = ctx;
    struct active_job *won[REDLOCK_KEYS_MAX];
    size_t won_count = 0;
    int64_t now = clock_boot_us();
    const struct active_job *first = redlock_batch_user(batch, 0);
    probe("W3");
    metric_observe_us(in->env.metrics->lock, now - first->asked_us);
    for (size_t i = 0; i < redlock_batch_count(batch); i++) {
        struct active_job *job = redlock_batch_user(batch, i);
        take_verdict(in, job, batch, i);
        enum active_action action = active_step(in->env.active, job, ON_VERDICT);
        if (action != DO_CLAIM) {
            claim_do(in, job, action);
        } else if (job->batch == NULL || !room_may_take(in)) {
            let_go_hint(in, job);
            let_go_job(in, job);
        } else {
            job->asked_us = now;
            won[won_count++] = job;
        }
    }
    if (won_count > 0 && !claim_ask(in, won, won_count, ahead_from(in, won_count))) {
        let_untried_go(in, won, won_count);
    }
    question_ask(&in->questions[QUESTION_NEXT]); /* of jobs that were refused before this verdict */
    in->env.due->ready = true;
    in->env.due->end = true;
}

static void acquire(struct intake *in, struct active_job *const *jobs, size_t count)
{
    char texts[HINTS_POP_MAX][LOCK_KEY_MAX];
    struct redlock_async_key keys[HINTS_POP_MAX];
    assert(count > 0 && count <= HINTS_POP_MAX);
    int64_t now = clock_boot_us();
    for (size_t i = 0; i < count; i++) {
        jobs[i]->asked_us = now;
        size_t len = job_lock_key(texts[i], in->env.servers->config->redis.prefix, jobs[i]->id);
        keys[i] = (struct redlock_async_key){.bytes = texts[i], .len = len, .user = jobs[i]};
    }
    const struct redlock_async_request request = {
        .keys = keys, .count = count, .done = on_acquired, .ctx = in};
    if (redlock_async_acquire(in->env.servers->lock, &request, NULL) != 0) {
        let_untried_go(in, jobs, count);
        return;
    }
    probe("W2");
    if (may_ask_both(in) && claim_ask(in, jobs, count, count)) {
        for (size_t i = 0; i < count; i++) {
            (void)active_step(in->env.active, jobs[i], ON_ASKED_BESIDE);
        }
    }
}

/* True if this worker already has the job: the hint is a repetition (inv.S19). But if the job's
 * finish is not committed yet, the hint may announce the next attempt, so it is kept. */
static bool is_active(struct intake *in, const struct hint *h)
{
    const struct active_job *job = active_find(in->env.active, h->id);
    if (job != NULL && active_phase(job) == ACTIVE_FINISHING) {
        let_go_held(in, h);
    }
    return job != NULL;
}

static bool may_ahead(struct intake *in, const struct hint *h, int64_t now_us)
{
    if (h->kind != NULL) {
        return lengths_is_short(lengths_find(in->env.lengths, h->queue, h->kind), now_us);
    }
    size_t place = listen_place(in, h->queue);
    return place != SIZE_MAX && lengths_may_ahead(in->env.lengths, place, now_us);
}

void fetch_take(struct intake *in, const struct hint *list, size_t count)
{
    struct active_job *jobs[HINTS_POP_MAX];
    size_t n = 0;
    int64_t now = clock_boot_us();
    const struct capacity_facts f = room_facts(in, now);
    size_t places = room_places_left(in, &f);
    for (size_t i = 0; i < count; i++) {
        const struct hint *h = &list[i];
        limits_popped(in, h);
        /* A pop that blocked since a runner was idle may return when all run long jobs. */
        bool is_placed = f.runners == 0 || !may_ahead(in, h, now);
        if (!room_may_take(in) || n == ARRAY_COUNT(jobs) || listen_is_paused(in, h->queue) ||
            (is_placed && places == 0) || !limits_take(in, h->queue)) {
            hint_return_add(in, h); /* INTERFACES rule 6 */
            continue;
        }
        if (is_active(in, h)) {
            continue;
        }
        struct active_job *job = active_add(in->env.active, h->id);
        if (job == NULL) {
            hint_return_add(in, h); /* no memory */
            continue;
        }
        job->score = h->score;
        if (is_placed) {
            active_place(in->env.active, job);
            places--;
        }
        (void)snprintf(job->queue, sizeof job->queue, "%s", h->queue);
        (void)snprintf(job->hint_kind, sizeof job->hint_kind, "%s", h->kind == NULL ? "" : h->kind);
        jobs[n++] = job;
    }
    limits_update(in); /* before the popper sends its next pop */
    if (n > 0) {
        acquire(in, jobs, n);
    }
}
