/* SPDX-License-Identifier: Apache-2.0
 *
 * Calls of redlock_async_wait() in a world, and their results. */
#ifndef CLAIMD_TESTS_TEST_REDLOCK_WAITERS_H
#define CLAIMD_TESTS_TEST_REDLOCK_WAITERS_H

#include "test_redlock_world.h"

#define FOR_EVER INT64_MAX

struct waiter {
    struct redlock_wait *wait;   /* until the callback ran */
    struct redlock_batch *batch; /* REDLOCK_OK: the batch that was won */
    enum redlock_result result;
    int tries;
    int order; /* order of the callbacks, from 1; 0 = not yet */
    int64_t at_us;
};

/* Waits for `count` keys from "claimd:job:<first>" on, at most 8. With wait_us 0 it doesn't wait,
 * but tries `retries` more times. Returns the result of redlock_async_wait(). */
int waiter_start(struct redlock_async *lock, struct waiter *w, int first, size_t count,
                 int64_t wait_us, int retries);
size_t waiters_told(const struct waiter *list, size_t count);

/* ---- the line ---- */

#define JOB "claimd:job:1"
#define LINE "redlock:line:" JOB

/* Starts a world whose clients may wait in line. another_client() opens up to 5 more clients;
 * close_others() closes them at the end. */
void start_world(size_t count);
struct redlock_async *another_client(void);
void close_others(void);

/* Returns the number that redis-cli prints for COMMAND KEY. */
long number(size_t node, const char *command, const char *key);
/* Returns the number of waiters in that line, on the node that has the fewest. */
long in_line(const char *line);
/* Starts waiting for job 1; returns when the waiter is in line on all nodes. */
void start_waiting(struct redlock_async *lock, struct waiter *w);
/* Starts a world in which another client holds job 1, and `w` waits in line for it. `ret_other` may
 * be NULL. */
struct redlock_batch *given_waiter(size_t nodes, struct redlock_async **ret_other,
                                   struct waiter *w);
/* Returns the duration. */
int64_t release_and_win(struct redlock_batch *held, struct waiter *w);

#endif
