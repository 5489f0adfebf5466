/* SPDX-License-Identifier: Apache-2.0 */
#include "test_redlock_client_world.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>

static struct redlock_owner *given_owner(void)
{
    struct redlock_owner *owner = NULL;
    ck_assert_int_eq(redlock_owner_new(world.client, &owner), REDLOCK_OK);
    return owner;
}

static struct redlock_lock *given_owned(struct redlock_owner *owner, const char *key)
{
    struct redlock_lock *lock = NULL;
    const struct redlock_request request = {.key = key, .owner = owner};
    ck_assert_int_eq(redlock_acquire(world.client, &request, &lock, NULL), REDLOCK_OK);
    return lock;
}

START_TEST(reentrancy_n_locks_need_n_unlocks_and_cost_no_round_trip)
{
    struct redlock_lock *locks[3];
    given_client(3);
    struct redlock_owner *owner = given_owner();
    for (size_t i = 0; i < 3; i++) {
        locks[i] = given_owned(owner, "job:1");
        ck_assert_ptr_eq(locks[i], locks[0]);
    }
    for (size_t i = 0; i < 3; i++) {
        ck_assert_int_eq(calls_of(i, "set"), 1);
    }
    ck_assert_int_eq(redlock_unlock(locks[0], NULL), REDLOCK_OK);
    ck_assert_int_eq(redlock_unlock(locks[0], NULL), REDLOCK_OK);
    ck_assert_uint_eq(nodes_with("job:1"), 3);
    ck_assert_int_eq(redlock_state(locks[0]), REDLOCK_STATE_HELD);
    ck_assert_int_eq(redlock_unlock(locks[0], NULL), REDLOCK_OK);
    until(nodes_with("job:1") == 0);
    redlock_owner_free(owner);
}
END_TEST

START_TEST(fence_a_call_that_enters_a_lock_without_one_gets_one)
{
    struct redlock_lock *lock = NULL;
    struct redlock_report report = {0};
    given_client(3);
    struct redlock_owner *owner = given_owner();
    struct redlock_lock *outer = given_owned(owner, "job:1");
    const struct redlock_request request = {.key = "job:1", .owner = owner, .fence = true};
    ck_assert_uint_eq(redlock_fence(outer), 0);
    ck_assert_int_eq(redlock_acquire(world.client, &request, &lock, &report), REDLOCK_OK);
    ck_assert_ptr_eq(lock, outer);
    ck_assert_uint_eq(redlock_fence(lock), 1);
    struct redlock_lock *third = NULL;
    ck_assert_int_eq(redlock_acquire(world.client, &request, &third, NULL), REDLOCK_OK);
    ck_assert_uint_eq(redlock_fence(third), 1); /* the lock has a fence */
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(redlock_unlock(outer, NULL), REDLOCK_OK);
    }
    redlock_owner_free(owner);
}
END_TEST

START_TEST(fence_a_call_that_gets_none_has_not_entered)
{
    struct redlock_lock *lock = NULL;
    given_client(3);
    struct redlock_owner *owner = given_owner();
    struct redlock_lock *outer = given_owned(owner, "job:1");
    const struct redlock_request request = {.key = "job:1", .owner = owner, .fence = true};
    signal_nodes(0, 2, SIGSTOP);
    ck_assert_int_eq(redlock_acquire(world.client, &request, &lock, NULL), REDLOCK_NO_QUORUM);
    ck_assert_ptr_null(lock);
    signal_nodes(0, 2, SIGCONT);
    ck_assert_int_eq(redlock_unlock(outer, NULL), REDLOCK_OK); /* the only hold */
    until(nodes_with("job:1") == 0);
    redlock_owner_free(owner);
}
END_TEST

START_TEST(reentrancy_one_unlock_too_many_is_refused_and_harms_nobody)
{
    given_client(3);
    struct redlock_owner *owner = given_owner();
    struct redlock_lock *lock = given_owned(owner, "job:1");
    ck_assert_int_eq(redlock_unlock(lock, NULL), REDLOCK_OK);
    ck_assert_int_eq(redlock_unlock(lock, NULL), REDLOCK_INVALID);
    struct redlock_lock *others = given_lock("job:1");
    ck_assert_int_eq(redlock_unlock(lock, NULL), REDLOCK_INVALID);
    ck_assert_int_eq(redlock_state(others), REDLOCK_STATE_HELD);
    ck_assert_uint_ge(nodes_with("job:1"), 2);
    ck_assert_int_eq(redlock_unlock(others, NULL), REDLOCK_OK);
    redlock_owner_free(owner);
}
END_TEST

