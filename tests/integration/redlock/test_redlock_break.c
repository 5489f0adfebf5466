/* SPDX-License-Identifier: Apache-2.0
 *
 * A client that has never held a lock breaks it (lock.R8). */
#include "test_redlock_waiters.h"

#include <signal.h>
#include <stdio.h>

#define EARLY "AAAAAAAAAAAA~00000000012345|label" /* the waiter of another client */

struct broken {
    size_t calls;
    struct redlock_released released;
};

static struct waiter waiter;

static void on_broken(void *ctx, const struct redlock_released *released)
{
    struct broken *b = ctx;
    b->calls++;
    b->released = *released;
}

static struct redlock_released break_job(struct redlock_async *lock)
{
    struct broken b = {0};
    ck_assert_int_eq(redlock_async_break(lock, JOB, sizeof JOB - 1, on_broken, &b), 0);
    ck_assert_uint_eq(b.calls, 0); /* never called from within */
    run_until(b.calls == 1);
    return b.released;
}

#define check_released(r, d, n, m, u)      \
    do {                                   \
        ck_assert_uint_eq((r).deleted, d); \
        ck_assert_uint_eq((r).stolen, n);  \
        ck_assert_uint_eq((r).missing, m); \
        ck_assert_uint_eq((r).unknown, u); \
    } while (0)

static struct redlock_batch *given_holder(const char *label)
{
    world.options.label = label;
    world_open_voting();
    struct redlock_batch *held = world_acquire(world.lock, 1, 1);
    run_until(world_nodes_with(JOB) == world.count);
    return held;
}

START_TEST(R8_a_broken_lock_is_free_and_its_holder_has_lost_it)
{
    world_start(3, NULL);
    world.options.no_line = _i == 1;
    struct redlock_batch *held = given_holder(_i == 0 ? "a label" : NULL);
    struct redlock_async *breaker = another_client();
    struct redlock_released r = break_job(breaker);
    check_released(r, 3, 0, 0, 0);
    ck_assert_uint_eq(world_nodes_with(JOB), 0);
    run_until(world.states[REDLOCK_STATE_LOST] == 1);
    ck_assert_int_lt(world.lost_at_us, redlock_batch_deadline_us(held, 0)); /* E3 */
    ck_assert_uint_eq(redlock_async_counters(world.lock)->healed, 0);
    r = break_job(breaker);
    check_released(r, 0, 0, 3, 0);
    close_others();
}
END_TEST

START_TEST(R8_a_broken_lock_goes_to_the_first_in_line)
{
    world_start(3, NULL);
    world.options.no_line = false;
    world.options.prefix = "redlock:";
    struct redlock_batch *held = given_holder("a label");
    world.options.label = "another";
    start_waiting(another_client(), &waiter);
    world.options.label = NULL;
    struct redlock_released r = break_job(another_client());
    check_released(r, 3, 0, 0, 0);
    run_until(waiter.order != 0);
    ck_assert_int_eq(waiter.result, REDLOCK_OK);
    run_until(world.states[REDLOCK_STATE_LOST] == 1);
    ck_assert_int_lt(world.lost_at_us, redlock_batch_deadline_us(held, 0));
    ck_assert_uint_ge(redlock_async_counters(world.lock)->stolen, 1); /* counts as a theft */
    redlock_batch_release(held, 0);
    world_flush(world.lock);
    ck_assert_uint_ge(world_nodes_with(JOB), 2); /* of the new holder */
    world_release_all(waiter.batch);
    close_others();
}
END_TEST

START_TEST(R8_L9_who_may_not_hand_over_breaks_all_the_same)
{
    world_start(3, NULL);
    world.options.no_line = false;
    world.options.prefix = "redlock:";
    (void)given_holder(NULL);
    struct redlock_async *breaker = another_client();
    for (size_t i = 0; i < 3; i++) { /* as if there were a waiter */
        (void)cli(i, "SET", "redlock:any", "1");
        ck_assert_str_eq(cli(i, "ACL", "SETUSER", "default", "-zrem"), "OK");
    }
    struct redlock_released r = break_job(breaker);
    check_released(r, 3, 0, 0, 0);
    ck_assert_uint_eq(world_nodes_with(JOB), 0);
    ck_assert_uint_eq(redlock_async_voting(breaker), 3);
    close_others();
}
END_TEST

