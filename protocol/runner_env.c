/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/runner_env.h"

#include "base/err.h"

#include <assert.h>
#include <string.h>
#include <unistd.h>

const char *const RUNNER_ENV_NAMES[] = {"PATH", "HOME", "LANG", "TZ", "TMPDIR", NULL};

/* Removed before handlers run (runner/confine.c). */
static const char *const START_NAMES[] = {"LD_LIBRARY_PATH",
                                          "LD_PRELOAD",
                                          "ASAN_OPTIONS",
                                          "LSAN_OPTIONS",
                                          "UBSAN_OPTIONS",
                                          "TSAN_OPTIONS",
#ifdef CLAIMD_SEEDED_BUGS
                                          "CLAIMD_BUG",
#endif
                                          NULL};

static_assert(ARRAY_COUNT(RUNNER_ENV_NAMES) + ARRAY_COUNT(START_NAMES) <= RUNNER_ENV_MAX,
              "all of them fit");

static size_t take(const char *const *names, char **list, size_t count)
{
    for (; *names != NULL; names++) {
        size_t len = strlen(*names);
        for (char **at = environ; at != NULL && *at != NULL; at++) {
            if (strncmp(*at, *names, len) == 0 && (*at)[len] == '=') {
                list[count++] = *at;
                break;
            }
        }
    }
    return count;
}

void runner_env_list(char *ret_list[RUNNER_ENV_MAX])
{
    size_t count = take(RUNNER_ENV_NAMES, ret_list, 0);
    count = take(START_NAMES, ret_list, count);
    ret_list[count] = NULL;
}
