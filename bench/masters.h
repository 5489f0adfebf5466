/* SPDX-License-Identifier: Apache-2.0
 *
 * Questions to all Redis masters at once; calls run the loop until the answers are there. */
#ifndef CLAIMD_BENCH_MASTERS_H
#define CLAIMD_BENCH_MASTERS_H

#include "redis/redis.h"

#define MASTERS_MAX 9

struct masters {
    uv_loop_t *loop;
    const bool *is_interrupted;
    struct redis_node *nodes[MASTERS_MAX];
    size_t count;
    size_t answers;
    int64_t sum;
    const char *field; /* of INFO that is being summed up */
    enum status st;
};

/* Unix sockets. */
enum status masters_open(struct masters *m, uv_loop_t *loop, const char *const *paths, size_t count,
                         const bool *is_interrupted, struct err *err) MUST_USE;
void masters_close(struct masters *m); /* accepts a zeroed one */

/* Sums over all masters. */
enum status masters_reads(struct masters *m, int64_t *ret_count, struct err *err) MUST_USE;
/* Without those that scripts of the locks run by themselves. */
enum status masters_sent(struct masters *m, int64_t *ret_count, struct err *err) MUST_USE;
enum status masters_commands(struct masters *m, int64_t *ret_count, struct err *err) MUST_USE;
enum status masters_used_memory(struct masters *m, int64_t *ret_bytes, struct err *err) MUST_USE;
enum status masters_hint_keys(struct masters *m, int64_t *ret_count, struct err *err) MUST_USE;
enum status masters_lock_keys(struct masters *m, int64_t *ret_count, struct err *err) MUST_USE;

/* Forgets all keys: hints of jobs that are gone. No daemon may run. */
enum status masters_flush(struct masters *m, struct err *err) MUST_USE;

#endif