START_TEST(R8_each_nodes_own_value_is_what_is_broken)
{
    static char long_value[6000];
    memset(long_value, 'x', sizeof long_value - 1);
    world_start(6, NULL);
    world.options.no_line = false;
    world.options.prefix = "redlock:";
    world_open_voting();
    (void)cli(0, "SET", JOB, "somebody");
    (void)cli(1, "SET", JOB, "");
    (void)cli(2, "SET", JOB, long_value, "PX", "60000");
    (void)cli(3, "HSET", JOB, "uuid:1", "1");
    redis_server_kill(&world.servers[4]);
    run_until(redlock_async_voting(world.lock) == 5);
    struct redlock_released r = break_job(world.lock);
    check_released(r, 3, 0, 1, 2);
    for (size_t i = 0; i < 3; i++) {
        ck_assert_str_eq(cli(i, "EXISTS", JOB), "0");
    }
    ck_assert_str_eq(cli(3, "EXISTS", JOB), "1");
    ck_assert_uint_eq(redlock_async_voting(world.lock), 5);
}
END_TEST

START_TEST(R8_what_came_after_the_look_stays)
{
    struct broken b = {0};
    world_start(1, NULL);
    world.options.no_line = false;
    world.options.prefix = "redlock:";
    world.options.ttl_us = 60 * US_PER_S;
    world.options.ttl_max_us = world.options.ttl_us;
    world.options.node_timeout_us = 5 * US_PER_S;
    world_open_voting();
    struct redlock_async *breaker = another_client();
    struct redlock_batch *held = world_acquire(world.lock, 1, 1);
    (void)cli(0, "ZADD", LINE, "1", EARLY);
    (void)cli(0, "SET", "redlock:alive:AAAAAAAAAAAA", "1");
    (void)cli(0, "SET", "redlock:any", "1");
    ck_assert_str_eq(cli(0, "CLIENT", "PAUSE", "20000", "WRITE"), "OK"); /* reads are permitted */
    world_release_all(held);
    run_until(strstr(cli(0, "INFO", "clients"), "blocked_clients:1") != NULL);
    long looks = world_calls(0, "get");
    ck_assert_int_eq(redlock_async_break(breaker, JOB, sizeof JOB - 1, on_broken, &b), 0);
    run_until(world_calls(0, "get") > looks);
    ck_assert_str_eq(cli(0, "CLIENT", "UNPAUSE"), "OK"); /* the lock is handed to the waiter now */
    run_until(b.calls == 1);
    check_released(b.released, 0, 1, 0, 0);
    close_others();
}
END_TEST

START_TEST(nobody_to_ask_is_an_answer)
{
    world_start(1, NULL);
    world_open_voting();
    redis_server_kill(&world.servers[0]);
    run_until(redlock_async_voting(world.lock) == 0);
    struct redlock_released r = break_job(world.lock);
    check_released(r, 0, 0, 0, 1);
}
END_TEST

static struct broken at_close;

START_TEST(closing_ends_it)
{
    world_start(1, NULL);
    world.options.node_timeout_us = 100 * US_PER_MS;
    world_open_voting();
    world_signal(0, 1, SIGSTOP);
    ck_assert_int_eq(redlock_async_break(world.lock, JOB, 3, on_broken, &at_close), 0);
    redlock_async_close(TAKE(world.lock), NULL, NULL);
    run_until(at_close.calls == 1);
    ck_assert_uint_eq(at_close.released.unknown, 1);
    world_signal(0, 1, SIGCONT);
}
END_TEST

START_TEST(a_key_out_of_bounds_is_refused)
{
    static char longest[REDLOCK_KEY_LEN_MAX + 1];
    struct broken b = {0};
    world_start(1, NULL);
    world_open_voting();
    ck_assert_int_eq(redlock_async_break(world.lock, "", 0, on_broken, &b), -EINVAL);
    ck_assert_int_eq(redlock_async_break(world.lock, longest, sizeof longest, on_broken, &b),
                     -EINVAL);
    ck_assert_int_eq(redlock_async_break(world.lock, longest, sizeof longest - 1, on_broken, &b),
                     0);
    run_until(b.calls == 1);
    ck_assert_uint_eq(b.released.missing, 1);
}
END_TEST

static void add_tests(TCase *t)
{
    tcase_add_loop_test(t, R8_a_broken_lock_is_free_and_its_holder_has_lost_it, 0, 2);
    tcase_add_test(t, R8_a_broken_lock_goes_to_the_first_in_line);
    tcase_add_test(t, R8_L9_who_may_not_hand_over_breaks_all_the_same);
    tcase_add_test(t, R8_each_nodes_own_value_is_what_is_broken);
    tcase_add_test(t, R8_what_came_after_the_look_stays);
    tcase_add_test(t, nobody_to_ask_is_an_answer);
    tcase_add_test(t, closing_ends_it);
    tcase_add_test(t, a_key_out_of_bounds_is_refused);
}

int main(void)
{
    return world_main("redlock_break", add_tests);
}
