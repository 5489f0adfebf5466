/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/intake/fetch.h"

#include "base/clock.h"
#include "base/probe.h"
#include "base/recorder.h"
#include "model/hint.h"
#include "worker/intake/claim.h"
#include "worker/intake/intake.h"
#include "worker/jobs/lease.h"

#include <assert.h>
#include <stdio.h>

#define PAUSE_FIRST_US (50 * US_PER_MS)
#define PAUSE_MAX_US (2 * US_PER_S)
#define CLAIM_TIMEOUTS 2 /* × postgres.timeout_ms: the segment in flight and the claim's own */
#define ALONE_US (1 * US_PER_S) /* after a lock was not won: claims wait for their locks */

/* ---- how much ---- */

void fetch_configure(struct intake *in)
{
    in->fetch.limits = (struct capacity_limits){
        .claim_ahead_max = (size_t)in->env.servers->config->worker.claim_ahead,
        .batch_max = (size_t)in->env.servers->config->worker.batch_max};
}

static struct capacity_facts facts(const struct intake *in, int64_t now_us)
{
    const size_t *n = in->env.active->count;
    struct capacity_facts f = {.coming =
                                   n[ACTIVE_LOCKING] + n[ACTIVE_CLAIMING] + n[ACTIVE_FETCHING],
                               .ready = n[ACTIVE_READY],
                               .finishing = n[ACTIVE_FINISHING]};
    in->env.count_runners(in->env.ctx, now_us, &f);
    f.mean_run_us = now_us < in->fetch.ahead_pause_until_us ? 0 : in->env.lengths->mean_us;
    f.short_us = lengths_max_us(in->env.lengths);
    return f;
}

static enum lengths_ahead ahead_of_queues(struct intake *in, int64_t now_us)
{
    return lengths_ahead(in->env.lengths, in->env.servers->config->worker.queue_count, now_us);
}

static size_t places_left(const struct intake *in, const struct capacity_facts *f)
{
    return f->runners > in->env.active->placed ? f->runners - in->env.active->placed : 0;
}

/* Also checked for the hints of a pop that was in flight when the state changed. Without a live
 * row, a claim would be made under an id whose heartbeats no longer count. */
static bool may_take(const struct intake *in)
{
    return in->env.standing->stage == WORKER_RUNNING && in->env.standing->is_registered &&
           !in->env.standing->is_quiet;
}

static bool may_fetch(const struct intake *in, int64_t now_us)
{
    return may_take(in) && now_us >= in->fetch.pause_until_us && pg_is_up(in->env.servers->pg) &&
           redlock_async_has_quorum(in->env.servers->lock);
}

size_t fetch_places(const struct intake *in)
{
    const struct capacity_facts f = facts(in, clock_boot_us());
    return places_left(in, &f);
}

size_t fetch_spare(const struct intake *in)
{
    int64_t now = clock_boot_us();
    if (!may_fetch(in, now) || !in->listen.is_told) {
        return 0;
    }
    struct capacity_facts f = facts(in, now);
    size_t taken = f.coming + f.ready;
    return f.idle > taken ? f.idle - taken : 0;
}

size_t fetch_room(struct intake *in)
{
    int64_t now = clock_boot_us();
    if (!may_fetch(in, now)) {
        return 0;
    }
    struct capacity_facts f = facts(in, now);
    struct capacity_limits l = in->fetch.limits;
    if (in->limits.ahead_max < l.claim_ahead_max) {
        l.claim_ahead_max = in->limits.ahead_max;
    }
    enum lengths_ahead ahead = ahead_of_queues(in, now);
    f.mean_run_us = ahead == LENGTHS_NONE ? 0 : f.mean_run_us;
    size_t want = capacity_want(&f, &l);
    size_t places = places_left(in, &f);
    if (ahead == LENGTHS_SOME && places < want) {
        want = places; /* the hints may be of any queue */
    }
    return limits_want(in, &f, want);
}

size_t fetch_want(struct intake *in)
{
    return sift_want(in, fetch_room(in));
}

void fetch_poke(struct intake *in)
{
    if (in->env.servers->popper != NULL && in->env.standing->stage == WORKER_RUNNING) {
        hints_popper_poke(in->env.servers->popper);
    }
}

int64_t fetch_claim_bound_us(const struct intake *in)
{
    return CLAIM_TIMEOUTS * in->env.servers->config->postgres.timeout_us;
}

static void note_setback(struct intake *in, int64_t now_us)
{
    struct fetch *f = &in->fetch;
    if (f->setbacks_since_us == 0 || now_us - f->setback_us > fetch_claim_bound_us(in)) {
        f->setbacks_since_us = now_us; /* the first one, or the first after a long time */
    }
    f->setback_us = now_us;
}

/* A quorum or PostgreSQL is missing, so the whole worker backs off, not each job (lock.A14). */
void fetch_pause(struct intake *in)
{
    int64_t twice = in->fetch.pause_us * 2;
    int64_t next = twice > PAUSE_FIRST_US ? twice : PAUSE_FIRST_US;
    in->fetch.pause_us = next < PAUSE_MAX_US ? next : PAUSE_MAX_US;
    int64_t now = clock_boot_us();
    in->fetch.pause_until_us = now + rand_below(in->env.rand, in->fetch.pause_us);
    note_setback(in, now);
}

/* ---- claim ---- */

static struct hint hint_of(const struct active_job *job)
{
    return (struct hint){.id = job->id,
                         .score = job->score,
                         .queue = job->queue,
                         .kind = job->hint_kind[0] == '\0' ? NULL : job->hint_kind};
}

