/* SPDX-License-Identifier: Apache-2.0
 *
 * Two clients of the same nodes on one loop: one holds, the other waits. */
#include "base/clock.h"
#include "bench/figures.h"
#include "bench/locks.h"
#include "bench/masters.h"

#include <stdio.h>

#define SAMPLES 200
#define SETTLE_US (10 * US_PER_MS) /* time for the waiter to be refused and to wait */
#define LIMIT_US (5 * US_PER_S)
#define WAITERS 50
#define QUIET_US (31 * US_PER_S) /* more than a lease: waiters look when the observed one ends */
#define WAIT_US (60 * US_PER_S)

struct pair {
    uv_loop_t loop;
    uv_timer_t tick;
    struct redlock_async *holder;
    struct redlock_async *waiter;
    size_t open_count;
    struct redlock_batch *held[WAITERS];
    size_t held_count;
    size_t failed;
    struct redlock_batch *waited; /* the last lock that the waiter won */
    struct redlock_wait *waits[WAITERS];
    size_t waiting;
};

static void on_tick(uv_timer_t *timer)
{
    (void)timer;
}

static bool run_until_us(struct pair *p, const size_t *value, size_t wanted, int64_t end_us)
{
    while (*value != wanted && clock_boot_us() < end_us) {
        (void)uv_run(&p->loop, UV_RUN_ONCE);
    }
    return *value == wanted;
}

static void run_for(struct pair *p, int64_t us)
{
    static const size_t never = 0;
    (void)run_until_us(p, &never, 1, clock_boot_us() + us);
}

static void on_held(void *ctx, struct redlock_batch *batch)
{
    struct pair *p = ctx;
    if (redlock_batch_result(batch, 0) == REDLOCK_OK) {
        p->held[p->held_count++] = batch;
    } else {
        p->failed++;
    }
}

static void on_waited(void *ctx, enum redlock_result result, int tries, struct redlock_batch *batch)
{
    struct pair *p = ctx;
    (void)tries;
    p->waiting--;
    if (result == REDLOCK_OK) {
        p->waited = batch;
    } else if (result != REDLOCK_CANCELLED) {
        p->failed++;
    }
}

static bool hold(struct pair *p, const char *name)
{
    const struct redlock_async_key key = {.bytes = name, .len = strlen(name)};
    const struct redlock_async_request request = {
        .keys = &key, .count = 1, .done = on_held, .ctx = p};
    size_t wanted = p->held_count + 1;
    return redlock_async_acquire(p->holder, &request, NULL) == 0 &&
           run_until_us(p, &p->held_count, wanted, clock_boot_us() + LIMIT_US);
}

static bool start_waiting(struct pair *p, const char *name)
{
    const struct redlock_async_key key = {.bytes = name, .len = strlen(name)};
    const struct redlock_async_request request = {.keys = &key, .count = 1};
    const struct redlock_wait_options options = {
        .deadline_us = clock_boot_us() + WAIT_US, .done = on_waited, .ctx = p};
    return redlock_async_wait(p->waiter, &request, &options, &p->waits[p->waiting++], NULL) == 0;
}

static enum status wake_ups(struct pair *p, double *ret_p50_ms, double *ret_p99_ms, struct err *err)
{
    static int64_t us[SAMPLES];
    for (size_t i = 0; i < SAMPLES; i++) {
        if (!hold(p, "bench:wake") || !start_waiting(p, "bench:wake")) {
            return err_fail(err, STATUS_CONFLICT, "a lock was not won");
        }
        run_for(p, SETTLE_US);
        int64_t began_us = clock_boot_us();
        redlock_batch_release(p->held[--p->held_count], 0);
        if (!run_until_us(p, &p->waiting, 0, began_us + LIMIT_US) || p->failed > 0) {
            return err_fail(err, STATUS_TIMEOUT, "a waiter was not woken");
        }
        us[i] = clock_boot_us() - began_us;
        redlock_batch_release(p->waited, 0);
        run_for(p, SETTLE_US);
    }
    *ret_p50_ms = 1e-3 * (double)figures_percentile_us(us, SAMPLES, 50);
    *ret_p99_ms = 1e-3 * (double)figures_percentile_us(us, SAMPLES, 99);
    return STATUS_OK;
}

