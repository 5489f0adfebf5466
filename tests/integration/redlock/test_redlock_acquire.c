/* SPDX-License-Identifier: Apache-2.0 */
#include "test_redlock_world.h"

#include <signal.h>
#include <stdio.h>

#define verdicts(v) redlock_async_counters(world.lock)->results[REDLOCK_##v]

START_TEST(A1_a_won_key_is_the_token_with_a_ttl_on_every_node)
{
    char token[64];
    world_start(5, NULL);
    world_open_voting();
    struct redlock_batch *b = world_acquire(world.lock, 1, 1);
    ck_assert_int_eq(redlock_batch_result(b, 0), REDLOCK_OK);
    run_until(world_nodes_with("claimd:job:1") == 5);
    (void)snprintf(token, sizeof token, "%s", cli(0, "GET", "claimd:job:1"));
    ck_assert_uint_eq(strlen(token), REDLOCK_TOKEN_LEN);
    ck_assert_mem_eq(token, redlock_async_prefix(world.lock), REDLOCK_PREFIX_LEN);
    for (size_t i = 0; i < 5; i++) {
        ck_assert_str_eq(cli(i, "GET", "claimd:job:1"), token);
        long pttl = strtol(cli(i, "PTTL", "claimd:job:1"), NULL, 10);
        ck_assert_int_gt(pttl, 5000);
        ck_assert_int_le(pttl, 10000);
    }
    redlock_batch_release(b, 0);
}
END_TEST

START_TEST(A4_the_deadline_is_t0_plus_ttl_minus_drift)
{
    world_start(5, NULL);
    world_open_voting();
    int64_t before_us = clock_boot_us();
    world_acquire_start(world.lock, 1, 1);
    int64_t after_us = clock_boot_us();
    run_until(world_acquired() != NULL);
    int64_t t0_us = redlock_batch_deadline_us(world_acquired(), 0) - world.options.ttl_us +
                    redlock_async_drift_us(world.lock);
    ck_assert_int_ge(t0_us, before_us);
    ck_assert_int_le(t0_us, after_us);
    redlock_batch_release(world_acquired(), 0);
}
END_TEST

static void keep_batch(void *ctx, struct redlock_batch *batch)
{
    *(struct redlock_batch **)ctx = batch;
}

START_TEST(K4_keys_are_binary_safe)
{
    static const struct redlock_async_key keys[] = {{.bytes = "claimd:\0%s \r\n1", .len = 14},
                                                    {.bytes = "claimd:\0%s \r\n2", .len = 14}};
    struct redlock_batch *b = NULL;
    world_start(1, NULL);
    world_open_voting();
    const struct redlock_async_request request = {
        .keys = keys, .count = 2, .done = keep_batch, .ctx = &b};
    ck_assert_int_eq(redlock_async_acquire(world.lock, &request, NULL), 0);
    run_until(b != NULL);
    ck_assert_uint_eq(verdicts(OK), 2);
    ck_assert_str_eq(cli(0, COUNT_LOCKS), "2");
    world_release_all(b);
    world_flush(world.lock);
    ck_assert_str_eq(cli(0, COUNT_LOCKS), "0");
}
END_TEST

START_TEST(A9_any_number_of_nodes_gives_a_verdict)
{
    world_start((size_t)_i, NULL);
    world_open_voting();
    struct redlock_async *other = world_other_client();
    struct redlock_batch *b = world_acquire(world.lock, 1, 3);
    for (size_t i = 0; i < 3; i++) {
        ck_assert_int_eq(redlock_batch_result(b, i), REDLOCK_OK);
    }
    (void)world_acquire(other, 1, 3);
    ck_assert_uint_eq(redlock_async_counters(other)->results[REDLOCK_HELD], 3);
    world_release_all(b);
    world_flush(world.lock);
    b = world_acquire(other, 1, 3);
    ck_assert_uint_eq(redlock_async_counters(other)->results[REDLOCK_OK], 3);
    world_release_all(b);
    redlock_async_close(other, NULL, NULL);
}
END_TEST

/* Waits for every node that answers, however busy the machine is. */
static void given_patience(void)
{
    world.options.node_timeout_us = 2 * WORLD_LIMIT_US;
    world.options.ttl_us = 10 * world.options.node_timeout_us;
    world.options.ttl_max_us = world.options.ttl_us;
}

START_TEST(A3_all_nodes_are_asked_at_once)
{
    world_start(5, NULL);
    given_patience();
    world_open_voting();
    world_signal(0, 5, SIGSTOP);
    world_acquire_start(world.lock, 1, 1);
    world_run_for(50 * US_PER_MS);
    /* Each has received its command although none before it has answered. */
    for (size_t i = 5; i-- > 0;) {
        world_signal(i, 1, SIGCONT);
        run_until(world_calls(i, "set") == 1);
    }
    run_until(world_acquired() != NULL);
    ck_assert_int_eq(redlock_batch_result(world_acquired(), 0), REDLOCK_OK);
    redlock_batch_release(world_acquired(), 0);
}
END_TEST

