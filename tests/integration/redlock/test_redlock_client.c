/* SPDX-License-Identifier: Apache-2.0 */
#include "test_redlock_client_world.h"

#include <signal.h>
#include <stdio.h>

START_TEST(A1_a_won_lock_is_on_every_node_until_it_is_unlocked)
{
    given_client(5);
    struct redlock_lock *lock = given_lock("job:1");
    until(nodes_with("job:1") == 5);
    size_t len = 0;
    ck_assert_str_eq(redlock_lock_key(lock, &len), "job:1");
    ck_assert_uint_eq(len, 5);
    ck_assert_int_eq(redlock_unlock(lock, NULL), REDLOCK_OK);
    until(nodes_with("job:1") == 0);
}
END_TEST

START_TEST(A15_a_key_that_another_client_holds_is_refused_with_a_report)
{
    given_client(5);
    struct redlock_client *other = client_of_world();
    struct redlock_lock *lock = given_lock("job:1");
    struct redlock_lock *none = lock;
    struct redlock_report report = {0};
    const struct redlock_request request = {.key = "job:1"};
    ck_assert_int_eq(redlock_acquire(other, &request, &none, &report), REDLOCK_HELD);
    ck_assert_ptr_null(none);
    ck_assert_int_eq(report.result, REDLOCK_HELD);
    ck_assert_int_eq(report.tries, 1);
    ck_assert_uint_eq(report.node_count, 5);
    size_t refused = 0;
    for (size_t i = 0; i < 5; i++) {
        refused += report.votes[i] == REDLOCK_VOTE_REFUSED;
    }
    ck_assert_uint_ge(refused, 3);
    ck_assert_int_gt(report.holder_ms, 1000);
    ck_assert_int_le(report.holder_ms, 3000);
    ck_assert_ptr_nonnull(strstr(report.message, "held by another client"));
    ck_assert_int_eq(redlock_unlock(lock, NULL), REDLOCK_OK);
    redlock_close(other);
}
END_TEST

START_TEST(A7_by_default_half_of_the_requests_own_ttl_must_be_left)
{
    given_nodes(3, NULL);
    world.options.ttl_ms = 60000;
    world.client = client_of_world();
    struct redlock_lock *lock = NULL;
    const struct redlock_request request = {.key = "job:1", .ttl_ms = 3000};
    ck_assert_int_eq(redlock_acquire(world.client, &request, &lock, NULL), REDLOCK_OK);
    ck_assert_int_le(redlock_left_ms(lock), 3000 - 32);
    ck_assert_int_eq(redlock_unlock(lock, NULL), REDLOCK_OK);
}
END_TEST

START_TEST(A16_a_try_may_have_the_longest_ttl)
{
    given_nodes(3, NULL);
    world.options.ttl_ms = REDLOCK_TTL_MAX_MS;
    world.client = client_of_world();
    struct redlock_client *other = client_of_world();
    struct redlock_lock *none = NULL;
    struct redlock_lock *lock = given_lock("job:1");
    ck_assert_int_eq(redlock_try(other, "job:1", &none), REDLOCK_HELD);
    ck_assert_int_eq(redlock_unlock(lock, NULL), REDLOCK_OK);
    until(nodes_with("job:1") == 0);
    redlock_close(other);
}
END_TEST

START_TEST(E7_validity_counts_down_from_t_minus_d_and_asks_nobody)
{
    given_client(5);
    struct redlock_lock *lock = given_lock("job:1");
    signal_nodes(0, 5, SIGSTOP);
    int64_t first_ms = redlock_left_ms(lock);
    ck_assert_int_le(first_ms, 3000 - 32); /* D = 1 % + 2 ms */
    ck_assert_int_gt(first_ms, 0);
    ck_assert_int_eq(redlock_state(lock), REDLOCK_STATE_HELD);
    ck_assert(is_held(lock));
    until(redlock_left_ms(lock) < first_ms);
    signal_nodes(0, 5, SIGCONT);
    ck_assert_int_eq(redlock_unlock(lock, NULL), REDLOCK_OK);
}
END_TEST

START_TEST(W1_a_lock_is_kept_beyond_its_ttl)
{
    given_client(3);
    struct redlock_lock *lock = given_lock("job:1");
    int64_t end_us = clock_boot_us() + 4 * US_PER_S; /* T is 3 s */
    until(clock_boot_us() >= end_us);
    ck_assert_int_eq(redlock_state(lock), REDLOCK_STATE_HELD);
    ck_assert_uint_eq(nodes_with("job:1"), 3);
    ck_assert_int_gt(redlock_left_ms(lock), 0);
    ck_assert_int_eq(redlock_unlock(lock, NULL), REDLOCK_OK);
}
END_TEST

