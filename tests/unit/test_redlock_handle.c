/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "redlock/client/client.h"
#include "support/suite.h"

#include <check.h>

START_TEST(E8_a_getter_that_saw_the_deadline_pass_ends_the_lease_whatever_is_confirmed_then)
{
    struct redlock_client client = {.pid = getpid(), .mutex = PTHREAD_MUTEX_INITIALIZER};
    struct redlock_lock lock = {.client = &client, .fd = -1};
    atomic_store(&lock.deadline_us, clock_boot_us() - 1);
    ck_assert_int_eq(redlock_state(&lock), REDLOCK_STATE_LOST);
    ck_assert_int_eq(atomic_load(&lock.deadline_us), 0);
    lock_deadline_changed(&lock); /* a round that was confirmed in time, reported a moment later */
    ck_assert_int_eq(atomic_load(&lock.deadline_us), 0);
    ck_assert_int_eq(lock.state, REDLOCK_STATE_LOST);
    ck_assert_int_eq(redlock_left_ms(&lock), 0);
}
END_TEST

START_TEST(E7_what_is_left_is_rounded_down_and_a_suspect_lock_says_so)
{
    struct redlock_client client = {.pid = getpid()};
    struct redlock_lock lock = {.client = &client, .fd = -1};
    atomic_store(&lock.deadline_us, clock_boot_us() + 900 * US_PER_S + 999);
    ck_assert_int_le(redlock_left_ms(&lock), 900000);
    ck_assert_int_gt(redlock_left_ms(&lock), 890000);
    ck_assert_int_eq(redlock_state(&lock), REDLOCK_STATE_HELD);
    atomic_store(&lock.is_suspect, true);
    ck_assert_int_eq(redlock_state(&lock), REDLOCK_STATE_SUSPECT);
}
END_TEST

START_TEST(F1_getters_of_another_process_client_say_lost)
{
    struct redlock_client client = {.pid = getpid() + 1};
    struct redlock_lock lock = {.client = &client, .fd = -1};
    atomic_store(&lock.deadline_us, clock_boot_us() + US_PER_S);
    ck_assert_int_eq(redlock_state(&lock), REDLOCK_STATE_LOST);
    ck_assert_int_eq(redlock_left_ms(&lock), 0);
    ck_assert_int_eq(redlock_fd(&lock), -1);
}
END_TEST

START_TEST(keys_that_travel_together_are_sorted_by_their_bytes_without_doubles)
{
    struct redlock_async_key keys[] = {{.bytes = "b", .len = 1},
                                       {.bytes = "ab", .len = 2},
                                       {.bytes = "a", .len = 1},
                                       {.bytes = "a\0", .len = 2},
                                       {.bytes = "b", .len = 1}};
    struct redlock_async_key key = {0};
    struct key_set set = {0};
    size_t at = 0;
    size_t count = keys_sort(keys, ARRAY_COUNT(keys));
    ck_assert_uint_eq(count, 4);
    ck_assert(key_set_fill(&set, keys, count));
    for (size_t i = 0; i < count; i++) {
        ck_assert(key_set_next(&set, &at, &key));
        ck_assert_int_eq(keys_compare(&key, &keys[i]), 0);
        ck_assert(i == 0 || keys_compare(&keys[i - 1], &key) < 0);
    }
    ck_assert(!key_set_next(&set, &at, &key));
    key_set_release(&set);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("redlock_handle");
    TCase *t = tcase_create("redlock_handle");
    tcase_add_test(
        t, E8_a_getter_that_saw_the_deadline_pass_ends_the_lease_whatever_is_confirmed_then);
    tcase_add_test(t, E7_what_is_left_is_rounded_down_and_a_suspect_lock_says_so);
    tcase_add_test(t, F1_getters_of_another_process_client_say_lost);
    tcase_add_test(t, keys_that_travel_together_are_sorted_by_their_bytes_without_doubles);
    suite_add_tcase(s, t);
    return suite_run(s);
}
