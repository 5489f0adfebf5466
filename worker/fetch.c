/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/fetch.h"

#include "base/clock.h"
#include "base/probe.h"
#include "base/recorder.h"
#include "model/hint.h"
#include "worker/worker.h"

#include <assert.h>
#include <stdio.h>

#define PAUSE_FIRST_US (50 * US_PER_MS)
#define PAUSE_MAX_US (2 * US_PER_S)
#define AHEAD_PAUSE_US (100 * US_PER_MS)

/* ---- how much ---- */

void fetch_configure(struct worker *w)
{
    w->fetch.limits =
        (struct capacity_limits){.claim_ahead_max = (size_t)w->config->worker.claim_ahead,
                                 .batch_max = (size_t)w->config->worker.batch_max};
}

static struct capacity_facts facts(const struct worker *w, int64_t now_us)
{
    const size_t *n = w->jobs.count;
    struct capacity_facts f = {.coming =
                                   n[IN_HAND_LOCKING] + n[IN_HAND_CLAIMING] + n[IN_HAND_FETCHING],
                               .ready = n[IN_HAND_READY],
                               .finishing = n[IN_HAND_FINISHING]};
    for (size_t i = 0; i < w->slot_count; i++) {
        enum slot_state s = slot_state(w->slots[i]);
        f.runners += s == SLOT_IDLE || s == SLOT_BUSY ? 1U : 0U;
        f.idle += s == SLOT_IDLE ? 1U : 0U;
        f.ready += slot_waiting(w->slots[i]);
    }
    f.mean_run_us = now_us < w->fetch.ahead_pause_until_us ? 0 : w->runs.mean_us;
    return f;
}

/* Also asked of what a pop that was under way still brings. Without a living row a claim would be
 * made under an id whose beats count for nothing. */
static bool may_take(const struct worker *w)
{
    return w->stage == WORKER_RUNNING && w->registration.is_registered && !w->is_quiet;
}

size_t fetch_room(struct worker *w)
{
    int64_t now = clock_boot_us();
    bool may_fetch = may_take(w) && now >= w->fetch.pause_until_us && pg_is_up(w->pg) &&
                     redlock_async_has_quorum(w->lock);
    if (!may_fetch) {
        return 0;
    }
    struct capacity_facts f = facts(w, now);
    struct capacity_limits l = w->fetch.limits;
    if (w->limits.ahead_max < l.claim_ahead_max) {
        l.claim_ahead_max = w->limits.ahead_max;
    }
    return limits_want(w, &f, capacity_want(&f, &l));
}

size_t fetch_want(void *worker)
{
    struct worker *w = worker;
    return sift_want(w, fetch_room(w));
}

void fetch_poke(struct worker *w)
{
    if (w->popper != NULL && w->stage == WORKER_RUNNING) {
        hints_popper_poke(w->popper);
    }
}

/* A quorum or PostgreSQL is missing: the whole client backs off, not each job (LOCK.md §3.2). */
static void pause_fetching(struct worker *w)
{
    int64_t twice = w->fetch.pause_us * 2;
    int64_t next = twice > PAUSE_FIRST_US ? twice : PAUSE_FIRST_US;
    w->fetch.pause_us = next < PAUSE_MAX_US ? next : PAUSE_MAX_US;
    int64_t now = clock_boot_us();
    w->fetch.pause_until_us = now + rand_below(&w->rand, w->fetch.pause_us);
    ready_setback(w, now);
}

/* ---- claim ---- */

static struct hint hint_of(const struct job_in_hand *job)
{
    return (struct hint){.id = job->id,
                         .score = job->score,
                         .queue = job->queue,
                         .kind = job->hint_kind[0] == '\0' ? NULL : job->hint_kind};
}

void fetch_put_back(struct worker *w, const struct job_in_hand *job)
{
    const struct hint h = hint_of(job);
    hint_return_add(w, &h);
}

/* Its turn was given with the hint (docs/decisions/0016) and stays: the row's own time is another
 * scale. What an edit has moved elsewhere begins anew. */
