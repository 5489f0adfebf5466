/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/ready.h"

#include "base/clock.h"
#include "base/notify.h"
#include "daemon/daemon.h"
#include "daemon/ready.h"
#include "worker/worker.h"

#include <stdio.h>

/* ---- readiness, logged once ---- */

/* Appends to "a,b"; the list is cut if it would be too long. */
static void add_name(char *names, size_t size, const char *name)
{
    size_t len = strlen(names);
    (void)snprintf(names + len, size - len, "%s%s", len > 0 ? "," : "", name);
}

static void say_ready(struct worker *w)
{
    const struct config *c = w->servers.config;
    char queues[CONFIG_QUEUES_MAX * sizeof c->worker.queues[0]] = "";
    char kinds[1024] = "";
    struct ready_servers servers;
    ready_describe(c, w->servers.lock, pg_server_version(w->servers.pg), &servers);
    for (size_t i = 0; i < c->worker.queue_count; i++) {
        add_name(queues, sizeof queues, c->worker.queues[i]);
    }
    for (size_t i = 0; i < w->membership.kinds.served.count; i++) {
        add_name(kinds, sizeof kinds, w->membership.kinds.served.names[i]);
    }
    log_info("ready", LOG_TEXT("worker", w->standing.worker_id), LOG_I64("slots", w->slots.count),
             LOG_TEXT("postgres", servers.postgres), LOG_TEXT("redis", servers.redis),
             LOG_TEXT("redis_versions", servers.redis_versions),
             LOG_TEXT("http", telemetry_address(w->telemetry)), LOG_TEXT("queues", queues),
             LOG_I64("kind_count", w->membership.kinds.served.count), LOG_TEXT("kinds", kinds));
}

void ready_check(struct worker *w)
{
    bool is_due = w->ready.awaited_since_us > 0 && w->standing.stage == WORKER_RUNNING;
    if (!is_due || !ready_is_time(w->servers.config, w->servers.lock, w->ready.awaited_since_us)) {
        return;
    }
    w->ready.awaited_since_us = 0;
    say_ready(w);
    notify_ready(); /* again after a new registration, which systemd ignores */
}

void ready_await(struct worker *w)
{
    w->ready.awaited_since_us = clock_boot_us();
}

/* ---- /readyz ---- */

static long long ms(int64_t us)
{
    return (long long)(us / US_PER_MS);
}

static int64_t oldest_since_us(const struct worker *w, enum active_phase phase, int64_t now_us)
{
    int64_t oldest = now_us;
    for (const struct active_job *job = w->active.by_id; job != NULL; job = job->hh.next) {
        if (active_phase(job) == phase && job->since_us < oldest) {
            oldest = job->since_us;
        }
    }
    return oldest;
}

/* A lock round as old as a lease can no longer win one. A worker that has nothing to claim has no
 * setbacks either. */
static void check_claiming(const struct worker *w, struct health *ret)
{
    const struct room *f = &w->intake.room;
    int64_t now_us = clock_boot_us();
    int64_t bound_us = room_claim_bound_us(&w->intake);
    int64_t locking_us = now_us - oldest_since_us(w, ACTIVE_LOCKING, now_us);
    int64_t claiming_us = now_us - oldest_since_us(w, ACTIVE_CLAIMING, now_us);
    bool is_failing = f->setbacks_since_us > 0 && now_us - f->setback_us <= bound_us;
    int64_t failing_us = is_failing ? now_us - f->setbacks_since_us : 0;
    if (locking_us > w->servers.config->lock.ttl_us) {
        health_add(ret, "claiming", false, "a lock round has hung for %lld ms", ms(locking_us));
    } else if (claiming_us > bound_us) {
        health_add(ret, "claiming", false, "a claim has hung for %lld ms", ms(claiming_us));
    } else {
        health_add(ret, "claiming", failing_us <= bound_us, "nothing could be claimed for %lld ms",
                   ms(failing_us));
    }
}

/* A bad deployment should stop at the first host, so a worker that has had no kind to serve since
 * its start is not ready. Once it has had one, it stays ready: a single plugin that fails
 * everywhere must not take out all hosts. */
static void check_kinds(const struct worker *w, struct health *ret)
{
    const char *dir = w->servers.config->worker.plugin_dir;
    size_t refused = kinds_refused(&w->membership);
    if (w->membership.kinds.generation == 0) {
        health_add(ret, "kinds", false, "no runner has loaded the plugins yet");
    } else if (refused == 0) {
        health_add(ret, "kinds", w->membership.kinds.has_any, "no plugin in %s: it serves no kind",
                   dir);
    } else {
        health_add(ret, "kinds", w->membership.kinds.has_any,
                   "no plugin of %s can be used (refused: %zu); the log says why", dir, refused);
    }
}

void ready_fill(void *worker, struct health *ret)
{
    const struct worker *w = worker;
    bool is_ending = w->standing.stage == WORKER_DRAINING || w->standing.stage == WORKER_CLOSING;
    health_add(ret, "started", w->standing.is_registered, "%s",
               w->standing.stage == WORKER_STARTING ? "starting" : "not registered");
    health_add(ret, "draining", !is_ending, "stopping: it takes no more jobs");
    health_add(ret, "postgres", pg_is_up(w->servers.pg), "not connected");
    daemon_check_quorum(w->servers.config, w->servers.lock, ret);
    check_kinds(w, ret);
    check_claiming(w, ret);
}
