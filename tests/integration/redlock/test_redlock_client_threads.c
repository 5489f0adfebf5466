/* SPDX-License-Identifier: Apache-2.0
 *
 * One client with many threads. Under the thread sanitizer (cmake --workflow --preset tsan), these
 * tests also show that no data is shared without a lock. */
#include "test_redlock_client_world.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>

#define THREADS 16

struct party {
    pthread_t thread;
    int number;
    int pairs;
    int own; /* pairs under a key that no other thread uses */
};

static struct party parties[THREADS];
static int inside; /* not atomic: guarded by the lock named "shared" */
static long entered;

static void run_all(void *(*body)(void *), int pairs)
{
    for (int i = 0; i < THREADS; i++) {
        parties[i] = (struct party){.number = i, .pairs = pairs};
        ck_assert_int_eq(pthread_create(&parties[i].thread, NULL, body, &parties[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        ck_assert_int_eq(pthread_join(parties[i].thread, NULL), 0);
    }
}

static void *lock_own_key(void *arg)
{
    struct party *p = arg;
    char key[32];
    (void)snprintf(key, sizeof key, "own:%d", p->number);
    for (int i = 0; i < p->pairs; i++) {
        struct redlock_lock *lock = NULL;
        if (redlock_try(world.client, key, &lock) == REDLOCK_OK) {
            p->own += is_held(lock);
            (void)redlock_unlock(lock, NULL);
        }
    }
    return NULL;
}

static int pairs_of_a_test(void)
{
    const char *text = getenv("CLAIMD_TEST_PAIRS");
    return text != NULL ? (int)strtol(text, NULL, 10) : 1000;
}

START_TEST(sixteen_threads_lock_and_unlock_their_keys_thousands_of_times)
{
    int pairs = pairs_of_a_test();
    given_client(3);
    run_all(lock_own_key, pairs);
    for (int i = 0; i < THREADS; i++) {
        ck_assert_int_eq(parties[i].own, pairs);
    }
    struct redlock_stats stats = {0};
    redlock_get_stats(world.client, &stats);
    ck_assert_uint_eq(stats.results[REDLOCK_OK], (uint64_t)pairs * THREADS);
    ck_assert_uint_eq(stats.held, 0);
    for (size_t i = 0; i < 3; i++) {
        until(strcmp(cli(i, COUNT_LOCKS), "0") == 0);
    }
}
END_TEST

static void *enter_shared(void *arg)
{
    struct party *p = arg;
    const struct redlock_request request = {.key = "shared", .wait_ms = -1};
    for (int i = 0; i < p->pairs; i++) {
        struct redlock_lock *lock = NULL;
        if (redlock_acquire(world.client, &request, &lock, NULL) == REDLOCK_OK) {
            p->own += ++inside == 1;
            entered++;
            inside--;
            (void)redlock_unlock(lock, NULL);
        }
    }
    return NULL;
}

START_TEST(threads_exclude_each_other_by_one_key)
{
    int pairs = pairs_of_a_test() / 20;
    given_client(3);
    run_all(enter_shared, pairs);
    ck_assert_int_eq(entered, (long)pairs * THREADS);
    for (int i = 0; i < THREADS; i++) {
        ck_assert_int_eq(parties[i].own, pairs);
    }
}
END_TEST

static atomic_long told;

static void on_state(void *ctx, struct redlock_lock *lock, enum redlock_state state)
{
    (void)ctx;
    (void)redlock_left_ms(lock);
    atomic_fetch_add(&told, state == REDLOCK_STATE_LOST);
}

static void *use_everything(void *arg)
{
    struct party *p = arg;
    struct redlock_owner *owner = NULL;
    struct redlock_owner *cancel = NULL;
    p->own = redlock_owner_new(world.client, &owner) == REDLOCK_OK &&
             redlock_owner_new(world.client, &cancel) == 0;
    for (int i = 0; i < p->pairs && p->own != 0; i++) {
        const char *const keys[] = {i % 2 == 0 ? "a" : "b", i % 3 == 0 ? "b" : "c"};
        struct redlock_lock *lock = NULL;
        struct redlock_lock *again = NULL;
        struct redlock_report report = {0};
        const struct redlock_request request = {
            .wait_ms = 20, .owner = owner, .on_change = on_state};
        if (acquire_all(world.client, &request, keys, 2, &lock, &report) == REDLOCK_OK) {
            if (acquire_all(world.client, &request, keys, 1, &again, NULL) == REDLOCK_OK) {
                (void)redlock_unlock(again, NULL);
            }
            (void)redlock_fd(lock);
            (void)redlock_state(lock);
            (void)redlock_extend(lock);
            struct redlock_report released = {0};
            (void)redlock_unlock(lock, i % 4 == 0 ? &released : NULL);
        }
        if (i % 8 == 7) {
            redlock_cancel(cancel);
            redlock_owner_free(cancel);
            p->own = redlock_owner_new(world.client, &cancel) == 0;
        }
        struct redlock_stats stats = {0};
        redlock_get_stats(world.client, &stats);
    }
    redlock_owner_free(cancel);
    redlock_owner_free(owner);
    return NULL;
}

START_TEST(threads_use_every_call_at_once)
{
    given_client(3);
    run_all(use_everything, pairs_of_a_test() / 25);
    for (int i = 0; i < THREADS; i++) {
        ck_assert_int_ne(parties[i].own, 0);
    }
    struct redlock_stats stats = {0};
    redlock_get_stats(world.client, &stats);
    ck_assert_uint_eq(stats.held, 0);
    ck_assert_uint_eq(stats.waiting, 0);
    ck_assert_int_eq(atomic_load(&told), 0);
}
END_TEST

static void *wait_for_ever(void *arg)
{
    struct party *p = arg;
    const struct redlock_request request = {.key = "shared", .wait_ms = -1};
    struct redlock_lock *lock = NULL;
    p->own = redlock_acquire(world.client, &request, &lock, NULL) == REDLOCK_CANCELLED;
    return NULL;
}

START_TEST(closing_cancels_who_waits_and_leaves_handles_that_can_be_read_and_unlocked)
{
    given_client(3);
    struct redlock_lock *lock = given_lock("shared");
    for (int i = 0; i < THREADS; i++) {
        parties[i] = (struct party){.number = i};
        ck_assert_int_eq(pthread_create(&parties[i].thread, NULL, wait_for_ever, &parties[i]), 0);
    }
    until(waiting_in(world.client) == THREADS);
    redlock_close(TAKE(world.client));
    for (int i = 0; i < THREADS; i++) {
        ck_assert_int_eq(pthread_join(parties[i].thread, NULL), 0);
        ck_assert_int_eq(parties[i].own, 1);
    }
    ck_assert_uint_eq(nodes_with("shared"), 0);
    ck_assert_int_eq(redlock_state(lock), REDLOCK_STATE_LOST);
    ck_assert_int_eq(redlock_left_ms(lock), 0);
    ck_assert_str_eq(redlock_lock_key(lock, NULL), "shared");
    ck_assert_int_eq(redlock_extend(lock), REDLOCK_LOST);
    ck_assert_int_eq(redlock_unlock(lock, NULL), REDLOCK_OK);
}
END_TEST

START_TEST(closing_does_not_wait_for_nodes_that_do_not_answer)
{
    given_client(3);
    struct redlock_lock *lock = given_lock("shared");
    signal_nodes(0, 3, SIGSTOP);
    int64_t start_us = clock_boot_us();
    redlock_close(TAKE(world.client));
    ck_assert_int_lt(clock_boot_us() - start_us, 5 * US_PER_S); /* τ is 300 ms */
    signal_nodes(0, 3, SIGCONT);
    until(nodes_with("shared") == 0); /* the release was sent nevertheless */
    ck_assert_int_eq(redlock_unlock(lock, NULL), REDLOCK_OK);
}
END_TEST

static struct redlock_lock *given[3];
static atomic_int under_way;

/* Makes a call of each kind that waits for a node's answer. */
static void *call_a_node(void *arg)
{
    struct party *p = arg;
    const struct redlock_request request = {.key = "d", .fence = true};
    static const char *const keys[] = {"e", "f"};
    struct redlock_lock *locks[2] = {0};
    enum redlock_result results[2];
    struct redlock_report released = {0};
    struct redlock_holding holdings[REDLOCK_NODES_MAX];
    (void)atomic_fetch_add(&under_way, 1);
    switch (p->number) {
    case 0:
        p->own = redlock_extend(given[0]) != REDLOCK_OK;
        break;
    case 1:
        p->own = redlock_unlock(given[1], &released) == REDLOCK_OK && released.unknown >= 2;
        break;
    case 2:
        p->own = redlock_acquire(world.client, &request, &locks[0], NULL) == REDLOCK_CANCELLED;
        break;
    case 3:
        p->own = acquire_each(world.client, &request, keys, 2, locks, results) == REDLOCK_CANCELLED;
        break;
    default:
        p->own = redlock_inspect(world.client, "d", holdings, NULL) <= REDLOCK_SYSTEM;
        break;
    }
    return NULL;
}

START_TEST(closing_ends_every_call_that_waits_for_a_node)
{
    struct redlock_stats stats = {0};
    given_nodes(3, NULL);
    if (_i == 1) { /* also with a node that is down: requests to it wait longer */
        redis_server_kill(&world.servers[2]);
    }
    world.client = client_of_world();
    given[0] = given_lock("a");
    given[1] = given_lock("b");
    given[2] = given_lock("c"); /* a call that comes late finds the client closed */
    signal_nodes(0, 2, SIGSTOP);
    for (int i = 0; i < 5; i++) {
        parties[i] = (struct party){.number = i};
        ck_assert_int_eq(pthread_create(&parties[i].thread, NULL, call_a_node, &parties[i]), 0);
    }
    until(atomic_load(&under_way) == 5);
    redlock_get_stats(world.client, &stats);
    redlock_close(world.client);
    for (int i = 0; i < 5; i++) {
        ck_assert_int_eq(pthread_join(parties[i].thread, NULL), 0);
        ck_assert_msg(parties[i].own == 1, "call %d", i);
    }
    world.client = NULL;
    signal_nodes(0, 2, SIGCONT);
    ck_assert_int_eq(redlock_unlock(given[0], NULL), REDLOCK_OK);
    ck_assert_int_eq(redlock_unlock(given[2], NULL), REDLOCK_OK);
}
END_TEST

static void add_tests(TCase *t)
{
    tcase_add_test(t, sixteen_threads_lock_and_unlock_their_keys_thousands_of_times);
    tcase_add_test(t, threads_exclude_each_other_by_one_key);
    tcase_add_test(t, threads_use_every_call_at_once);
    tcase_add_test(t, closing_cancels_who_waits_and_leaves_handles_that_can_be_read_and_unlocked);
    tcase_add_loop_test(t, closing_ends_every_call_that_waits_for_a_node, 0, 2);
    tcase_add_test(t, closing_does_not_wait_for_nodes_that_do_not_answer);
}

int main(void)
{
    return client_world_main("redlock_client_threads", add_tests);
}
