/* SPDX-License-Identifier: Apache-2.0 */
#include "test_redlock_client_world.h"

#include <pthread.h>
#include <signal.h>

struct waiter {
    pthread_t thread;
    struct redlock_client *client;
    struct redlock_request request;
    struct redlock_lock *lock;
    struct redlock_report report;
    enum redlock_result result;
    int64_t ended_us;
};

static void *run_waiter(void *arg)
{
    struct waiter *w = arg;
    w->result = redlock_acquire(w->client, &w->request, &w->lock, &w->report);
    w->ended_us = clock_boot_us();
    return NULL;
}

static void start(struct waiter *w)
{
    w->client = w->client != NULL ? w->client : world.client;
    ck_assert_int_eq(pthread_create(&w->thread, NULL, run_waiter, w), 0);
}

static void join(struct waiter *w)
{
    ck_assert_int_eq(pthread_join(w->thread, NULL), 0);
}

static struct redlock_owner *given_owner(void)
{
    struct redlock_owner *owner = NULL;
    ck_assert_int_eq(redlock_owner_new(world.client, &owner), 0);
    return owner;
}

START_TEST(a_waiter_gets_the_lock_when_it_is_released)
{
    given_nodes(3, NULL);
    world.options.ttl_max_ms = 60000; /* no test waits for its end */
    world.client = client_of_world();
    struct redlock_client *other = client_of_world();
    struct redlock_lock *lock = NULL;
    const struct redlock_request long_one = {.key = "job:1", .ttl_ms = 60000};
    ck_assert_int_eq(redlock_acquire(other, &long_one, &lock, NULL), REDLOCK_OK);
    struct waiter w = {.request = {.key = "job:1", .wait_ms = -1}};
    start(&w);
    until(waiting_in(world.client) == 1);
    ck_assert_int_eq(redlock_unlock(lock, NULL), REDLOCK_OK);
    join(&w);
    ck_assert_int_eq(w.result, REDLOCK_OK);
    ck_assert_int_gt(w.report.left_ms, 0);
    ck_assert_int_eq(redlock_unlock(w.lock, NULL), REDLOCK_OK);
    redlock_close(other);
}
END_TEST

START_TEST(A6_a_waiter_gives_up_at_its_deadline)
{
    given_client(3);
    struct redlock_lock *lock = given_lock("job:1");
    struct redlock_lock *none = NULL;
    struct redlock_report report = {0};
    const struct redlock_request request = {.key = "job:1", .wait_ms = 200};
    int64_t start_us = clock_boot_us();
    ck_assert_int_eq(redlock_acquire(world.client, &request, &none, &report), REDLOCK_HELD);
    int64_t took_us = clock_boot_us() - start_us;
    ck_assert_int_ge(took_us, 195 * US_PER_MS);
    ck_assert_int_lt(took_us, 5 * US_PER_S);
    ck_assert_int_eq(redlock_unlock(lock, NULL), REDLOCK_OK);
}
END_TEST

/* Two other holders at once, as in a split: neither may have the lock. */
START_TEST(A14_a_call_that_does_not_wait_tries_three_times_more)
{
    given_nodes(3, NULL);
    world.client = client_of_world();
    struct redlock_lock *none = NULL;
    struct redlock_report report = {0};
    const struct redlock_request request = {.key = "job:1"};
    for (size_t i = 0; i < 3; i++) {
        (void)cli(i, "SET", "job:1", i == 0 ? "one" : i == 1 ? "two" : "three");
    }
    ck_assert_int_ne(redlock_acquire(world.client, &request, &none, &report), REDLOCK_OK);
    ck_assert_int_eq(report.tries, 4);
}
END_TEST

START_TEST(A14_a_key_that_one_other_holds_is_given_up_after_one_round)
{
    given_nodes(3, NULL);
    world.client = client_of_world();
    struct redlock_lock *lock = given_lock("job:1");
    struct redlock_lock *none = NULL;
    struct redlock_report report = {0};
    const struct redlock_request request = {.key = "job:1"};
    until(nodes_with("job:1") == 3);
    ck_assert_int_eq(redlock_acquire(world.client, &request, &none, &report), REDLOCK_HELD);
    ck_assert_int_eq(report.tries, 1);
    ck_assert_int_eq(redlock_unlock(lock, NULL), REDLOCK_OK);
}
END_TEST

