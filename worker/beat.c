/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/beat.h"

#include "base/clock.h"
#include "base/recorder.h"
#include "base/timer.h"
#include "worker/worker.h"

#include <stdio.h>

#define HELD_FENCES_MAX 4096

/* ---- what to listen to ---- */

static bool is_paused(const struct worker *w, const char *queue)
{
    for (size_t i = 0; i < w->paused_count; i++) {
        if (strcmp(w->paused[i], queue) == 0) {
            return true;
        }
    }
    return false;
}

static void add_set(struct hints_set *set, const char *queue, const char *kind)
{
    (void)snprintf(set->queue, sizeof set->queue, "%s", queue);
    (void)snprintf(set->kind, sizeof set->kind, "%s", kind);
}

/* A queue's own set, and one for each kind of ours: the scheduler uses the latter where not every
 * worker of the queue serves the kind (INTERFACES rule 2); which it is may change at any time, so
 * both are listened to. */
static enum status listen_to_sets(struct worker *w, struct err *err)
{
    size_t count = 0;
    size_t max = w->config->worker.queue_count * (w->kinds.count + 1);
    autofree struct hints_set *sets = calloc(max == 0 ? 1 : max, sizeof *sets);
    if (sets == NULL) {
        return err_fail(err, STATUS_NOMEM, "no memory for the sets of hints");
    }
    bool listens = w->stage == WORKER_RUNNING && !w->is_quiet && w->kinds.count > 0;
    for (size_t q = 0; listens && q < w->config->worker.queue_count; q++) {
        const char *queue = w->config->worker.queues[q];
        if (is_paused(w, queue)) {
            continue;
        }
        add_set(&sets[count++], queue, "");
        for (size_t k = 0; k < w->kinds.count; k++) {
            add_set(&sets[count++], queue, w->kinds.names[k]);
        }
    }
    return hints_popper_listen(w->popper, sets, count, err);
}

void beat_listen(struct worker *w)
{
    struct err err = {0};
    if (w->popper == NULL) {
        return; /* closed: this worker is about to end */
    }
    if (listen_to_sets(w, &err) == STATUS_OK) {
        log_recovered("listen_recovered", &w->listen_complaint);
    } else if (complaint_due(&w->listen_complaint, clock_boot_us())) {
        log_error("listen_failed", LOG_TEXT("err", err.msg),
                  LOG_TEXT("action", "again with the next beat"));
    }
}

static void take_paused(struct worker *w, const struct worker_beat_reply *reply)
{
    bool changed = reply->paused_count != w->paused_count;
    for (size_t i = 0; i < reply->paused_count && !changed; i++) {
        changed = !is_paused(w, reply->paused_queues[i]);
    }
    if (!changed) {
        return;
    }
    w->paused_count = 0;
    for (size_t i = 0; i < reply->paused_count && i < WORKER_PAUSED_MAX; i++) {
        (void)snprintf(w->paused[w->paused_count++], sizeof w->paused[0], "%s",
                       reply->paused_queues[i]);
    }
    beat_listen(w);
}

/* ---- beats ---- */

static void on_beaten(void *ctx, enum status st, const struct worker_beat_reply *reply,
                      const struct err *err)
{
    struct worker *w = ctx;
    bool is_confirmed = st == STATUS_OK && !reply->is_dead;
    w->is_beating = false;
    record("beat", st == STATUS_OK ? "ok" : "info", RECORD_TEXT("worker", w->worker_id),
           RECORD_I64("dead", st == STATUS_OK && reply->is_dead));
    w->has_lost_pop = w->has_lost_pop || (w->is_telling_lost_pop && !is_confirmed);
    if (st != STATUS_OK) {
        if (complaint_due(&w->beat_complaint, clock_boot_us())) {
            log_warn("beat_failed", LOG_TEXT("err", err->msg), LOG_TEXT("action", "beating on"));
        }
        return;
    }
    log_recovered("beat_recovered", &w->beat_complaint);
    if (reply->is_dead) {
        registration_again(w);
        return;
    }
    w->beat_confirmed_us = w->beat_sent_us;
    for (struct job_in_hand *job = w->jobs.by_id; job != NULL; job = job->hh.next) {
        if (job->phase == IN_HAND_RUNNING) {
            run_limit(w, job, w->beat_sent_us);
        }
    }
    take_paused(w, reply);
    if (w->listen_complaint.count > 0) {
        beat_listen(w);
    }
}

static size_t held_fences(const struct worker *w, int64_t now, int64_t *ret_fences)
{
    size_t n = 0;
    for (struct job_in_hand *job = w->jobs.by_id; job != NULL; job = job->hh.next) {
        bool is_old = job->fence > 0 && now - job->claimed_us >= w->config->lock.ttl_us;
        if (is_old && n < HELD_FENCES_MAX) {
            ret_fences[n++] = job->fence;
        }
    }
    return n;
}

/* Ends of runs that wait for their commit: how many, and since when the oldest does. */
static void count_uncommitted(const struct worker *w, int64_t now, struct worker_beat *ret)
{
    int64_t since_us = now;
    for (struct job_in_hand *job = w->jobs.by_id; job != NULL; job = job->hh.next) {
        if (job->phase == IN_HAND_FINISHING && job->since_us < since_us) {
            since_us = job->since_us;
        }
    }
    const struct err *trouble = job_store_trouble(w->store);
    ret->uncommitted = (int)w->jobs.count[IN_HAND_FINISHING];
    ret->uncommitted_us = now - since_us;
    ret->trouble = trouble != NULL ? trouble->msg : NULL;
}

void beat_now(struct worker *w)
{
    int64_t fences[HELD_FENCES_MAX];
    if (w->is_beating || !w->is_registered || !pg_is_up(w->pg)) {
        return;
    }
    int64_t now = clock_boot_us();
    struct worker_beat b = {.worker_id = w->worker_id,
                            .stale_us = w->config->worker.stale_us,
                            .is_quiet = w->is_quiet || w->stage != WORKER_RUNNING,
                            .lost_pop = w->has_lost_pop,
                            .running = (int)w->jobs.count[IN_HAND_RUNNING],
                            .held_fences = fences,
                            .held_count = held_fences(w, now, fences),
                            .kinds = w->kinds.list,
                            .kind_count = w->kinds.count,
                            .lock_nodes = (int)w->config->lock.node_count,
                            .lock_nodes_voting = (int)redlock_async_voting(w->lock)};
    count_uncommitted(w, now, &b);
    record("beat", "inv", RECORD_TEXT("worker", w->worker_id));
    if (worker_store_beat(w->pg, &b, on_beaten, w, NULL) != STATUS_OK) {
        return; /* the next one's turn */
    }
    w->is_beating = true;
    w->beat_sent_us = now;
    w->is_telling_lost_pop = w->has_lost_pop;
    w->has_lost_pop = false;
}

static void on_beat_due(uv_timer_t *timer)
{
    beat_now(timer->data);
    kinds_announce(timer->data);
}

void beat_start(struct worker *w)
{
    uint64_t period = (uint64_t)(w->config->worker.beat_us / US_PER_MS);
    timer_start(&w->beat_timer, on_beat_due, 0, period < 1 ? 1 : period);
}

void beat_stop(struct worker *w)
{
    if (w->beat_timer.data != NULL && !uv_is_closing((uv_handle_t *)&w->beat_timer)) {
        uv_close((uv_handle_t *)&w->beat_timer, NULL);
    }
}