START_TEST(A6_all_nodes_stopped_is_no_quorum_after_one_timeout)
{
    world_start(5, NULL);
    world.options.node_timeout_us = 100 * US_PER_MS;
    world_open_voting();
    world_signal(0, 5, SIGSTOP);
    int64_t start_us = clock_boot_us();
    (void)world_acquire(world.lock, 1, 2);
    ck_assert_int_lt(clock_boot_us() - start_us, 5 * US_PER_S);
    ck_assert_uint_eq(verdicts(NO_QUORUM), 2);
    world_signal(0, 5, SIGCONT);
}
END_TEST

START_TEST(A10_commands_that_land_after_the_connection_was_given_up_are_undone)
{
    world_start(5, NULL);
    world.options.node_timeout_us = 100 * US_PER_MS;
    world_open_voting();
    world_signal(0, 5, SIGSTOP);
    (void)world_acquire(world.lock, 1, 2);
    world_signal(0, 5, SIGCONT);
    run_until(redlock_async_voting(world.lock) == 5);
    for (size_t i = 0; i < 5; i++) {
        run_until(world_calls(i, "set") == 2 + 1); /* two from the sockets, and T_max */
    }
    run_until(world_nodes_with("claimd:job:1") + world_nodes_with("claimd:job:2") == 0);
    for (size_t i = 0; i < 5; i++) {
        ck_assert_int_ge(world_calls(i, "evalsha"), 1);
    }
}
END_TEST

START_TEST(A7_a_quorum_that_comes_too_late_is_expired_and_released)
{
    world_start(5, NULL);
    given_patience();
    /* D is 1 % plus 2 ms. */
    world.options.min_validity_us = world.options.ttl_us * 99 / 100 - 200 * US_PER_MS;
    world_open_voting();
    world_signal(0, 5, SIGSTOP);
    world_acquire_start(world.lock, 1, 1);
    world_run_for(250 * US_PER_MS);
    world_signal(0, 5, SIGCONT);
    run_until(world_acquired() != NULL);
    ck_assert_uint_eq(verdicts(LOST), 1);
    world_flush(world.lock);
    ck_assert_uint_eq(world_nodes_with("claimd:job:1"), 0);
}
END_TEST

START_TEST(A8_a_minority_that_does_not_answer_does_not_matter)
{
    world_start(5, NULL);
    given_patience();
    world_open_voting();
    world_signal(0, 2, SIGSTOP);
    struct redlock_batch *b = world_acquire(world.lock, 1, 2); /* does not wait for τ */
    ck_assert_int_eq(redlock_batch_result(b, 0), REDLOCK_OK);
    ck_assert_int_eq(redlock_batch_result(b, 1), REDLOCK_OK);
    world_signal(0, 2, SIGCONT);
    world_release_all(b);
}
END_TEST

static void given_foreign(const char *key, size_t first, size_t count)
{
    for (size_t i = first; i < first + count; i++) {
        (void)cli(i, "SET", key, "somebody", "PX", "60000");
    }
}

START_TEST(A10_what_was_not_won_is_released_everywhere)
{
    world_start(5, NULL);
    world_open_voting();
    given_foreign("claimd:job:1", 0, 3);
    (void)world_acquire(world.lock, 1, 1);
    ck_assert_uint_eq(verdicts(HELD), 1);
    world_flush(world.lock);
    run_until(world_nodes_with("claimd:job:1") == 3);
    ck_assert_str_eq(cli(0, "GET", "claimd:job:1"), "somebody");
    for (size_t i = 0; i < 5; i++) {
        ck_assert_int_eq(world_calls(i, "evalsha"), 1);
    }
}
END_TEST

START_TEST(A15_each_key_has_a_verdict_of_its_own)
{
    world_start(5, NULL);
    world_open_voting();
    given_foreign("claimd:job:2", 0, 3); /* held */
    given_foreign("claimd:job:3", 0, 2); /* a quorum remains */
    struct redlock_batch *b = world_acquire(world.lock, 1, 4);
    ck_assert_int_eq(redlock_batch_result(b, 0), REDLOCK_OK);
    ck_assert_int_eq(redlock_batch_result(b, 1), REDLOCK_HELD);
    ck_assert_int_eq(redlock_batch_result(b, 2), REDLOCK_OK);
    ck_assert_int_eq(redlock_batch_result(b, 3), REDLOCK_OK);
    ck_assert_str_eq(redlock_batch_user(b, 3), "claimd:job:4");
    redlock_batch_release(b, 0);
    redlock_batch_release(b, 2);
    redlock_batch_release(b, 3);
}
END_TEST