static int64_t score_to_keep(const struct job_in_hand *job, const char *queue, int priority,
                             int64_t ready_unix_us)
{
    bool is_moved = strcmp(job->queue, queue) != 0 || priority < hint_score_priority(job->score);
    return is_moved ? hint_score(priority, ready_unix_us) : job->score;
}

static bool serves(const struct worker *w, const char *kind)
{
    return kind_set_find(&w->kinds.served, kind) != NULL;
}

static enum refusal refusal_of(const struct worker *w, const struct refused_job *r)
{
    switch (r->why) {
    case CLAIM_GONE:
    case CLAIM_LATER:
        return REFUSED_GONE;
    case CLAIM_LIMITED:
    case CLAIM_QUEUE_FULL:
        return REFUSED_LIMITED;
    case CLAIM_PUT_BACK:
        return r->kind == NULL || serves(w, r->kind) ? REFUSED_LOCKED : REFUSED_UNSERVED;
    case CLAIM_NOT_TRIED:
        break;
    }
    return REFUSED_NOT_TRIED;
}

static void on_refused(struct worker *w, const struct refused_job *r)
{
    struct job_in_hand *job = in_hand_find(&w->jobs, r->id);
    assert(job != NULL && job->phase == IN_HAND_CLAIMING);
    record("claim", r->why == CLAIM_NOT_TRIED ? "info" : "fail", RECORD_I64("job", r->id),
           RECORD_I64("why", r->why));
    metric_add(w->metrics.refused[refusal_of(w, r)], 1);
    bool is_full = r->why == CLAIM_QUEUE_FULL;
    if ((r->why == CLAIM_PUT_BACK || is_full) && r->queue != NULL && r->kind != NULL) {
        int64_t score = score_to_keep(job, r->queue, r->priority, r->ready_at_unix_us);
        bool is_ours = serves(w, r->kind);
        hint_return_add(w, &(struct hint){.id = r->id,
                                          .score = score,
                                          .queue = r->queue,
                                          .kind = is_ours ? job->hint_kind : r->kind});
        if (is_full) {
            limits_full(w, r->queue);
        } else if (is_ours) {
            w->fetch.ahead_pause_until_us = clock_boot_us() + AHEAD_PAUSE_US;
        }
    } else if (r->why == CLAIM_PUT_BACK || r->why == CLAIM_NOT_TRIED) {
        fetch_put_back(w, job);
    }
    if (r->why == CLAIM_NOT_TRIED) {
        pause_fetching(w);
    }
    run_let_go(w, job);
    if (r->why == CLAIM_LIMITED) {
        limits_refused(w, r->id);
    }
}

static bool copy_args(struct job_in_hand *job, const char *args, size_t len)
{
    job->args = malloc(len + 1);
    if (job->args == NULL) {
        return false;
    }
    memcpy(job->args, args, len);
    job->args[len] = '\0';
    job->args_len = len;
    return true;
}

/* NULL stays NULL. */
static bool copy_text(char **ret, const char *text)
{
    if (text != NULL) {
        free(*ret);
        *ret = strdup(text);
    }
    return text == NULL || *ret != NULL;
}

static void on_args(void *ctx, enum status st, const struct job_args *args);

struct args_wait {
    struct worker *worker;
    int64_t id;
    int64_t fence;
};

static void fetch_args(struct worker *w, struct job_in_hand *job)
{
    struct args_wait *wait = malloc(sizeof *wait);
    if (wait == NULL) {
        run_hand_back(w, job);
        return;
    }
    *wait = (struct args_wait){.worker = w, .id = job->id, .fence = job->fence};
    if (job_store_args(w->store, job->id, job->fence, on_args, wait, NULL) != STATUS_OK) {
        free(wait);
        run_hand_back(w, job);
        return;
    }
    in_hand_set_phase(&w->jobs, job, IN_HAND_FETCHING);
}

