/* SPDX-License-Identifier: Apache-2.0
 *
 * Locks that are released in one turn of the loop: how the releases are sent, which callbacks run,
 * and which waiters wake. */
#include "test_redlock_world.h"

#include <signal.h>
#include <stdio.h>

#define BATCHES 50
#define RELAY_ROUNDS 300

static void given_voting_nodes(size_t count)
{
    world_start(count, NULL);
    world_open_voting();
}

/* Acquires a lock, and waits until every node has given its copy. */
static struct redlock_batch *given_a_lock(int number)
{
    char key[32];
    struct redlock_batch *b = world_acquire(world.lock, number, 1);
    ck_assert_int_eq(redlock_batch_result(b, 0), REDLOCK_OK);
    for (size_t i = 0; i < world.count; i++) {
        run_until(redlock_batch_vote(b, 0, i) != REDLOCK_VOTE_NONE);
    }
    (void)snprintf(key, sizeof key, "claimd:job:%d", number);
    ck_assert_uint_eq(world_nodes_with(key), world.count);
    return b;
}

struct heard {
    size_t calls;
    struct redlock_released released;
};

static void on_released(void *ctx, const struct redlock_released *released)
{
    struct heard *h = ctx;
    h->calls++;
    h->released = *released;
}

#define ck_assert_released(h, d, o, m, u)            \
    do {                                             \
        ck_assert_uint_eq((h)->calls, 1);            \
        ck_assert_uint_eq((h)->released.deleted, d); \
        ck_assert_uint_eq((h)->released.stolen, o);  \
        ck_assert_uint_eq((h)->released.missing, m); \
        ck_assert_uint_eq((h)->released.unknown, u); \
    } while (0)

START_TEST(R5_locks_with_tokens_of_their_own_leave_in_one_script_per_node)
{
    struct redlock_batch *batches[BATCHES];
    given_voting_nodes(3);
    for (int i = 0; i < BATCHES; i++) {
        batches[i] = world_acquire(world.lock, i, 1);
    }
    for (int i = 0; i < BATCHES; i++) {
        redlock_batch_release(batches[i], 0);
    }
    world_flush(world.lock);
    for (size_t i = 0; i < 3; i++) {
        ck_assert_int_eq(world_calls(i, "evalsha"), 1);
        ck_assert_str_eq(cli(i, COUNT_LOCKS), "0");
    }
    ck_assert_uint_eq(redlock_async_counters(world.lock)->release_deleted, 3 * BATCHES);
}
END_TEST

static void on_reacquired(void *ctx, struct redlock_batch *batch)
{
    size_t *won = ctx;
    ck_assert_int_eq(redlock_batch_result(batch, 0), REDLOCK_OK);
    (*won)++;
    redlock_batch_release(batch, 0);
}

START_TEST(A11_releases_leave_together_and_before_the_turns_new_attempts)
{
    struct redlock_batch *batches[BATCHES];
    size_t won = 0;
    given_voting_nodes(3);
    for (int i = 0; i < BATCHES; i++) {
        batches[i] = world_acquire(world.lock, i, 1);
    }
    for (int i = 0; i < BATCHES; i++) { /* each is acquired again before the next is released */
        char name[32];
        int len = snprintf(name, sizeof name, "claimd:job:%d", i);
        const struct redlock_async_key key = {.bytes = name, .len = (size_t)len};
        const struct redlock_async_request request = {
            .keys = &key, .count = 1, .done = on_reacquired, .ctx = &won};
        redlock_batch_release(batches[i], 0);
        ck_assert_int_eq(redlock_async_acquire(world.lock, &request, NULL), 0);
    }
    run_until(won == BATCHES);
    world_flush(world.lock);
    /* Mostly two batches: release, and acquire again. */
    ck_assert_int_le(world_calls(0, "evalsha"), 1 + BATCHES / 2);
    ck_assert_str_eq(cli(0, COUNT_LOCKS), "0");
}
END_TEST

START_TEST(R5_more_than_a_script_takes_leaves_in_several)
{
    struct redlock_batch *batches[3];
    given_voting_nodes(1);
    for (int i = 0; i < 3; i++) {
        batches[i] = world_acquire(world.lock, 300 * i, 300);
    }
    for (size_t i = 0; i < 3; i++) {
        world_release_all(batches[i]);
    }
    world_flush(world.lock);
    ck_assert_int_eq(world_calls(0, "evalsha"), 3);
    ck_assert_str_eq(cli(0, COUNT_LOCKS), "0");
}
END_TEST

