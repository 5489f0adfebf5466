/* SPDX-License-Identifier: Apache-2.0
 *
 * Calls of redlock_async_wait() in a world, and what they were told. */
#ifndef CLAIMD_TESTS_TEST_REDLOCK_WAITERS_H
#define CLAIMD_TESTS_TEST_REDLOCK_WAITERS_H

#include "test_redlock_world.h"

#define FOR_EVER INT64_MAX

struct waiter {
    struct redlock_wait *wait;   /* until it was told */
    struct redlock_batch *batch; /* WON: its own */
    enum redlock_result result;
    int tries;
    int order; /* in which they were told, from 1; 0 = not yet */
    int64_t at_us;
};

/* For the keys "claimd:job:<first>…", of which there are at most 8; wait_us 0 = it doesn't wait,
 * but tries `retries` times more. Returns what redlock_async_wait() did. */
int waiter_start(struct redlock_async *lock, struct waiter *w, int first, size_t count,
                 int64_t wait_us, int retries);
size_t waiters_told(const struct waiter *list, size_t count);

/* ---- in line ---- */

#define JOB "claimd:job:1"
#define LINE "redlock:line:" JOB

/* A world whose clients may stand in line, and more of them, up to 5; close_others() at the end. */
void start_world(size_t count);
struct redlock_async *another_client(void);
void close_others(void);

/* What redis-cli says to COMMAND KEY. */
long number(size_t node, const char *command, const char *key);
/* How many stand in that line, on the node where they are fewest. */
long in_line(const char *line);
/* For job 1; returns when it stands in line on all nodes. */
void start_waiting(struct redlock_async *lock, struct waiter *w);
/* A world in which another client holds job 1, and `w` stands in line for it. `ret_other` may be
 * NULL. */
struct redlock_batch *given_waiter(size_t nodes, struct redlock_async **ret_other,
                                   struct waiter *w);
/* How long it took. */
int64_t release_and_win(struct redlock_batch *held, struct waiter *w);

#endif
