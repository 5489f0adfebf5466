/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs one task with the adapter of another job system. bench/peers/README.md describes the
 * contract with adapters. */
#ifndef CLAIMD_BENCH_PEER_H
#define CLAIMD_BENCH_PEER_H

#include "bench/cluster.h"

#include <jansson.h>

#define PEER_WHY_MAX 200

struct peer_plan {
    const char *argv[3]; /* the program with its interpreter, NULL-ended */
    const char *work;    /* drain, start or insert */
    const char *settings;
    int64_t count;                    /* number of jobs or samples */
    const char *load;                 /* JSON: further properties of the work */
    const struct redis_server *redis; /* emptied first */
};

struct peer_result {
    char missing[PEER_WHY_MAX]; /* what it did not find on this machine; then the rest is empty */
    json_t *said;               /* its answer; owned by the caller */
    int64_t cpu_us;             /* of all its processes, PostgreSQL and its Redis */
    int64_t took_us;            /* from our request to its answer */
};

/* Runs the adapter with an empty database of its own, which is dropped before this returns.
 * UNAVAILABLE, TIMEOUT or INTERNAL, with the end of its log, if it violated the contract. */
enum status peer_run(struct cluster *c, const struct peer_plan *plan, struct peer_result *ret,
                     struct err *err) MUST_USE;

#endif
