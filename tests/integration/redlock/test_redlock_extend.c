/* SPDX-License-Identifier: Apache-2.0 */
#include "test_redlock_world.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>

#define KEY "claimd:job:1"

struct extended {
    size_t calls;
    enum redlock_result result;
};

static struct redlock_batch *acquired_batch;

static void given_a_short_lease(void)
{
    world_start(5, NULL);
    world.options.ttl_us = US_PER_S;
    world.options.ttl_max_us = world.options.ttl_us;
    world.options.node_timeout_us = 100 * US_PER_MS;
    world_open_voting();
}

static void on_acquired(void *ctx, struct redlock_batch *batch)
{
    (void)ctx;
    acquired_batch = batch;
    ck_assert_int_eq(redlock_batch_result(batch, 0), REDLOCK_OK);
}

/* Acquires KEY with the terms of `request`. */
static struct redlock_batch *given_a_lock(struct redlock_async_request request)
{
    const struct redlock_async_key key = {.bytes = KEY, .len = strlen(KEY)};
    request.keys = &key;
    request.count = 1;
    request.done = on_acquired;
    acquired_batch = NULL;
    ck_assert_int_eq(redlock_async_acquire(world.lock, &request, NULL), 0);
    run_until(acquired_batch != NULL);
    return acquired_batch;
}

static struct redlock_batch *given_an_unkept_lock(void)
{
    return given_a_lock((struct redlock_async_request){.is_not_kept = true});
}

static void on_extended(void *ctx, enum redlock_result result)
{
    struct extended *e = ctx;
    e->calls++;
    e->result = result;
}

static enum redlock_result extend_now(struct redlock_batch *b)
{
    struct extended e = {0};
    ck_assert_int_eq(redlock_batch_extend(b, 0, on_extended, &e), 0);
    ck_assert_uint_eq(e.calls, 0); /* never called from within */
    run_until(e.calls == 1);
    return e.result;
}

/* Counts the extensions of the only lock. */
static long extensions(void)
{
    long calls = 0;
    for (size_t i = 0; i < world.count; i++) {
        calls += world_extends_by_set(i) ? world_calls(i, "set") - 1 : world_calls(i, "pexpire");
    }
    return calls;
}

START_TEST(E2_E4_extending_on_request_installs_a_new_deadline)
{
    given_a_short_lease();
    struct redlock_batch *b = given_an_unkept_lock();
    int64_t deadline_us = redlock_batch_deadline_us(b, 0);
    world_run_for(300 * US_PER_MS);
    int64_t before_us = clock_boot_us();
    ck_assert_int_eq(extend_now(b), REDLOCK_OK);
    int64_t full_us = world.options.ttl_us - redlock_async_drift_us(world.lock);
    ck_assert_int_gt(redlock_batch_deadline_us(b, 0), deadline_us);
    ck_assert_int_ge(redlock_batch_deadline_us(b, 0), before_us + full_us);
    int64_t key_us = strtol(cli(0, "PTTL", KEY), NULL, 10) * US_PER_MS; /* it was 300 ms shorter */
    ck_assert_int_gt(key_us, deadline_us + 100 * US_PER_MS - clock_boot_us());
    ck_assert_uint_eq(redlock_async_counters(world.lock)->extended, 1);
    redlock_batch_release(b, 0);
}
END_TEST

START_TEST(W1_a_lease_that_is_not_kept_is_extended_by_nobody)
{
    given_a_short_lease();
    struct redlock_batch *b = given_an_unkept_lock();
    int64_t deadline_us = redlock_batch_deadline_us(b, 0);
    run_until(world.states[REDLOCK_STATE_LOST] == 1);
    ck_assert_int_ge(world.lost_at_us, deadline_us);
    ck_assert_int_lt(world.lost_at_us, deadline_us + 5 * US_PER_S);
    ck_assert_int_eq(extensions(), 0);
    ck_assert_int_eq(redlock_batch_extend(b, 0, on_extended, NULL), -EINVAL); /* E8 */
    redlock_batch_release(b, 0);
}
END_TEST

START_TEST(W1_a_kept_lease_goes_on_from_an_extension_on_request)
{
    given_a_short_lease();
    struct redlock_batch *b = given_a_lock((struct redlock_async_request){0});
    for (int i = 0; i < 4; i++) { /* more often than T/3: the keeper has nothing to do */
        world_run_for(200 * US_PER_MS);
        ck_assert_int_eq(extend_now(b), REDLOCK_OK);
    }
    ck_assert_uint_eq(redlock_async_counters(world.lock)->extended, 4);
    run_until(redlock_async_counters(world.lock)->extended == 7);
    ck_assert_uint_eq(world.states[REDLOCK_STATE_SUSPECT] + world.states[REDLOCK_STATE_LOST], 0);
    redlock_batch_release(b, 0);
}
END_TEST

