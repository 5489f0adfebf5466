/* SPDX-License-Identifier: Apache-2.0
 *
 * redlock_start(): the same requests without a waiting thread; and the thread that runs
 * callbacks. */
#include "test_redlock_client_world.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>

#define MANY 300

struct outcome {
    atomic_size_t calls;
    size_t count;
    enum redlock_result results[4];
    struct redlock_lock *locks[4];
    struct redlock_report first;
};

static void on_done(void *ctx, size_t count, struct redlock_lock *const *locks,
                    const struct redlock_report *const *reports)
{
    struct outcome *o = ctx;
    o->count = count;
    o->first = *reports[0];
    for (size_t i = 0; i < count && i < ARRAY_COUNT(o->locks); i++) {
        o->locks[i] = locks[i];
        o->results[i] = reports[i]->result;
    }
    (void)atomic_fetch_add(&o->calls, 1);
}

static void given_started(const struct redlock_request *request, struct outcome *o)
{
    struct redlock_report report = {0};
    ck_assert_msg(redlock_start(world.client, request, on_done, o, &report) == REDLOCK_OK, "%s",
                  report.message);
}

START_TEST(A1_a_lock_that_was_started_comes_by_its_callback)
{
    struct outcome o = {0};
    char key[] = "job:1";
    given_client(3);
    given_started(&(struct redlock_request){.key = key, .fence = true}, &o);
    key[4] = 'x'; /* the request was copied */
    until(atomic_load(&o.calls) == 1);
    ck_assert_uint_eq(o.count, 1);
    ck_assert_int_eq(o.results[0], REDLOCK_OK);
    ck_assert_int_gt(o.first.left_ms, 0);
    ck_assert_uint_eq(redlock_fence(o.locks[0]), 1);
    ck_assert_str_eq(redlock_lock_key(o.locks[0], NULL), "job:1");
    ck_assert_int_eq(redlock_unlock(o.locks[0], NULL), REDLOCK_OK);
}
END_TEST

START_TEST(A15_each_key_that_was_started_has_a_result_of_its_own)
{
    static const struct redlock_key keys[] = {{.bytes = "a"}, {.bytes = ""}, {.bytes = "b"}};
    struct outcome o = {0};
    given_client(3);
    struct redlock_lock *taken = given_lock("b");
    given_started(&(struct redlock_request){.keys = keys, .count = 3, .each = true}, &o);
    until(atomic_load(&o.calls) == 1);
    ck_assert_uint_eq(o.count, 3);
    ck_assert_int_eq(o.results[0], REDLOCK_OK);
    ck_assert_int_eq(o.results[1], REDLOCK_INVALID);
    ck_assert_int_eq(o.results[2], REDLOCK_HELD);
    ck_assert(o.locks[0] != NULL && o.locks[1] == NULL && o.locks[2] == NULL);
    ck_assert_int_eq(redlock_unlock(o.locks[0], NULL), REDLOCK_OK);
    ck_assert_int_eq(redlock_unlock(taken, NULL), REDLOCK_OK);
}
END_TEST

START_TEST(A16_a_mistake_is_returned_at_once_and_calls_nobody)
{
    struct outcome o = {0};
    struct redlock_report report = {0};
    given_client(1);
    const struct redlock_request request = {.key = "job:1", .wait_ms = -2};
    ck_assert_int_eq(redlock_start(world.client, &request, on_done, &o, &report), REDLOCK_INVALID);
    ck_assert_ptr_nonnull(strstr(report.message, "wait_ms"));
    redlock_close(TAKE(world.client));
    ck_assert_uint_eq(atomic_load(&o.calls), 0);
}
END_TEST

START_TEST(L6_hundreds_wait_in_line_without_a_thread_each)
{
    static struct outcome outcomes[MANY];
    size_t done = 0;
    given_client(3);
    struct redlock_lock *lock = given_lock("job:1");
    for (size_t i = 0; i < MANY; i++) {
        given_started(&(struct redlock_request){.key = "job:1", .wait_ms = -1}, &outcomes[i]);
    }
    ck_assert_int_eq(redlock_unlock(lock, NULL), REDLOCK_OK);
    while (done < MANY) { /* in order of arrival (lock.L1) */
        until(atomic_load(&outcomes[done].calls) == 1);
        ck_assert_int_eq(outcomes[done].results[0], REDLOCK_OK);
        ck_assert(done + 1 == MANY || atomic_load(&outcomes[done + 1].calls) == 0);
        ck_assert_int_eq(redlock_unlock(outcomes[done++].locks[0], NULL), REDLOCK_OK);
    }
    until(nodes_with("job:1") == 0);
}
END_TEST

START_TEST(A15_a_cancelled_owner_ends_what_was_started)
{
    struct outcome o = {0};
    struct redlock_owner *owner = NULL;
    given_client(3);
    struct redlock_lock *lock = given_lock("job:1");
    ck_assert_int_eq(redlock_owner_new(world.client, &owner), REDLOCK_OK);
    given_started(&(struct redlock_request){.key = "job:1", .wait_ms = -1, .owner = owner}, &o);
    redlock_cancel(owner);
    until(atomic_load(&o.calls) == 1);
    ck_assert_int_eq(o.results[0], REDLOCK_CANCELLED);
    ck_assert_ptr_null(o.locks[0]);
    redlock_owner_free(owner);
    ck_assert_int_eq(redlock_unlock(lock, NULL), REDLOCK_OK);
}
END_TEST

