/* SPDX-License-Identifier: Apache-2.0 */
#include "test_redlock_world.h"

#include <signal.h>

#define KEY "claimd:job:1"

static void given_a_lease_of(int64_t ttl_us)
{
    world_start(5, NULL);
    world.options.ttl_us = ttl_us;
    world.options.ttl_max_us = ttl_us;
    world.options.node_timeout_us = ttl_us / 10;
    world_open_voting();
}

/* A round starts every 2 s, and a node on a busy machine has 0.6 s to answer. */
static void given_a_short_lease(void)
{
    given_a_lease_of(6 * US_PER_S);
}

static struct redlock_batch *given_a_lock(void)
{
    struct redlock_batch *b = world_acquire(world.lock, 1, 1);
    ck_assert_int_eq(redlock_batch_result(b, 0), REDLOCK_OK);
    return b;
}

static uint64_t healed(void)
{
    return redlock_async_counters(world.lock)->healed;
}

static bool was_never_in_doubt(void)
{
    return world.states[REDLOCK_STATE_SUSPECT] + world.states[REDLOCK_STATE_LOST] == 0;
}

START_TEST(E6_a_copy_that_a_node_lost_is_healed_in_a_round_that_has_its_quorum)
{
    given_a_lease_of(12 * US_PER_S);
    struct redlock_batch *b = given_a_lock();
    (void)cli(0, "DEL", KEY);
    (void)cli(1, "DEL", KEY);
    run_until(healed() == 2);
    run_until(world_nodes_with(KEY) == 5);
    ck_assert_int_gt(strtol(cli(0, "PTTL", KEY), NULL, 10), world.options.ttl_us / US_PER_MS / 2);
    ck_assert(was_never_in_doubt());
    redlock_batch_release(b, 0);
}
END_TEST

START_TEST(E6_a_healed_copy_counts_from_the_next_round_on)
{
    given_a_short_lease();
    struct redlock_batch *b = given_a_lock();
    (void)cli(0, "DEL", KEY);
    (void)cli(1, "DEL", KEY);
    run_until(healed() == 2);
    (void)cli(2, "DEL", KEY);
    (void)cli(3, "DEL", KEY);
    run_until(healed() == 4); /* two healed nodes and one of the first were a quorum */
    ck_assert(was_never_in_doubt());
    run_until(world_nodes_with(KEY) == 5);
    redlock_batch_release(b, 0);
}
END_TEST

START_TEST(E6_healing_takes_no_key_from_another_owner)
{
    given_a_short_lease();
    struct redlock_batch *b = given_a_lock();
    (void)cli(0, "SET", KEY, "somebody");
    (void)cli(1, "DEL", KEY);
    run_until(healed() == 1);
    ck_assert_str_eq(cli(0, "GET", KEY), "somebody");
    run_until(world_nodes_with(KEY) == 5);
    redlock_batch_release(b, 0);
}
END_TEST

START_TEST(E6_a_node_that_lost_its_memory_gets_the_key_again_and_the_release_frees_it)
{
    given_a_short_lease();
    struct redlock_batch *b = given_a_lock();
    redis_server_kill(&world.servers[0]);
    ck_assert_int_eq(redis_server_restart(&world.servers[0], NULL), STATUS_OK);
    run_until(healed() == 1);
    ck_assert(was_never_in_doubt());
    redlock_batch_release(b, 0);
    world_flush(world.lock);
    ck_assert_uint_eq(world_nodes_with(KEY), 0);
}
END_TEST

START_TEST(E6_a_node_that_was_down_at_first_gets_the_key_and_the_release_frees_it)
{
    given_a_short_lease();
    redis_server_kill(&world.servers[4]);
    run_until(redlock_async_voting(world.lock) == 4);
    struct redlock_batch *b = given_a_lock();
    ck_assert_int_eq(redis_server_restart(&world.servers[4], NULL), STATUS_OK);
    run_until(healed() == 1);
    run_until(world_nodes_with(KEY) == 5);
    redlock_batch_release(b, 0);
    world_flush(world.lock);
    ck_assert_uint_eq(world_nodes_with(KEY), 0);
}
END_TEST

static void on_extended(void *ctx, enum redlock_result result)
{
    ck_assert_int_eq(result, REDLOCK_OK);
    *(bool *)ctx = true;
}

START_TEST(W6_E6_what_was_given_back_meanwhile_is_not_healed)
{
    bool is_extended = false;
    world_start(3, NULL);
    world_open_voting();
    struct redlock_batch *b = given_a_lock();
    (void)cli(0, "DEL", KEY);
    world_signal(0, 1, SIGSTOP);
    ck_assert_int_eq(redlock_batch_extend(b, 0, on_extended, &is_extended), 0);
    run_until(is_extended);
    redlock_batch_release(b, 0);
    world_signal(0, 1, SIGCONT); /* it now answers that the key is missing */
    world_flush(world.lock);
    ck_assert_uint_eq(world_nodes_with(KEY), 0);
    ck_assert_int_eq(world_calls(0, "set"), world_extends_by_set(0) ? 2 : 1);
    ck_assert_uint_eq(healed(), 0);
}
END_TEST

static void add_tests(TCase *t)
{
    tcase_add_test(t, E6_a_copy_that_a_node_lost_is_healed_in_a_round_that_has_its_quorum);
    tcase_add_test(t, E6_a_healed_copy_counts_from_the_next_round_on);
    tcase_add_test(t, E6_healing_takes_no_key_from_another_owner);
    tcase_add_test(t, E6_a_node_that_lost_its_memory_gets_the_key_again_and_the_release_frees_it);
    tcase_add_test(t, E6_a_node_that_was_down_at_first_gets_the_key_and_the_release_frees_it);
    tcase_add_test(t, W6_E6_what_was_given_back_meanwhile_is_not_healed);
}

int main(void)
{
    return world_main("redlock_heal", add_tests);
}
