/* SPDX-License-Identifier: Apache-2.0
 *
 * Workload locks: its masters and loads: many locks in flight, a single one, blocking threads. */
#include "base/clock.h"
#include "bench/locks.h"
#include "bench/masters.h"
#include "redlock/cmd/load.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

#define ALONE_MS 1500
#define THREADS_MAX 256
#define TTL_MS 30000
#define NODE_TIMEOUT_MS 1000 /* so that a busy machine does not look like a dead node */

enum status locks_world_open(struct locks_world *w, struct err *err)
{
    enum status st = STATUS_OK;
    w->cli.options = (struct redlock_options){.nodes = w->list,
                                              .ttl_ms = TTL_MS,
                                              .node_timeout_ms = NODE_TIMEOUT_MS,
                                              .trust_fresh = true};
    for (size_t i = 0; i < LOCKS_MASTERS && st == STATUS_OK; i++) {
        char dir[SERVER_PATH_MAX + 16];
        (void)snprintf(dir, sizeof dir, "%s/r%zu", w->dir, i);
        st = redis_server_start(dir, NULL, &w->servers[i], err);
        size_t len = strlen(w->list);
        (void)snprintf(w->list + len, sizeof w->list - len, "%sunix:%s", i > 0 ? "," : "",
                       w->servers[i].path);
    }
    if (st == STATUS_OK) {
        st = settings_read(&w->cli.options, &w->cli.settings, err);
    }
    return st;
}

void locks_world_close(struct locks_world *w)
{
    cli_release(&w->cli);
    for (size_t i = 0; i < LOCKS_MASTERS; i++) {
        redis_server_stop(&w->servers[i]);
    }
}

static enum status load(struct session *s, int64_t ms, size_t in_flight, size_t batch,
                        struct load_result *ret, struct err *err)
{
    const struct load_options options = {
        .prefix = "bench", .duration_ms = ms, .in_flight = in_flight, .batch = batch};
    if (load_run(s, &options, ret) != CLI_OK) {
        return err_fail(err, STATUS_UNAVAILABLE, "the load did not run");
    }
    if (ret->failed > 0) {
        return err_fail(err, STATUS_CONFLICT, "%llu locks were not won: %s",
                        (unsigned long long)ret->failed, redlock_text(ret->failure));
    }
    return STATUS_OK;
}

enum status locks_load(const struct locks_world *w, int64_t seconds, size_t in_flight, size_t batch,
                       struct load_result *ret, struct err *err)
{
    struct session s = {0};
    if (session_open(&s, &w->cli) != CLI_OK) {
        return err_fail(err, STATUS_UNAVAILABLE, "no session");
    }
    *ret = (struct load_result){0};
    enum status st = load(&s, seconds * 1000, in_flight, batch, ret, err);
    session_close(&s);
    return st;
}

enum status locks_alone(const struct locks_world *w, double *ret_trips, double *ret_acquire_us,
                        double *ret_release_us, struct err *err)
{
    struct session s = {0};
    struct masters m = {0};
    struct load_result r = {0};
    const char *paths[LOCKS_MASTERS];
    bool is_interrupted = false;
    int64_t reads[2] = {0};
    for (size_t i = 0; i < LOCKS_MASTERS; i++) {
        paths[i] = w->servers[i].path;
    }
    if (session_open(&s, &w->cli) != CLI_OK) {
        return err_fail(err, STATUS_UNAVAILABLE, "no session");
    }
    enum status st = masters_open(&m, &s.loop, paths, LOCKS_MASTERS, &is_interrupted, err);
    if (st == STATUS_OK) {
        st = masters_reads(&m, &reads[0], err);
    }
    if (st == STATUS_OK) {
        st = load(&s, ALONE_MS, 1, 1, &r, err);
    }
    if (st == STATUS_OK) {
        st = masters_reads(&m, &reads[1], err);
    }
    if (st == STATUS_OK) {
        *ret_trips = (double)(reads[1] - reads[0] - LOCKS_MASTERS) /
                     ((double)LOCKS_MASTERS * (double)r.pairs);
        *ret_acquire_us = (double)r.acquire_p50_us;
        *ret_release_us = (double)r.release_p50_us;
    }
    masters_close(&m);
    session_close(&s);
    return st;
}

/* ---- the blocking client ---- */

struct crowd {
    struct redlock_client *client;
    int64_t end_us;
    _Atomic uint64_t pairs;
    _Atomic uint64_t failed;
};

struct member {
    struct crowd *crowd;
    size_t index;
    pthread_t thread;
};

static void *lock_and_unlock(void *ctx)
{
    const struct member *m = ctx;
    struct crowd *crowd = m->crowd;
    char key[32];
    (void)snprintf(key, sizeof key, "bench:thread:%zu", m->index);
    while (clock_boot_us() < crowd->end_us) {
        struct redlock_lock *lock = NULL;
        struct redlock_report report = {0};
        if (redlock_try(crowd->client, key, &lock) == REDLOCK_OK) {
            crowd->pairs++;
        } else {
            crowd->failed++;
        }
        (void)redlock_unlock(lock, &report); /* waits for the answers, as everywhere here */
    }
    return NULL;
}

enum status locks_threads(const struct locks_world *w, int64_t seconds, size_t threads,
                          double *ret_per_s, struct err *err)
{
    struct crowd crowd = {0};
    static struct member members[THREADS_MAX];
    if (cli_open(&w->cli, NULL, &crowd.client) != CLI_OK) {
        return err_fail(err, STATUS_UNAVAILABLE, "no client");
    }
    int64_t began_us = clock_boot_us();
    crowd.end_us = began_us + seconds * US_PER_S;
    size_t started = 0;
    while (started < threads && started < THREADS_MAX) {
        members[started] = (struct member){.crowd = &crowd, .index = started};
        if (pthread_create(&members[started].thread, NULL, lock_and_unlock, &members[started]) !=
            0) {
            break;
        }
        started++;
    }
    for (size_t i = 0; i < started; i++) {
        (void)pthread_join(members[i].thread, NULL);
    }
    *ret_per_s = 1e6 * (double)crowd.pairs / (double)(clock_boot_us() - began_us);
    redlock_close(crowd.client);
    if (crowd.failed > 0 || started < threads) {
        return err_fail(err, STATUS_CONFLICT, "%llu locks were not won by %zu threads",
                        (unsigned long long)crowd.failed, started);
    }
    return STATUS_OK;
}