START_TEST(closing_calls_back_for_all_that_was_started)
{
    struct outcome waiting = {0};
    struct outcome asking = {0};
    given_client(3);
    struct redlock_lock *lock = given_lock("job:1");
    given_started(&(struct redlock_request){.key = "job:1", .wait_ms = -1}, &waiting);
    signal_nodes(0, 3, SIGSTOP);
    given_started(&(struct redlock_request){.key = "job:2"}, &asking);
    redlock_close(TAKE(world.client));
    ck_assert_uint_eq(atomic_load(&waiting.calls), 1); /* called before it returned */
    ck_assert_uint_eq(atomic_load(&asking.calls), 1);
    ck_assert_int_eq(waiting.results[0], REDLOCK_CANCELLED);
    ck_assert_int_ne(asking.results[0], REDLOCK_OK);
    signal_nodes(0, 3, SIGCONT);
    ck_assert_int_eq(redlock_unlock(lock, NULL), REDLOCK_OK);
}
END_TEST

START_TEST(fence_each_key_of_an_owner_has_one_even_if_it_held_the_key)
{
    static const struct redlock_key keys[] = {{.bytes = "a"}, {.bytes = "b"}};
    struct outcome o = {0};
    struct redlock_owner *owner = NULL;
    struct redlock_lock *outer = NULL;
    given_client(3);
    ck_assert_int_eq(redlock_owner_new(world.client, &owner), REDLOCK_OK);
    ck_assert_int_eq(redlock_acquire(world.client,
                                     &(struct redlock_request){.key = "a", .owner = owner}, &outer,
                                     NULL),
                     REDLOCK_OK);
    given_started(
        &(struct redlock_request){
            .keys = keys, .count = 2, .each = true, .fence = true, .owner = owner},
        &o);
    until(atomic_load(&o.calls) == 1);
    ck_assert_ptr_eq(o.locks[0], outer);
    ck_assert_uint_eq(redlock_fence(o.locks[0]), 1);
    ck_assert_uint_eq(redlock_fence(o.locks[1]), 1);
    ck_assert_int_eq(redlock_unlock(o.locks[0], NULL), REDLOCK_OK);
    ck_assert_int_eq(redlock_unlock(o.locks[1], NULL), REDLOCK_OK);
    ck_assert_int_eq(redlock_unlock(outer, NULL), REDLOCK_OK);
    redlock_owner_free(owner);
}
END_TEST

/* ---- the thread of callbacks ---- */

static atomic_int is_inside;
static atomic_int may_leave;

static void block(void *ctx, const struct redlock_event *event)
{
    (void)ctx;
    (void)event;
    atomic_store(&is_inside, 1);
    while (atomic_load(&may_leave) == 0) {
        wait_step();
    }
}

START_TEST(W2_a_callback_that_blocks_costs_no_lease)
{
    given_nodes(3, NULL);
    world.options.on_event = block;
    world.client = client_of_world();
    until(atomic_load(&is_inside) == 1);
    struct redlock_lock *lock = given_lock("job:1"); /* calls still work */
    int64_t end_us = clock_boot_us() + 4 * US_PER_S; /* T is 3 s */
    until(clock_boot_us() >= end_us);
    ck_assert_int_eq(redlock_state(lock), REDLOCK_STATE_HELD);
    ck_assert_uint_eq(nodes_with("job:1"), 3);
    ck_assert_int_eq(redlock_unlock(lock, NULL), REDLOCK_OK);
    atomic_store(&may_leave, 1);
}
END_TEST

START_TEST(R7_an_abandoned_lock_ends_by_its_ttl)
{
    given_client(3);
    struct redlock_lock *lock = given_lock("job:1");
    until(nodes_with("job:1") == 3);
    redlock_abandon(lock);
    struct redlock_stats stats = {0};
    until((redlock_get_stats(world.client, &stats), stats.held == 0));
    uint64_t extended = stats.extended;
    until(nodes_with("job:1") == 0);
    redlock_get_stats(world.client, &stats);
    ck_assert_uint_eq(stats.extended, extended);
    ck_assert_uint_eq(stats.release_deleted, 0);
}
END_TEST

static void add_tests(TCase *t)
{
    tcase_add_test(t, A1_a_lock_that_was_started_comes_by_its_callback);
    tcase_add_test(t, A15_each_key_that_was_started_has_a_result_of_its_own);
    tcase_add_test(t, A16_a_mistake_is_returned_at_once_and_calls_nobody);
    tcase_add_test(t, L6_hundreds_wait_in_line_without_a_thread_each);
    tcase_add_test(t, A15_a_cancelled_owner_ends_what_was_started);
    tcase_add_test(t, closing_calls_back_for_all_that_was_started);
    tcase_add_test(t, fence_each_key_of_an_owner_has_one_even_if_it_held_the_key);
    tcase_add_test(t, W2_a_callback_that_blocks_costs_no_lease);
    tcase_add_test(t, R7_an_abandoned_lock_ends_by_its_ttl);
}

int main(void)
{
    return client_world_main("redlock_client_start", add_tests);
}
