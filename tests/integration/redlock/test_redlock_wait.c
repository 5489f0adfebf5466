/* SPDX-License-Identifier: Apache-2.0 */
#include "test_redlock_waiters.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>

#define WAITERS 10
#define JOB "claimd:job:1"

static struct waiter seen[WAITERS];
static uint64_t times_held(void)
{
    return redlock_async_counters(world.lock)->results[REDLOCK_HELD];
}

START_TEST(A14_without_a_deadline_it_tries_as_often_as_was_asked_for)
{
    static const char *const others[] = {"one", "two", "three"}; /* none has a quorum */
    world_start(3, NULL);
    world_open_voting();
    for (size_t i = 0; i < 3; i++) {
        ck_assert_str_eq(cli(i, "SET", JOB, others[i]), "OK");
    }
    ck_assert_int_eq(waiter_start(world.lock, &seen[0], 1, 1, 0, _i), 0);
    run_until(seen[0].order != 0);
    ck_assert_int_eq(seen[0].tries, 1 + _i);
}
END_TEST

START_TEST(A14_a_lock_that_is_free_is_won_at_the_first_try)
{
    world_start(3, NULL);
    world_open_voting();
    ck_assert_int_eq(waiter_start(world.lock, &seen[0], 1, 2, (int64_t)_i * US_PER_S, 3), 0);
    run_until(seen[0].order != 0);
    ck_assert_int_eq(seen[0].result, REDLOCK_OK);
    ck_assert_int_eq(seen[0].tries, 1);
    run_until(world_nodes_with("claimd:job:2") == 3);
    world_release_all(seen[0].batch);
    world_flush(world.lock);
    ck_assert_uint_eq(world_nodes_with(JOB), 0);
}
END_TEST

START_TEST(A14_who_waits_wins_after_the_holder_has_gone)
{
    world_start(3, NULL);
    world_open_voting();
    struct redlock_async *other = world_other_client();
    struct redlock_batch *held = world_acquire(other, 1, 1);
    ck_assert_int_eq(waiter_start(world.lock, &seen[0], 1, 1, FOR_EVER, 0), 0);
    run_until(times_held() > 0);
    ck_assert_int_eq(seen[0].order, 0);
    world_release_all(held);
    run_until(seen[0].order != 0);
    ck_assert_int_eq(seen[0].result, REDLOCK_OK);
    ck_assert_int_ge(seen[0].tries, 2);
    world_release_all(seen[0].batch);
    redlock_async_close(other, NULL, NULL);
}
END_TEST

START_TEST(A14_past_its_deadline_a_waiter_hears_the_last_result)
{
    world_start(3, NULL);
    world_open_voting();
    struct redlock_async *other = world_other_client();
    struct redlock_batch *held = world_acquire(other, 1, 1);
    int64_t end_us = clock_boot_us() + 300 * US_PER_MS;
    for (size_t i = 0; i < 3; i++) { /* also those behind the first one */
        ck_assert_int_eq(waiter_start(world.lock, &seen[i], 1, 1, 300 * US_PER_MS, 0), 0);
    }
    run_until(waiters_told(seen, 3) == 3);
    for (size_t i = 0; i < 3; i++) {
        ck_assert_int_eq(seen[i].result, REDLOCK_HELD);
        ck_assert_int_ge(seen[i].at_us, end_us);
        ck_assert_int_lt(seen[i].at_us, end_us + 5 * US_PER_S);
    }
    world_release_all(held);
    redlock_async_close(other, NULL, NULL);
}
END_TEST

