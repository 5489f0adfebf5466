/* SPDX-License-Identifier: Apache-2.0 */
#include "test_redlock_world.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>

#define JOB "claimd:job:1"
#define COUNTER_OF(key) "claimd:job:fence:" key
#define COUNTER COUNTER_OF(JOB)
#define CLIENTS 3
#define UNTOLD UINT64_MAX

static void on_fenced(void *ctx, uint64_t fence)
{
    uint64_t *told = ctx;
    ck_assert_uint_eq(*told, UNTOLD); /* called only once */
    *told = fence;
}

static uint64_t fence_of(struct redlock_batch *b)
{
    uint64_t fence = UNTOLD;
    ck_assert_int_eq(redlock_batch_fence(b, 0, 1, on_fenced, &fence), 0);
    ck_assert_uint_eq(fence, UNTOLD); /* never called from within */
    run_until(fence != UNTOLD);
    return fence;
}

/* Grants the key to this client once; returns the number. */
static uint64_t grant(struct redlock_async *lock)
{
    uint64_t won = redlock_async_counters(lock)->results[REDLOCK_OK];
    struct redlock_batch *b = world_acquire(lock, 1, 1);
    ck_assert_uint_eq(redlock_async_counters(lock)->results[REDLOCK_OK], won + 1);
    uint64_t fence = fence_of(b);
    world_release_all(b);
    world_flush(lock);
    return fence;
}

/* ---- three clients compete for one key ---- */

struct contender {
    struct redlock_async *lock;
    struct redlock_batch *batch;
    uint64_t told;
    int grants;
};

static struct contender contenders[CLIENTS];
static uint64_t last_number;
static int grants_wanted;
static int grants_left;

static void contend(struct contender *c);

static void on_number(void *ctx, uint64_t fence)
{
    struct contender *c = ctx;
    ck_assert_uint_gt(fence, last_number);
    last_number = fence;
    grants_left--;
    c->grants++;
    redlock_batch_release(TAKE(c->batch), 0);
    contend(c);
}

static void on_waited(void *ctx, enum redlock_result result, int tries, struct redlock_batch *batch)
{
    struct contender *c = ctx;
    (void)tries;
    if (result != REDLOCK_OK) {
        contend(c);
        return;
    }
    c->batch = batch;
    ck_assert_int_eq(redlock_batch_fence(batch, 0, 1, on_number, c), 0);
}

static void contend(struct contender *c)
{
    const struct redlock_async_key key = {.bytes = JOB, .len = sizeof JOB - 1};
    const struct redlock_async_request request = {.keys = &key, .count = 1};
    const struct redlock_wait_options options = {.retries = 1000,
                                                 .retry_base_us = 2 * US_PER_MS,
                                                 .retry_cap_us = 8 * US_PER_MS,
                                                 .done = on_waited,
                                                 .ctx = c};
    struct redlock_wait *w = NULL;
    if (c->grants < grants_wanted) {
        ck_assert_int_eq(redlock_async_wait(c->lock, &request, &options, &w, NULL), 0);
    }
}

START_TEST(fence_numbers_rise_with_every_grant_while_three_clients_contend)
{
    world_start(5, NULL);
    world_open_voting();
    contenders[0].lock = world.lock;
    contenders[1].lock = world_other_client();
    contenders[2].lock = world_other_client();
    if (_i == 1) {
        redis_server_kill(&world.servers[4]);
        for (size_t i = 0; i < CLIENTS; i++) {
            run_until(redlock_async_voting(contenders[i].lock) == 4);
        }
    }
    grants_wanted = 15;
    grants_left = CLIENTS * grants_wanted;
    for (size_t i = 0; i < CLIENTS; i++) {
        contend(&contenders[i]);
    }
    run_until(grants_left == 0);
    ck_assert_uint_ge(last_number, CLIENTS * 15);
    redlock_async_close(contenders[1].lock, NULL, NULL);
    redlock_async_close(contenders[2].lock, NULL, NULL);
}
END_TEST

START_TEST(fence_numbers_rise_after_a_minority_of_the_nodes_forgot_them)
{
    struct err err = {0};
    world_start(5, NULL);
    world.options.ttl_us = world.options.ttl_max_us = US_PER_S;
    world.options.node_timeout_us = 100 * US_PER_MS;
    world_open_voting();
    struct redlock_async *other = world_other_client();
    uint64_t last = 0;
    for (int i = 0; i < 5; i++) {
        uint64_t number = grant(i % 2 == 0 ? world.lock : other);
        ck_assert_uint_gt(number, last);
        last = number;
    }
    for (size_t i = 0; i < 2; i++) {
        run_until(strcmp(cli(i, "GET", COUNTER), "5") == 0);
        redis_server_kill(&world.servers[i]);
    }
    run_until(redlock_async_voting(other) == 3);
    for (size_t i = 0; i < 2; i++) {
        ck_assert_int_eq(redis_server_restart(&world.servers[i], &err), STATUS_OK);
    }
    run_until(redlock_async_voting(other) == 5 && redlock_async_voting(world.lock) == 5);
    for (int i = 0; i < 5; i++) {
        uint64_t number = grant(i % 2 == 0 ? other : world.lock);
        ck_assert_uint_gt(number, last);
        last = number;
    }
    redlock_async_close(other, NULL, NULL);
}
END_TEST

