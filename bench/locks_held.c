/* SPDX-License-Identifier: Apache-2.0
 *
 * Makes many leases due at the same time: blocks the loop until the last of them is due, as a busy
 * machine might. Then measures the time until all are extended. */
#include "base/clock.h"
#include "bench/locks.h"
#include "redlock/cmd/load.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>

#define LEASES 10000
#define BATCHES ((LEASES + REDLOCK_KEYS_MAX - 1) / REDLOCK_KEYS_MAX)
#define HELD_TTL_MS 6000
#define DUE_MS 2300 /* a third of the TTL, with the jitter */
#define LOAD_BATCH 128
#define LOAD_MS 10
#define PAUSE_MS 90
#define LIMIT_US (2 * US_PER_S)

struct holder {
    struct session session;
    char names[LEASES][24];
    struct redlock_batch *batches[BATCHES];
    size_t batch_count;
    size_t won;
    size_t answered;
};

static void on_acquired(void *ctx, struct redlock_batch *batch)
{
    struct holder *h = ctx;
    size_t count = redlock_batch_count(batch);
    size_t won = 0;
    for (size_t i = 0; i < count; i++) {
        won += redlock_batch_result(batch, i) == REDLOCK_OK;
    }
    h->answered += count;
    h->won += won;
    if (won == count) {
        h->batches[h->batch_count++] = batch;
    }
}

static void give_back(struct holder *h)
{
    for (size_t b = 0; b < h->batch_count; b++) {
        size_t count = redlock_batch_count(h->batches[b]);
        for (size_t i = 0; i < count; i++) {
            redlock_batch_release(h->batches[b], i);
        }
    }
}

static enum status hold(struct holder *h, struct err *err)
{
    for (size_t first = 0; first < LEASES; first += REDLOCK_KEYS_MAX) {
        struct redlock_async_key keys[REDLOCK_KEYS_MAX];
        size_t count = LEASES - first < REDLOCK_KEYS_MAX ? LEASES - first : REDLOCK_KEYS_MAX;
        for (size_t i = 0; i < count; i++) {
            char *name = h->names[first + i];
            int len = snprintf(name, sizeof h->names[0], "bench:held:%zu", first + i);
            keys[i] = (struct redlock_async_key){.bytes = name, .len = (size_t)len};
        }
        const struct redlock_async_request request = {
            .keys = keys, .count = count, .done = on_acquired, .ctx = h};
        if (redlock_async_acquire(h->session.lock, &request, NULL) != 0) {
            return err_fail(err, STATUS_UNAVAILABLE, "can't hold %d leases", LEASES);
        }
    }
    while (h->answered < LEASES) {
        (void)uv_run(&h->session.loop, UV_RUN_ONCE);
    }
    return h->won == LEASES
               ? STATUS_OK
               : err_fail(err, STATUS_CONFLICT, "%zu of %d leases won", h->won, LEASES);
}

static void pause_ms(int64_t ms)
{
    const struct timespec t = {.tv_sec = (time_t)(ms / 1000),
                               .tv_nsec = (long)(ms % 1000) * 1000000};
    (void)nanosleep(&t, NULL);
}

struct other {
    const struct locks_world *world;
    pthread_t thread;
    _Atomic bool is_over;
    bool has_failed;
};

/* Locks batches for a tenth of the time. */
static void *lock_batches(void *ctx)
{
    struct other *o = ctx;
    struct session s = {0};
    o->has_failed = session_open(&s, &o->world->cli) != CLI_OK;
    while (!o->has_failed && !o->is_over) {
        const struct load_options options = {
            .prefix = "bench:other", .duration_ms = LOAD_MS, .in_flight = 1, .batch = LOAD_BATCH};
        struct load_result r = {0};
        o->has_failed = load_run(&s, &options, &r) != CLI_OK || r.failed > 0;
        pause_ms(PAUSE_MS);
    }
    session_close(&s);
    return NULL;
}

static enum status measure(struct holder *h, double *ret_round_ms, struct err *err)
{
    const struct redlock_counters *counters = redlock_async_counters(h->session.lock);
    uint64_t goal = counters->extended + LEASES;
    pause_ms(DUE_MS);
    int64_t began_us = clock_boot_us();
    while (counters->extended < goal && clock_boot_us() - began_us < LIMIT_US) {
        (void)uv_run(&h->session.loop, UV_RUN_ONCE);
    }
    *ret_round_ms = 1e-3 * (double)(clock_boot_us() - began_us);
    if (counters->extended < goal || counters->lost > 0) {
        return err_fail(err, STATUS_CONFLICT, "%llu leases are not extended, %llu lost",
                        (unsigned long long)(goal - counters->extended),
                        (unsigned long long)counters->lost);
    }
    return STATUS_OK;
}

enum status locks_held(const struct locks_world *w, double *ret_round_ms, struct err *err)
{
    static struct holder h;
    struct other other = {.world = w};
    struct cli cli = w->cli;
    cli.settings.ttl_us = HELD_TTL_MS * US_PER_MS;
    cli.settings.node_timeout_us = cli.settings.ttl_us / 10;
    h = (struct holder){0};
    if (session_open(&h.session, &cli) != CLI_OK) {
        return err_fail(err, STATUS_UNAVAILABLE, "no session");
    }
    if (pthread_create(&other.thread, NULL, lock_batches, &other) != 0) {
        session_close(&h.session);
        return err_fail(err, STATUS_UNAVAILABLE, "no thread");
    }
    enum status st = hold(&h, err);
    if (st == STATUS_OK) {
        st = measure(&h, ret_round_ms, err);
    }
    give_back(&h);
    other.is_over = true;
    (void)pthread_join(other.thread, NULL);
    session_close(&h.session);
    if (st != STATUS_OK) {
        return st;
    }
    if (other.has_failed) {
        return err_fail(err, STATUS_CONFLICT, "the other one's locks were not won");
    }
    return STATUS_OK;
}
