/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "daemon/daemon.h"
#include "worker/worker.h"

#define CLAIM_TIMEOUTS 2 /* × postgres.timeout_ms: the segment in flight and the claim's own */

static int64_t oldest_since_us(const struct worker *w, enum held_phase phase, int64_t now_us)
{
    int64_t oldest = now_us;
    for (const struct held_job *job = w->held.by_id; job != NULL; job = job->hh.next) {
        if (job->phase == phase && job->since_us < oldest) {
            oldest = job->since_us;
        }
    }
    return oldest;
}

/* A lock round that is as old as a lease can't win one any more. */
static void check_claiming(const struct worker *w, struct health *ret)
{
    int64_t now_us = clock_boot_us();
    int64_t locking_us = now_us - oldest_since_us(w, HELD_LOCKING, now_us);
    int64_t claiming_us = now_us - oldest_since_us(w, HELD_CLAIMING, now_us);
    bool is_lock = locking_us > w->config->lock.ttl_us;
    bool is_claim = claiming_us > CLAIM_TIMEOUTS * w->config->postgres.timeout_us;
    health_add(ret, "claiming", !is_lock && !is_claim, "%s has hung for %lld ms",
               is_lock ? "a lock round" : "a claim",
               (long long)((is_lock ? locking_us : claiming_us) / US_PER_MS));
}

void worker_ready(void *worker, struct health *ret)
{
    const struct worker *w = worker;
    bool is_ending = w->stage == WORKER_DRAINING || w->stage == WORKER_CLOSING;
    health_add(ret, "started", w->is_registered, "%s",
               w->stage == WORKER_STARTING ? "starting" : "not registered");
    health_add(ret, "draining", !is_ending, "stopping: it takes no more jobs");
    health_add(ret, "postgres", pg_is_up(w->pg), "not connected");
    daemon_check_quorum(w->config, w->lock, ret);
    check_claiming(w, ret);
}
