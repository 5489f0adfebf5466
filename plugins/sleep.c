/* SPDX-License-Identifier: Apache-2.0
 *
 * sleep {"ms": N, "deaf": false, "crash": false}: ends after N ms, or with RETRY when it should
 * stop. A deaf one never checks whether it should stop. One that crashes takes its runner with
 * it. */
#include "claimd/plugin.h"

#include <jansson.h>
#include <stdlib.h>
#include <time.h>

#define LISTEN_EVERY_US 50000
#define SLEEP_MS_MAX (24LL * 3600 * 1000)

static int64_t boot_us(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_BOOTTIME, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static void sleep_until(int64_t until_us)
{
    const struct timespec until = {.tv_sec = (time_t)(until_us / 1000000),
                                   .tv_nsec = (long)(until_us % 1000000) * 1000};
    (void)clock_nanosleep(CLOCK_BOOTTIME, TIMER_ABSTIME, &until, NULL);
}

static enum claimd_outcome sleep_ms(const struct claimd_context *job)
{
    json_error_t why;
    json_int_t ms = 0;
    int deaf = 0;
    int crash = 0;
    json_t *args = json_loadb(job->args, job->args_len, 0, &why);
    int rc = args == NULL ? -1
                          : json_unpack_ex(args, &why, 0, "{s:I, s?b, s?b !}", "ms", &ms, "deaf",
                                           &deaf, "crash", &crash);
    json_decref(args);
    if (rc != 0) {
        return claimd_fail(job, "args: %s", why.text);
    }
    if (ms < 0 || ms > SLEEP_MS_MAX) {
        return claimd_fail(job, "args: ms %lld, expected 0…%lld", (long long)ms, SLEEP_MS_MAX);
    }
    int64_t end_us = boot_us() + ms * 1000;
    for (int64_t now_us = boot_us(); now_us < end_us; now_us = boot_us()) {
        if (!deaf && claimd_should_stop(job)) {
            return claimd_retry(job, -1, "told to stop, %lld ms early",
                                (long long)(end_us - now_us) / 1000);
        }
        int64_t next_us = now_us + LISTEN_EVERY_US;
        sleep_until(next_us < end_us ? next_us : end_us);
    }
    if (crash) {
        abort();
    }
    return claimd_done(job, NULL);
}

CLAIMD_PLUGIN(.name = "sleep", .version = CLAIMD_RELEASE,
              .kinds = {{.name = "sleep", .handle = sleep_ms}})