static void on_args(void *ctx, enum status st, const struct job_args *args)
{
    autofree struct args_wait *wait = ctx;
    struct worker *w = wait->worker;
    struct job_in_hand *job = in_hand_find(&w->jobs, wait->id);
    if (job == NULL || job->fence != wait->fence || job->phase != IN_HAND_FETCHING) {
        return;
    }
    if (st != STATUS_OK || !copy_args(job, args->args, args->args_len) ||
        !copy_text(&job->metadata, args->metadata) ||
        !copy_text(&job->checkpoint, args->checkpoint)) {
        run_hand_back(w, job);
        return;
    }
    job->has_live = job->has_live || args->checkpoint != NULL;
    in_hand_push_ready(&w->jobs, job);
    dispatch_jobs(w);
}

/* An edit has moved it since its hint was pushed: from now on it is of that queue. */
static bool is_moved_away(const struct worker *w, struct job_in_hand *job,
                          const struct claimed_job *c)
{
    job->score = score_to_keep(job, c->queue, c->priority, c->ready_at_unix_us);
    if (strcmp(job->queue, c->queue) == 0) {
        return false;
    }
    (void)snprintf(job->queue, sizeof job->queue, "%s", c->queue);
    job->hint_kind[0] = '\0';
    return !listen_serves(w, c->queue);
}

static bool keep_claimed(struct worker *w, struct job_in_hand *job, const struct claimed_job *c)
{
    job->fence = c->fence;
    (void)snprintf(job->worker_id, sizeof job->worker_id, "%s", c->worker_id);
    job->attempt = c->attempt;
    job->crashes = c->crashes;
    job->flags = c->flags;
    job->key_row = c->key_row;
    job->place = c->place;
    job->settings = c->settings;
    job->attempted_at_unix_us = c->attempted_at_unix_us;
    job->claimed_us = clock_boot_us();
    (void)snprintf(job->kind, sizeof job->kind, "%s", c->kind);
    job->metrics = worker_metrics_kind(&w->metrics, job->queue, c->kind);
    job->generation = c->generation;
    job->created_at_unix_us = c->created_at_unix_us;
    return copy_text(&job->tags, c->tags) && copy_text(&job->metadata, c->metadata);
}

static void on_one_claimed(struct worker *w, const struct claimed_job *c)
{
    struct job_in_hand *job = in_hand_find(&w->jobs, c->id);
    assert(job != NULL && job->phase == IN_HAND_CLAIMING);
    bool is_away = is_moved_away(w, job, c);
    bool is_kept = keep_claimed(w, job, c);
    limits_claimed(w, job);
    record("claim", "ok", RECORD_I64("job", c->id), RECORD_I64("f", c->fence),
           RECORD_I64("att", c->attempt), RECORD_I64("max", c->settings.max_attempts));
    metric_observe_us(job->metrics->wait, c->attempted_at_unix_us - c->ready_at_unix_us);
    log_debug("job_claimed", LOG_I64("job", c->id), LOG_I64("fence", c->fence),
              LOG_I64("attempt", c->attempt));
    bool has_lease = job->batch != NULL &&
                     redlock_batch_state(job->batch, job->lease_index) != REDLOCK_STATE_LOST &&
                     redlock_batch_deadline_us(job->batch, job->lease_index) > job->claimed_us;
    /* ARCHITECTURE §4.7: the deadline is looked at again after the claim. */
    bool may_run = is_kept && has_lease && !is_away && w->stage == WORKER_RUNNING;
    if (may_run && c->args == NULL) {
        fetch_args(w, job);
    } else if (may_run && copy_args(job, c->args, c->args_len)) {
        in_hand_push_ready(&w->jobs, job);
    } else {
        run_hand_back(w, job);
    }
}

/* One claim's ids were asked for at the same moment. */
static void count_claim(struct worker *w, int64_t id)
{
    const struct job_in_hand *job = in_hand_find(&w->jobs, id);
    metric_observe_us(w->metrics.claim, clock_boot_us() - job->asked_us);
}

