/* SPDX-License-Identifier: Apache-2.0 */
#include "soak/faults.h"

#include "base/clock.h"
#include "chaos/host.h"
#include "soak/hosts.h"

#include <assert.h>
#include <signal.h>
#include <stdio.h>

#define HEAL_US (120 * US_PER_S)
#define LEAST 8 /* faults, except those of runners */
#define LOOK_US (100 * US_PER_MS)
#define MOVED_US (30 * US_PER_S) /* a stopped worker without a job is resumed after this */

void faults_begin(struct faults *f, struct world *w, uint64_t seed, bool stops_until_moved)
{
    *f = (struct faults){
        .world = w, .begin_us = clock_boot_us(), .stops_until_moved = stops_until_moved};
    fault_plan_init(&f->plan, seed, (size_t)w->options->workers, (size_t)w->options->schedulers);
    f->next = fault_plan_next(&f->plan);
}

void faults_free(struct faults *f)
{
    free(f->done);
    *f = (struct faults){.count = 0};
}

static const char *what_text(const struct fault *f)
{
    static const char *const texts[] = {[FAULT_KILL] = "kill",
                                        [FAULT_STOP] = "stop",
                                        [FAULT_REDIS] = "wipe",
                                        [FAULT_PG] = "kill",
                                        [FAULT_RUNNER] = "kill a runner"};
    return f->is_new ? "kill for good" : texts[f->kind];
}

static const char *target_text(const struct faults *f, const struct fault *of)
{
    return of->kind == FAULT_PG      ? "postgres"
           : of->kind == FAULT_REDIS ? "redis"
                                     : f->world->hosts[of->target].name;
}

static struct fault_done *note(struct faults *f, const struct fault *of, pid_t pid)
{
    if (f->count == f->capacity) {
        f->capacity = f->capacity == 0 ? 64 : 2 * f->capacity;
        f->done = realloc(f->done, f->capacity * sizeof *f->done);
        assert(f->done != NULL);
    }
    struct fault_done *d = &f->done[f->count++];
    *d = (struct fault_done){.fault = *of, .at_us = clock_wall_us(), .pid = pid};
    if (of->kind != FAULT_RUNNER) {
        (void)printf("%5lld s  %s %s, back after %lld ms\n", (long long)(of->at_us / US_PER_S),
                     what_text(of), target_text(f, of), (long long)(of->away_us / US_PER_MS));
        (void)fflush(stdout);
    }
    return d;
}

static void strike_runner(struct faults *f, const struct fault *of)
{
    pid_t pids[HOST_RUNNERS_MAX];
    const struct host *h = &f->world->hosts[of->target];
    size_t count = h->pid > 0 ? host_runners(h, pids) : 0;
    if (count > 0) {
        note(f, of, 0)->runner = pids[of->nth % count];
        (void)kill(pids[of->nth % count], SIGKILL);
    }
}

static void strike_host(struct faults *f, const struct fault *of)
{
    struct host *h = &f->world->hosts[of->target];
    pid_t pid = h->pid;
    if (pid <= 0) {
        return; /* not restarted yet */
    }
    (void)note(f, of, pid);
    if (of->kind == FAULT_STOP) {
        (void)kill(pid, SIGSTOP);
        return;
    }
    f->stale_refused += hosts_refusals(f->world, of->target);
    host_kill(f->world, h);
    hosts_new_port(f->world, of->target);
    h->life += of->is_new ? 1 : 0;
    h->restart_us = clock_boot_us() + of->away_us;
}

static void strike(struct faults *f, const struct fault *of)
{
    if (of->kind == FAULT_RUNNER) {
        strike_runner(f, of);
    } else if (of->kind == FAULT_REDIS) {
        (void)note(f, of, 0);
        world_take_redis(f->world, of->target, of->away_us);
    } else if (of->kind == FAULT_PG) {
        (void)note(f, of, 0);
        world_take_pg(f->world, of->away_us);
    } else {
        strike_host(f, of);
    }
}

static void end_stop(struct faults *f, struct fault_done *d)
{
    d->until_us = clock_wall_us();
    if (f->world->hosts[d->fault.target].pid == d->pid) {
        (void)kill(d->pid, SIGCONT);
    }
}

/* True if a job that the daemon lost while it was stopped runs elsewhere, under a newer fence. */
static bool has_moved(struct faults *f, struct fault_done *d)
{
    int64_t jobs = 0;
    if (clock_boot_us() < d->look_us) {
        return false;
    }
    d->look_us = clock_boot_us() + LOOK_US;
    return session_i64(&f->world->sql, &jobs, NULL,
                       "SELECT count(*) FROM claimd.worker w"
                       " JOIN claimd.job_attempt a ON a.worker_id = w.worker_id"
                       " JOIN claimd.job j ON j.id = a.job_id"
                       " WHERE w.pid = %d AND a.ended_at > to_timestamp(%lld / 1e6)"
                       " AND j.state = 'running' AND j.fence > a.fence",
                       (int)d->pid, (long long)d->at_us) == STATUS_OK &&
           jobs > 0;
}

static bool is_due(struct faults *f, struct fault_done *d)
{
    int64_t since_us = clock_wall_us() - d->at_us;
    if (d->fault.kind == FAULT_STOP && f->stops_until_moved) {
        return since_us >= MOVED_US || has_moved(f, d);
    }
    return since_us >= d->fault.away_us;
}

static void tick_done(struct faults *f, struct fault_done *d, bool is_all)
{
    if (d->until_us != 0) {
        return;
    }
    int64_t now_us = clock_wall_us();
    bool is_over = is_all || is_due(f, d);
    if (d->fault.kind == FAULT_STOP) {
        if (is_over) {
            end_stop(f, d);
        }
        return;
    }
    bool is_back = d->fault.kind != FAULT_PG || (is_over && !f->world->is_pg_gone);
    d->until_us = is_back ? now_us : 0;
}

void faults_tick(struct faults *f)
{
    for (size_t i = 0; i < f->count; i++) {
        tick_done(f, &f->done[i], false);
    }
    if (clock_boot_us() - f->begin_us >= f->next.at_us) {
        strike(f, &f->next);
        f->next = fault_plan_next(&f->plan);
    }
}

bool faults_had_all(const struct faults *f)
{
    return f->plan.count > LEAST;
}

void faults_heal(struct faults *f)
{
    int64_t end_us = clock_boot_us() + HEAL_US;
    for (size_t i = 0; i < f->count; i++) {
        tick_done(f, &f->done[i], true);
    }
    world_heal(f->world);
    while (!world_is_whole(f->world) && clock_boot_us() < end_us) {
        world_turn(f->world);
    }
    if (!world_is_whole(f->world)) {
        world_violation(f->world, "world", "not all of it runs again");
    }
}

enum status faults_store(const struct faults *f, struct session *s, struct err *err)
{
    enum status st = session_do(s, err,
                                "CREATE TABLE soak.fault (at timestamptz NOT NULL, until"
                                " timestamptz, what text NOT NULL, target text NOT NULL, pid"
                                " integer NOT NULL, runner integer NOT NULL)");
    for (size_t i = 0; i < f->count && st == STATUS_OK; i++) {
        const struct fault_done *d = &f->done[i];
        st = session_do(s, err,
                        "INSERT INTO soak.fault VALUES (to_timestamp(%lld / 1e6),"
                        " to_timestamp(NULLIF(%lld, 0) / 1e6), '%s', '%s', %d, %d)",
                        (long long)d->at_us, (long long)d->until_us, what_text(&d->fault),
                        target_text(f, &d->fault), (int)d->pid, (int)d->runner);
    }
    return st;
}
