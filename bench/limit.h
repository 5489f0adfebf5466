/* SPDX-License-Identifier: Apache-2.0
 *
 * The limit program: claimd's data path without its daemons, with as few processes as can drive it,
 * each of which does everything itself with blocking libpq and hiredis. Its speed is the limit for
 * claimd. It has no feed, heartbeats or runners, and survives no errors.
 *
 * It has tables of its own, which do not change: they have those of claimd's columns that a job
 * passes through, without checks, triggers and daily partitions. On claimd's own tables, the
 * program would become slower with them, and hide what they cost. */
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
    int64_t fences[LIMIT_BATCH]; /* valid once claimed */
    char token[40];              /* one token for all of its locks */
};

/* The sessions of one process. */
struct limit_path;

enum status limit_path_open(const struct cluster *c, size_t index, struct limit_path **ret,
                            struct err *err) MUST_USE;
void limit_path_close(struct limit_path *p); /* accepts NULL */

/* Pops up to a batch of ids from the sorted set; none if it is empty. */
enum status limit_pop(struct limit_path *p, struct limit_batch *next, struct err *err) MUST_USE;
/* Releases `ended`, then locks `next` with a new token, in one round to all masters. CONFLICT: a
 * lock was not won, or not held to its end. Batches may be empty, here and below. */
enum status limit_lock(struct limit_path *p, const struct limit_batch *ended,
                       struct limit_batch *next, struct err *err) MUST_USE;
/* Finishes `running` into the history and claims `next`, in one transaction. CONFLICT: not all jobs
 * were finished or claimed. */
enum status limit_commit(struct limit_path *p, const struct limit_batch *running,
                         struct limit_batch *next, struct err *err) MUST_USE;

/* Creates the tables, empty. */
enum status limit_create(struct cluster *c, struct err *err) MUST_USE;
/* Checks that each of `jobs` jobs was done once and no lock is left, else CONFLICT. Adds its
 * findings to `result`. `ret_us`: from the first claim to the last finish. */
enum status limit_reconcile(struct cluster *c, int64_t jobs, json_t *result, int64_t *ret_us,
                            struct err *err) MUST_USE;

#endif