START_TEST(A14_refused_by_several_owners_it_tries_again_as_after_a_split)
{
    bool are_several = _i == 1;
    world_start(3, NULL);
    world_open_voting();
    for (size_t i = 0; i < 3; i++) {
        char owner[8];
        (void)snprintf(owner, sizeof owner, "%zu", are_several ? i : 7);
        ck_assert_str_eq(cli(i, "SET", JOB, owner, "PX", "60000"), "OK");
    }
    int64_t wait_us = (are_several ? 3 : 1) * US_PER_S;
    ck_assert_int_eq(waiter_start(world.lock, &seen[0], 1, 1, wait_us, 0), 0);
    run_until(seen[0].order != 0);
    ck_assert_int_eq(seen[0].result, REDLOCK_HELD);
    if (are_several) {
        ck_assert_int_gt(seen[0].tries, 14); /* at most 80 ms apart */
    } else {
        ck_assert_int_lt(seen[0].tries, 6); /* at least 250 ms apart */
    }
}
END_TEST

START_TEST(A14_a_deadline_that_comes_soon_after_a_slow_try_is_kept)
{
    world_start(3, NULL);
    world_open_voting();
    struct redlock_async *other = world_other_client();
    struct redlock_batch *held = world_acquire(other, 1, 1);
    run_until(world_nodes_with(JOB) == 3);
    world_signal(0, 3, SIGSTOP);
    int64_t t0_us = clock_boot_us();
    ck_assert_int_eq(waiter_start(world.lock, &seen[0], 1, 1, 320 * US_PER_MS, 0), 0);
    ck_assert_int_eq(waiter_start(world.lock, &seen[1], 1, 1, 50 * US_PER_MS, 0), 0);
    run_until(seen[1].order != 0); /* the timer fires during the first one's try */
    run_until(clock_boot_us() > t0_us + 300 * US_PER_MS);
    world_signal(0, 3, SIGCONT);
    run_until(seen[0].order != 0);
    ck_assert_int_eq(seen[0].result, REDLOCK_HELD);
    ck_assert_int_lt(seen[0].at_us - t0_us, 5 * US_PER_S);
    world_release_all(held);
    redlock_async_close(other, NULL, NULL);
}
END_TEST

START_TEST(A14_several_keys_are_won_together_or_not_at_all)
{
    world_start(3, NULL);
    world_open_voting();
    struct redlock_async *other = world_other_client();
    struct redlock_batch *held = world_acquire(other, 2, 1);
    ck_assert_int_eq(waiter_start(world.lock, &seen[0], 1, 3, 0, 1), 0);
    run_until(seen[0].order != 0);
    ck_assert_int_eq(seen[0].result, REDLOCK_HELD);
    ck_assert_int_eq(seen[0].tries, 1);
    world_flush(world.lock);
    ck_assert_uint_eq(world_nodes_with(JOB), 0);
    run_until(world_nodes_with("claimd:job:2") == 3);
    ck_assert_uint_eq(world_nodes_with("claimd:job:3"), 0);
    world_release_all(held);
    world_flush(other);
    ck_assert_int_eq(waiter_start(world.lock, &seen[0], 1, 3, 0, 1), 0);
    run_until(seen[0].order != 0);
    ck_assert_int_eq(seen[0].result, REDLOCK_OK);
    ck_assert_uint_eq(redlock_batch_count(seen[0].batch), 3);
    world_release_all(seen[0].batch);
    redlock_async_close(other, NULL, NULL);
}
END_TEST

START_TEST(A14_who_waits_for_the_same_key_in_one_client_takes_turns)
{
    world_start(3, NULL);
    world_open_voting();
    struct redlock_async *other = world_other_client();
    struct redlock_batch *held = world_acquire(other, 1, 1);
    for (size_t i = 0; i < WAITERS; i++) {
        ck_assert_int_eq(waiter_start(world.lock, &seen[i], 1, 1, FOR_EVER, 0), 0);
    }
    world_run_for(100 * US_PER_MS);
    ck_assert_uint_eq(times_held(), 1);
    world_release_all(held);
    for (size_t i = 0; i < 3; i++) { /* each tries as soon as the one before it has released */
        run_until(seen[i].order != 0);
        ck_assert_int_eq(seen[i].result, REDLOCK_OK);
        ck_assert_int_eq(seen[i].order, (int)i + 1);
        world_release_all(seen[i].batch);
    }
    for (size_t i = 3; i < WAITERS; i++) {
        redlock_wait_cancel(seen[i].wait);
    }
    run_until(waiters_told(seen, WAITERS) == WAITERS);
    redlock_async_close(other, NULL, NULL);
}
END_TEST

