/* SPDX-License-Identifier: Apache-2.0
 *
 * The limit program: claimd's data path without its daemons, as few processes as can drive it, each
 * of which does everything itself with blocking libpq and hiredis. What it reaches is what remains
 * for claimd to reach. No feed, no beats, no runners, no errors that are survived.
 *
 * Its tables are its own, and stay as they are: of claimd's the columns that a job passes through,
 * without checks, triggers and partitions per day. On claimd's own tables it would become slower
 * with them, and hide what they cost. */
#ifndef CLAIMD_BENCH_LIMIT_H
#define CLAIMD_BENCH_LIMIT_H

#include "bench/cluster.h"

#include <jansson.h>

#define LIMIT_BATCH 500
#define LIMIT_PROCESSES 3
#define LIMIT_SCHEMA "limit_program"
#define LIMIT_HINTS LIMIT_SCHEMA ":hints" /* a sorted set on the first master */

struct limit_batch {
    size_t count;
    int64_t ids[LIMIT_BATCH];
    int64_t fences[LIMIT_BATCH]; /* once claimed */
    char token[40];              /* one for all of its locks */
};

/* One process' sessions. */
struct limit_path;

enum status limit_path_open(const struct cluster *c, size_t index, struct limit_path **ret,
                            struct err *err) MUST_USE;
void limit_path_close(struct limit_path *p); /* accepts NULL */

/* Up to a batch of ids from the sorted set; none: it is empty. */
enum status limit_pop(struct limit_path *p, struct limit_batch *next, struct err *err) MUST_USE;
/* One round to all masters: `ended` is released, then `next` is locked, with a new token. CONFLICT:
 * a lock was not won, or not held to its end. Batches may be empty, here and below. */
enum status limit_lock(struct limit_path *p, const struct limit_batch *ended,
                       struct limit_batch *next, struct err *err) MUST_USE;
/* One transaction: `running` is finished into the history, `next` is claimed. CONFLICT: not all of
 * them were. */
enum status limit_commit(struct limit_path *p, const struct limit_batch *running,
                         struct limit_batch *next, struct err *err) MUST_USE;

/* The tables, empty. */
enum status limit_create(struct cluster *c, struct err *err) MUST_USE;
/* CONFLICT: not every one of so many jobs was done once, or a lock is left. Adds to `result` what
 * it found. `ret_us`: from the first claim to the last finish. */
enum status limit_reconcile(struct cluster *c, int64_t jobs, json_t *result, int64_t *ret_us,
                            struct err *err) MUST_USE;

#endif
