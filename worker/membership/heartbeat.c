/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/membership/heartbeat.h"

#include "base/clock.h"
#include "base/recorder.h"
#include "base/timer.h"
#include "worker/membership/membership.h"

#define HELD_FENCES_MAX 4096
/* The least time between two heartbeats: any client can ask for one by a NOTIFY. */
#define SOON_US (50 * US_PER_MS)

static void take_answer(struct membership *m, const struct worker_heartbeat_reply *reply)
{
    m->env.standing->heartbeat_confirmed_us = m->heartbeat.sent_us;
    m->env.due->limits_of_runs = true;
    kinds_take_paused(m, reply->paused_kinds, reply->paused_kind_count);
    m->env.answered(m->env.ctx, reply);
    if (m->heartbeat.is_wanted) {
        m->heartbeat.is_wanted = false;
        heartbeat_now(m);
    }
}

static void on_heartbeat_stored(void *ctx, enum status st,
                                const struct worker_heartbeat_reply *reply, const struct err *err)
{
    struct membership *m = ctx;
    bool is_confirmed = st == STATUS_OK && !reply->is_dead;
    m->heartbeat.is_in_flight = false;
    record("beat", st == STATUS_OK ? "ok" : "info",
           RECORD_TEXT("worker", m->env.standing->worker_id),
           RECORD_I64("dead", st == STATUS_OK && reply->is_dead));
    m->env.standing->has_lost_pop =
        m->env.standing->has_lost_pop || (m->heartbeat.is_telling_lost_pop && !is_confirmed);
    if (st != STATUS_OK) {
        if (complaint_due(&m->heartbeat.complaint, clock_boot_us())) {
            log_warn("heartbeat_failed", LOG_TEXT("err", err->msg),
                     LOG_TEXT("action", "trying again"));
        }
        return;
    }
    log_recovered("heartbeat_recovered", &m->heartbeat.complaint);
    if (reply->is_dead) {
        registration_again(m);
        return;
    }
    take_answer(m, reply);
}

static size_t held_fences(const struct membership *m, int64_t now, int64_t *ret_fences)
{
    size_t n = 0;
    for (struct active_job *job = m->env.active->by_id; job != NULL; job = job->hh.next) {
        bool is_old =
            job->fence > 0 && now - job->claimed_us >= m->env.servers->config->lock.ttl_us;
        if (is_old && n < HELD_FENCES_MAX) {
            ret_fences[n++] = job->fence;
        }
    }
    return n;
}

/* Counts the ended runs that wait for their commit, and for how long the oldest has waited. */
static void count_uncommitted(const struct membership *m, int64_t now, struct worker_heartbeat *ret)
{
    int64_t since_us = now;
    for (struct active_job *job = m->env.active->by_id; job != NULL; job = job->hh.next) {
        if (active_phase(job) == ACTIVE_FINISHING && job->since_us < since_us) {
            since_us = job->since_us;
        }
    }
    const struct err *trouble = job_store_trouble(m->env.servers->store);
    ret->uncommitted = (int)m->env.active->count[ACTIVE_FINISHING];
    ret->uncommitted_us = now - since_us;
    ret->trouble = trouble != NULL ? trouble->msg : NULL;
}

void heartbeat_now(struct membership *m)
{
    int64_t fences[HELD_FENCES_MAX];
    const char *refused[WORKER_REFUSED_MAX];
    if (m->heartbeat.is_in_flight || !m->env.standing->is_registered ||
        !pg_is_up(m->env.servers->pg)) {
        return;
    }
    int64_t now = clock_boot_us();
    struct worker_heartbeat b = {
        .worker_id = m->env.standing->worker_id,
        .stale_us = m->env.servers->config->worker.stale_us,
        .is_quiet = m->env.standing->is_quiet || m->env.standing->stage != WORKER_RUNNING,
        .lost_pop = m->env.standing->has_lost_pop,
        .running = (int)m->env.active->count[ACTIVE_RUNNING],
        .held_fences = fences,
        .held_count = held_fences(m, now, fences),
        .kinds = m->kinds.served.list,
        .kind_count = m->kinds.served.count,
        .refused = refused,
        .refused_count = kinds_refused_texts(m, refused),
        .lock_nodes = (int)m->env.servers->config->lock.node_count,
        .lock_nodes_voting = (int)redlock_async_voting(m->env.servers->lock),
        .ready_oldest_us = active_ready_oldest_us(m->env.active, now)};
    count_uncommitted(m, now, &b);
    b.spare_least = m->env.spare_least(m->env.ctx);
    record("beat", "inv", RECORD_TEXT("worker", m->env.standing->worker_id));
    if (worker_store_heartbeat(m->env.servers->pg, &b, on_heartbeat_stored, m, NULL) != STATUS_OK) {
        return; /* the timer tries again */
    }
    m->heartbeat.is_in_flight = true;
    m->heartbeat.sent_us = now;
    m->heartbeat.is_telling_lost_pop = m->env.standing->has_lost_pop;
    m->env.standing->has_lost_pop = false;
}

void heartbeat_request(struct membership *m)
{
    m->heartbeat.is_wanted = m->heartbeat.is_in_flight;
    heartbeat_now(m);
}

static void on_heartbeat_due(uv_timer_t *timer)
{
    struct membership *m = timer->data;
    if (m->heartbeat.is_news && m->heartbeat.is_in_flight) {
        m->heartbeat.is_wanted =
            true; /* the one in flight may have read the rows before the change */
    }
    m->heartbeat.is_news = false;
    heartbeat_now(m);
    kinds_announce(m);
}

static void start_in(struct membership *m, int64_t wait_us)
{
    uint64_t period = (uint64_t)(m->env.servers->config->worker.beat_us / US_PER_MS);
    uint64_t wait_ms = wait_us > 0 ? (uint64_t)(wait_us / US_PER_MS) + 1 : 0;
    timer_start(&m->heartbeat.timer, on_heartbeat_due, wait_ms, period < 1 ? 1 : period);
}

void heartbeat_start(struct membership *m)
{
    start_in(m, 0);
}

void heartbeat_soon(struct membership *m)
{
    if (uv_is_active((uv_handle_t *)&m->heartbeat.timer)) {
        m->heartbeat.is_news = true;
        start_in(m, m->heartbeat.sent_us + SOON_US - clock_boot_us());
    }
}

void heartbeat_stop(struct membership *m)
{
    (void)uv_timer_stop(&m->heartbeat.timer);
}

enum status heartbeat_open(struct membership *m, struct err *err)
{
    return timer_open(m->env.servers->loop, &m->heartbeat.timer, m, "heartbeat", err);
}

void heartbeat_close(struct membership *m)
{
    uv_close((uv_handle_t *)&m->heartbeat.timer, NULL);
}