START_TEST(E1_extend_gives_a_full_ttl_from_now_to_a_lock_without_a_watchdog)
{
    struct redlock_lock *lock = NULL;
    const struct redlock_request request = {.key = "job:1", .manual = true};
    given_client(3);
    ck_assert_int_eq(redlock_acquire(world.client, &request, &lock, NULL), REDLOCK_OK);
    until(redlock_left_ms(lock) < 1500); /* half of T: it was not extended */
    ck_assert_int_eq(redlock_extend(lock), REDLOCK_OK);
    ck_assert_int_gt(redlock_left_ms(lock), 1500);
    until(redlock_state(lock) == REDLOCK_STATE_LOST);
    ck_assert_int_eq(redlock_extend(lock), REDLOCK_LOST);
    ck_assert_int_eq(redlock_unlock(lock, NULL), REDLOCK_OK);
}
END_TEST

START_TEST(E5_an_extension_that_nobody_confirms_leaves_the_old_deadline)
{
    given_client(3);
    struct redlock_lock *lock = given_lock("job:1");
    signal_nodes(0, 3, SIGSTOP);
    int64_t before_us = clock_boot_us();
    int64_t before_ms = redlock_left_ms(lock);
    ck_assert_int_eq(redlock_extend(lock), REDLOCK_NO_QUORUM);
    ck_assert_int_lt(clock_boot_us() - before_us, 5 * US_PER_S); /* τ is 300 ms */
    ck_assert_int_lt(redlock_left_ms(lock), before_ms);
    ck_assert_int_gt(redlock_left_ms(lock), 0);
    signal_nodes(0, 3, SIGCONT);
    ck_assert_int_eq(redlock_unlock(lock, NULL), REDLOCK_OK);
}
END_TEST

START_TEST(E9_a_longest_hold_ends_the_lock_although_its_holder_lives)
{
    struct redlock_lock *lock = NULL;
    const struct redlock_request request = {.key = "job:1", .max_hold_ms = 500};
    given_client(3);
    ck_assert_int_eq(redlock_acquire(world.client, &request, &lock, NULL), REDLOCK_OK);
    ck_assert_int_le(redlock_left_ms(lock), 500); /* the ttl is longer */
    until(redlock_state(lock) == REDLOCK_STATE_LOST);
    until(nodes_with("job:1") == 0);
    ck_assert_int_eq(redlock_unlock(lock, NULL), REDLOCK_OK);
}
END_TEST

START_TEST(R6_unlocking_can_tell_how_it_went_on_each_node)
{
    struct redlock_report released = {0};
    given_client(5);
    struct redlock_lock *lock = given_lock("job:1");
    until(nodes_with("job:1") == 5);
    (void)cli(0, "DEL", "job:1");
    (void)cli(1, "SET", "job:1", "somebody");
    ck_assert_int_eq(redlock_unlock(lock, &released), REDLOCK_OK);
    ck_assert_uint_eq(released.deleted, 3);
    ck_assert_uint_eq(released.missing, 1);
    ck_assert_uint_eq(released.stolen, 1);
    ck_assert_uint_eq(released.unknown, 0);
    ck_assert_str_eq(cli(1, "GET", "job:1"), "somebody");
}
END_TEST

START_TEST(R5_unlocking_waits_for_no_node)
{
    given_client(3);
    struct redlock_lock *lock = given_lock("job:1");
    signal_nodes(0, 3, SIGSTOP);
    /* Returns although no node can answer. */
    ck_assert_int_eq(redlock_unlock(lock, NULL), REDLOCK_OK);
    signal_nodes(0, 3, SIGCONT);
    until(nodes_with("job:1") == 0);
}
END_TEST

START_TEST(A6_a_try_without_its_nodes_ends_after_one_node_timeout)
{
    struct redlock_lock *lock = NULL;
    struct redlock_report report = {0};
    const struct redlock_request request = {.key = "job:1"};
    given_nodes(3, NULL);
    world.client = client_of_world();
    signal_nodes(0, 3, SIGSTOP);
    int64_t start_us = clock_boot_us();
    ck_assert_int_eq(redlock_acquire(world.client, &request, &lock, &report), REDLOCK_NO_QUORUM);
    ck_assert_int_lt(clock_boot_us() - start_us, 5 * US_PER_S);
    ck_assert_ptr_null(lock);
    ck_assert_msg(strstr(report.message, world.servers[0].path) != NULL, "%s", report.message);
    bool is_whole = strstr(report.message, world.servers[2].path) != NULL;
    size_t len = strlen(report.message); /* three long paths may not fit: whole words, then this */
    ck_assert_msg(is_whole || strcmp(report.message + len - 4, " ...") == 0, "%s", report.message);
    signal_nodes(0, 3, SIGCONT);
}
END_TEST

