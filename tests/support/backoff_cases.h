/* SPDX-License-Identifier: Apache-2.0
 *
 * Valid and invalid backoffs of a kind or a job, on which the parsers in C and in SQL must
 * agree. */
#ifndef CLAIMD_TESTS_BACKOFF_CASES_H
#define CLAIMD_TESTS_BACKOFF_CASES_H

#include "model/job.h"

#include <limits.h>

#define SECOND INT64_C(1000000)
#define DAY (86400 * SECOND)

static const struct {
    const char *text;
    int attempt;
    int unit;
    int64_t us;
} backoff_delays[] = {
    {"exponential:15s:1h", 1, 500, 15 * SECOND},
    {"exponential:15s:1h", 2, 0, 30 * SECOND},
    {"exponential:15s:1h", 9, 1000, 3600 * SECOND},
    {"exponential:15s:1h", INT_MAX, 500, 3600 * SECOND},
    {"exponential:0s:1h", INT_MAX, 500, 0},
    {"exponential:2h:1h", 1, 500, 3600 * SECOND},
    {"exponential:15s:1h~10%", 1, 0, 13500000},
    {"exponential:15s:1h~10%", 1, 500, 15 * SECOND},
    {"exponential:15s:1h~10%", 1, 1000, 16500000},
    {"linear:10s:1h", 1, 0, 10 * SECOND},
    {"linear:10s:1h", 3, 0, 30 * SECOND},
    {"linear:10s:25s", 3, 0, 25 * SECOND},
    {"linear:366d:366d", INT_MAX, 0, 366 * DAY},
    {"fixed:30s", 1, 0, 30 * SECOND},
    {"fixed:30s", INT_MAX, 0, 30 * SECOND},
    {"fixed:0s", 1, 0, 0},
    {"fixed:250ms~0%", 1, 1000, 250000},
    {"fixed:10s~100%", 1, 0, 0},
    {"fixed:10s~100%", 1, 1000, 20 * SECOND},
    {"fixed:366d~100%", 1, 1000, JOB_DELAY_US_MAX},
    {"list:1s,5s,1m", 1, 0, 1 * SECOND},
    {"list:1s,5s,1m", 2, 0, 5 * SECOND},
    {"list:1s,5s,1m", 3, 0, 60 * SECOND},
    {"list:1s,5s,1m", 4, 0, 60 * SECOND},
    {"list:1s", 9, 0, 1 * SECOND},
    {"list:1s,1s,1s,1s,1s,1s,1s,1s,1s,1s,1s,1s,1s,1s,1s,1s,1s,1s,1s,2s", 20, 0, 2 * SECOND},
};

static const char *const backoff_malformed[] = {
    "",
    "exponential",
    "exponential:",
    "exponential:15s",
    "exponential:15s:",
    "exponential:15s:1h:1h",
    "exponential:15:60",
    "exponential:15s:1h~",
    "exponential:15s:1h~%",
    "exponential:15s:1h~10",
    "exponential:15s:1h~101%",
    "exponential:15s:1h~1.5%",
    "exponential:15s:1h~-1%",
    "exponential:15s:1h~10%~10%",
    " exponential:15s:1h",
    "exponential:15s:1h ",
    "Exponential:15s:1h",
    "exponential:-1s:1h",
    "exponential:1.5s:1h",
    "exponential:15s:367d",
    "exponential:15s,1h",
    "linear:10s",
    "fixed:",
    "fixed:30",
    "fixed:1s,2s",
    "fixed:1s:2s",
    "fixed:99999999999999999999s",
    "list:",
    "list:,",
    "list:1s,",
    "list:1s;2s",
    "list:1s:2s",
    "quadratic:1s:2s",
    "list:1s,1s,1s,1s,1s,1s,1s,1s,1s,1s,1s,1s,1s,1s,1s,1s,1s,1s,1s,1s,1s",
    "list:"
    "0000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000"
    "0000000000001s",
};

#endif