START_TEST(E3_extending_on_request_what_another_owner_took_is_expired)
{
    given_a_short_lease();
    struct redlock_batch *b = given_an_unkept_lock();
    for (size_t i = 0; i < 3; i++) {
        (void)cli(i, "SET", KEY, "somebody");
    }
    ck_assert_int_eq(extend_now(b), REDLOCK_LOST);
    ck_assert_uint_eq(world.states[REDLOCK_STATE_LOST], 1);
    ck_assert_str_eq(cli(0, "GET", KEY), "somebody");
    redlock_batch_release(b, 0);
}
END_TEST

/* One node is enough, although the lock is kept: another client has broken the rules. */
START_TEST(E3_R6_a_theft_that_a_round_sees_is_counted_once)
{
    world_start(5, NULL); /* its lease outlives the calls of redis-cli, which stop the loop */
    world_open_voting();
    const struct redlock_counters *c = redlock_async_counters(world.lock);
    struct redlock_batch *b = given_a_lock((struct redlock_async_request){0});
    run_until(world_nodes_with(KEY) == 5);
    (void)cli(0, "DEL", KEY); /* a node that has lost its memory is not a theft */
    (void)cli(1, "SET", KEY, "thief");
    run_until(c->stolen == 1);
    run_until(c->healed == 1);
    int64_t rounds = (int64_t)c->extended;
    run_until((int64_t)c->extended >= rounds + 2);
    ck_assert_uint_eq(c->stolen, 1);
    ck_assert_uint_eq(world.states[REDLOCK_STATE_LOST], 0);
    (void)cli(1, "DEL", KEY); /* the thief is gone when the lock is released */
    redlock_batch_release(b, 0);
    world_flush(world.lock);
    run_until(c->release_deleted + c->release_missing >= 4);
    ck_assert_uint_eq(c->stolen, 1);
}
END_TEST

START_TEST(E5_extending_on_request_without_answers_keeps_the_deadline)
{
    given_a_short_lease();
    struct redlock_batch *b = given_an_unkept_lock();
    int64_t deadline_us = redlock_batch_deadline_us(b, 0);
    world_signal(0, 3, SIGSTOP);
    ck_assert_int_eq(extend_now(b), REDLOCK_NO_QUORUM); /* within τ */
    ck_assert_uint_eq(world.states[REDLOCK_STATE_SUSPECT], 1);
    ck_assert_int_eq(redlock_batch_deadline_us(b, 0), deadline_us);
    world_signal(0, 3, SIGCONT);
    run_until(redlock_async_voting(world.lock) == 5);
    ck_assert_int_eq(extend_now(b), REDLOCK_OK);
    ck_assert_uint_eq(world.states[REDLOCK_STATE_HELD], 1);
    redlock_batch_release(b, 0);
}
END_TEST

START_TEST(E5_extending_on_request_with_every_node_gone_is_told_from_the_loop)
{
    given_a_short_lease();
    struct redlock_batch *b = given_an_unkept_lock();
    for (size_t i = 0; i < 5; i++) {
        redis_server_kill(&world.servers[i]);
    }
    run_until(redlock_async_voting(world.lock) == 0);
    ck_assert_int_eq(extend_now(b), REDLOCK_NO_QUORUM);
    ck_assert_uint_eq(world.states[REDLOCK_STATE_SUSPECT], 1);
    redlock_batch_drop(b, 0);
}
END_TEST

START_TEST(E2_a_split_round_confirms_nothing)
{
    given_a_short_lease();
    struct redlock_batch *b = given_an_unkept_lock();
    int64_t deadline_us = redlock_batch_deadline_us(b, 0);
    (void)cli(0, "DEL", KEY);
    (void)cli(1, "DEL", KEY);
    world_signal(2, 1, SIGSTOP);
    ck_assert_int_eq(extend_now(b), REDLOCK_SPLIT);
    ck_assert_int_eq(redlock_batch_deadline_us(b, 0), deadline_us);
    world_signal(2, 1, SIGCONT);
    redlock_batch_release(b, 0);
}
END_TEST

