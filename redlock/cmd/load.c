/* SPDX-License-Identifier: Apache-2.0 */
#include "redlock/cmd/load.h"

#include "base/clock.h"

#include <stdio.h>
#include <sys/resource.h>

#define SAMPLES_MAX 65536 /* per kind; later ones replace the oldest */

struct samples {
    int64_t us[SAMPLES_MAX];
    size_t count;
};

struct slot {
    struct load *load;
    struct redlock_async_key keys[REDLOCK_KEYS_MAX];
    int64_t began_us;
    size_t unreleased; /* keys whose release was not acknowledged yet */
};

struct load {
    const struct load_options *options;
    struct session *session;
    struct slot *slots;
    char (*names)[64];
    size_t busy;
    int64_t end_us;
    int error; /* a negative errno that ended it early */
    struct load_result result;
    struct samples acquires;
    struct samples releases;
};

static void begin(struct slot *s);

static void sample(struct samples *s, int64_t us)
{
    s->us[s->count++ % SAMPLES_MAX] = us;
}

static int compare(const void *a, const void *b)
{
    const int64_t *x = a;
    const int64_t *y = b;
    return (*x > *y) - (*x < *y);
}

static void percentiles(struct samples *s, int64_t *ret_p50_us, int64_t *ret_p99_us)
{
    size_t count = s->count < SAMPLES_MAX ? s->count : SAMPLES_MAX;
    if (count > 0) {
        qsort(s->us, count, sizeof s->us[0], compare);
        *ret_p50_us = s->us[count / 2];
        *ret_p99_us = s->us[count * 99 / 100];
    }
}

static double cpu_seconds(void)
{
    struct rusage r = {0};
    (void)getrusage(RUSAGE_SELF, &r);
    return (double)(r.ru_utime.tv_sec + r.ru_stime.tv_sec) +
           1e-6 * (double)(r.ru_utime.tv_usec + r.ru_stime.tv_usec);
}

static void next(struct slot *s)
{
    s->load->busy--;
    if (clock_boot_us() < s->load->end_us) {
        begin(s);
    }
}

static void on_released(void *ctx, const struct redlock_released *released)
{
    struct slot *s = ctx;
    (void)released;
    if (--s->unreleased == 0) {
        sample(&s->load->releases, clock_boot_us() - s->began_us);
        next(s);
    }
}

static void on_acquired(void *ctx, struct redlock_batch *batch)
{
    struct slot *s = ctx;
    struct load *load = s->load;
    int64_t now_us = clock_boot_us();
    sample(&load->acquires, now_us - s->began_us);
    s->began_us = now_us;
    size_t count = redlock_batch_count(batch);
    for (size_t i = 0; i < count; i++) {
        enum redlock_result result = redlock_batch_result(batch, i);
        if (result == REDLOCK_OK) {
            s->unreleased++;
        } else {
            load->result.failed++;
            load->result.failure = result;
        }
    }
    load->result.pairs += s->unreleased;
    if (s->unreleased == 0) {
        next(s);
        return;
    }
    size_t left = s->unreleased;
    for (size_t i = 0; left > 0; i++) {
        if (redlock_batch_result(batch, i) == REDLOCK_OK) {
            left--; /* the batch is freed with the last of them */
            redlock_batch_release_tell(batch, i, on_released, s);
        }
    }
}

static void begin(struct slot *s)
{
    struct load *load = s->load;
    const struct redlock_async_request request = {
        .keys = s->keys, .count = load->options->batch, .done = on_acquired, .ctx = s};
    s->began_us = clock_boot_us();
    int r = redlock_async_acquire(load->session->lock, &request, NULL);
    if (r == 0) {
        load->busy++;
    } else {
        load->error = r;
    }
}

static int allocate(struct load *load)
{
    const struct load_options *o = load->options;
    load->slots = calloc(o->in_flight, sizeof *load->slots);
    load->names = calloc(o->in_flight * o->batch, sizeof *load->names);
    if (load->slots == NULL || load->names == NULL) {
        return -ENOMEM;
    }
    for (size_t i = 0; i < o->in_flight; i++) {
        struct slot *s = &load->slots[i];
        s->load = load;
        for (size_t k = 0; k < o->batch; k++) {
            char *name = load->names[i * o->batch + k];
            int len = snprintf(name, sizeof *load->names, "%.40s:%zu:%zu", o->prefix, i, k);
            s->keys[k] = (struct redlock_async_key){.bytes = name, .len = (size_t)len};
        }
    }
    return 0;
}

static void drive(struct load *load)
{
    double cpu = cpu_seconds();
    int64_t began_us = clock_boot_us();
    load->end_us = began_us + load->options->duration_ms * US_PER_MS;
    for (size_t i = 0; i < load->options->in_flight; i++) {
        begin(&load->slots[i]);
    }
    while (load->busy > 0) {
        (void)uv_run(&load->session->loop, UV_RUN_ONCE);
    }
    load->result.seconds = 1e-6 * (double)(clock_boot_us() - began_us);
    load->result.cpu_seconds = cpu_seconds() - cpu;
    percentiles(&load->acquires, &load->result.acquire_p50_us, &load->result.acquire_p99_us);
    percentiles(&load->releases, &load->result.release_p50_us, &load->result.release_p99_us);
}

int load_run(struct session *session, const struct load_options *options,
             struct load_result *ret_result)
{
    if (!redlock_async_has_quorum(session->lock)) {
        cli_tell("%zu of %zu nodes may vote, a quorum is %zu (redlock nodes says why)",
                 redlock_async_voting(session->lock), session->node_count,
                 redlock_async_quorum(session->lock));
        return CLI_NO_QUORUM;
    }
    autofree struct load *load = calloc(1, sizeof *load);
    if (load == NULL) {
        cli_tell("no memory");
        return CLI_SYSTEM;
    }
    load->session = session;
    load->options = options;
    load->error = allocate(load);
    if (load->error == 0) {
        drive(load);
        *ret_result = load->result;
    }
    if (load->error != 0) {
        cli_tell("the load ended early: %s", strerrordesc_np(-load->error));
    }
    free(load->slots);
    free(load->names);
    return load->error == 0 ? CLI_OK : CLI_SYSTEM;
}

double load_cpu_us(const struct load_result *result)
{
    return result->pairs > 0 ? 1e6 * result->cpu_seconds / (double)result->pairs : 0;
}
