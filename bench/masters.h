/* SPDX-License-Identifier: Apache-2.0
 *
 * Sends requests to all Redis masters at once. Calls run the loop until the answers arrive. */
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
    const char *field; /* the field of INFO that is summed up */
    enum status st;
};

/* `paths` are unix sockets. */
enum status masters_open(struct masters *m, uv_loop_t *loop, const char *const *paths, size_t count,
                         const bool *is_interrupted, struct err *err) MUST_USE;
void masters_close(struct masters *m); /* accepts a zeroed one */

/* These return sums over all masters. */
enum status masters_reads(struct masters *m, int64_t *ret_count, struct err *err) MUST_USE;
/* Excludes commands that scripts of the locks run themselves. */
enum status masters_sent(struct masters *m, int64_t *ret_count, struct err *err) MUST_USE;
enum status masters_commands(struct masters *m, int64_t *ret_count, struct err *err) MUST_USE;
enum status masters_used_memory(struct masters *m, int64_t *ret_bytes, struct err *err) MUST_USE;
enum status masters_hint_keys(struct masters *m, int64_t *ret_count, struct err *err) MUST_USE;
enum status masters_lock_keys(struct masters *m, int64_t *ret_count, struct err *err) MUST_USE;

/* Deletes all keys, which may be hints of deleted jobs. No daemon may run. */
enum status masters_flush(struct masters *m, struct err *err) MUST_USE;

#endif