START_TEST(W6_a_failed_unlock_retires_the_token_so_that_nothing_renews_it)
{
    given_client(3);
    struct redlock_owner *owner = given_owner();
    struct redlock_lock *lock = given_owned(owner, "job:1");
    struct redlock_report released = {0};
    signal_nodes(0, 3, SIGSTOP);
    ck_assert_int_eq(redlock_unlock(lock, &released), REDLOCK_OK);
    ck_assert_uint_eq(released.deleted, 0);
    ck_assert_uint_eq(released.unknown, 3);
    signal_nodes(0, 3, SIGCONT);
    until(nodes_with("job:1") == 0);
    struct redlock_stats stats = {0};
    redlock_get_stats(world.client, &stats);
    ck_assert_uint_eq(stats.extended, 0);
    ck_assert_uint_eq(stats.held, 0);
    redlock_owner_free(owner);
}
END_TEST

START_TEST(reentrancy_another_owner_of_the_same_client_is_refused)
{
    given_client(3);
    struct redlock_owner *owner = given_owner();
    struct redlock_owner *other = given_owner();
    struct redlock_lock *lock = given_owned(owner, "job:1");
    struct redlock_lock *none = NULL;
    const struct redlock_request request = {.key = "job:1", .owner = other};
    ck_assert_int_eq(redlock_acquire(world.client, &request, &none, NULL), REDLOCK_HELD);
    ck_assert_int_eq(redlock_unlock(lock, NULL), REDLOCK_OK);
    redlock_owner_free(owner);
    redlock_owner_free(other);
}
END_TEST

START_TEST(reentrancy_of_several_keys_covers_each_of_them)
{
    static const char *const keys[] = {"b", "a", "c", "a"};
    static const char *const more[] = {"c", "d"};
    struct redlock_lock *all = NULL;
    struct redlock_lock *none = NULL;
    struct redlock_report report = {0};
    given_client(3);
    struct redlock_owner *owner = given_owner();
    const struct redlock_request request = {.owner = owner};
    ck_assert_int_eq(acquire_all(world.client, &request, keys, 4, &all, NULL), REDLOCK_OK);
    ck_assert_ptr_eq(given_owned(owner, "b"), all);
    ck_assert_int_eq(acquire_all(world.client, &request, keys, 2, &none, NULL), REDLOCK_OK);
    ck_assert_ptr_eq(none, all);
    ck_assert_int_eq(acquire_all(world.client, &request, more, 2, &none, &report), REDLOCK_INVALID);
    ck_assert_msg(strstr(report.message, "some of the keys") != NULL, "%s", report.message);
    for (size_t i = 0; i < 3; i++) {
        ck_assert_int_eq(redlock_unlock(all, NULL), REDLOCK_OK);
    }
    until(nodes_with("a") + nodes_with("b") + nodes_with("c") == 0);
    redlock_owner_free(owner);
}
END_TEST

START_TEST(E8_an_owner_whose_lock_is_lost_does_not_get_it_again_before_its_unlock)
{
    given_client(3);
    struct redlock_owner *owner = given_owner();
    struct redlock_lock *lock = given_owned(owner, "job:1");
    struct redlock_lock *none = NULL;
    const struct redlock_request request = {.key = "job:1", .owner = owner};
    signal_nodes(0, 3, SIGSTOP);
    until(redlock_state(lock) == REDLOCK_STATE_LOST);
    signal_nodes(0, 3, SIGCONT);
    ck_assert_int_eq(redlock_acquire(world.client, &request, &none, NULL), REDLOCK_LOST);
    ck_assert_int_eq(redlock_unlock(lock, NULL), REDLOCK_OK);
    until(redlock_acquire(world.client, &request, &lock, NULL) == REDLOCK_OK);
    ck_assert_int_eq(redlock_unlock(lock, NULL), REDLOCK_OK);
    redlock_owner_free(owner);
}
END_TEST

