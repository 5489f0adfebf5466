/* SPDX-License-Identifier: Apache-2.0
 *
 * Faults of processes: deaths, pauses and orderly ends of daemons and runners. */
#include "base/clock.h"
#include "chaos/host.h"
#include "chaos/nemesis.h"

#include <signal.h>
#include <stdio.h>

/* Schedules the restart of a host: at once, or after longer than a worker's heartbeat may be old;
 * with its own state directory, or as a new host. */
static void come_back(struct world *w, struct nemesis *n, struct host *h)
{
    static const int64_t away_ms[] = {0, 300, 1000, 4000, 14000};
    int64_t ms = away_ms[rand_below(&n->rand, ARRAY_COUNT(away_ms))];
    bool is_new = h->role == HOST_WORKER && rand_below(&n->rand, 4) == 0;
    h->life += is_new ? 1 : 0;
    h->restart_us = clock_boot_us() + world_scaled(w, ms * US_PER_MS);
    (void)snprintf(n->detail, sizeof n->detail, "back after %lld ms%s", (long long)ms,
                   is_new ? " in a new state directory" : "");
}

void nemesis_kill_host(struct world *w, struct nemesis *n, struct host *h)
{
    nemesis_target(n, "", "%s", h->name);
    host_kill(w, h);
    come_back(w, n, h);
}

bool nemesis_kill9(struct world *w, struct nemesis *n)
{
    struct host *h = nemesis_host(w, n, -1);
    if (h != NULL) {
        nemesis_kill_host(w, n, h);
    }
    return h != NULL;
}

static bool terminate(struct world *w, struct nemesis *n)
{
    struct host *h = nemesis_host(w, n, -1);
    if (h == NULL) {
        return false;
    }
    nemesis_target(n, "", "%s", h->name);
    host_terminate(w, h, clock_boot_us());
    come_back(w, n, h);
    if (rand_below(&n->rand, 4) == 0) { /* a second signal: stops at once */
        (void)kill(h->pid, SIGTERM);
    }
    return true;
}

static bool kill_claimctl(struct world *w, struct nemesis *n)
{
    nemesis_target(n, "", "claimctl");
    return w->map.pid > 0 && kill(w->map.pid, SIGKILL) == 0;
}

static bool runner_of_somebody(struct world *w, struct nemesis *n, pid_t *ret_pid)
{
    pid_t pids[HOST_RUNNERS_MAX];
    struct host *h = nemesis_host(w, n, HOST_WORKER);
    size_t count = h != NULL ? host_runners(h, pids) : 0;
    if (count == 0) {
        return false;
    }
    *ret_pid = pids[rand_below(&n->rand, (int64_t)count)];
    nemesis_target(n, "", "%s/%ld", h->name, (long)*ret_pid);
    return true;
}

bool nemesis_kill_runner(struct world *w, struct nemesis *n)
{
    pid_t pid = 0;
    return runner_of_somebody(w, n, &pid) && kill(pid, SIGKILL) == 0;
}

static bool term_runner(struct world *w, struct nemesis *n)
{
    pid_t pid = 0;
    return runner_of_somebody(w, n, &pid) && kill(pid, SIGTERM) == 0;
}

static void stop_pid(struct nemesis *n, pid_t pid)
{
    if (n->pid_count < ARRAY_COUNT(n->pids) && kill(pid, SIGSTOP) == 0) {
        n->pids[n->pid_count++] = pid;
    }
}

void nemesis_continue(struct world *w, struct nemesis *n)
{
    for (size_t i = 0; i < n->pid_count; i++) {
        host_continue(w, n->pids[i]);
    }
    n->pid_count = 0;
}

static bool stop_role(struct world *w, struct nemesis *n, int role)
{
    struct host *h = nemesis_host(w, n, role);
    if (h == NULL) {
        return false;
    }
    nemesis_target(n, "", "%s", h->name);
    stop_pid(n, h->pid);
    return true;
}

bool nemesis_stop_worker(struct world *w, struct nemesis *n)
{
    return stop_role(w, n, HOST_WORKER);
}

bool nemesis_stop_scheduler(struct world *w, struct nemesis *n)
{
    return stop_role(w, n, HOST_SCHEDULER);
}

static bool stop_runner(struct world *w, struct nemesis *n)
{
    pid_t pid = 0;
    if (!runner_of_somebody(w, n, &pid)) {
        return false;
    }
    stop_pid(n, pid);
    return true;
}

/* Suspends a host: the worker and all its runners. */
static bool suspend(struct world *w, struct nemesis *n)
{
    pid_t pids[HOST_RUNNERS_MAX];
    struct host *h = nemesis_host(w, n, HOST_WORKER);
    if (h == NULL) {
        return false;
    }
    nemesis_target(n, "", "%s", h->name);
    stop_pid(n, h->pid);
    size_t count = host_runners(h, pids);
    for (size_t i = 0; i < count; i++) {
        stop_pid(n, pids[i]);
    }
    return true;
}

const struct nemesis_def nemesis_process_defs[] = {
    {"kill9",
     "kill -9 of a worker or scheduler, which is restarted at once, later, or in a new state "
     "directory",
     COUNT_KILL, 0, 6000, 0, 0, nemesis_kill9, NULL},
    {"kill9_claimctl", "kill -9 of the claimctl that loads a map (--map)", COUNT_KILL, 0, 8000, 0,
     0, kill_claimctl, NULL},
    {"kill9_runner", "kill -9 of a runner", COUNT_KILL, 0, 15000, 0, 0, nemesis_kill_runner, NULL},
    {"term", "SIGTERM of a worker or scheduler, sometimes twice", COUNT_OTHER, 0, 15000, 0, 0,
     terminate, NULL},
    {"term_runner", "SIGTERM of a runner", COUNT_OTHER, 0, 40000, 0, 0, term_runner, NULL},
    {"stop_worker", "SIGSTOP of a worker, while its runners continue", COUNT_STOP, 0, 14000, 1000,
     20000, nemesis_stop_worker, nemesis_continue},
    {"stop_scheduler", "SIGSTOP of a scheduler", COUNT_STOP, 0, 14000, 1000, 20000,
     nemesis_stop_scheduler, nemesis_continue},
    {"stop_runner", "SIGSTOP of a runner", COUNT_STOP, TRAIT_RUNNER_STOPPED, 14000, 1000, 20000,
     stop_runner, nemesis_continue},
    {"suspend", "SIGSTOP of a worker with its runners", COUNT_STOP,
     TRAIT_RUNNER_STOPPED | TRAIT_SUSPENDED, 14000, 1000, 20000, suspend, nemesis_continue},
    {"slow_commit", "the load holds inserts for up to 12 s before it commits them", COUNT_OTHER,
     TRAIT_SPARES_RESCUES | TRAIT_SPARES_WAITS, 1500, 0, 12000, NULL, NULL}, /* done by load.c */
};
const size_t nemesis_process_count = ARRAY_COUNT(nemesis_process_defs);
