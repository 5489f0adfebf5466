/* SPDX-License-Identifier: Apache-2.0 */
#include "test_redlock_waiters.h"

#include <limits.h>
#include <stdio.h>

#define KEYS_MAX 8
#define OTHERS_MAX 5

static int told;

static void on_waited(void *ctx, enum redlock_result result, int tries, struct redlock_batch *batch)
{
    struct waiter *w = ctx;
    ck_assert_int_eq(w->order, 0); /* the callback runs only once */
    w->result = result;
    w->tries = tries;
    w->order = ++told;
    w->at_us = clock_boot_us();
    w->batch = result == REDLOCK_OK ? batch : NULL;
    w->wait = NULL;
}

int waiter_start(struct redlock_async *lock, struct waiter *w, int first, size_t count,
                 int64_t wait_us, int retries)
{
    char names[KEYS_MAX][32];
    struct redlock_async_key keys[KEYS_MAX];
    ck_assert_uint_le(count, KEYS_MAX);
    for (size_t i = 0; i < count; i++) {
        int len = snprintf(names[i], sizeof names[i], "claimd:job:%d", first + (int)i);
        keys[i] = (struct redlock_async_key){.bytes = names[i], .len = (size_t)len};
    }
    const struct redlock_async_request request = {.keys = keys, .count = count};
    struct redlock_wait_options options = {.deadline_us = wait_us,
                                           .retries = retries,
                                           .retry_base_us = 2 * US_PER_MS,
                                           .retry_cap_us = 20 * US_PER_MS,
                                           .done = on_waited,
                                           .ctx = w};
    if (wait_us != 0 && wait_us != FOR_EVER) {
        options.deadline_us += clock_boot_us();
    }
    *w = (struct waiter){0};
    int r = redlock_async_wait(lock, &request, &options, &w->wait, NULL);
    ck_assert_int_eq(w->order, 0); /* never from within the call */
    return r;
}

size_t waiters_told(const struct waiter *list, size_t count)
{
    size_t n = 0;
    for (size_t i = 0; i < count; i++) {
        n += list[i].order != 0;
    }
    return n;
}

/* ---- the line ---- */

void start_world(size_t count)
{
    world_start(count, NULL);
    world.options.no_line = false;
    world.options.prefix = "redlock:";
    world_open_voting();
}

static struct redlock_async *others[OTHERS_MAX];
static size_t other_count;

struct redlock_async *another_client(void)
{
    ck_assert_uint_lt(other_count, OTHERS_MAX);
    return others[other_count++] = world_other_client();
}

void close_others(void)
{
    while (other_count > 0) {
        redlock_async_close(others[--other_count], NULL, NULL);
    }
}

long number(size_t node, const char *command, const char *key)
{
    return strtol(cli(node, command, key), NULL, 10);
}

long in_line(const char *line)
{
    long least = LONG_MAX;
    for (size_t i = 0; i < world.count; i++) {
        long count = number(i, "ZCARD", line);
        least = count < least ? count : least;
    }
    return least;
}

void start_waiting(struct redlock_async *lock, struct waiter *w)
{
    long before = in_line(LINE);
    ck_assert_int_eq(waiter_start(lock, w, 1, 1, FOR_EVER, 0), 0);
    run_until(in_line(LINE) == before + 1);
}

struct redlock_batch *given_waiter(size_t nodes, struct redlock_async **ret_other, struct waiter *w)
{
    start_world(nodes);
    struct redlock_async *other = another_client();
    struct redlock_batch *held = world_acquire(other, 1, 1);
    start_waiting(world.lock, w);
    if (ret_other != NULL) {
        *ret_other = other;
    }
    return held;
}

int64_t release_and_win(struct redlock_batch *held, struct waiter *w)
{
    int64_t t0_us = clock_boot_us();
    world_release_all(held);
    run_until(w->order != 0);
    ck_assert_int_eq(w->result, REDLOCK_OK);
    return w->at_us - t0_us;
}