void fetch_put_back(struct intake *in, const struct active_job *job)
{
    const struct hint h = hint_of(job);
    if (job->hint_goes == HINT_KEPT) {
        held_hints_add(in, &h);
    } else {
        hint_return_add(in, &h);
    }
}

void fetch_let_go(struct intake *in, struct active_job *job)
{
    lease_release(job);
    active_remove(in->env.active, job);
}

/* The hint of a job that is passed on names its kind to the next worker that pops it. It is pushed
 * once the release of the job's lease is acknowledged. */
static void return_hint(struct intake *in, struct active_job *job)
{
    if (job->hint_goes == HINT_TO_KIND) {
        (void)snprintf(job->hint_kind, sizeof job->hint_kind, "%s", job->kind);
    }
    fetch_put_back(in, job);
}

void fetch_take_ended(struct intake *in)
{
    struct active_job *job = NULL;
    bool is_any_passed_on = false;
    if (in->env.active->ended == NULL) {
        return;
    }
    while ((job = active_take_ended(in->env.active)) != NULL) {
        if (job->is_returned) {
            return_hint(in, job);
        }
        is_any_passed_on = is_any_passed_on || job->hint_goes == HINT_TO_KIND;
        limits_ended(in, job);
        active_free(job);
    }
    if (is_any_passed_on) {
        hint_return_now(in);
    }
    limits_update(in);
    in->env.due->room = true;
    in->env.due->end = true;
}

/* Returns the index of the first id that is claimed ahead: those beyond the idle runners. */
static size_t ahead_from(const struct intake *in, size_t count)
{
    struct capacity_facts f = facts(in, clock_boot_us());
    size_t before = in->env.active->count[ACTIVE_CLAIMING] - count +
                    in->env.active->count[ACTIVE_FETCHING] + in->env.active->count[ACTIVE_READY];
    size_t idle = f.idle > before ? f.idle - before : 0;
    return idle < count ? idle : count;
}

static void claim(struct intake *in, const int64_t *ids, size_t count)
{
    if (claim_ask(in, ids, count, ahead_from(in, count))) {
        return;
    }
    fetch_pause(in);
    metric_add(in->env.metrics->refused[REFUSED_NOT_TRIED], count);
    for (size_t i = 0; i < count; i++) {
        struct active_job *job = active_find(in->env.active, ids[i]);
        fetch_put_back(in, job);
        fetch_let_go(in, job);
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
        fetch_pause(in);
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
    struct capacity_facts f = facts(in, now);
    size_t wanted = n[ACTIVE_LOCKING] + n[ACTIVE_CLAIMING] + n[ACTIVE_FETCHING] + n[ACTIVE_READY];
    return wanted <= f.idle && job_store_is_idle(in->env.servers->store) &&
           now >= in->fetch.alone_until_us;
}

static void claim_beside(struct intake *in, struct active_job *const *jobs, size_t count)
{
    int64_t ids[HINTS_POP_MAX];
    for (size_t i = 0; i < count; i++) {
        ids[i] = jobs[i]->id;
    }
    bool is_asked = claim_ask(in, ids, count, count);
    for (size_t i = 0; is_asked && i < count; i++) {
        (void)active_step(in->env.active, jobs[i], ON_ASKED_BESIDE);
    }
}

static void on_acquired(void *ctx, struct redlock_batch *batch)
{
    struct intake *in = ctx;
    int64_t ids[REDLOCK_KEYS_MAX];
    size_t won = 0;
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
        } else if (job->batch == NULL || !may_take(in)) {
            fetch_put_back(in, job);
            fetch_let_go(in, job);
        } else {
            job->asked_us = now;
            ids[won++] = job->id;
        }
    }
    if (won > 0) {
        claim(in, ids, won);
    }
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
    if (redlock_async_acquire(in->env.servers->lock, &request, NULL) == 0) {
        probe("W2");
        if (may_ask_both(in)) {
            claim_beside(in, jobs, count);
        }
        return;
    }
    fetch_pause(in);
    metric_add(in->env.metrics->refused[REFUSED_NOT_TRIED], count);
    for (size_t i = 0; i < count; i++) {
        fetch_put_back(in, jobs[i]);
        active_remove(in->env.active, jobs[i]);
    }
}

/* True if this worker already has the job: the hint is a repetition (inv.S19). But if the job's
 * finish is not committed yet, the hint may announce the next attempt, so it is kept. */
static bool is_active(struct intake *in, const struct hint *h)
{
    const struct active_job *job = active_find(in->env.active, h->id);
    if (job != NULL && active_phase(job) == ACTIVE_FINISHING) {
        held_hints_add(in, h);
    }
    return job != NULL;
}

void fetch_popped(struct intake *in, const struct hint *list, size_t count)
{
    probe("W1");
    for (size_t i = 0; i < count; i++) {
        record("pop", "ok", RECORD_I64("job", list[i].id));
    }
    if (!sift_popped(in, list, count)) {
        fetch_take(in, list, count);
    }
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
    const struct capacity_facts f = facts(in, now);
    size_t places = places_left(in, &f);
    for (size_t i = 0; i < count; i++) {
        const struct hint *h = &list[i];
        limits_popped(in, h);
        /* A pop that blocked since a runner was idle may return when all run long jobs. */
        bool is_placed = f.runners == 0 || !may_ahead(in, h, now);
        if (!may_take(in) || n == ARRAY_COUNT(jobs) || listen_is_paused(in, h->queue) ||
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