START_TEST(A15_each_of_many_keys_has_a_result_and_a_lock_of_its_own)
{
    static const char *const keys[] = {"a", "b", "", "c", "b"};
    enum redlock_result results[5];
    struct redlock_lock *locks[5];
    int invalid = 0;
    given_client(3);
    struct redlock_client *other = client_of_world();
    struct redlock_lock *taken = NULL;
    const struct redlock_request request = {0};
    ck_assert_int_eq(redlock_try(other, "c", &taken), REDLOCK_OK);
    ck_assert_int_ne(acquire_each(world.client, &request, keys, 5, locks, results), REDLOCK_OK);
    ck_assert_int_eq(results[0], REDLOCK_OK);
    ck_assert_int_eq(results[2], REDLOCK_INVALID);
    ck_assert_int_eq(results[3], REDLOCK_HELD);
    invalid = (results[1] == REDLOCK_INVALID) + (results[4] == REDLOCK_INVALID);
    ck_assert_int_eq(invalid, 1); /* the same key was named twice */
    for (size_t i = 0; i < 5; i++) {
        ck_assert_int_eq(locks[i] != NULL, results[i] == REDLOCK_OK);
        ck_assert(locks[i] == NULL || strcmp(redlock_lock_key(locks[i], NULL), keys[i]) == 0);
        ck_assert_int_eq(redlock_unlock(locks[i], NULL), REDLOCK_OK);
    }
    until(nodes_with("a") + nodes_with("b") == 0);
    ck_assert_int_eq(redlock_unlock(taken, NULL), REDLOCK_OK);
    redlock_close(other);
}
END_TEST

START_TEST(many_keys_take_one_command_per_node_and_key)
{
    static char names[REDLOCK_KEYS_MAX][16];
    const char *keys[REDLOCK_KEYS_MAX];
    struct redlock_lock *locks[REDLOCK_KEYS_MAX];
    enum redlock_result results[REDLOCK_KEYS_MAX];
    const struct redlock_request request = {0};
    given_client(3);
    for (size_t i = 0; i < REDLOCK_KEYS_MAX; i++) {
        (void)snprintf(names[i], sizeof names[i], "many:%zu", i);
        keys[i] = names[i];
    }
    ck_assert_int_eq(acquire_each(world.client, &request, keys, REDLOCK_KEYS_MAX, locks, results),
                     REDLOCK_OK);
    for (size_t i = 0; i < REDLOCK_KEYS_MAX; i++) {
        ck_assert_int_eq(redlock_unlock(locks[i], NULL), REDLOCK_OK);
    }
    for (size_t i = 0; i < 3; i++) {
        until(strcmp(cli(i, COUNT_LOCKS), "0") == 0);
        ck_assert_int_eq(calls_of(i, "set"), REDLOCK_KEYS_MAX);
    }
    ck_assert_int_eq(acquire_each(world.client, &request, keys, 0, locks, results),
                     REDLOCK_INVALID);
    ck_assert_int_eq(
        acquire_each(world.client, &request, keys, REDLOCK_KEYS_MAX + 1, locks, results),
        REDLOCK_INVALID);
}
END_TEST

START_TEST(all_keys_or_none_under_one_handle)
{
    static const char *const keys[] = {"b", "a", "b"};
    struct redlock_lock *lock = NULL;
    struct redlock_report released = {0};
    const struct redlock_request request = {0};
    given_nodes(3, NULL);
    world.client = client_of_world();
    struct redlock_lock *taken = given_lock("b");
    ck_assert_int_eq(acquire_all(world.client, &request, keys, 3, &lock, NULL), REDLOCK_HELD);
    ck_assert_ptr_null(lock);
    until(nodes_with("a") == 0);
    ck_assert_int_eq(redlock_unlock(taken, &released), REDLOCK_OK);
    ck_assert_int_eq(acquire_all(world.client, &request, keys, 3, &lock, NULL), REDLOCK_OK);
    ck_assert_str_eq(redlock_lock_key(lock, NULL), "a"); /* sorted */
    until(nodes_with("a") + nodes_with("b") == 6);
    ck_assert_int_eq(redlock_unlock(lock, &released), REDLOCK_OK);
    ck_assert_uint_eq(released.deleted, 6); /* duplicates were dropped */
}
END_TEST

