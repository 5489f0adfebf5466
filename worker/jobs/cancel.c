/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/jobs/cancel.h"

#include "base/clock.h"
#include "base/parse.h"
#include "worker/jobs/jobs.h"

#define LONG_RUN_US (300 * US_PER_MS)
#define LISTEN_FOR_US (10 * US_PER_S) /* after the last long run: more may follow */

/* ---- listening ---- */

/* Cancels requested before LISTEN took effect were not notified; the next heartbeat finds them. */
static void on_listening(void *ctx, enum status st, const struct err *err)
{
    struct jobs *j = ctx;
    (void)err;
    j->cancel.is_in_flight = false;
    if (st == STATUS_OK) {
        j->cancel.is_listening = true;
        j->env.due->heartbeat = true;
    }
}

static void on_silent(void *ctx, enum status st, const struct err *err)
{
    struct jobs *j = ctx;
    (void)err;
    j->cancel.is_in_flight = false;
    j->cancel.is_listening = j->cancel.is_listening && st != STATUS_OK;
}

static bool has_long_run(const struct jobs *j, int64_t now_us)
{
    for (const struct active_job *job = j->env.active->by_id; job != NULL; job = job->hh.next) {
        if (active_phase(job) == ACTIVE_RUNNING && now_us - job->started_us >= LONG_RUN_US) {
            return true;
        }
    }
    return false;
}

void cancel_session_up(struct jobs *j)
{
    j->cancel.is_listening = false;
}

void cancel_tick(struct jobs *j, int64_t now_us)
{
    struct cancel *c = &j->cancel;
    if (has_long_run(j, now_us)) {
        c->long_run_us = now_us;
    }
    bool is_wanted = c->long_run_us > 0 && now_us - c->long_run_us < LISTEN_FOR_US;
    if (is_wanted == c->is_listening || c->is_in_flight || !pg_is_up(j->env.servers->pg)) {
        return;
    }
    c->is_in_flight =
        worker_store_listen(j->env.servers->pg, CANCEL_CHANNEL, is_wanted,
                            is_wanted ? on_listening : on_silent, j, NULL) == STATUS_OK;
}

/* ---- cancels ---- */

void cancel_take_notify(struct jobs *j, const char *payload)
{
    int64_t id = 0;
    enum status st = parse_i64(payload, strlen(payload), 1, INT64_MAX, &id, NULL);
    if (st != STATUS_OK || active_find(j->env.active, id) == NULL) {
        return; /* most notifications concern jobs of other workers */
    }
    j->env.due->heartbeat = true;
}

void cancel_take(struct jobs *j, const struct worker_heartbeat_reply *reply)
{
    for (size_t i = 0; i < reply->cancel_count; i++) {
        const struct worker_cancel *c = &reply->cancels[i];
        struct active_job *job = active_find(j->env.active, c->id);
        if (job == NULL || job->fence != c->fence || job->cancel_us > 0) {
            continue; /* it has ended, or is being cancelled already */
        }
        log_info("job_cancelling", LOG_I64("job", job->id), LOG_I64("fence", job->fence));
        job->cancel_us = clock_boot_us();
        j->env.due->cancels = true;
    }
}

void cancel_act(struct jobs *j)
{
    struct active_job *next = NULL;
    for (struct active_job *job = j->env.active->by_id; job != NULL; job = next) {
        next = job->hh.next;
        if (job->cancel_us > 0 && active_phase(job) == ACTIVE_RUNNING) {
            slot_cancel(job->slot, job->nonce); /* again, if it was asked already: no harm */
        }
    }
}

int64_t cancel_grace_us(const struct jobs *j, const struct active_job *job)
{
    return job->settings.grace_us > 0 ? job->settings.grace_us
                                      : j->env.servers->config->lock.guard_us;
}

bool cancel_is_kill_due(const struct jobs *j, const struct active_job *job, int64_t now_us)
{
    return job->cancel_us > 0 && now_us - job->cancel_us >= cancel_grace_us(j, job);
}
