/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/jobs/deadlines.h"

#include "base/clock.h"
#include "model/hint.h"
#include "worker/jobs/jobs.h"
#include "worker/jobs/lease.h"

#define START_LATE_US (5 * US_PER_S) /* a runner starts a job as soon as it gets it … */
#define LOAD_MAX_US \
    (900 * US_PER_S) /* … unless it has to start a program first: more than any start_timeout */

/* ---- lost leases ---- */

struct relock {
    struct jobs *jobs;
    size_t count;
    int64_t ids[REDLOCK_KEYS_MAX];
};

static void on_relocked(void *ctx, struct redlock_batch *batch)
{
    autofree struct relock *r = ctx;
    struct jobs *j = r->jobs;
    for (size_t i = 0; i < r->count; i++) {
        struct active_job *job = active_find(j->env.active, r->ids[i]);
        bool is_won = redlock_batch_result(batch, i) == REDLOCK_OK;
        bool is_wanted = job != NULL && job->relock == r;
        if (is_wanted) {
            job->relock = NULL;
        }
        if (is_won && is_wanted) {
            job->batch = batch;
            job->lease_index = i;
            log_info("lease_regained", LOG_I64("job", job->id));
        } else if (is_won) {
            redlock_batch_release(batch, i);
        }
    }
}

/* Excludes jobs claimed under an earlier worker_id: their rows may have been moved by now, and a
 * lock on such a job would keep out its new owner. */
static bool is_bare(const struct active_job *job)
{
    return active_phase(job) == ACTIVE_RUNNING && job->batch == NULL && job->relock == NULL &&
           job->heartbeat_frozen_us == 0;
}

/* Running handlers continue without a lease while the heartbeat is fresh; the lease is acquired
 * again under a new token (rule 12). */
static void relock(struct jobs *j)
{
    char texts[REDLOCK_KEYS_MAX][LOCK_KEY_MAX];
    struct redlock_async_key keys[REDLOCK_KEYS_MAX];
    struct relock *r = malloc(sizeof *r);
    if (r == NULL || !redlock_async_has_quorum(j->env.servers->lock)) {
        free(r);
        return;
    }
    *r = (struct relock){.jobs = j};
    for (struct active_job *job = j->env.active->by_id; job != NULL; job = job->hh.next) {
        if (!is_bare(job) || r->count == REDLOCK_KEYS_MAX) {
            continue;
        }
        size_t len = job_lock_key(texts[r->count], j->env.servers->config->redis.prefix, job->id);
        keys[r->count] = (struct redlock_async_key){.bytes = texts[r->count], .len = len};
        r->ids[r->count++] = job->id;
    }
    const struct redlock_async_request request = {
        .keys = keys, .count = r->count, .done = on_relocked, .ctx = r};
    if (r->count == 0 || redlock_async_acquire(j->env.servers->lock, &request, NULL) != 0) {
        free(r);
        return;
    }
    for (size_t i = 0; i < r->count; i++) {
        active_find(j->env.active, r->ids[i])->relock = r;
    }
}

void deadlines_on_lease(struct jobs *j, struct redlock_batch *batch, size_t index, void *user,
                        enum redlock_state state)
{
    struct active_job *job = NULL;
    (void)user; /* a lease that was acquired again has no user, so search by batch and index */
    for (job = j->env.active->by_id; job != NULL; job = job->hh.next) {
        if (job->batch == batch && job->lease_index == index) {
            break;
        }
    }
    if (job == NULL) {
        return;
    }
    if (state == REDLOCK_STATE_SUSPECT) {
        log_debug("lease_suspect", LOG_I64("job", job->id));
    } else if (state == REDLOCK_STATE_LOST) {
        log_warn("lease_lost", LOG_I64("job", job->id),
                 LOG_TEXT("action", active_phase(job) == ACTIVE_RUNNING
                                        ? "acquired again while the heartbeat is fresh"
                                        : "handed back"));
        if (active_phase(job) == ACTIVE_RUNNING) {
            job->batch = NULL;
            redlock_batch_release(batch, index); /* some nodes may still hold it */
        }
    }
}

/* ---- danger ---- */

struct danger_facts deadlines_facts(const struct jobs *j, const struct active_job *job)
{
    struct danger_facts f = {.timeout_at_us = job->started_us + job->settings.timeout_us,
                             .grace_us = cancel_grace_us(j, job)};
    f.heartbeat_sent_us = job->heartbeat_frozen_us > 0 ? job->heartbeat_frozen_us
                                                       : j->env.standing->heartbeat_confirmed_us;
    if (!lease_is_lost(job)) {
        f.lease_deadline_us = redlock_batch_deadline_us(job->batch, job->lease_index);
    }
    return f;
}

static void act(struct jobs *j, struct active_job *job, int64_t now)
{
    bool has_started = slot_has_started(job->slot, job->nonce);
    if (!has_started && slot_present(job->slot) != job) {
        return; /* it waits behind another job, and is taken back if that one takes long */
    }
    if (!has_started && slot_is_loading(job->slot) && now - job->claimed_us < LOAD_MAX_US) {
        job->started_us = now; /* its time begins when its program is ready */
    }
    if (!has_started && now - job->started_us > START_LATE_US) {
        slot_give_up_start(job->slot, START_LATE_US);
        return;
    }
    struct danger_facts facts = deadlines_facts(j, job);
    struct danger_verdict v = danger_verdict(&facts, &j->deadlines.limits, now);
    bool is_drain_stop =
        j->env.standing->stage == WORKER_DRAINING && now >= j->env.standing->stop_at_us;
    bool is_drain_kill =
        j->env.standing->stage == WORKER_DRAINING && now >= j->env.standing->kill_at_us;
    if (v.action == DANGER_KILL || is_drain_kill || cancel_is_kill_due(j, job, now)) {
        bool is_timeout = v.action == DANGER_KILL && v.reason == DANGER_TIMEOUT;
        job->stops |= is_timeout ? RUN_TIMED_OUT : RUN_KILLED;
        slot_kill_run(job->slot, job->nonce);
        return;
    }
    if (v.action == DANGER_STOP || is_drain_stop) {
        bool is_timeout = v.action == DANGER_STOP && v.reason == DANGER_TIMEOUT;
        enum stop_reason other = v.action == DANGER_STOP ? STOP_LEASE : STOP_SHUTDOWN;
        job->stops |= is_timeout ? RUN_TIMED_OUT : RUN_ASKED;
        slot_ask_to_stop(job->slot, job->nonce, is_timeout ? STOP_TIMEOUT : other);
    }
    slot_limit(job->slot, job->nonce, v.kill_at_us);
}

void deadlines_tick(struct jobs *j, int64_t now_us)
{
    bool has_bare = false;
    struct active_job *next = NULL;
    for (struct active_job *job = j->env.active->by_id; job != NULL;
         job = next) { /* lock.W4: before any I/O */
        next = job->hh.next;
        if (active_phase(job) == ACTIVE_RUNNING) {
            act(j, job, now_us);
            has_bare = has_bare || is_bare(job);
        }
    }
    if (has_bare) {
        relock(j);
    }
}

void deadlines_open(struct jobs *j)
{
    const struct config *c = j->env.servers->config;
    j->deadlines.limits = (struct danger_limits){.guard_us = c->lock.guard_us,
                                                 .kill_margin_us = c->lock.kill_margin_us,
                                                 .stale_us = c->worker.stale_us};
}