START_TEST(A15_refusals_and_errors_that_leave_no_quorum_are_split)
{
    world_start(5, NULL);
    world_open_voting();
    given_foreign("claimd:job:1", 0, 2);
    redis_server_kill(&world.servers[4]);
    run_until(redlock_async_voting(world.lock) == 4);
    (void)world_acquire(world.lock, 1, 1);
    ck_assert_uint_eq(verdicts(SPLIT), 1);
}
END_TEST

START_TEST(A12_late_votes_of_a_won_key_are_kept_and_released)
{
    world_start(5, NULL);
    world_open_voting();
    world_signal(3, 2, SIGSTOP);
    struct redlock_batch *b = world_acquire(world.lock, 1, 1);
    ck_assert_int_eq(redlock_batch_result(b, 0), REDLOCK_OK);
    world_signal(3, 2, SIGCONT);
    run_until(world_nodes_with("claimd:job:1") == 5);
    redlock_batch_release(b, 0);
    world_flush(world.lock);
    ck_assert_uint_eq(world_nodes_with("claimd:job:1"), 0);
}
END_TEST

START_TEST(A12_late_votes_of_a_failed_key_are_released)
{
    world_start(5, NULL);
    world_open_voting();
    given_foreign("claimd:job:1", 0, 3);
    world_signal(3, 2, SIGSTOP);
    (void)world_acquire(world.lock, 1, 1);
    ck_assert_uint_eq(verdicts(HELD), 1);
    world_signal(3, 2, SIGCONT);
    world_flush(world.lock);
    run_until(world_nodes_with("claimd:job:1") == 3);
}
END_TEST

START_TEST(A13_a_node_known_to_be_down_is_not_waited_for)
{
    world_start(5, NULL);
    given_patience();
    world_open_voting();
    redis_server_kill(&world.servers[0]);
    redis_server_kill(&world.servers[1]);
    run_until(redlock_async_voting(world.lock) == 3);
    struct redlock_batch *b = world_acquire(world.lock, 1, 1);
    ck_assert_int_eq(redlock_batch_result(b, 0), REDLOCK_OK);
    redlock_batch_release(b, 0);
    redis_server_kill(&world.servers[2]);
    run_until(redlock_async_voting(world.lock) == 2);
    (void)world_acquire(world.lock, 2, 1);
    ck_assert_uint_eq(verdicts(NO_QUORUM), 1);
    ck_assert_uint_eq(world_events_of(REDLOCK_EVENT_DOWN), 3);
}
END_TEST

START_TEST(A16_options_out_of_bounds_are_refused)
{
    struct redlock_async *lock = NULL;
    world_start(2, NULL);
    struct redlock_async_options o = world.options;
    o.node_count = 0;
    ck_assert_int_eq(redlock_async_open(&o, &lock, NULL), -EINVAL);
    o = world.options;
    o.ttl_us = 5 * US_PER_S; /* below ten node timeouts */
    ck_assert_int_eq(redlock_async_open(&o, &lock, NULL), -EINVAL);
    o = world.options;
    o.ttl_max_us = o.ttl_us - US_PER_MS;
    ck_assert_int_eq(redlock_async_open(&o, &lock, NULL), -EINVAL);
    o = world.options;
    o.min_validity_us = o.ttl_us;
    ck_assert_int_eq(redlock_async_open(&o, &lock, NULL), -EINVAL);
    world.nodes[1] = world.nodes[0];
    ck_assert_int_eq(redlock_async_open(&world.options, &lock, NULL), -EINVAL);
}
END_TEST

/* Acquires one key with its own terms; `ret_batch` is set when it is decided. */
static int acquire_one(const struct redlock_async_request *terms, struct redlock_batch **ret_batch)
{
    static const struct redlock_async_key key = {.bytes = "claimd:job:1", .len = 12};
    struct redlock_async_request request = *terms;
    request.keys = &key;
    request.count = 1;
    request.done = keep_batch;
    request.ctx = ret_batch;
    *ret_batch = NULL;
    return redlock_async_acquire(world.lock, &request, NULL);
}

START_TEST(A16_a_batch_may_have_a_ttl_of_its_own)
{
    struct redlock_batch *b = NULL;
    world_start(3, NULL);
    world.options.ttl_max_us = 60 * US_PER_S;
    world_open_voting();
    const struct redlock_async_request terms = {.ttl_us = 60 * US_PER_S};
    int64_t before_us = clock_boot_us();
    ck_assert_int_eq(acquire_one(&terms, &b), 0);
    run_until(b != NULL);
    ck_assert_int_eq(redlock_batch_result(b, 0), REDLOCK_OK);
    int64_t drift_us = 602 * US_PER_MS;
    ck_assert_int_ge(redlock_batch_deadline_us(b, 0), before_us + terms.ttl_us - drift_us);
    ck_assert_int_le(redlock_batch_deadline_us(b, 0), clock_boot_us() + terms.ttl_us - drift_us);
    ck_assert_int_gt(strtol(cli(0, "PTTL", "claimd:job:1"), NULL, 10), 50000);
    redlock_batch_release(b, 0);
}
END_TEST

