/* SPDX-License-Identifier: Apache-2.0
 *
 * A load for `redlock bench` and claimd's benchmarks: acquires and releases locks, several batches
 * at a time, and measures what that costs. The next batch starts when every node that is up has
 * acknowledged the release of the previous one. */
#ifndef CLAIMD_REDLOCK_CMD_LOAD_H
#define CLAIMD_REDLOCK_CMD_LOAD_H

#include "redlock/cmd/session.h"

#define LOAD_IN_FLIGHT_MAX 1024
#define LOAD_SECONDS_MAX 3600

struct load_options {
    const char *prefix; /* prefix of the keys */
    int64_t duration_ms;
    size_t in_flight; /* number of batches at once: 1 to LOAD_IN_FLIGHT_MAX */
    size_t batch;     /* keys per batch: 1 to REDLOCK_KEYS_MAX */
};

struct load_result {
    double seconds;
    double cpu_seconds;          /* of this process */
    uint64_t pairs;              /* keys won and released */
    uint64_t failed;             /* keys that were not won */
    enum redlock_result failure; /* result of the last of them */
    int64_t acquire_p50_us;
    int64_t acquire_p99_us;
    int64_t release_p50_us;
    int64_t release_p99_us;
};

/* Runs the load, and blocks until it ends: duration_ms and a few node timeouts. Returns 0, or an
 * exit code after writing the reason. */
int load_run(struct session *session, const struct load_options *options,
             struct load_result *ret_result);

double load_cpu_us(const struct load_result *result); /* per pair */

#endif