START_TEST(W6_a_release_cancels_an_extension_on_request)
{
    struct extended e = {0};
    given_a_short_lease();
    struct redlock_batch *b = given_an_unkept_lock();
    ck_assert_int_eq(redlock_batch_extend(b, 0, on_extended, &e), 0);
    redlock_batch_release(b, 0);
    run_until(e.calls == 1);
    ck_assert_int_eq(e.result, REDLOCK_CANCELLED);
    world_flush(world.lock);
    ck_assert_uint_eq(world_nodes_with(KEY), 0);
}
END_TEST

START_TEST(R5_closing_ends_an_extension_on_request_once)
{
    static struct extended e;
    given_a_short_lease();
    struct redlock_batch *b = given_an_unkept_lock();
    world_signal(0, 5, SIGSTOP);
    ck_assert_int_eq(redlock_batch_extend(b, 0, on_extended, &e), 0);
    world_close();
    ck_assert_uint_eq(e.calls, 1);
    ck_assert_int_ne(e.result, REDLOCK_OK);
    world_signal(0, 5, SIGCONT);
}
END_TEST

/* Returns the key's remaining time on the node, which includes the drift margin. */
static int64_t rest_of_key_us(size_t node)
{
    return strtol(cli(node, "PTTL", KEY), NULL, 10) * US_PER_MS;
}

START_TEST(E9_a_kept_lease_ends_at_its_longest_hold)
{
    given_a_short_lease();
    int64_t hold_us = 1500 * US_PER_MS;
    int64_t start_us = clock_boot_us();
    struct redlock_batch *b = given_a_lock((struct redlock_async_request){.max_hold_us = hold_us});
    int64_t begun_us = clock_boot_us();
    run_until(redlock_batch_deadline_us(b, 0) >= start_us + hold_us);
    run_until(world.states[REDLOCK_STATE_LOST] == 1);
    ck_assert_int_ge(redlock_batch_deadline_us(b, 0), start_us + hold_us);
    ck_assert_int_le(redlock_batch_deadline_us(b, 0), begun_us + hold_us);
    ck_assert_uint_ge(redlock_async_counters(world.lock)->extended, 3); /* every T/3 so far */
    ck_assert_uint_eq(world.states[REDLOCK_STATE_SUSPECT], 0);
    redlock_batch_release(b, 0);
}
END_TEST

START_TEST(E9_nor_does_an_extension_on_request_move_that_end)
{
    given_a_short_lease();
    const struct redlock_async_request request = {.is_not_kept = true,
                                                  .max_hold_us = 700 * US_PER_MS};
    struct redlock_batch *b = given_a_lock(request);
    int64_t deadline_us = redlock_batch_deadline_us(b, 0);
    ck_assert_int_le(deadline_us, clock_boot_us() + request.max_hold_us);
    ck_assert_int_eq(extend_now(b), REDLOCK_OK);
    ck_assert_int_eq(redlock_batch_deadline_us(b, 0), deadline_us);
    ck_assert_int_le(rest_of_key_us(0),
                     request.max_hold_us + redlock_async_drift_us(world.lock) + US_PER_MS);
    run_until(world.states[REDLOCK_STATE_LOST] == 1);
    ck_assert_int_eq(redlock_batch_extend(b, 0, on_extended, NULL), -EINVAL);
    redlock_batch_release(b, 0);
}
END_TEST

static void add_tests(TCase *t)
{
    tcase_add_test(t, E2_E4_extending_on_request_installs_a_new_deadline);
    tcase_add_test(t, W1_a_lease_that_is_not_kept_is_extended_by_nobody);
    tcase_add_test(t, W1_a_kept_lease_goes_on_from_an_extension_on_request);
    tcase_add_test(t, E3_extending_on_request_what_another_owner_took_is_expired);
    tcase_add_test(t, E3_R6_a_theft_that_a_round_sees_is_counted_once);
    tcase_add_test(t, E5_extending_on_request_without_answers_keeps_the_deadline);
    tcase_add_test(t, E5_extending_on_request_with_every_node_gone_is_told_from_the_loop);
    tcase_add_test(t, E2_a_split_round_confirms_nothing);
    tcase_add_test(t, W6_a_release_cancels_an_extension_on_request);
    tcase_add_test(t, R5_closing_ends_an_extension_on_request_once);
    tcase_add_test(t, E9_a_kept_lease_ends_at_its_longest_hold);
    tcase_add_test(t, E9_nor_does_an_extension_on_request_move_that_end);
}

int main(void)
{
    return world_main("redlock_extend", add_tests);
}