START_TEST(a_fence_rises_with_every_grant)
{
    const struct redlock_request request = {.key = "job:1", .fence = true};
    uint64_t last = 0;
    given_client(3);
    for (int i = 0; i < 5; i++) {
        struct redlock_lock *lock = NULL;
        ck_assert_int_eq(redlock_acquire(world.client, &request, &lock, NULL), REDLOCK_OK);
        ck_assert_uint_gt(redlock_fence(lock), last);
        last = redlock_fence(lock);
        struct redlock_report released = {0};
        ck_assert_int_eq(redlock_unlock(lock, &released), REDLOCK_OK);
    }
    struct redlock_lock *lock = given_lock("job:1");
    ck_assert_uint_eq(redlock_fence(lock), 0); /* not requested */
    ck_assert_int_eq(redlock_unlock(lock, NULL), REDLOCK_OK);
}
END_TEST

START_TEST(K4_keys_are_exact_bytes)
{
    static const char bytes[] = "a\0%s\r\n b";
    struct redlock_lock *lock = NULL;
    struct redlock_lock *none = NULL;
    const struct redlock_key key = {.bytes = bytes, .len = sizeof bytes - 1};
    const struct redlock_request request = {.keys = &key, .count = 1};
    size_t len = 0;
    given_client(1);
    ck_assert_int_eq(redlock_acquire(world.client, &request, &lock, NULL), REDLOCK_OK);
    ck_assert_mem_eq(redlock_lock_key(lock, &len), bytes, sizeof bytes - 1);
    ck_assert_uint_eq(len, sizeof bytes - 1);
    ck_assert_int_eq(redlock_acquire(world.client, &request, &none, NULL), REDLOCK_HELD);
    ck_assert_int_eq(redlock_unlock(lock, NULL), REDLOCK_OK);
    until(strcmp(cli(0, COUNT_LOCKS), "0") == 0);
}
END_TEST

START_TEST(fence_numbers_of_keys_under_one_lock_go_on_when_one_is_locked_alone)
{
    static const char *const keys[] = {"b", "a"};
    const struct redlock_request together = {.fence = true};
    uint64_t last = 0;
    given_client(3);
    for (int i = 0; i < 3; i++) {
        struct redlock_lock *lock = NULL;
        struct redlock_report released = {0};
        ck_assert_int_eq(acquire_all(world.client, &together, keys, 2, &lock, NULL), REDLOCK_OK);
        ck_assert_uint_gt(redlock_fence(lock), last);
        last = redlock_fence(lock);
        ck_assert_int_eq(redlock_unlock(lock, &released), REDLOCK_OK);
    }
    for (size_t i = 0; i < 2; i++) {
        struct redlock_lock *lock = NULL;
        const struct redlock_request alone = {.key = keys[i], .fence = true};
        ck_assert_int_eq(redlock_acquire(world.client, &alone, &lock, NULL), REDLOCK_OK);
        ck_assert_uint_gt(redlock_fence(lock), last);
        ck_assert_int_eq(redlock_unlock(lock, NULL), REDLOCK_OK);
    }
}
END_TEST

static void add_tests(TCase *t)
{
    tcase_add_test(t, fence_numbers_of_keys_under_one_lock_go_on_when_one_is_locked_alone);
    tcase_add_test(t, A1_a_won_lock_is_on_every_node_until_it_is_unlocked);
    tcase_add_test(t, A15_a_key_that_another_client_holds_is_refused_with_a_report);
    tcase_add_test(t, A7_by_default_half_of_the_requests_own_ttl_must_be_left);
    tcase_add_test(t, A16_a_try_may_have_the_longest_ttl);
    tcase_add_test(t, E7_validity_counts_down_from_t_minus_d_and_asks_nobody);
    tcase_add_test(t, W1_a_lock_is_kept_beyond_its_ttl);
    tcase_add_test(t, E1_extend_gives_a_full_ttl_from_now_to_a_lock_without_a_watchdog);
    tcase_add_test(t, E5_an_extension_that_nobody_confirms_leaves_the_old_deadline);
    tcase_add_test(t, E9_a_longest_hold_ends_the_lock_although_its_holder_lives);
    tcase_add_test(t, R6_unlocking_can_tell_how_it_went_on_each_node);
    tcase_add_test(t, R5_unlocking_waits_for_no_node);
    tcase_add_test(t, A6_a_try_without_its_nodes_ends_after_one_node_timeout);
    tcase_add_test(t, A15_each_of_many_keys_has_a_result_and_a_lock_of_its_own);
    tcase_add_test(t, many_keys_take_one_command_per_node_and_key);
    tcase_add_test(t, all_keys_or_none_under_one_handle);
    tcase_add_test(t, a_fence_rises_with_every_grant);
    tcase_add_test(t, K4_keys_are_exact_bytes);
}

int main(void)
{
    return client_world_main("redlock_client", add_tests);
}