/* Measures the commands per second and waiter that a master receives, including the holder's. */
static enum status quiet(struct pair *p, struct masters *m, double *ret_commands, struct err *err)
{
    int64_t commands[2] = {0};
    static char names[WAITERS][24];
    for (size_t i = 0; i < WAITERS; i++) {
        (void)snprintf(names[i], sizeof names[i], "bench:quiet:%zu", i);
        if (!hold(p, names[i]) || !start_waiting(p, names[i])) {
            return err_fail(err, STATUS_CONFLICT, "a lock was not won");
        }
    }
    run_for(p, US_PER_S);
    enum status st = masters_sent(m, &commands[0], err);
    run_for(p, QUIET_US);
    if (st == STATUS_OK) {
        st = masters_sent(m, &commands[1], err);
    }
    *ret_commands = (double)(commands[1] - commands[0]) / (double)m->count / WAITERS /
                    (1e-6 * (double)QUIET_US);
    size_t waiting = p->waiting;
    for (size_t i = 0; i < waiting; i++) {
        redlock_wait_cancel(p->waits[i]);
    }
    while (p->held_count > 0) {
        redlock_batch_release(p->held[--p->held_count], 0);
    }
    (void)run_until_us(p, &p->waiting, 0, clock_boot_us() + LIMIT_US);
    return st;
}

static void on_closed(void *ctx)
{
    struct pair *p = ctx;
    p->open_count--;
}

static bool open_client(struct pair *p, const struct locks_world *w, struct redlock_async **ret)
{
    const struct settings *s = &w->cli.settings;
    const struct redlock_async_options options = {.loop = &p->loop,
                                                  .nodes = s->nodes,
                                                  .node_count = s->node_count,
                                                  .ttl_us = s->ttl_us,
                                                  .ttl_max_us = s->ttl_max_us,
                                                  .node_timeout_us = s->node_timeout_us,
                                                  .drift_ppm = s->drift_ppm,
                                                  .prefix = s->prefix,
                                                  .trust_fresh = true};
    if (redlock_async_open(&options, ret, NULL) != 0) {
        return false;
    }
    p->open_count++;
    int64_t end_us = clock_boot_us() + LIMIT_US;
    while (redlock_async_voting(*ret) < LOCKS_MASTERS && clock_boot_us() < end_us) {
        (void)uv_run(&p->loop, UV_RUN_ONCE);
    }
    return redlock_async_voting(*ret) == LOCKS_MASTERS;
}

static void close_all(struct pair *p)
{
    if (p->holder != NULL) {
        redlock_async_close(p->holder, on_closed, p);
    }
    if (p->waiter != NULL) {
        redlock_async_close(p->waiter, on_closed, p);
    }
    while (p->open_count > 0) {
        (void)uv_run(&p->loop, UV_RUN_ONCE);
    }
    uv_close((uv_handle_t *)&p->tick, NULL);
    (void)uv_run(&p->loop, UV_RUN_DEFAULT);
    (void)uv_loop_close(&p->loop);
}

enum status locks_wait(const struct locks_world *w, double *ret_p50_ms, double *ret_p99_ms,
                       double *ret_commands, struct err *err)
{
    struct pair p = {0};
    struct masters m = {0};
    const char *paths[LOCKS_MASTERS];
    bool is_interrupted = false;
    enum status st = STATUS_OK;
    for (size_t i = 0; i < LOCKS_MASTERS; i++) {
        paths[i] = w->servers[i].path;
    }
    if (uv_loop_init(&p.loop) != 0) {
        return err_fail(err, STATUS_UNAVAILABLE, "no loop");
    }
    (void)uv_timer_init(&p.loop, &p.tick);
    (void)uv_timer_start(&p.tick, on_tick, 1, 1);
    if (!open_client(&p, w, &p.holder) || !open_client(&p, w, &p.waiter)) {
        st = err_fail(err, STATUS_UNAVAILABLE, "a master is down");
    }
    if (st == STATUS_OK) {
        st = masters_open(&m, &p.loop, paths, LOCKS_MASTERS, &is_interrupted, err);
    }
    if (st == STATUS_OK) {
        st = wake_ups(&p, ret_p50_ms, ret_p99_ms, err);
    }
    if (st == STATUS_OK && ret_commands != NULL) {
        st = quiet(&p, &m, ret_commands, err);
    }
    masters_close(&m);
    close_all(&p);
    return st;
}
