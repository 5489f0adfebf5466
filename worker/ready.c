/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/ready.h"

#include "base/clock.h"
#include "daemon/daemon.h"
#include "worker/worker.h"

#define CLAIM_TIMEOUTS 2 /* × postgres.timeout_ms: the segment in flight and the claim's own */

static long long ms(int64_t us)
{
    return (long long)(us / US_PER_MS);
}

static int64_t oldest_since_us(const struct worker *w, enum in_hand_phase phase, int64_t now_us)
{
    int64_t oldest = now_us;
    for (const struct job_in_hand *job = w->jobs.by_id; job != NULL; job = job->hh.next) {
        if (job->phase == phase && job->since_us < oldest) {
            oldest = job->since_us;
        }
    }
    return oldest;
}

static int64_t claim_bound_us(const struct worker *w)
{
    return CLAIM_TIMEOUTS * w->config->postgres.timeout_us;
}

void ready_setback(struct worker *w, int64_t now_us)
{
    if (w->setbacks_since_us == 0 || now_us - w->setback_us > claim_bound_us(w)) {
        w->setbacks_since_us = now_us; /* the first, or the first for long: no row of them */
    }
    w->setback_us = now_us;
}

/* A lock round that is as old as a lease can't win one any more. A worker that has nothing to claim
 * has no setbacks either. */
static void check_claiming(const struct worker *w, struct health *ret)
{
    int64_t now_us = clock_boot_us();
    int64_t bound_us = claim_bound_us(w);
    int64_t locking_us = now_us - oldest_since_us(w, IN_HAND_LOCKING, now_us);
    int64_t claiming_us = now_us - oldest_since_us(w, IN_HAND_CLAIMING, now_us);
    bool is_failing = w->setbacks_since_us > 0 && now_us - w->setback_us <= bound_us;
    int64_t failing_us = is_failing ? now_us - w->setbacks_since_us : 0;
    if (locking_us > w->config->lock.ttl_us) {
        health_add(ret, "claiming", false, "a lock round has hung for %lld ms", ms(locking_us));
    } else if (claiming_us > bound_us) {
        health_add(ret, "claiming", false, "a claim has hung for %lld ms", ms(claiming_us));
    } else {
        health_add(ret, "claiming", failing_us <= bound_us, "nothing could be claimed for %lld ms",
                   ms(failing_us));
    }
}

void worker_ready(void *worker, struct health *ret)
{
    const struct worker *w = worker;
    bool is_ending = w->stage == WORKER_DRAINING || w->stage == WORKER_CLOSING;
    health_add(ret, "started", w->registration.is_registered, "%s",
               w->stage == WORKER_STARTING ? "starting" : "not registered");
    health_add(ret, "draining", !is_ending, "stopping: it takes no more jobs");
    health_add(ret, "postgres", pg_is_up(w->pg), "not connected");
    daemon_check_quorum(w->config, w->lock, ret);
    check_claiming(w, ret);
}
