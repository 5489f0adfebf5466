/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/cancel.h"

#include "base/clock.h"
#include "base/parse.h"
#include "worker/worker.h"

void cancel_take_notify(struct worker *w, const char *payload)
{
    int64_t id = 0;
    enum status st = parse_i64(payload, strlen(payload), 1, INT64_MAX, &id, NULL);
    if (st != STATUS_OK || in_hand_find(&w->jobs, id) == NULL) {
        return; /* of another worker, mostly */
    }
    w->beat.is_wanted = w->beat.is_in_flight; /* which may have looked before */
    beat_now(w);
}

void cancel_take(struct worker *w, const struct worker_beat_reply *reply)
{
    for (size_t i = 0; i < reply->cancel_count; i++) {
        const struct worker_cancel *c = &reply->cancels[i];
        struct job_in_hand *job = in_hand_find(&w->jobs, c->id);
        if (job == NULL || job->fence != c->fence || job->cancel_us > 0) {
            continue; /* its end is on its way */
        }
        log_info("job_cancelling", LOG_I64("job", job->id), LOG_I64("fence", job->fence));
        job->cancel_us = clock_boot_us();
        job->has_live = true;
        if (job->phase == IN_HAND_RUNNING) {
            slot_cancel(job->slot, job->nonce);
        }
    }
}

bool cancel_is_kill_due(const struct worker *w, const struct job_in_hand *job, int64_t now_us)
{
    return job->cancel_us > 0 && now_us - job->cancel_us >= w->config->lock.guard_us;
}
