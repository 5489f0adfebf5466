/* SPDX-License-Identifier: Apache-2.0 */
#include "test_redlock_world.h"

#include <signal.h>
#include <stdio.h>

#define LOCKS 10000
#define LOCKS_PER_BATCH 500
#define KEYS_PER_SCRIPT 128

static void given_a_lease(int64_t ttl_us)
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
    given_a_lease(6 * US_PER_S);
}

/* For tests that wait until it expires. */
static void given_a_lease_that_ends_soon(void)
{
    given_a_lease(2 * US_PER_S);
}

/* Acquires key 1, and waits until all replies have arrived. */
static struct redlock_batch *given_a_lock(void)
{
    struct redlock_batch *b = world_acquire(world.lock, 1, 1);
    ck_assert_int_eq(redlock_batch_result(b, 0), REDLOCK_OK);
    return b;
}

START_TEST(W1_E4_a_held_key_outlives_its_ttl)
{
    given_a_lease(6 * US_PER_S);
    struct redlock_batch *b = given_a_lock();
    int64_t first_us = redlock_batch_deadline_us(b, 0);
    run_until(clock_boot_us() > first_us + 200 * US_PER_MS);
    ck_assert_int_eq(redlock_batch_state(b, 0), REDLOCK_STATE_HELD);
    ck_assert_int_gt(redlock_batch_deadline_us(b, 0), clock_boot_us());
    run_until(world_nodes_with("claimd:job:1") == 5);
    ck_assert_uint_ge(redlock_async_counters(world.lock)->extended, 2);
    ck_assert_uint_eq(world.states[REDLOCK_STATE_SUSPECT] + world.states[REDLOCK_STATE_LOST], 0);
    redlock_batch_release(b, 0);
}
END_TEST

START_TEST(W1_the_first_renewal_comes_within_a_third_of_the_ttl)
{
    given_a_lease(8 * US_PER_S);
    struct redlock_batch *b = given_a_lock();
    int64_t t0_us =
        redlock_batch_deadline_us(b, 0) - world.options.ttl_us + redlock_async_drift_us(world.lock);
    run_until(redlock_async_counters(world.lock)->extended == 1);
    int64_t late_us = clock_boot_us() - (t0_us + world.options.ttl_us / 3);
    ck_assert_int_lt(late_us, 5 * US_PER_S);
    redlock_batch_release(b, 0);
}
END_TEST

START_TEST(E1_E6_extending_creates_nothing_without_a_quorum_and_overwrites_nobody)
{
    given_a_short_lease();
    struct redlock_batch *b = given_a_lock();
    (void)cli(0, "DEL", "claimd:job:1");
    (void)cli(1, "SET", "claimd:job:1", "somebody", "PX", "60000");
    world_signal(2, 1, SIGSTOP);
    run_until(world.states[REDLOCK_STATE_SUSPECT] == 1); /* two of five confirmed it (E2) */
    world_signal(2, 1, SIGCONT);
    ck_assert_str_eq(cli(0, "EXISTS", "claimd:job:1"), "0");
    ck_assert_str_eq(cli(1, "GET", "claimd:job:1"), "somebody");
    ck_assert_int_gt(strtol(cli(1, "PTTL", "claimd:job:1"), NULL, 10), 50000);
    redlock_batch_release(b, 0);
}
END_TEST

START_TEST(E3_a_key_missing_on_a_quorum_is_lost_before_its_deadline)
{
    given_a_short_lease();
    struct redlock_batch *b = given_a_lock();
    for (size_t i = 0; i < 3; i++) {
        (void)cli(i, "DEL", "claimd:job:1");
    }
    run_until(world.states[REDLOCK_STATE_LOST] == 1);
    ck_assert_int_lt(world.lost_at_us, redlock_batch_deadline_us(b, 0));
    ck_assert_int_eq(redlock_batch_state(b, 0), REDLOCK_STATE_LOST);
    for (size_t i = 0; i < 5; i++) {
        (void)cli(i, "SET", "claimd:job:1", "x");
    }
    world_run_for(world.options.ttl_us / 2); /* E8: stays lost, and is reported once */
    ck_assert_uint_eq(world.states[REDLOCK_STATE_LOST], 1);
    ck_assert_uint_eq(redlock_async_counters(world.lock)->lost, 1);
    redlock_batch_release(b, 0);
}
END_TEST