static void on_claimed(void *ctx, const struct claimed_job *jobs, size_t count,
                       const struct refused_job *refused, size_t refused_count)
{
    struct worker *w = ctx;
    probe("W5");
    count_claim(w, count > 0 ? jobs[0].id : refused[0].id);
    if (count > 0) {
        w->fetch.pause_us = 0;
        w->ready.setbacks_since_us = 0;
    }
    for (size_t i = 0; i < count; i++) {
        on_one_claimed(w, &jobs[i]);
    }
    bool is_any_put_back = false;
    size_t limited = 0;
    size_t gone = 0;
    for (size_t i = 0; i < refused_count; i++) {
        is_any_put_back = is_any_put_back || refused[i].why == CLAIM_PUT_BACK;
        limited += refused[i].why == CLAIM_LIMITED || refused[i].why == CLAIM_QUEUE_FULL;
        gone += refused[i].why == CLAIM_GONE;
        on_refused(w, &refused[i]);
    }
    if (count > 0 || is_any_put_back) {
        hint_return_pace(w, count > 0);
    }
    sift_claimed(w, count, gone, refused_count);
    limits_answered(w, count, limited);
    limits_ask(w);
    limits_update(w);
    dispatch_jobs(w);
    fetch_poke(w);
    drain_check(w);
}

/* Jobs beyond the idle runners are claimed ahead. */
static size_t ahead_from(const struct worker *w, size_t count)
{
    struct capacity_facts f = facts(w, 0);
    size_t before = w->jobs.count[IN_HAND_CLAIMING] - count + w->jobs.count[IN_HAND_FETCHING] +
                    w->jobs.count[IN_HAND_READY];
    size_t idle = f.idle > before ? f.idle - before : 0;
    return idle < count ? idle : count;
}

static void claim(struct worker *w, const int64_t *ids, size_t count)
{
    struct claim_request request = {.ids = ids,
                                    .count = count,
                                    .kinds = w->kinds.served.names,
                                    .kind_count = w->kinds.served.count,
                                    .ahead_from = ahead_from(w, count),
                                    .done = on_claimed,
                                    .ctx = w};
    for (size_t i = 0; recorder_is_on() && i < count; i++) {
        record("claim", "inv", RECORD_I64("job", ids[i]));
    }
    if (job_store_claim(w->store, &request, NULL) == STATUS_OK) {
        probe("W4");
        return;
    }
    pause_fetching(w);
    metric_add(w->metrics.refused[REFUSED_NOT_TRIED], count);
    for (size_t i = 0; i < count; i++) {
        struct job_in_hand *job = in_hand_find(&w->jobs, ids[i]);
        fetch_put_back(w, job);
        run_let_go(w, job);
    }
}

/* ---- lock ---- */

static void count_not_won(struct worker *w, enum redlock_result verdict)
{
    switch (verdict) {
    case REDLOCK_HELD_BY_OTHER:
        metric_add(w->metrics.refused[REFUSED_HELD], 1);
        break;
    case REDLOCK_SPLIT:
        metric_add(w->metrics.refused[REFUSED_SPLIT], 1);
        break;
    case REDLOCK_NO_QUORUM:
        metric_add(w->metrics.refused[REFUSED_NO_QUORUM], 1);
        break;
    case REDLOCK_EXPIRED:
        metric_add(w->metrics.refused[REFUSED_EXPIRED], 1);
        break;
    case REDLOCK_WON:
    case REDLOCK_CANCELLED: /* we close */
    case REDLOCK_INVALID:
        break;
    }
}

static void on_not_won(struct worker *w, struct job_in_hand *job, enum redlock_result verdict)
{
    count_not_won(w, verdict);
    if (verdict == REDLOCK_HELD_BY_OTHER) {
        const struct hint h = hint_of(job);
        held_add(w, &h);
    } else {
        fetch_put_back(w, job);
    }
    if (verdict == REDLOCK_NO_QUORUM || verdict == REDLOCK_EXPIRED) {
        pause_fetching(w);
    }
    in_hand_remove(&w->jobs, job);
}

