/* SPDX-License-Identifier: Apache-2.0
 *
 * Copies states, and what libraries count, into the metrics of the worker. */
#include "worker/worker.h"

static void take_store(struct worker_metrics *m, const struct job_store *store)
{
    const struct job_store_counters *c = job_store_counters(store);
    metric_take(m->claimed, c->claimed);
    metric_take(m->stale, c->stale);
    metric_take(m->results_refused, c->refused);
}

static void take_popper(struct worker_metrics *m, const struct hints_popper *popper)
{
    const struct hints_popper_counters *c = hints_popper_counters(popper);
    metric_take(m->popped, c->popped);
    metric_take(m->junk, c->junk);
    metric_take(m->pops_lost, c->lost_replies);
}

static void set_states(struct worker_metrics *m, const struct worker *w)
{
    metric_set(m->slots, (double)w->slots.count);
    metric_set(m->slots_busy, (double)slots_busy(&w->slots));
    metric_set(m->kinds_served, (double)kinds_able(&w->membership));
    metric_set(m->plugins_refused, (double)kinds_refused(&w->membership));
    metric_set(m->draining, w->standing.stage >= WORKER_DRAINING ? 1 : 0);
    for (size_t i = 0; i < ACTIVE_PHASE_COUNT; i++) {
        metric_set(m->jobs[i], (double)w->active.count[i]);
    }
}

static void take_usage(struct worker_metrics *m, const struct usage *usage)
{
    metric_take_us(m->runners_cpu, usage->cpu_us);
    metric_set(m->runners_memory, (double)usage->bytes);
}

void worker_collect(struct worker *w)
{
    struct worker_metrics *m = &w->metrics;
    struct daemon_facts facts = {.is_pg_up = w->servers.pg != NULL && pg_is_up(w->servers.pg),
                                 .lock = w->servers.lock};
    if (w->servers.store != NULL) {
        take_store(m, w->servers.store);
    }
    if (w->servers.popper != NULL) {
        take_popper(m, w->servers.popper);
    }
    if (w->servers.lock != NULL) {
        const struct redlock_counters *c = redlock_async_counters(w->servers.lock);
        metric_take(m->leases_lost, c->lost);
        facts.splits = c->results[REDLOCK_SPLIT];
    }
    set_states(m, w);
    take_usage(m, slots_usage(&w->slots));
    daemon_metrics_collect(&m->daemon, &facts);
}