START_TEST(A15_firing_a_cancel_ends_each_call_that_waits_with_it)
{
    struct waiter waiters[3] = {0};
    given_client(3);
    struct redlock_owner *owner = given_owner();
    struct redlock_lock *lock = given_lock("job:1");
    for (size_t i = 0; i < 3; i++) {
        waiters[i].request = (struct redlock_request){
            .key = i == 2 ? "job:2" : "job:1", .wait_ms = -1, .owner = i == 1 ? NULL : owner};
    }
    struct redlock_lock *second = given_lock("job:2");
    for (size_t i = 0; i < 3; i++) {
        start(&waiters[i]);
    }
    until(waiting_in(world.client) == 3);
    redlock_cancel(owner);
    join(&waiters[0]);
    join(&waiters[2]);
    ck_assert_int_eq(waiters[0].result, REDLOCK_CANCELLED);
    ck_assert_int_eq(waiters[2].result, REDLOCK_CANCELLED);
    ck_assert_ptr_null(waiters[0].lock);
    ck_assert_uint_eq(waiting_in(world.client), 1); /* the one without the owner continues */
    ck_assert_int_eq(redlock_unlock(lock, NULL), REDLOCK_OK);
    join(&waiters[1]);
    ck_assert_int_eq(waiters[1].result, REDLOCK_OK);
    ck_assert_int_eq(redlock_unlock(waiters[1].lock, NULL), REDLOCK_OK);
    ck_assert_int_eq(redlock_unlock(second, NULL), REDLOCK_OK);
    redlock_owner_free(owner);
    until(nodes_with("job:1") + nodes_with("job:2") == 0);
}
END_TEST

START_TEST(A15_a_cancel_that_was_fired_before_cancels_at_once_and_sends_nothing)
{
    struct redlock_lock *none = NULL;
    given_client(1);
    struct redlock_owner *owner = given_owner();
    redlock_cancel(owner);
    redlock_cancel(owner);
    const struct redlock_request request = {.key = "job:1", .wait_ms = -1, .owner = owner};
    ck_assert_int_eq(redlock_acquire(world.client, &request, &none, NULL), REDLOCK_CANCELLED);
    ck_assert_int_eq(calls_of(0, "set"), 0);
    redlock_owner_free(owner);
}
END_TEST

START_TEST(A15_a_cancelled_owner_keeps_its_lock_and_does_not_enter_it_again)
{
    struct redlock_lock *lock = NULL;
    struct redlock_lock *again = NULL;
    given_client(3);
    struct redlock_owner *owner = given_owner();
    const struct redlock_request request = {.key = "job:1", .owner = owner};
    ck_assert_int_eq(redlock_acquire(world.client, &request, &lock, NULL), REDLOCK_OK);
    redlock_cancel(owner);
    ck_assert_int_eq(redlock_acquire(world.client, &request, &again, NULL), REDLOCK_CANCELLED);
    ck_assert_int_eq(redlock_state(lock), REDLOCK_STATE_HELD);
    ck_assert_int_eq(redlock_unlock(lock, NULL), REDLOCK_OK);
    redlock_owner_free(owner);
}
END_TEST

START_TEST(R5_a_cancel_does_not_touch_a_lock_that_was_won_with_it)
{
    struct redlock_lock *lock = NULL;
    struct redlock_report released = {0};
    given_client(3);
    struct redlock_owner *owner = given_owner();
    const struct redlock_request request = {.key = "job:1", .owner = owner};
    ck_assert_int_eq(redlock_acquire(world.client, &request, &lock, NULL), REDLOCK_OK);
    redlock_cancel(owner);
    redlock_owner_free(owner); /* at once: it must not be used after this */
    ck_assert_int_eq(redlock_state(lock), REDLOCK_STATE_HELD);
    ck_assert_int_eq(redlock_unlock(lock, &released), REDLOCK_OK);
    ck_assert_uint_eq(released.deleted, 3);
}
END_TEST

START_TEST(A10_a_cancel_during_a_try_leaves_no_key)
{
    given_client(3);
    struct redlock_owner *owner = given_owner();
    struct waiter w = {.request = {.key = "job:1", .wait_ms = -1, .owner = owner}};
    signal_nodes(0, 3, SIGSTOP); /* the SETs stay in their sockets */
    start(&w);
    until(waiting_in(world.client) == 1);
    redlock_cancel(owner);
    join(&w);
    ck_assert_int_eq(w.result, REDLOCK_CANCELLED);
    signal_nodes(0, 3, SIGCONT);
    until(calls_of(0, "set") == 1);
    until(nodes_with("job:1") == 0);
    redlock_owner_free(owner);
}
END_TEST

