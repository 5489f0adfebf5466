/* SPDX-License-Identifier: Apache-2.0
 *
 * The parts of `claimd-bench locks`: each measures one thing once, on five private masters. */
#ifndef CLAIMD_BENCH_LOCKS_H
#define CLAIMD_BENCH_LOCKS_H

#include "cluster/servers.h"
#include "redlock/cmd/session.h"

#define LOCKS_MASTERS 5

struct locks_world {
    char dir[SERVER_PATH_MAX];
    struct redis_server servers[LOCKS_MASTERS];
    char list[LOCKS_MASTERS * SERVER_PATH_MAX]; /* list of the servers' addresses */
    struct cli cli;
    char rival[SERVER_PATH_MAX + 16]; /* path of redsync's program, "" = none */
};

/* Opens the world in its directory, which the caller makes and removes. */
enum status locks_world_open(struct locks_world *w, struct err *err) MUST_USE;
void locks_world_close(struct locks_world *w);

/* Runs a load as `redlock bench` does. CONFLICT: a lock was not won. */
struct load_result;
enum status locks_load(const struct locks_world *w, int64_t seconds, size_t in_flight, size_t batch,
                       struct load_result *ret, struct err *err) MUST_USE;

/* Counts the requests that a master reads while one single lock is acquired and released: two round
 * trips are 2. */
enum status locks_alone(const struct locks_world *w, double *ret_trips, double *ret_acquire_us,
                        double *ret_release_us, struct err *err) MUST_USE;

/* Measures locks per second of the blocking client with `threads` threads. */
enum status locks_threads(const struct locks_world *w, int64_t seconds, size_t threads,
                          double *ret_per_s, struct err *err) MUST_USE;

/* Measures the time from when 10,000 leases are due until all are extended, while another client
 * locks batches of 128 keys for a tenth of the time. */
enum status locks_held(const struct locks_world *w, double *ret_round_ms, struct err *err) MUST_USE;

/* Measures the time from a release to the success of its waiter. Unless ret_commands is NULL, also
 * measures how many commands per second a master receives from one waiter, which takes half a
 * minute. */
enum status locks_wait(const struct locks_world *w, double *ret_p50_ms, double *ret_p99_ms,
                       double *ret_commands, struct err *err) MUST_USE;

/* Builds redsync's program; UNAVAILABLE without Go. */
enum status rival_build(struct locks_world *w, struct err *err) MUST_USE;
enum status rival_run(const struct locks_world *w, int64_t seconds, size_t in_flight,
                      bool is_auto_pipelined, double *ret_per_s, struct err *err) MUST_USE;

#endif
