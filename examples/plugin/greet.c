/* SPDX-License-Identifier: Apache-2.0
 *
 * greet {"count": N}: a plugin that lives outside claimd's tree. It counts to N, a tenth of a
 * second each, and ends early when asked to stop. */
#include <claimd/plugin.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static enum claimd_outcome greet(const struct claimd_context *job)
{
    const char *field = strstr(job->args, "\"count\":"); /* use a JSON library in real life */
    long count = field == NULL ? 1 : strtol(field + strlen("\"count\":"), NULL, 10);
    if (count < 1 || count > 1000) {
        return claimd_fail(job, "count is %ld, expected 1 to 1000", count);
    }
    const struct timespec tenth = {.tv_nsec = 100000000};
    for (long i = 1; i <= count; i++) {
        if (claimd_should_stop(job)) {
            return claimd_retry(job, -1, "told to stop at %ld", i);
        }
        claimd_log(job, "hello, %ld of %ld", i, count);
        nanosleep(&tenth, NULL);
    }
    char result[64];
    snprintf(result, sizeof result, "{\"greeted\": %ld}", count);
    return claimd_done(job, result);
}

CLAIMD_PLUGIN(.name = "greet", .version = "1.0",
              .kinds = {{.name = "greet", .handle = greet, .timeout_ms = 200000}})