START_TEST(A16_a_ttl_out_of_bounds_is_refused)
{
    static const int64_t ttls_us[] = {-US_PER_S, US_PER_S, /* below ten node timeouts */
                                      20 * US_PER_S + 1,
                                      21 * US_PER_S, /* above the client's maximum */
                                      INT64_MAX};
    struct redlock_batch *b = NULL;
    world_start(1, NULL);
    world.options.ttl_max_us = 20 * US_PER_S;
    world.options.min_validity_us = 9 * US_PER_S;
    world.options.node_timeout_us = 500 * US_PER_MS;
    world_open_voting();
    for (size_t i = 0; i < ARRAY_COUNT(ttls_us); i++) {
        const struct redlock_async_request terms = {.ttl_us = ttls_us[i]};
        ck_assert_int_eq(acquire_one(&terms, &b), -EINVAL);
    }
    /* Its validity would be too short. */
    const struct redlock_async_request too_short = {.ttl_us = 8 * US_PER_S};
    ck_assert_int_eq(acquire_one(&too_short, &b), -EINVAL);
    const struct redlock_async_request no_hold = {.max_hold_us = -1};
    ck_assert_int_eq(acquire_one(&no_hold, &b), -EINVAL);
    ck_assert_int_eq(world_calls(0, "set"), 0);
}
END_TEST

START_TEST(a_batch_out_of_bounds_is_refused)
{
    static const struct redlock_async_key empty = {.bytes = "", .len = 0};
    world_start(1, NULL);
    world_open_voting();
    static const size_t counts[] = {1, 0, REDLOCK_KEYS_MAX + 1};
    for (size_t i = 0; i < ARRAY_COUNT(counts); i++) {
        const struct redlock_async_request request = {.keys = &empty, .count = counts[i]};
        ck_assert_int_eq(redlock_async_acquire(world.lock, &request, NULL), -EINVAL);
    }
}
END_TEST

START_TEST(five_hundred_keys_take_one_round)
{
    world_start(5, NULL);
    world_open_voting();
    struct redlock_batch *b = world_acquire(world.lock, 1, 500);
    ck_assert_uint_eq(verdicts(OK), 500);
    world_release_all(b);
    world_flush(world.lock);
    for (size_t i = 0; i < 5; i++) {
        ck_assert_int_eq(world_calls(i, "set"), 500);
        ck_assert_int_eq(world_calls(i, "evalsha"), 1);
        ck_assert_str_eq(cli(i, COUNT_LOCKS), "0");
    }
}
END_TEST

static void add_tests(TCase *t)
{
    tcase_add_test(t, A1_a_won_key_is_the_token_with_a_ttl_on_every_node);
    tcase_add_test(t, A4_the_deadline_is_t0_plus_ttl_minus_drift);
    tcase_add_test(t, K4_keys_are_binary_safe);
    tcase_add_loop_test(t, A9_any_number_of_nodes_gives_a_verdict, 1, REDLOCK_NODES_MAX + 1);
    tcase_add_test(t, A3_all_nodes_are_asked_at_once);
    tcase_add_test(t, A6_all_nodes_stopped_is_no_quorum_after_one_timeout);
    tcase_add_test(t, A10_commands_that_land_after_the_connection_was_given_up_are_undone);
    tcase_add_test(t, A7_a_quorum_that_comes_too_late_is_expired_and_released);
    tcase_add_test(t, A8_a_minority_that_does_not_answer_does_not_matter);
    tcase_add_test(t, A10_what_was_not_won_is_released_everywhere);
    tcase_add_test(t, A15_each_key_has_a_verdict_of_its_own);
    tcase_add_test(t, A15_refusals_and_errors_that_leave_no_quorum_are_split);
    tcase_add_test(t, A12_late_votes_of_a_won_key_are_kept_and_released);
    tcase_add_test(t, A12_late_votes_of_a_failed_key_are_released);
    tcase_add_test(t, A13_a_node_known_to_be_down_is_not_waited_for);
    tcase_add_test(t, A16_options_out_of_bounds_are_refused);
    tcase_add_test(t, A16_a_batch_may_have_a_ttl_of_its_own);
    tcase_add_test(t, A16_a_ttl_out_of_bounds_is_refused);
    tcase_add_test(t, a_batch_out_of_bounds_is_refused);
    tcase_add_test(t, five_hundred_keys_take_one_round);
}

int main(void)
{
    return world_main("redlock_async_acquire", add_tests);
}