static void on_acquired(void *ctx, struct redlock_batch *batch)
{
    struct worker *w = ctx;
    int64_t ids[REDLOCK_KEYS_MAX];
    size_t won = 0;
    int64_t now = clock_boot_us();
    const struct job_in_hand *first = redlock_batch_user(batch, 0);
    probe("W3");
    metric_observe_us(w->metrics.lock, now - first->asked_us);
    for (size_t i = 0; i < redlock_batch_count(batch); i++) {
        struct job_in_hand *job = redlock_batch_user(batch, i);
        enum redlock_result verdict = redlock_batch_result(batch, i);
        if (verdict != REDLOCK_WON) {
            on_not_won(w, job, verdict);
            continue;
        }
        job->batch = batch;
        job->lease_index = i;
        if (!may_take(w)) {
            fetch_put_back(w, job);
            run_let_go(w, job);
            continue;
        }
        job->asked_us = now;
        in_hand_set_phase(&w->jobs, job, IN_HAND_CLAIMING);
        ids[won++] = job->id;
    }
    if (won > 0) {
        metric_observe(w->metrics.batch, (double)won);
        claim(w, ids, won);
    }
    drain_check(w);
}

static void acquire(struct worker *w, struct job_in_hand *const *jobs, size_t count)
{
    char texts[HINTS_POP_MAX][LOCK_KEY_MAX];
    struct redlock_async_key keys[HINTS_POP_MAX];
    assert(count > 0 && count <= HINTS_POP_MAX);
    int64_t now = clock_boot_us();
    for (size_t i = 0; i < count; i++) {
        jobs[i]->asked_us = now;
        size_t len = job_lock_key(texts[i], w->config->redis.prefix, jobs[i]->id);
        keys[i] = (struct redlock_async_key){.bytes = texts[i], .len = len, .user = jobs[i]};
    }
    const struct redlock_async_request request = {
        .keys = keys, .count = count, .done = on_acquired, .ctx = w};
    if (redlock_async_acquire(w->lock, &request, NULL) == 0) {
        probe("W2");
        return;
    }
    pause_fetching(w);
    metric_add(w->metrics.refused[REFUSED_NOT_TRIED], count);
    for (size_t i = 0; i < count; i++) {
        fetch_put_back(w, jobs[i]);
        in_hand_remove(&w->jobs, jobs[i]);
    }
}

/* Ours already: a repeated hint (inv.S19), unless what we have is about to end. */
static bool is_in_hand(struct worker *w, const struct hint *h)
{
    const struct job_in_hand *job = in_hand_find(&w->jobs, h->id);
    if (job != NULL && job->phase == IN_HAND_FINISHING) {
        held_add(w, h);
    }
    return job != NULL;
}

void fetch_popped(void *worker, const struct hint *list, size_t count)
{
    struct worker *w = worker;
    probe("W1");
    for (size_t i = 0; i < count; i++) {
        record("pop", "ok", RECORD_I64("job", list[i].id));
    }
    if (!sift_popped(w, list, count)) {
        fetch_take(w, list, count);
    }
}

void fetch_take(struct worker *w, const struct hint *list, size_t count)
{
    struct job_in_hand *jobs[HINTS_POP_MAX];
    size_t n = 0;
    for (size_t i = 0; i < count; i++) {
        const struct hint *h = &list[i];
        limits_popped(w, h);
        if (!may_take(w) || n == ARRAY_COUNT(jobs) || !limits_take(w, h->queue)) {
            hint_return_add(w, h); /* INTERFACES rule 6 */
            continue;
        }
        if (is_in_hand(w, h)) {
            continue;
        }
        struct job_in_hand *job = in_hand_add(&w->jobs, h->id);
        if (job == NULL) {
            hint_return_add(w, h); /* no memory */
            continue;
        }
        job->score = h->score;
        (void)snprintf(job->queue, sizeof job->queue, "%s", h->queue);
        (void)snprintf(job->hint_kind, sizeof job->hint_kind, "%s", h->kind == NULL ? "" : h->kind);
        jobs[n++] = job;
    }
    limits_update(w);
    if (n > 0) {
        acquire(w, jobs, n);
    }
}