START_TEST(A14_others_go_on_when_the_first_in_line_gives_up)
{
    world_start(3, NULL);
    world_open_voting();
    struct redlock_async *other = world_other_client();
    struct redlock_batch *held = world_acquire(other, 1, 1);
    for (size_t i = 0; i < 3; i++) {
        ck_assert_int_eq(waiter_start(world.lock, &seen[i], 1, 1, FOR_EVER, 0), 0);
    }
    run_until(times_held() == 1);
    redlock_wait_cancel(seen[0].wait);
    redlock_wait_cancel(seen[1].wait);
    ck_assert_uint_eq(waiters_told(seen, 3), 0); /* callbacks run from the loop */
    world_release_all(held);
    run_until(waiters_told(seen, 3) == 3);
    ck_assert_int_eq(seen[0].result, REDLOCK_CANCELLED);
    ck_assert_int_eq(seen[1].result, REDLOCK_CANCELLED);
    ck_assert_int_eq(seen[1].tries, 0);
    ck_assert_int_eq(seen[2].result, REDLOCK_OK);
    world_release_all(seen[2].batch);
    redlock_async_close(other, NULL, NULL);
}
END_TEST

START_TEST(A15_what_was_won_while_it_was_cancelled_goes_back)
{
    world_start(3, NULL);
    world_open_voting();
    ck_assert_int_eq(waiter_start(world.lock, &seen[0], 1, 1, (int64_t)_i * US_PER_S, 0), 0);
    redlock_wait_cancel(seen[0].wait); /* the SETs are in flight */
    run_until(seen[0].order != 0);
    ck_assert_int_eq(seen[0].result, REDLOCK_CANCELLED);
    run_until(redlock_async_counters(world.lock)->results[REDLOCK_OK] == 1);
    world_flush(world.lock);
    ck_assert_uint_eq(world_nodes_with(JOB), 0);
}
END_TEST

START_TEST(A15_closing_ends_every_waiter_as_cancelled)
{
    world_start(3, NULL);
    world_open_voting();
    struct redlock_async *other = world_other_client();
    struct redlock_batch *held = world_acquire(other, 1, 1);
    for (size_t i = 0; i < 3; i++) {
        ck_assert_int_eq(waiter_start(world.lock, &seen[i], 1, 1, FOR_EVER, 0), 0);
    }
    run_until(times_held() == 1);
    ck_assert_int_eq(waiter_start(world.lock, &seen[3], 5, 1, 0, 0), 0); /* its try is in flight */
    struct redlock_async *closing = world.lock;
    world.lock = NULL;
    redlock_async_close(closing, NULL, NULL);
    ck_assert_uint_eq(waiters_told(seen, 4), 0); /* callbacks run from the loop */
    ck_assert_int_eq(waiter_start(closing, &seen[4], 1, 1, 0, 0), -ESHUTDOWN);
    run_until(waiters_told(seen, 4) == 4);
    for (size_t i = 0; i < 4; i++) {
        ck_assert_int_eq(seen[i].result, REDLOCK_CANCELLED);
    }
    run_until(world_nodes_with("claimd:job:5") == 0);
    world_release_all(held);
    world_flush(other);
    redlock_async_close(other, NULL, NULL);
    world_run_for(100 * US_PER_MS);
}
END_TEST