START_TEST(fence_counters_expire_90_days_after_the_last_grant)
{
    world_start(3, NULL);
    world_open_voting();
    ck_assert_uint_eq(grant(world.lock), 1);
    ck_assert_uint_eq(grant(world.lock), 2);
    for (size_t i = 0; i < 3; i++) {
        run_until(strcmp(cli(i, "GET", COUNTER), "2") == 0);
        int64_t rest_s = strtol(cli(i, "TTL", COUNTER), NULL, 10);
        ck_assert_int_gt(rest_s, INT64_C(89) * 24 * 3600);
        ck_assert_int_le(rest_s, INT64_C(90) * 24 * 3600);
    }
}
END_TEST

/* Under one lock, and then each key alone. */
START_TEST(fence_numbers_rise_for_each_of_several_keys)
{
    world_start(3, NULL);
    world_open_voting();
    uint64_t last = 0;
    for (int i = 0; i < 3; i++) {
        struct redlock_batch *b = world_acquire(world.lock, 1, 2);
        uint64_t fence = UNTOLD;
        ck_assert_int_eq(redlock_batch_fence(b, 0, 2, on_fenced, &fence), 0);
        run_until(fence != UNTOLD);
        ck_assert_uint_gt(fence, last);
        last = fence;
        world_release_all(b);
        world_flush(world.lock);
    }
    for (int key = 1; key <= 2; key++) {
        struct redlock_batch *b = world_acquire(world.lock, key, 1);
        ck_assert_uint_gt(fence_of(b), last);
        world_release_all(b);
        world_flush(world.lock);
    }
}
END_TEST

/* Each of two keys has its own quorum: nodes 0 and 1 for one, nodes 1 and 2 for the other. */
START_TEST(fence_a_number_needs_a_quorum_for_each_key_not_the_same_nodes_for_all)
{
    world_start(3, NULL);
    world_open_voting();
    struct redlock_batch *b = world_acquire(world.lock, 1, 2);
    run_until(world_nodes_with("claimd:job:2") == 3 && world_nodes_with(JOB) == 3);
    (void)cli(0, "DEL", JOB);
    (void)cli(2, "DEL", "claimd:job:2");
    uint64_t fence = UNTOLD;
    ck_assert_int_eq(redlock_batch_fence(b, 0, 2, on_fenced, &fence), 0);
    run_until(fence != UNTOLD);
    ck_assert_uint_eq(fence, 1);
    ck_assert_str_eq(cli(0, "EXISTS", COUNTER), "0");
    (void)cli(0, "DEL", "claimd:job:2");
    fence = UNTOLD;
    ck_assert_int_eq(redlock_batch_fence(b, 0, 2, on_fenced, &fence), 0);
    run_until(fence != UNTOLD);
    ck_assert_uint_eq(fence, 0); /* only one node has the second key */
    world_release_all(b);
}
END_TEST

START_TEST(fence_a_lock_may_be_named_like_a_counter)
{
    world_start(1, NULL);
    world_open_voting();
    ck_assert_uint_eq(grant(world.lock), 1);
    ck_assert_str_eq(cli(0, "SET", JOB ":fence", "another client's lock"), "OK");
    ck_assert_uint_eq(grant(world.lock), 2);
    ck_assert_str_eq(cli(0, "GET", JOB ":fence"), "another client's lock");
}
END_TEST

START_TEST(fence_a_higher_number_that_came_up_meanwhile_is_passed)
{
    world_start(3, NULL);
    world_open_voting();
    struct redlock_batch *b = world_acquire(world.lock, 1, 1);
    run_until(world_nodes_with(JOB) == 3);
    world_signal(0, 3, SIGSTOP);
    uint64_t fence = UNTOLD;
    ck_assert_int_eq(redlock_batch_fence(b, 0, 1, on_fenced, &fence), 0);
    world_run_for(50 * US_PER_MS); /* the read is in flight */
    world_signal(0, 3, SIGCONT);
    for (size_t i = 0; i < 3; i++) { /* was read as empty: our loop did not run */
        ck_assert_str_eq(cli(i, "SET", COUNTER, "41"), "OK");
    }
    run_until(fence != UNTOLD);
    ck_assert_uint_eq(fence, 42);
    ck_assert_int_ge(world_calls(0, "evalsha"), 2);
    world_release_all(b);
}
END_TEST