START_TEST(R5_many_keys_of_one_batch_leave_under_their_one_token)
{
    struct redlock_batch *large[2];
    struct redlock_batch *small[10];
    given_voting_nodes(1);
    for (int i = 0; i < 2; i++) {
        large[i] = world_acquire(world.lock, 1000 + 100 * i, 100);
    }
    for (int i = 0; i < 10; i++) {
        small[i] = world_acquire(world.lock, i, 1);
    }
    world_release_all(large[0]);
    world_release_all(large[1]);
    for (size_t i = 0; i < 10; i++) {
        redlock_batch_release(small[i], 0);
    }
    world_flush(world.lock);
    /* One for each large batch, and one for the small ones. */
    ck_assert_int_eq(world_calls(0, "evalsha"), 3);
    ck_assert_str_eq(cli(0, COUNT_LOCKS), "0");
}
END_TEST

START_TEST(R2_each_key_of_a_group_is_compared_with_its_own_token)
{
    struct redlock_batch *batches[3];
    given_voting_nodes(3);
    const struct redlock_counters *c = redlock_async_counters(world.lock);
    for (int i = 0; i < 3; i++) {
        batches[i] = given_a_lock(i);
    }
    /* Another one of our tokens counts as foreign. */
    (void)cli(0, "RENAME", "claimd:job:0", "claimd:job:2");
    for (int i = 0; i < 3; i++) {
        redlock_batch_release(batches[i], 0);
    }
    world_flush(world.lock);
    run_until(c->release_deleted == 7);
    run_until(world_nodes_with("claimd:job:2") == 1);
    ck_assert_uint_eq(c->release_missing, 1);
    ck_assert_uint_eq(c->stolen, 1);
}
END_TEST

START_TEST(R6_the_owner_may_hear_how_each_release_went)
{
    struct heard heard[3] = {0};
    given_voting_nodes(3);
    struct redlock_batch *b = given_a_lock(1);
    struct redlock_batch *other = given_a_lock(2);
    struct redlock_batch *third = given_a_lock(3);
    (void)cli(1, "DEL", "claimd:job:2");
    (void)cli(2, "SET", "claimd:job:2", "somebody");
    redlock_batch_release_tell(b, 0, on_released, &heard[0]);
    redlock_batch_release_tell(other, 0, on_released, &heard[1]);
    redlock_batch_release_tell(third, 0, on_released, &heard[2]);
    ck_assert_uint_eq(heard[0].calls, 0); /* never called from within */
    run_until(heard[0].calls + heard[1].calls + heard[2].calls == 3);
    ck_assert_released(&heard[0], 3, 0, 0, 0);
    ck_assert_released(&heard[1], 1, 1, 1, 0);
    ck_assert_released(&heard[2], 3, 0, 0, 0);
}
END_TEST

START_TEST(R6_the_owner_hears_within_a_node_timeout_when_a_node_is_stuck)
{
    struct heard heard = {0};
    world_start(3, NULL);
    world.options.node_timeout_us = 100 * US_PER_MS;
    world_open_voting();
    struct redlock_batch *b = given_a_lock(1);
    world_signal(2, 1, SIGSTOP);
    int64_t start_us = clock_boot_us();
    redlock_batch_release_tell(b, 0, on_released, &heard);
    run_until(heard.calls > 0);
    ck_assert_int_lt(clock_boot_us() - start_us, 5 * US_PER_S);
    ck_assert_released(&heard, 2, 0, 0, 1);
    world_signal(2, 1, SIGCONT);
    run_until(world_nodes_with("claimd:job:1") == 0);
    ck_assert_uint_eq(heard.calls, 1); /* once, although the release continued */
}
END_TEST

START_TEST(R6_the_owner_hears_when_no_node_can_be_asked)
{
    struct heard heard = {0};
    given_voting_nodes(3);
    struct redlock_batch *b = given_a_lock(1);
    for (size_t i = 0; i < 3; i++) {
        redis_server_kill(&world.servers[i]);
    }
    run_until(redlock_async_voting(world.lock) == 0);
    redlock_batch_release_tell(b, 0, on_released, &heard);
    ck_assert_uint_eq(heard.calls, 0);
    run_until(heard.calls > 0);
    ck_assert_released(&heard, 0, 0, 0, 3);
}
END_TEST

static struct heard heard_at_close;

