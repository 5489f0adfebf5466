/* SPDX-License-Identifier: Apache-2.0
 *
 * The parts of `claimd-bench locks`: each measures one thing, on five private masters, once. */
#ifndef CLAIMD_BENCH_LOCKS_H
#define CLAIMD_BENCH_LOCKS_H

#include "cluster/servers.h"
#include "redlock/cmd/session.h"

#define LOCKS_MASTERS 5

struct locks_world {
    char dir[SERVER_PATH_MAX];
    struct redis_server servers[LOCKS_MASTERS];
    char list[LOCKS_MASTERS * SERVER_PATH_MAX]; /* of the servers' addresses */
    struct cli cli;
    char rival[SERVER_PATH_MAX + 16]; /* the program, "" = there is none */
};

/* In its directory, which its owner makes and removes. */
enum status locks_world_open(struct locks_world *w, struct err *err) MUST_USE;
void locks_world_close(struct locks_world *w);

/* A load as `redlock bench` makes it. CONFLICT: a lock was not won. */
struct load_result;
enum status locks_load(const struct locks_world *w, int64_t seconds, size_t in_flight, size_t batch,
                       struct load_result *ret, struct err *err) MUST_USE;

/* Requests that a master reads for one lock alone, taken and given back: two round trips are 2. */
enum status locks_alone(const struct locks_world *w, double *ret_trips, double *ret_acquire_us,
                        double *ret_release_us, struct err *err) MUST_USE;

/* The blocking client from `threads` threads: locks per second. */
enum status locks_threads(const struct locks_world *w, int64_t seconds, size_t threads,
                          double *ret_per_s, struct err *err) MUST_USE;

/* The time from when 10,000 leases are due to when all are extended, while a tenth of the time
 * somebody locks 128 keys. */
enum status locks_held(const struct locks_world *w, double *ret_round_ms, struct err *err) MUST_USE;

/* From a release to its waiter's success; and, unless NULL, which takes half a minute, how many
 * commands a second a master gets of one that waits. */
enum status locks_wait(const struct locks_world *w, double *ret_p50_ms, double *ret_p99_ms,
                       double *ret_commands, struct err *err) MUST_USE;

/* Builds redsync's program; UNAVAILABLE without Go. */
enum status rival_build(struct locks_world *w, struct err *err) MUST_USE;
enum status rival_run(const struct locks_world *w, int64_t seconds, size_t in_flight,
                      bool is_auto_pipelined, double *ret_per_s, struct err *err) MUST_USE;

#endif
