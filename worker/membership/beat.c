/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/membership/beat.h"

#include "base/clock.h"
#include "base/recorder.h"
#include "base/timer.h"
#include "worker/worker.h"

#define HELD_FENCES_MAX 4096
/* The least time between two heartbeats: any client can ask for one by a NOTIFY. */
#define SOON_US (50 * US_PER_MS)

static void take_answer(struct worker *w, const struct worker_beat_reply *reply)
{
    w->standing.beat_confirmed_us = w->beat.sent_us;
    for (struct job_in_hand *job = w->jobs.by_id; job != NULL; job = job->hh.next) {
        if (in_hand_phase(job) == IN_HAND_RUNNING) {
            run_limit(w, job, w->beat.sent_us);
        }
    }
    kinds_take_paused(w, reply->paused_kinds, reply->paused_kind_count);
    listen_take(w, reply);
    cancel_take(w, reply);
    worker_take_asked(w, reply->asked);
    if (w->beat.is_wanted) {
        w->beat.is_wanted = false;
        beat_now(w);
    }
}

static void on_beaten(void *ctx, enum status st, const struct worker_beat_reply *reply,
                      const struct err *err)
{
    struct worker *w = ctx;
    bool is_confirmed = st == STATUS_OK && !reply->is_dead;
    w->beat.is_in_flight = false;
    record("beat", st == STATUS_OK ? "ok" : "info", RECORD_TEXT("worker", w->standing.worker_id),
           RECORD_I64("dead", st == STATUS_OK && reply->is_dead));
    w->standing.has_lost_pop =
        w->standing.has_lost_pop || (w->beat.is_telling_lost_pop && !is_confirmed);
    if (st != STATUS_OK) {
        if (complaint_due(&w->beat.complaint, clock_boot_us())) {
            log_warn("beat_failed", LOG_TEXT("err", err->msg), LOG_TEXT("action", "retrying"));
        }
        return;
    }
    log_recovered("beat_recovered", &w->beat.complaint);
    if (reply->is_dead) {
        registration_again(w);
        return;
    }
    take_answer(w, reply);
}

static size_t held_fences(const struct worker *w, int64_t now, int64_t *ret_fences)
{
    size_t n = 0;
    for (struct job_in_hand *job = w->jobs.by_id; job != NULL; job = job->hh.next) {
        bool is_old = job->fence > 0 && now - job->claimed_us >= w->servers.config->lock.ttl_us;
        if (is_old && n < HELD_FENCES_MAX) {
            ret_fences[n++] = job->fence;
        }
    }
    return n;
}

/* Counts the ended runs that wait for their commit, and for how long the oldest has waited. */
static void count_uncommitted(const struct worker *w, int64_t now, struct worker_beat *ret)
{
    int64_t since_us = now;
    for (struct job_in_hand *job = w->jobs.by_id; job != NULL; job = job->hh.next) {
        if (in_hand_phase(job) == IN_HAND_FINISHING && job->since_us < since_us) {
            since_us = job->since_us;
        }
    }
    const struct err *trouble = job_store_trouble(w->servers.store);
    ret->uncommitted = (int)w->jobs.count[IN_HAND_FINISHING];
    ret->uncommitted_us = now - since_us;
    ret->trouble = trouble != NULL ? trouble->msg : NULL;
}

void beat_now(struct worker *w)
{
    int64_t fences[HELD_FENCES_MAX];
    const char *refused[WORKER_REFUSED_MAX];
    if (w->beat.is_in_flight || !w->standing.is_registered || !pg_is_up(w->servers.pg)) {
        return;
    }
    int64_t now = clock_boot_us();
    struct worker_beat b = {.worker_id = w->standing.worker_id,
                            .stale_us = w->servers.config->worker.stale_us,
                            .is_quiet = w->standing.is_quiet || w->standing.stage != WORKER_RUNNING,
                            .lost_pop = w->standing.has_lost_pop,
                            .running = (int)w->jobs.count[IN_HAND_RUNNING],
                            .held_fences = fences,
                            .held_count = held_fences(w, now, fences),
                            .kinds = w->kinds.served.list,
                            .kind_count = w->kinds.served.count,
                            .refused = refused,
                            .refused_count = kinds_refused_texts(w, refused),
                            .lock_nodes = (int)w->servers.config->lock.node_count,
                            .lock_nodes_voting = (int)redlock_async_voting(w->servers.lock),
                            .ready_oldest_us = spare_ready_oldest_us(w, now)};
    count_uncommitted(w, now, &b);
    b.spare_least = spare_take_least(w);
    record("beat", "inv", RECORD_TEXT("worker", w->standing.worker_id));
    if (worker_store_beat(w->servers.pg, &b, on_beaten, w, NULL) != STATUS_OK) {
        return; /* the timer tries again */
    }
    w->beat.is_in_flight = true;
    w->beat.sent_us = now;
    w->beat.is_telling_lost_pop = w->standing.has_lost_pop;
    w->standing.has_lost_pop = false;
}

static void on_beat_due(uv_timer_t *timer)
{
    struct worker *w = timer->data;
    if (w->beat.is_news && w->beat.is_in_flight) {
        w->beat.is_wanted = true; /* the one in flight may have read the rows before the change */
    }
    w->beat.is_news = false;
    beat_now(w);
    kinds_announce(w);
}

static void start_in(struct worker *w, int64_t wait_us)
{
    uint64_t period = (uint64_t)(w->servers.config->worker.beat_us / US_PER_MS);
    uint64_t wait_ms = wait_us > 0 ? (uint64_t)(wait_us / US_PER_MS) + 1 : 0;
    timer_start(&w->beat.timer, on_beat_due, wait_ms, period < 1 ? 1 : period);
}

void beat_start(struct worker *w)
{
    start_in(w, 0);
}

void beat_soon(struct worker *w)
{
    if (uv_is_active((uv_handle_t *)&w->beat.timer)) {
        w->beat.is_news = true;
        start_in(w, w->beat.sent_us + SOON_US - clock_boot_us());
    }
}

void beat_stop(struct worker *w)
{
    (void)uv_timer_stop(&w->beat.timer);
}

enum status beat_open(struct worker *w, struct err *err)
{
    return worker_open_timer(w, &w->beat.timer, "beat", err);
}

void beat_close(struct worker *w)
{
    uv_close((uv_handle_t *)&w->beat.timer, NULL);
}