START_TEST(E5_an_inconclusive_round_is_suspect_then_heals)
{
    given_a_short_lease();
    struct redlock_batch *b = given_a_lock();
    int64_t deadline_us = redlock_batch_deadline_us(b, 0);
    world_signal(0, 3, SIGSTOP);
    run_until(world.states[REDLOCK_STATE_SUSPECT] == 1);
    ck_assert_int_eq(redlock_batch_deadline_us(b, 0), deadline_us);
    world_signal(0, 3, SIGCONT);
    run_until(world.states[REDLOCK_STATE_HELD] == 1);
    ck_assert_int_gt(redlock_batch_deadline_us(b, 0), deadline_us);
    ck_assert_uint_eq(world.states[REDLOCK_STATE_LOST], 0);
    redlock_batch_release(b, 0);
}
END_TEST

START_TEST(E5_E7_a_lease_that_nobody_confirms_is_lost_at_its_deadline)
{
    given_a_lease_that_ends_soon();
    struct redlock_batch *b = given_a_lock();
    int64_t deadline_us = redlock_batch_deadline_us(b, 0);
    world_signal(0, 3, SIGSTOP);
    run_until(world.states[REDLOCK_STATE_LOST] == 1);
    ck_assert_int_ge(world.lost_at_us, deadline_us);
    ck_assert_int_lt(world.lost_at_us, deadline_us + 5 * US_PER_S);
    ck_assert_uint_eq(world.states[REDLOCK_STATE_SUSPECT], 1);
    ck_assert_int_eq(redlock_batch_deadline_us(b, 0), deadline_us);
    world_signal(0, 3, SIGCONT);
    redlock_batch_release(b, 0);
}
END_TEST

START_TEST(E1_an_error_of_one_node_leaves_the_others_count)
{
    given_a_lease(9 * US_PER_S);
    struct redlock_batch *b = given_a_lock();
    (void)cli(0, "CONFIG", "SET", "maxmemory", "1"); /* OOM for every write */
    redis_server_kill(&world.servers[1]);
    run_until(redlock_async_counters(world.lock)->extended >= 1);
    ck_assert_uint_eq(world.states[REDLOCK_STATE_SUSPECT], 0);
    redlock_batch_release(b, 0);
}
END_TEST

static long extend_calls(void)
{
    long calls = 0;
    for (size_t i = 0; i < world.count; i++) {
        calls += world_calls(i, "evalsha");
    }
    return calls;
}

START_TEST(W4_after_a_pause_overdue_keys_are_lost_before_anything_is_sent)
{
    given_a_lease_that_ends_soon();
    struct redlock_batch *b = given_a_lock();
    /* The process does nothing for longer than the lease, as after SIGSTOP. */
    ck_assert(!WAIT_UNTIL(false, world.options.ttl_us + 100 * US_PER_MS));
    ck_assert_int_eq(redlock_batch_state(b, 0), REDLOCK_STATE_LOST); /* E7: no loop needed */
    run_until(world.states[REDLOCK_STATE_LOST] == 1);
    world_run_for(100 * US_PER_MS);
    ck_assert_int_eq(extend_calls(), 0);
    ck_assert_uint_eq(redlock_async_counters(world.lock)->extended, 0);
    redlock_batch_release(b, 0);
}
END_TEST

static void keep_batch(void *ctx, struct redlock_batch *batch)
{
    *(struct redlock_batch **)ctx = batch;
}

START_TEST(E4_keys_with_ttls_of_their_own_are_extended_by_them)
{
    static const struct redlock_async_key keys[] = {{.bytes = "short", .len = 5},
                                                    {.bytes = "long", .len = 4}};
    struct redlock_batch *batches[2] = {NULL, NULL};
    given_a_lease(4 * US_PER_S);
    world.options.ttl_max_us = 60 * US_PER_S;
    redlock_async_close(TAKE(world.lock), NULL, NULL);
    world_open_voting();
    for (size_t i = 0; i < 2; i++) {
        const struct redlock_async_request request = {.keys = &keys[i],
                                                      .count = 1,
                                                      .ttl_us = (i == 0 ? 4 : 15) * US_PER_S,
                                                      .done = keep_batch,
                                                      .ctx = &batches[i]};
        ck_assert_int_eq(redlock_async_acquire(world.lock, &request, NULL), 0);
    }
    run_until(batches[0] != NULL && batches[1] != NULL);
    int64_t first_us = redlock_batch_deadline_us(batches[1], 0);
    run_until(redlock_batch_deadline_us(batches[1], 0) > first_us);
    ck_assert_int_gt(strtol(cli(0, "PTTL", "long"), NULL, 10), 4000);
    long rest_ms = strtol(cli(0, "PTTL", "short"), NULL, 10);
    ck_assert_int_gt(rest_ms, 0); /* after more than its own ttl */
    ck_assert_int_le(rest_ms, 4000);
    run_until(redlock_async_counters(world.lock)->extended >= 3);
    redlock_batch_release(batches[0], 0);
    redlock_batch_release(batches[1], 0);
}
END_TEST