START_TEST(R6_the_owner_hears_when_the_client_is_closed)
{
    world_start(3, NULL);
    world.options.node_timeout_us = 100 * US_PER_MS;
    world_open_voting();
    struct redlock_batch *b = given_a_lock(1);
    world_signal(0, 3, SIGSTOP);
    redlock_batch_release_tell(b, 0, on_released, &heard_at_close);
    redlock_async_close(TAKE(world.lock), NULL, NULL);
    run_until(heard_at_close.calls > 0);
    ck_assert_released(&heard_at_close, 0, 0, 0, 3);
    world_signal(0, 3, SIGCONT);
}
END_TEST

/* A callback that repeatedly acquires the lock that it has just released. */
struct relay {
    size_t rounds;
    bool has_failed;
};

static void on_relay_won(void *ctx, struct redlock_batch *batch);

static void relay_next(struct relay *r)
{
    static const struct redlock_async_key key = {.bytes = "relay", .len = 5};
    const struct redlock_async_request request = {
        .keys = &key, .count = 1, .done = on_relay_won, .ctx = r};
    ck_assert_int_eq(redlock_async_acquire(world.lock, &request, NULL), 0);
}

static void on_relay_released(void *ctx, const struct redlock_released *released)
{
    struct relay *r = ctx;
    r->has_failed = r->has_failed || released->stolen > 0;
    if (++r->rounds < RELAY_ROUNDS) {
        relay_next(r);
    }
}

static void on_relay_won(void *ctx, struct redlock_batch *batch)
{
    ck_assert_int_eq(redlock_batch_result(batch, 0), REDLOCK_OK);
    redlock_batch_release_tell(batch, 0, on_relay_released, ctx);
}

START_TEST(K2_a_lock_given_back_in_a_callback_can_be_taken_again_at_once)
{
    struct relay r = {0};
    given_voting_nodes(3);
    relay_next(&r);
    run_until(r.rounds == RELAY_ROUNDS);
    ck_assert(!r.has_failed);
    ck_assert_uint_eq(redlock_async_counters(world.lock)->results[REDLOCK_HELD], 0);
}
END_TEST

/* ---- waking waiters ---- */

static void given_wakeups(void)
{
    world_start(3, NULL);
    world.options.no_line = false;
    world.options.prefix = "wake:";
    world_open_voting();
}

static long published(void)
{
    long calls = 0;
    for (size_t i = 0; i < 3; i++) {
        calls += world_calls(i, "publish");
    }
    return calls;
}

START_TEST(a_release_publishes_nothing_while_nobody_waits)
{
    given_wakeups();
    world_release_all(world_acquire(world.lock, 1, 3));
    world_flush(world.lock);
    long before = published(); /* checks of rights (lock.L9) may be counted or not */
    world_release_all(world_acquire(world.lock, 1, 3));
    world_flush(world.lock);
    ck_assert_int_eq(published(), before);
    ck_assert_uint_eq(world_nodes_with("claimd:job:1"), 0);
}
END_TEST

START_TEST(a_prefix_out_of_bounds_is_refused)
{
    char prefix[200] = "";
    struct redlock_async *lock = NULL;
    world_start(1, NULL);
    world.options.prefix = prefix;
    ck_assert_int_eq(redlock_async_open(&world.options, &lock, NULL), -EINVAL);
    memset(prefix, 'x', sizeof prefix - 1);
    ck_assert_int_eq(redlock_async_open(&world.options, &lock, NULL), -EINVAL);
}
END_TEST

static void add_tests(TCase *t)
{
    tcase_add_test(t, R5_locks_with_tokens_of_their_own_leave_in_one_script_per_node);
    tcase_add_test(t, A11_releases_leave_together_and_before_the_turns_new_attempts);
    tcase_add_test(t, R5_more_than_a_script_takes_leaves_in_several);
    tcase_add_test(t, R5_many_keys_of_one_batch_leave_under_their_one_token);
    tcase_add_test(t, R2_each_key_of_a_group_is_compared_with_its_own_token);
    tcase_add_test(t, R6_the_owner_may_hear_how_each_release_went);
    tcase_add_test(t, R6_the_owner_hears_within_a_node_timeout_when_a_node_is_stuck);
    tcase_add_test(t, R6_the_owner_hears_when_no_node_can_be_asked);
    tcase_add_test(t, R6_the_owner_hears_when_the_client_is_closed);
    tcase_add_test(t, K2_a_lock_given_back_in_a_callback_can_be_taken_again_at_once);
    tcase_add_test(t, a_release_publishes_nothing_while_nobody_waits);
    tcase_add_test(t, a_prefix_out_of_bounds_is_refused);
}

int main(void)
{
    return world_main("redlock_release_group", add_tests);
}