START_TEST(all_or_none_waits_for_all)
{
    static const char *const keys[] = {"a", "b"};
    struct redlock_lock *all = NULL;
    const struct redlock_request request = {.wait_ms = 5000};
    given_client(3);
    struct redlock_client *other = client_of_world();
    struct redlock_lock *lock = NULL;
    ck_assert_int_eq(redlock_try(other, "b", &lock), REDLOCK_OK);
    struct waiter w = {.client = other, .request = {.key = "a", .wait_ms = 0}};
    ck_assert_int_eq(redlock_unlock(lock, NULL), REDLOCK_OK);
    ck_assert_int_eq(acquire_all(world.client, &request, keys, 2, &all, NULL), REDLOCK_OK);
    start(&w);
    join(&w);
    ck_assert_int_eq(w.result, REDLOCK_HELD);
    ck_assert_int_eq(redlock_unlock(all, NULL), REDLOCK_OK);
    redlock_close(other);
}
END_TEST

static void *wait_for_both(void *arg)
{
    static const char *const keys[] = {"a", "b"};
    struct redlock_lock **all = arg;
    const struct redlock_request request = {.wait_ms = -1};
    (void)acquire_all(world.client, &request, keys, 2, all, NULL);
    return NULL;
}

static uint64_t extended(void)
{
    struct redlock_stats stats = {0};
    redlock_get_stats(world.client, &stats);
    return stats.extended;
}

START_TEST(L4_what_is_held_while_the_next_key_is_waited_for_is_extended)
{
    pthread_t thread;
    struct redlock_lock *all = NULL;
    given_client(3);
    struct redlock_client *other = client_of_world();
    struct redlock_lock *lock = NULL;
    ck_assert_int_eq(redlock_try(other, "b", &lock), REDLOCK_OK);
    ck_assert_int_eq(pthread_create(&thread, NULL, wait_for_both, &all), 0);
    until(extended() >= 4); /* longer than a lease */
    ck_assert_uint_eq(nodes_with("a"), 3);
    ck_assert_int_eq(redlock_unlock(lock, NULL), REDLOCK_OK);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    ck_assert_int_eq(redlock_state(all), REDLOCK_STATE_HELD);
    ck_assert_int_gt(redlock_left_ms(all), 0);
    uint64_t before = extended();
    until(extended() >= before + 4); /* both are extended, too */
    ck_assert_int_eq(redlock_unlock(all, &(struct redlock_report){0}), REDLOCK_OK);
    ck_assert_uint_eq(nodes_with("a") + nodes_with("b"), 0);
    redlock_close(other);
}
END_TEST

/* Waiting would not help. */
START_TEST(C8_nobody_waits_for_a_key_that_the_nodes_forbid)
{
    struct redlock_lock *lock = NULL;
    struct redlock_report report = {0};
    const struct redlock_request request = {.key = "other", .wait_ms = -1};
    given_client(3);
    for (size_t i = 0; i < 3; i++) {
        ck_assert_str_eq(cli(i, "ACL", "SETUSER", "default", "resetkeys", "~job:*", "~redlock:*"),
                         "OK");
    }
    ck_assert_int_eq(redlock_acquire(world.client, &request, &lock, &report), REDLOCK_NO_QUORUM);
    size_t forbidden = 0;
    for (size_t i = 0; i < 3; i++) {
        forbidden += report.votes[i] == REDLOCK_VOTE_FORBIDDEN;
    }
    ck_assert_uint_ge(forbidden, 2);
    ck_assert_ptr_nonnull(strstr(report.message, "the user may not use this key"));
    ck_assert_int_eq(redlock_unlock(given_lock("job:1"), NULL), REDLOCK_OK);
}
END_TEST

static void add_tests(TCase *t)
{
    tcase_add_test(t, L4_what_is_held_while_the_next_key_is_waited_for_is_extended);
    tcase_add_test(t, C8_nobody_waits_for_a_key_that_the_nodes_forbid);
    tcase_add_test(t, a_waiter_gets_the_lock_when_it_is_released);
    tcase_add_test(t, A6_a_waiter_gives_up_at_its_deadline);
    tcase_add_test(t, A14_a_call_that_does_not_wait_tries_three_times_more);
    tcase_add_test(t, A14_a_key_that_one_other_holds_is_given_up_after_one_round);
    tcase_add_test(t, A15_firing_a_cancel_ends_each_call_that_waits_with_it);
    tcase_add_test(t, A15_a_cancel_that_was_fired_before_cancels_at_once_and_sends_nothing);
    tcase_add_test(t, A15_a_cancelled_owner_keeps_its_lock_and_does_not_enter_it_again);
    tcase_add_test(t, R5_a_cancel_does_not_touch_a_lock_that_was_won_with_it);
    tcase_add_test(t, A10_a_cancel_during_a_try_leaves_no_key);
    tcase_add_test(t, all_or_none_waits_for_all);
}

int main(void)
{
    return client_world_main("redlock_client_wait", add_tests);
}
