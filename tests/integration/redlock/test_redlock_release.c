/* SPDX-License-Identifier: Apache-2.0 */
#include "test_redlock_world.h"

#include <signal.h>
#include <stdio.h>

static void given_voting_nodes(void)
{
    world_start(5, NULL);
    world_open_voting();
}

/* Long enough for a few calls of redis-cli, which stop the loop. */
static void given_a_lease_that_ends(void)
{
    world_start(3, NULL);
    world.options.ttl_us = 6 * US_PER_S;
    world.options.ttl_max_us = world.options.ttl_us;
    world.options.node_timeout_us = world.options.ttl_us / 10;
    world_open_voting();
}

START_TEST(R2_release_deletes_only_what_is_ours)
{
    given_voting_nodes();
    struct redlock_batch *b = world_acquire(world.lock, 1, 2);
    (void)cli(4, "SET", "claimd:job:1", "somebody");
    redlock_batch_release(b, 0);
    redlock_batch_release(b, 1);
    world_flush(world.lock);
    run_until(world_nodes_with("claimd:job:1") == 1);
    ck_assert_str_eq(cli(4, "GET", "claimd:job:1"), "somebody");
    ck_assert_uint_eq(world_nodes_with("claimd:job:2"), 0);
}
END_TEST

START_TEST(A11_what_was_released_before_does_not_block_the_next_attempt)
{
    given_voting_nodes();
    struct redlock_batch *b = world_acquire(world.lock, 1, 1);
    redlock_batch_release(b, 0);
    b = world_acquire(world.lock, 1, 1); /* started in the same turn of the loop */
    ck_assert_int_eq(redlock_batch_result(b, 0), REDLOCK_OK);
    redlock_batch_release(b, 0);
}
END_TEST

START_TEST(R5_keys_released_in_one_turn_leave_in_one_script_per_node)
{
    given_voting_nodes();
    struct redlock_batch *b = world_acquire(world.lock, 1, 300);
    world_release_all(b);
    world_flush(world.lock);
    for (size_t i = 0; i < 5; i++) {
        ck_assert_int_eq(world_calls(i, "evalsha"), 1);
        ck_assert_str_eq(cli(i, COUNT_LOCKS), "0");
    }
}
END_TEST

START_TEST(R6_a_release_counts_what_it_found)
{
    given_voting_nodes();
    const struct redlock_counters *c = redlock_async_counters(world.lock);
    struct redlock_batch *b = world_acquire(world.lock, 1, 3);
    run_until(world_nodes_with("claimd:job:3") == 5);
    world_run_for(20 * US_PER_MS); /* reads the answers of the last nodes */
    (void)cli(0, "DEL", "claimd:job:1");
    (void)cli(1, "SET", "claimd:job:2", "somebody");
    world_release_all(b);
    world_flush(world.lock);
    run_until(c->release_deleted == 13);
    ck_assert_uint_eq(c->release_missing, 1);
    ck_assert_uint_eq(c->stolen, 1);
    ck_assert_uint_eq(c->release_unknown, 0);
}
END_TEST

START_TEST(R6_a_contenders_failed_attempt_is_no_safety_event)
{
    given_voting_nodes();
    const struct redlock_counters *c = redlock_async_counters(world.lock);
    (void)cli(0, "SET", "claimd:job:1", "contender");
    struct redlock_batch *b = world_acquire(world.lock, 1, 1);
    redlock_batch_release(b, 0);
    world_flush(world.lock);
    run_until(c->release_deleted == 4);
    ck_assert_uint_eq(c->stolen, 0);
}
END_TEST

START_TEST(R4_a_release_is_repeated_until_every_node_has_it)
{
    world_start(5, NULL);
    world.options.node_timeout_us = 100 * US_PER_MS;
    world_open_voting();
    struct redlock_batch *b = world_acquire(world.lock, 1, 3);
    run_until(world_nodes_with("claimd:job:3") == 5);
    world_signal(4, 1, SIGSTOP);
    world_release_all(b);
    run_until(redlock_async_voting(world.lock) == 4); /* it timed out */
    world_run_for(150 * US_PER_MS);
    world_signal(4, 1, SIGCONT);
    run_until(world_nodes_with("claimd:job:1") == 0); /* long before the ttl of 10 s is over */
    ck_assert_str_eq(cli(4, COUNT_LOCKS), "0");
    ck_assert_uint_eq(redlock_async_counters(world.lock)->release_unknown, 0);
}
END_TEST

START_TEST(R3_a_script_that_ran_already_may_run_again)
{
    given_voting_nodes();
    struct redlock_batch *b = world_acquire(world.lock, 1, 1);
    world_flush(world.lock);
    for (size_t i = 0; i < 5; i++) {
        (void)cli(i, "DEL", "claimd:job:1"); /* as if the first reply had been lost */
    }
    redlock_batch_release(b, 0);
    world_flush(world.lock);
    ck_assert_uint_eq(world_nodes_with("claimd:job:1"), 0);
    ck_assert_uint_eq(redlock_async_counters(world.lock)->stolen, 0);
}
END_TEST

