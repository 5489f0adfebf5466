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

#endif