START_TEST(W6_a_released_key_is_not_extended_any_more)
{
    given_a_short_lease();
    struct redlock_batch *b = world_acquire(world.lock, 1, 2);
    redlock_batch_release(b, 0);
    world_flush(world.lock);
    run_until(redlock_async_counters(world.lock)->extended >= 2);
    ck_assert_uint_eq(world_nodes_with("claimd:job:1"), 0);
    run_until(world_nodes_with("claimd:job:2") == 5);
    ck_assert_uint_eq(world.states[REDLOCK_STATE_LOST], 0);
    redlock_batch_release(b, 1);
}
END_TEST

START_TEST(W3_ten_thousand_locks_are_renewed_in_scripts_of_128_keys)
{
    struct redlock_batch *batches[LOCKS / LOCKS_PER_BATCH];
    world_start(5, NULL);
    world.options.ttl_us = 12 * US_PER_S; /* none is due before all are acquired */
    world.options.ttl_max_us = world.options.ttl_us;
    world.options.node_timeout_us = 1200 * US_PER_MS;
    world_open_voting();
    for (int i = 0; i < LOCKS / LOCKS_PER_BATCH; i++) {
        batches[i] = world_acquire(world.lock, i * LOCKS_PER_BATCH, LOCKS_PER_BATCH);
    }
    ck_assert_uint_eq(redlock_async_counters(world.lock)->results[REDLOCK_OK], LOCKS);
    const struct redlock_counters *counters = redlock_async_counters(world.lock);
    ck_assert(!WAIT_UNTIL(false, world.options.ttl_us / 3)); /* makes all of them due at once */
    int64_t start_us = clock_boot_us();
    run_until(counters->extended >= LOCKS);
    int64_t took_us = clock_boot_us() - start_us;
    ck_assert_uint_eq(counters->extended, LOCKS);
    int64_t per_batch = (LOCKS_PER_BATCH + KEYS_PER_SCRIPT - 1) / KEYS_PER_SCRIPT;
    ck_assert_int_le(world_calls(0, "evalsha"), LOCKS / LOCKS_PER_BATCH * per_batch);
    ck_assert_uint_eq(counters->lost, 0);
    ck_assert_int_lt(took_us, 5 * US_PER_S); /* < 200 ms on an idle machine */
    printf("%d locks renewed on 5 nodes in %.1f ms\n", LOCKS, (double)took_us / 1000);
    for (size_t i = 0; i < ARRAY_COUNT(batches); i++) {
        world_release_all(batches[i]);
    }
    world_flush(world.lock);
    ck_assert_str_eq(cli(0, COUNT_LOCKS), "0");
}
END_TEST

static void add_tests(TCase *t)
{
    tcase_add_test(t, W1_E4_a_held_key_outlives_its_ttl);
    tcase_add_test(t, W1_the_first_renewal_comes_within_a_third_of_the_ttl);
    tcase_add_test(t, E1_E6_extending_creates_nothing_without_a_quorum_and_overwrites_nobody);
    tcase_add_test(t, E3_a_key_missing_on_a_quorum_is_lost_before_its_deadline);
    tcase_add_test(t, E5_an_inconclusive_round_is_suspect_then_heals);
    tcase_add_test(t, E5_E7_a_lease_that_nobody_confirms_is_lost_at_its_deadline);
    tcase_add_test(t, E1_an_error_of_one_node_leaves_the_others_count);
    tcase_add_test(t, W4_after_a_pause_overdue_keys_are_lost_before_anything_is_sent);
    tcase_add_test(t, E4_keys_with_ttls_of_their_own_are_extended_by_them);
    tcase_add_test(t, W6_a_released_key_is_not_extended_any_more);
    tcase_add_test(t, W3_ten_thousand_locks_are_renewed_in_scripts_of_128_keys);
}

int main(void)
{
    return world_main("redlock_keep", add_tests);
}