START_TEST(R4_what_no_node_acknowledges_is_given_up_after_the_ttl)
{
    given_a_lease_that_ends();
    struct redlock_batch *b = world_acquire(world.lock, 1, 2);
    run_until(world_nodes_with("claimd:job:2") == 3);
    redis_server_kill(&world.servers[2]);
    run_until(redlock_async_voting(world.lock) == 2);
    world_release_all(b);
    run_until(redlock_async_counters(world.lock)->release_unknown == 2);
}
END_TEST

START_TEST(R5_flush_does_not_wait_for_a_node_that_is_stuck)
{
    world_start(5, NULL);
    world.options.node_timeout_us = 100 * US_PER_MS;
    world_open_voting();
    struct redlock_batch *b = world_acquire(world.lock, 1, 1);
    world_signal(0, 1, SIGSTOP);
    redlock_batch_release(b, 0);
    int64_t start_us = clock_boot_us();
    world_flush(world.lock);
    ck_assert_int_lt(clock_boot_us() - start_us, 5 * US_PER_S);
    world_signal(0, 1, SIGCONT);
}
END_TEST

START_TEST(R5_closing_sends_what_waits)
{
    given_voting_nodes();
    struct redlock_async *other = world_other_client();
    struct redlock_batch *b = world_acquire(other, 1, 3);
    world_release_all(b);
    redlock_async_close(other, NULL, NULL);
    run_until(world_nodes_with("claimd:job:1") + world_nodes_with("claimd:job:3") == 0);
}
END_TEST

START_TEST(R7_a_dropped_key_ends_by_its_ttl)
{
    given_a_lease_that_ends();
    struct redlock_batch *b = world_acquire(world.lock, 1, 1);
    redlock_batch_drop(b, 0);
    world_flush(world.lock);
    run_until(world_nodes_with("claimd:job:1") == 3);
    run_until(world_nodes_with("claimd:job:1") == 0);
    ck_assert_uint_eq(redlock_async_counters(world.lock)->extended, 0);
    ck_assert_int_eq(world_calls(0, "evalsha"), 0);
}
END_TEST

START_TEST(an_acquisition_under_way_is_cancelled_by_close)
{
    given_voting_nodes();
    world_acquire_start(world.lock, 1, 3);
    const struct redlock_counters *c = redlock_async_counters(world.lock);
    redlock_async_close(world.lock, NULL, NULL);
    ck_assert_ptr_nonnull(world_acquired());
    ck_assert_uint_eq(c->results[REDLOCK_CANCELLED], 3);
    world.lock = NULL;
    run_until(world_nodes_with("claimd:job:1") == 0);
}
END_TEST

START_TEST(a_lock_closed_with_keys_in_hand_frees_them)
{
    given_voting_nodes();
    ck_assert_ptr_nonnull(world_acquire(world.lock, 1, 10));
} /* teardown closes, and finds no handle left */
END_TEST

static void on_freed(void *ctx)
{
    *(bool *)ctx = true;
}

START_TEST(the_keys_of_a_dead_predecessor_are_freed_by_its_prefix)
{
    given_voting_nodes();
    struct redlock_async *dead = world_other_client();
    char prefix[REDLOCK_PREFIX_LEN + 1];
    bool is_done = false;
    (void)snprintf(prefix, sizeof prefix, "%s", redlock_async_prefix(dead));
    (void)world_acquire(dead, 1, 2);
    struct redlock_batch *ours = world_acquire(world.lock, 3, 1);
    static const struct redlock_async_key keys[] = {
        {.bytes = "claimd:job:1", .len = 12},
        {.bytes = "claimd:job:3", .len = 12},
        {.bytes = "claimd:job:none", .len = 15},
    };
    ck_assert_int_eq(
        redlock_async_free_prefix(world.lock, prefix, keys, 3, on_freed, &is_done, NULL), 0);
    ck_assert(!is_done);
    run_until(is_done);
    ck_assert_uint_eq(world_nodes_with("claimd:job:1"), 0);
    run_until(world_nodes_with("claimd:job:2") == 5);
    run_until(world_nodes_with("claimd:job:3") == 5);
    redlock_batch_release(ours, 0);
    redlock_async_close(dead, NULL, NULL);
}
END_TEST

static void add_tests(TCase *t)
{
    tcase_add_test(t, R2_release_deletes_only_what_is_ours);
    tcase_add_test(t, R3_a_script_that_ran_already_may_run_again);
    tcase_add_test(t, R4_a_release_is_repeated_until_every_node_has_it);
    tcase_add_test(t, R4_what_no_node_acknowledges_is_given_up_after_the_ttl);
    tcase_add_test(t, A11_what_was_released_before_does_not_block_the_next_attempt);
    tcase_add_test(t, R5_keys_released_in_one_turn_leave_in_one_script_per_node);
    tcase_add_test(t, R5_flush_does_not_wait_for_a_node_that_is_stuck);
    tcase_add_test(t, R5_closing_sends_what_waits);
    tcase_add_test(t, R6_a_release_counts_what_it_found);
    tcase_add_test(t, R6_a_contenders_failed_attempt_is_no_safety_event);
    tcase_add_test(t, R7_a_dropped_key_ends_by_its_ttl);
    tcase_add_test(t, an_acquisition_under_way_is_cancelled_by_close);
    tcase_add_test(t, a_lock_closed_with_keys_in_hand_frees_them);
    tcase_add_test(t, the_keys_of_a_dead_predecessor_are_freed_by_its_prefix);
}

int main(void)
{
    return world_main("redlock_release", add_tests);
}
