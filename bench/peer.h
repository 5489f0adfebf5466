/* SPDX-License-Identifier: Apache-2.0
 *
 * One piece of work done by another job system's adapter. bench/peers/README.md has the contract
 * between it and us. */
#ifndef CLAIMD_BENCH_PEER_H
#define CLAIMD_BENCH_PEER_H

#include "bench/cluster.h"

#include <jansson.h>

#define PEER_WHY_MAX 200

struct peer_plan {
    const char *argv[3]; /* the program, NULL-ended, with its interpreter */
    const char *work;    /* drain, start or insert */
    const char *settings;
    int64_t count;                    /* of jobs or samples */
    const char *load;                 /* JSON: what else it is to know of the work */
    const struct redis_server *redis; /* emptied before */
};

struct peer_result {
    char missing[PEER_WHY_MAX]; /* what it has not found here; then there is nothing else */
    json_t *said;               /* its answer; the caller's */
    int64_t cpu_us;             /* of all that it started, PostgreSQL and its Redis */
    int64_t took_us;            /* from our word to its answer */
};

/* With an empty database of its own, which is gone again when this returns. UNAVAILABLE, TIMEOUT or
 * INTERNAL with the end of its log when it did not keep to the contract. */
enum status peer_run(struct cluster *c, const struct peer_plan *plan, struct peer_result *ret,
                     struct err *err) MUST_USE;

#endif