START_TEST(A14_without_a_quorum_it_backs_off)
{
    world_start(3, NULL);
    world_open_voting();
    redis_server_kill(&world.servers[0]);
    redis_server_kill(&world.servers[1]);
    run_until(redlock_async_voting(world.lock) == 1);
    ck_assert_int_eq(waiter_start(world.lock, &seen[0], 1, 1, US_PER_S, 0), 0);
    run_until(seen[0].order != 0);
    ck_assert_int_eq(seen[0].result, REDLOCK_NO_QUORUM);
    ck_assert_int_gt(seen[0].tries, 10);  /* 20 ms is the longest pause */
    ck_assert_int_lt(seen[0].tries, 400); /* not a busy loop */
    ck_assert_int_eq(world_calls(2, "set"), 0);
}
END_TEST

START_TEST(A14_a_waiter_outlives_a_time_without_a_quorum)
{
    struct err err = {0};
    world_start(3, NULL);
    world.options.ttl_max_us = world.options.ttl_us = US_PER_S; /* a short quarantine */
    world.options.node_timeout_us = 100 * US_PER_MS;
    world_open_voting();
    redis_server_kill(&world.servers[0]);
    redis_server_kill(&world.servers[1]);
    run_until(redlock_async_voting(world.lock) == 1);
    ck_assert_int_eq(waiter_start(world.lock, &seen[0], 1, 1, FOR_EVER, 0), 0);
    ck_assert_int_eq(redis_server_restart(&world.servers[0], &err), STATUS_OK);
    run_until(seen[0].order != 0);
    ck_assert_int_eq(seen[0].result, REDLOCK_OK);
    world_release_all(seen[0].batch);
}
END_TEST

START_TEST(A15_bad_input_is_refused_at_once)
{
    struct redlock_error e;
    struct redlock_wait *w = NULL;
    world_start(1, NULL);
    world_open_voting();
    const struct redlock_async_key empty = {.bytes = "", .len = 0};
    const struct redlock_wait_options options = {.retries = 1};
    struct redlock_async_request request = {.keys = &empty, .count = 1};
    ck_assert_int_eq(redlock_async_wait(world.lock, &request, &options, &w, &e), -EINVAL);
    ck_assert_str_ne(e.message, "");
    request.count = 0;
    ck_assert_int_eq(redlock_async_wait(world.lock, &request, &options, &w, &e), -EINVAL);
    request.count = REDLOCK_KEYS_MAX + 1;
    ck_assert_int_eq(redlock_async_wait(world.lock, &request, &options, &w, &e), -EINVAL);
}
END_TEST

static void add_tests(TCase *t)
{
    tcase_add_loop_test(t, A14_without_a_deadline_it_tries_as_often_as_was_asked_for, 0, 4);
    tcase_add_loop_test(t, A14_a_lock_that_is_free_is_won_at_the_first_try, 0, 2);
    tcase_add_test(t, A14_who_waits_wins_after_the_holder_has_gone);
    tcase_add_test(t, A14_past_its_deadline_a_waiter_hears_the_last_result);
    tcase_add_loop_test(t, A14_refused_by_several_owners_it_tries_again_as_after_a_split, 0, 2);
    tcase_add_test(t, A14_a_deadline_that_comes_soon_after_a_slow_try_is_kept);
    tcase_add_test(t, A14_several_keys_are_won_together_or_not_at_all);
    tcase_add_test(t, A14_who_waits_for_the_same_key_in_one_client_takes_turns);
    tcase_add_test(t, A14_others_go_on_when_the_first_in_line_gives_up);
    tcase_add_loop_test(t, A15_what_was_won_while_it_was_cancelled_goes_back, 0, 2);
    tcase_add_test(t, A15_closing_ends_every_waiter_as_cancelled);
    tcase_add_test(t, A14_without_a_quorum_it_backs_off);
    tcase_add_test(t, A14_a_waiter_outlives_a_time_without_a_quorum);
    tcase_add_test(t, A15_bad_input_is_refused_at_once);
}

int main(void)
{
    return world_main("redlock_wait", add_tests);
}