START_TEST(reentrancy_counts_keys_that_are_asked_for_with_many_others)
{
    static const char *const keys[] = {"a", "b", "c"};
    struct redlock_lock *locks[3];
    enum redlock_result results[3];
    given_client(3);
    struct redlock_owner *owner = given_owner();
    struct redlock_lock *lock = given_owned(owner, "b");
    const struct redlock_request request = {.owner = owner};
    ck_assert_int_eq(acquire_each(world.client, &request, keys, 3, locks, results), REDLOCK_OK);
    ck_assert_ptr_eq(locks[1], lock);
    ck_assert_ptr_eq(given_owned(owner, "c"), locks[2]);
    for (size_t i = 0; i < 3; i++) {
        ck_assert_int_eq(redlock_unlock(locks[i], NULL), REDLOCK_OK);
    }
    until(nodes_with("a") == 0);
    ck_assert_uint_ge(nodes_with("b"), 2);
    ck_assert_uint_ge(nodes_with("c"), 2);
    ck_assert_int_eq(redlock_unlock(lock, NULL), REDLOCK_OK);
    ck_assert_int_eq(redlock_unlock(locks[2], NULL), REDLOCK_OK);
    ck_assert_int_eq(redlock_unlock(locks[0], NULL), REDLOCK_INVALID);
    until(nodes_with("b") + nodes_with("c") == 0);
    redlock_owner_free(owner);
}
END_TEST

START_TEST(reentrancy_an_owner_may_be_freed_as_soon_as_its_last_unlock_has_returned)
{
    given_client(3);
    for (int i = 0; i < 200; i++) {
        struct redlock_owner *owner = given_owner();
        struct redlock_lock *lock = given_owned(owner, "job:1");
        ck_assert_int_eq(redlock_unlock(lock, NULL), REDLOCK_OK);
        redlock_owner_free(owner);
    }
    until(nodes_with("job:1") == 0);
}
END_TEST

struct waiter {
    struct redlock_owner *owner;
    struct redlock_lock *lock;
    enum redlock_result result;
};

static void *wait_for_it(void *arg)
{
    struct waiter *w = arg;
    const struct redlock_request request = {.key = "job:1", .wait_ms = -1, .owner = w->owner};
    w->result = redlock_acquire(world.client, &request, &w->lock, NULL);
    return NULL;
}

START_TEST(reentrancy_an_owner_shared_by_threads_that_wait_is_given_the_lock_in_all_of_them)
{
    struct waiter waiters[4];
    pthread_t threads[4];
    given_client(3);
    struct redlock_owner *owner = given_owner();
    struct redlock_lock *lock = given_lock("job:1");
    for (size_t i = 0; i < 4; i++) {
        waiters[i] = (struct waiter){.owner = owner};
        ck_assert_int_eq(pthread_create(&threads[i], NULL, wait_for_it, &waiters[i]), 0);
    }
    until(waiting_in(world.client) == 4);
    ck_assert_int_eq(redlock_unlock(lock, NULL), REDLOCK_OK);
    for (size_t i = 0; i < 4; i++) {
        ck_assert_int_eq(pthread_join(threads[i], NULL), 0);
        ck_assert_int_eq(waiters[i].result, REDLOCK_OK);
        ck_assert_ptr_eq(waiters[i].lock, waiters[0].lock);
    }
    for (size_t i = 0; i < 3; i++) {
        ck_assert_int_eq(redlock_unlock(waiters[i].lock, NULL), REDLOCK_OK);
    }
    ck_assert_uint_ge(nodes_with("job:1"), 2);
    ck_assert_int_eq(redlock_unlock(waiters[3].lock, NULL), REDLOCK_OK);
    until(nodes_with("job:1") == 0);
    redlock_owner_free(owner);
}
END_TEST

static void add_tests(TCase *t)
{
    tcase_add_test(t, reentrancy_n_locks_need_n_unlocks_and_cost_no_round_trip);
    tcase_add_test(t, fence_a_call_that_enters_a_lock_without_one_gets_one);
    tcase_add_test(t, fence_a_call_that_gets_none_has_not_entered);
    tcase_add_test(t, reentrancy_one_unlock_too_many_is_refused_and_harms_nobody);
    tcase_add_test(t, W6_a_failed_unlock_retires_the_token_so_that_nothing_renews_it);
    tcase_add_test(t, reentrancy_another_owner_of_the_same_client_is_refused);
    tcase_add_test(t, reentrancy_of_several_keys_covers_each_of_them);
    tcase_add_test(t, E8_an_owner_whose_lock_is_lost_does_not_get_it_again_before_its_unlock);
    tcase_add_test(t, reentrancy_counts_keys_that_are_asked_for_with_many_others);
    tcase_add_test(t, reentrancy_an_owner_may_be_freed_as_soon_as_its_last_unlock_has_returned);
    tcase_add_test(
        t, reentrancy_an_owner_shared_by_threads_that_wait_is_given_the_lock_in_all_of_them);
}

int main(void)
{
    return client_world_main("redlock_client_owner", add_tests);
}
