/* SPDX-License-Identifier: Apache-2.0
 *
 * Handlers that take time, with {"sleep_ms": N} or {"cpu_ms": N}; without either they end at once.
 * The kinds differ only in name, so that a load may have several. The result of `stamp` is the time
 * at which it was started, by the clock of this machine. */
#include "claimd/plugin.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>

static int64_t now_us(clockid_t clock)
{
    struct timespec now;
    (void)clock_gettime(clock, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static void sleep_ms(json_int_t ms)
{
    const struct timespec time = {.tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000};
    (void)clock_nanosleep(CLOCK_BOOTTIME, 0, &time, NULL);
}

static void use_cpu_ms(json_int_t ms)
{
    int64_t end_us = now_us(CLOCK_THREAD_CPUTIME_ID) + ms * 1000;
    while (now_us(CLOCK_THREAD_CPUTIME_ID) < end_us) {
    }
}

static bool take_time(const struct claimd_context *job)
{
    json_int_t sleep = 0;
    json_int_t cpu = 0;
    json_error_t why;
    json_t *args = json_loadb(job->args, job->args_len, 0, &why);
    bool is_right =
        json_unpack_ex(args, &why, 0, "{s?I, s?I !}", "sleep_ms", &sleep, "cpu_ms", &cpu) == 0;
    json_decref(args);
    if (sleep > 0) {
        sleep_ms(sleep);
    }
    if (cpu > 0) {
        use_cpu_ms(cpu);
    }
    return is_right;
}

static enum claimd_outcome work(const struct claimd_context *job)
{
    return take_time(job) ? claimd_done(job, NULL) : claimd_fail(job, "args");
}

static enum claimd_outcome stamp(const struct claimd_context *job)
{
    char json[64];
    (void)snprintf(json, sizeof json, "{\"boot_us\": %lld}", (long long)now_us(CLOCK_BOOTTIME));
    return take_time(job) ? claimd_done(job, json) : claimd_fail(job, "args");
}

CLAIMD_PLUGIN(.name = "work", .version = CLAIMD_RELEASE,
              .kinds = {{.name = "stamp", .handle = stamp},
                        {.name = "stamp_long", .handle = stamp},
                        {.name = "work", .handle = work},
                        {.name = "work_1", .handle = work},
                        {.name = "work_5", .handle = work},
                        {.name = "work_20", .handle = work},
                        {.name = "work_100", .handle = work},
                        {.name = "work_500", .handle = work}})