START_TEST(fence_without_a_quorum_there_is_no_number)
{
    world_start(3, NULL);
    world_open_voting();
    struct redlock_batch *b = world_acquire(world.lock, 1, 1);
    redis_server_kill(&world.servers[0]);
    redis_server_kill(&world.servers[1]);
    if (_i == 1) { /* known to be down, or not yet */
        run_until(redlock_async_voting(world.lock) == 1);
    }
    ck_assert_uint_eq(fence_of(b), 0);
    ck_assert_str_eq(cli(2, "EXISTS", COUNTER), "0");
    world_release_all(b);
}
END_TEST

START_TEST(fence_who_was_replaced_on_a_quorum_gets_no_number)
{
    world_start(3, NULL);
    world_open_voting();
    struct redlock_batch *b = world_acquire(world.lock, 1, 1);
    run_until(world_nodes_with(JOB) == 3);
    for (size_t i = 0; i < 2; i++) {
        ck_assert_str_eq(cli(i, "SET", JOB, "another"), "OK");
    }
    ck_assert_uint_eq(fence_of(b), 0);
    ck_assert_str_eq(cli(0, "EXISTS", COUNTER), "0");
    ck_assert_str_eq(cli(1, "EXISTS", COUNTER), "0");
    world_release_all(b);
}
END_TEST

START_TEST(fence_what_was_released_or_lost_meanwhile_gets_no_number)
{
    world_start(3, NULL);
    world_open_voting();
    struct redlock_batch *b = world_acquire(world.lock, 1, 2);
    uint64_t fence = UNTOLD;
    ck_assert_int_eq(redlock_batch_fence(b, 0, 1, on_fenced, &fence), 0);
    redlock_batch_release(b, 0);
    ck_assert_int_eq(redlock_batch_fence(b, 0, 1, on_fenced, &fence), -EINVAL);
    run_until(fence != UNTOLD);
    ck_assert_uint_eq(fence, 0);
    redlock_batch_release(b, 1);
}
END_TEST

START_TEST(fence_a_counter_that_is_none_spoils_its_node_alone)
{
    world_start(3, NULL);
    world_open_voting();
    ck_assert_str_eq(cli(0, "SET", COUNTER, "seven"), "OK");
    ck_assert_uint_eq(grant(world.lock), 1);
    ck_assert_uint_eq(redlock_async_voting(world.lock), 3);
    ck_assert_int_ge(strtol(cli(1, "RPUSH", COUNTER_OF("claimd:job:2"), "x"), NULL, 10), 1);
    ck_assert_uint_eq(grant(world.lock), 2);
    ck_assert_str_eq(cli(1, "SET", COUNTER, "99999999999999999999"), "OK");
    ck_assert_uint_eq(grant(world.lock), 0);
    ck_assert_uint_eq(redlock_async_voting(world.lock), 3);
}
END_TEST

START_TEST(fence_closing_tells_those_under_way_that_there_is_none)
{
    world_start(3, NULL);
    world_open_voting();
    struct redlock_batch *b = world_acquire(world.lock, 1, 1);
    run_until(world_nodes_with(JOB) == 3);
    world_signal(0, 3, SIGSTOP);
    uint64_t fence = UNTOLD;
    ck_assert_int_eq(redlock_batch_fence(b, 0, 1, on_fenced, &fence), 0);
    struct redlock_async *closing = world.lock;
    world.lock = NULL;
    redlock_batch_release(b, 0);
    redlock_async_close(closing, NULL, NULL);
    run_until(fence != UNTOLD);
    ck_assert_uint_eq(fence, 0);
    world_signal(0, 3, SIGCONT);
    world_run_for(20 * US_PER_MS);
}
END_TEST

static void add_tests(TCase *t)
{
    tcase_add_loop_test(t, fence_numbers_rise_with_every_grant_while_three_clients_contend, 0, 2);
    tcase_add_test(t, fence_numbers_rise_after_a_minority_of_the_nodes_forgot_them);
    tcase_add_test(t, fence_numbers_rise_for_each_of_several_keys);
    tcase_add_test(t, fence_a_number_needs_a_quorum_for_each_key_not_the_same_nodes_for_all);
    tcase_add_test(t, fence_a_lock_may_be_named_like_a_counter);
    tcase_add_test(t, fence_counters_expire_90_days_after_the_last_grant);
    tcase_add_test(t, fence_a_higher_number_that_came_up_meanwhile_is_passed);
    tcase_add_loop_test(t, fence_without_a_quorum_there_is_no_number, 0, 2);
    tcase_add_test(t, fence_who_was_replaced_on_a_quorum_gets_no_number);
    tcase_add_test(t, fence_what_was_released_or_lost_meanwhile_gets_no_number);
    tcase_add_test(t, fence_a_counter_that_is_none_spoils_its_node_alone);
    tcase_add_test(t, fence_closing_tells_those_under_way_that_there_is_none);
}

int main(void)
{
    return world_main("redlock_fence", add_tests);
}
