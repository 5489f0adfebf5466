/* SPDX-License-Identifier: Apache-2.0
 *
 * stamp: its result says when it was started, by the clock of this machine. */
#include "claimd/plugin.h"

#include <stdio.h>
#include <time.h>

static enum claimd_outcome stamp(const struct claimd_context *job)
{
    struct timespec now;
    char json[64];
    (void)clock_gettime(CLOCK_BOOTTIME, &now);
    long long us = (long long)now.tv_sec * 1000000 + now.tv_nsec / 1000;
    (void)snprintf(json, sizeof json, "{\"boot_us\": %lld}", us);
    return claimd_done(job, json);
}

CLAIMD_PLUGIN(.name = "stamp", .version = CLAIMD_RELEASE,
              .kinds = {{.name = "stamp", .handle = stamp}})
