/* SPDX-License-Identifier: Apache-2.0 */
#include "soak/faults.h"

#include "base/clock.h"
#include "soak/hosts.h"

#include <stdio.h>

#define HEAL_US (120 * US_PER_S)
#define LEAST 8 /* kills and stops of daemons */
#define LOOK_US (100 * US_PER_MS)
#define MOVED_US (30 * US_PER_S) /* a stopped worker without a job is resumed after this */
#define REDIS_AWAY_US (1 * US_PER_S)
#define PG_AWAY_US (US_PER_S / 2)

static bool kill_host(struct world *w, struct nemesis *n)
{
    struct host *h = nemesis_host(w, n, -1);
    if (h != NULL) {
        hosts_leave(w, h);
        nemesis_kill_host(w, n, h);
    }
    return h != NULL;
}

static bool empty_once(struct world *w, struct nemesis *n)
{
    size_t redis = (size_t)nemesis_between(n, 0, WORLD_REDIS - 1);
    if (n->strikes > 0) {
        return false;
    }
    nemesis_target(n, "", "r%zu", redis);
    world_take_redis(w, redis, REDIS_AWAY_US);
    return true;
}

static bool kill_pg_once(struct world *w, struct nemesis *n)
{
    if (n->strikes > 0) {
        return false;
    }
    nemesis_target(n, "", "pg");
    world_take_pg(w, PG_AWAY_US);
    return true;
}

/* evidence.sql reads the names. */
static const struct nemesis_def defs[] = {
    {.name = "kill9", .count = COUNT_KILL, .every_ms = 9000, .strike = kill_host},
    {.name = "kill9_runner", .every_ms = 5000, .strike = nemesis_kill_runner},
    {.name = "stop_worker",
     .count = COUNT_STOP,
     .every_ms = 2000, /* counts from its end */
     .last_min_ms = 2000,
     .last_max_ms = 15000,
     .strike = nemesis_stop_worker,
     .heal = nemesis_continue},
    {.name = "stop_scheduler",
     .count = COUNT_STOP,
     .every_ms = 45000,
     .last_min_ms = 2000,
     .last_max_ms = 15000,
     .strike = nemesis_stop_scheduler,
     .heal = nemesis_continue},
    {.name = "redis_empty", .every_ms = 15000, .strike = empty_once},
    {.name = "pg_restart", .every_ms = 30000, .strike = kill_pg_once},
};

void faults_begin(struct faults *f, struct world *w, uint64_t seed, bool stops_until_moved)
{
    *f = (struct faults){.stops_until_moved = stops_until_moved};
    for (size_t i = 0; i < ARRAY_COUNT(defs); i++) {
        nemeses_add(&f->all, &defs[i], seed);
    }
    nemeses_begin(&f->all, w, clock_boot_us());
}

/* True if a job that the worker lost while it was stopped runs elsewhere, under a newer fence. */
static bool has_moved(struct faults *f, struct world *w, const struct nemesis *stop)
{
    int64_t jobs = 0;
    int64_t now_us = clock_boot_us();
    if (now_us < f->look_us) {
        return false;
    }
    f->look_us = now_us + LOOK_US;
    return session_i64(&w->sql, &jobs, NULL,
                       "SELECT count(*) FROM claimd.worker w"
                       " JOIN claimd.job_attempt a ON a.worker_id = w.worker_id"
                       " JOIN claimd.job j ON j.id = a.job_id"
                       " WHERE w.pid = %d AND a.ended_at > now() - interval '%lld us'"
                       " AND j.state = 'running' AND j.fence > a.fence",
                       (int)stop->pids[0], (long long)(now_us - stop->struck_us)) == STATUS_OK &&
           jobs > 0;
}

void faults_tick(struct faults *f, struct world *w)
{
    for (size_t i = 0; i < f->all.count && f->stops_until_moved; i++) {
        struct nemesis *n = &f->all.all[i];
        if (n->is_on && n->def->strike == nemesis_stop_worker) {
            n->heal_us = has_moved(f, w, n) ? 0 : n->struck_us + MOVED_US;
        }
    }
    nemeses_tick(&f->all, w, clock_boot_us());
}

size_t faults_count(const struct faults *f)
{
    size_t count = 0;
    for (size_t i = 0; i < f->all.count; i++) {
        count += (size_t)f->all.all[i].strikes;
    }
    return count;
}

bool faults_had_all(const struct faults *f)
{
    for (size_t i = 0; i < f->all.count; i++) {
        if (f->all.all[i].strikes == 0) {
            return false;
        }
    }
    return f->all.counts[COUNT_KILL] + f->all.counts[COUNT_STOP] > LEAST;
}

void faults_heal(struct faults *f, struct world *w)
{
    nemeses_end(&f->all, w);
    world_heal(w);
    world_await_whole(w, HEAL_US);
}
