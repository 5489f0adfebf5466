/* SPDX-License-Identifier: Apache-2.0
 *
 * Servers with native commands for compare-and-set and compare-and-delete (lock.C9), alone and
 * beside servers that need scripts for it. */
#include "support/stub_server.h"
#include "test_redlock_world.h"

#include <signal.h>
#include <stdio.h>

#define KEY "claimd:job:1"

#define OF_CONNECTION 2 /* EVALSHA per connection: the canary and T_max (lock.N9, N10) */

static const struct stub_options valkey_9 = {
    .server = "valkey", .version = "9.0.0", .has_ifeq = true, .has_delifeq = true};
static const struct stub_options redis_84 = {
    .server = "redis", .version = "8.4.0", .has_ifeq = true, .has_delex = true};
static const struct stub_options valkey_81 = {
    .server = "valkey", .version = "8.1.0", .has_ifeq = true};

static void add_stub(const struct stub_options *options)
{
    char dir[SERVER_PATH_MAX + 32];
    struct redis_server server;
    struct err err = {0};
    world_dir(world.count, dir, sizeof dir);
    ck_assert_msg(stub_server_start(dir, options, &server, &err) == STATUS_OK, "%s", err.msg);
    world_add(&server);
}

static void given_stubs(const struct stub_options *options, size_t count)
{
    world_start(0, NULL);
    for (size_t i = 0; i < count; i++) {
        add_stub(options);
    }
}

/* A round starts every 2 s, and a node on a busy machine has 0.6 s to answer. */
static void given_a_short_lease(void)
{
    world.options.ttl_us = 6 * US_PER_S;
    world.options.ttl_max_us = world.options.ttl_us;
    world.options.node_timeout_us = world.options.ttl_us / 10;
}

#define ASKED 1 /* by the handshake, to check the rights */

static long calls(size_t node, const char *command)
{
    return strtol(cli(node, "STUB", "CALLS", command), NULL, 10);
}

/* Returns a lock of which every node has given its copy. */
static struct redlock_batch *given_a_lock(void)
{
    struct redlock_batch *b = world_acquire(world.lock, 1, 1);
    ck_assert_int_eq(redlock_batch_result(b, 0), REDLOCK_OK);
    for (size_t i = 0; i < world.count; i++) {
        run_until(redlock_batch_vote(b, 0, i) == REDLOCK_VOTE_OK);
    }
    return b;
}

static void check_release(const struct stub_options *options, const char *command)
{
    given_stubs(options, 3);
    world_open_voting();
    struct redlock_batch *b = world_acquire(world.lock, 1, 100);
    run_until(redlock_batch_vote(b, 99, 2) == REDLOCK_VOTE_OK);
    world_release_all(b);
    world_flush(world.lock);
    for (size_t i = 0; i < 3; i++) {
        ck_assert_int_eq(calls(i, command) - ASKED, 100);
        ck_assert_int_eq(calls(i, "EVALSHA"), OF_CONNECTION);
    }
    ck_assert_uint_eq(world_nodes_with(KEY), 0);
    ck_assert_uint_eq(redlock_async_counters(world.lock)->release_deleted, 300);
    ck_assert_int_eq(calls(0, "GET"), 0);
}

START_TEST(C9_a_server_with_DELIFEQ_releases_by_it)
{
    check_release(&valkey_9, "DELIFEQ");
}
END_TEST

START_TEST(C9_a_server_with_DELEX_releases_by_it)
{
    check_release(&redis_84, "DELEX");
}
END_TEST

START_TEST(C9_a_server_with_IFEQ_extends_by_it)
{
    given_stubs(&redis_84, 3);
    given_a_short_lease();
    world_open_voting();
    struct redlock_batch *b = given_a_lock();
    int64_t first_us = redlock_batch_deadline_us(b, 0);
    run_until(clock_boot_us() > first_us + 100 * US_PER_MS);
    ck_assert_int_eq(redlock_batch_state(b, 0), REDLOCK_STATE_HELD);
    run_until(world_nodes_with(KEY) == 3);
    ck_assert_uint_eq(world.states[REDLOCK_STATE_SUSPECT], 0);
    ck_assert_int_ge(calls(0, "SET"), 3);
    ck_assert_int_eq(calls(0, "EVALSHA"), OF_CONNECTION);
    redlock_batch_release(b, 0);
    world_flush(world.lock);
    ck_assert_uint_eq(world_nodes_with(KEY), 0);
}
END_TEST

START_TEST(C9_E1_extending_creates_nothing_and_overwrites_nobody)
{
    given_stubs(&redis_84, 5);
    given_a_short_lease();
    world_open_voting();
    struct redlock_batch *b = given_a_lock();
    ck_assert_str_eq(cli(0, "SET", KEY, "somebody"), "OK");
    ck_assert_str_eq(cli(1, "SET", KEY, "somebody"), "OK");
    run_until(redlock_async_counters(world.lock)->extended >= 2);
    ck_assert_str_eq(cli(0, "GET", KEY), "somebody");
    ck_assert_int_eq(redlock_batch_vote(b, 0, 0), REDLOCK_VOTE_NONE);
    ck_assert_str_eq(cli(2, "SET", KEY, "somebody"), "OK");
    run_until(world.states[REDLOCK_STATE_LOST] == 1); /* E3: three nodes report it */
    ck_assert_int_lt(world.lost_at_us, redlock_batch_deadline_us(b, 0));
    redlock_batch_release(b, 0);
}
END_TEST

START_TEST(C9_E6_a_copy_that_is_missing_is_told_from_anothers_and_healed)
{
    given_stubs(&valkey_9, 3);
    given_a_short_lease();
    world_open_voting();
    struct redlock_batch *b = given_a_lock();
    ck_assert_str_eq(cli(0, "DEL", KEY), "1");
    run_until(redlock_async_counters(world.lock)->healed == 1);
    run_until(world_nodes_with(KEY) == 3);
    redlock_batch_release(b, 0);
    world_flush(world.lock);
    ck_assert_uint_eq(world_nodes_with(KEY), 0);
}
END_TEST

START_TEST(C9_R6_a_native_release_tells_missing_from_anothers)
{
    const struct redlock_counters *c = NULL;
    given_stubs(&valkey_9, 3);
    world_open_voting();
    c = redlock_async_counters(world.lock);
    struct redlock_batch *b = given_a_lock();
    ck_assert_str_eq(cli(0, "SET", KEY, "somebody"), "OK");
    ck_assert_str_eq(cli(1, "DEL", KEY), "1");
    redlock_batch_release(b, 0);
    world_flush(world.lock);
    run_until(c->release_deleted + c->release_missing + c->stolen == 3);
    ck_assert_uint_eq(c->release_deleted, 1);
    ck_assert_uint_eq(c->release_missing, 1);
    ck_assert_uint_eq(c->stolen, 1);
    ck_assert_int_eq(calls(0, "GET"), 1); /* one look */
    ck_assert_int_eq(calls(2, "GET"), 0);
    ck_assert_str_eq(cli(0, "GET", KEY), "somebody");
}
END_TEST

START_TEST(C9_R3_a_native_release_that_failed_is_tried_again)
{
    world_start(0, NULL);
    add_stub(&valkey_9);
    world_open_voting();
    struct redlock_batch *b = world_acquire(world.lock, 1, 3);
    ck_assert_str_eq(cli(0, "STUB", "FAIL", "DELIFEQ", "BUSY wait", "2"), "OK");
    world_release_all(b);
    const struct redlock_counters *c = redlock_async_counters(world.lock);
    /* Each once, although the third succeeded at the first attempt. */
    run_until(c->release_deleted == 3);
    ck_assert_uint_eq(world_nodes_with(KEY) + world_nodes_with("claimd:job:3"), 0);
    ck_assert_uint_eq(c->release_missing + c->stolen, 0);
}
END_TEST

START_TEST(C9_K3_a_label_is_compared_with_the_token)
{
    char value[REDLOCK_VALUE_LEN_MAX + 1];
    given_stubs(_i == 0 ? &valkey_9 : &redis_84, 3);
    given_a_short_lease();
    world.options.label = "a label";
    world_open_voting();
    struct redlock_batch *b = given_a_lock();
    (void)snprintf(value, sizeof value, "%s", cli(0, "GET", KEY));
    ck_assert_str_eq(value + REDLOCK_TOKEN_LEN, "|a label");
    value[REDLOCK_TOKEN_LEN] = '\0';
    ck_assert_str_eq(cli(0, "SET", KEY, value), "OK"); /* another client's */
    run_until(redlock_async_counters(world.lock)->extended >= 1);
    run_until(redlock_async_counters(world.lock)->stolen == 1);
    ck_assert_int_eq(redlock_batch_state(b, 0), REDLOCK_STATE_HELD);
    redlock_batch_release(b, 0);
    world_flush(world.lock);
    ck_assert_str_eq(cli(0, "GET", KEY), value);
    ck_assert_uint_eq(world_nodes_with(KEY), 1);
}
END_TEST

START_TEST(C9_nodes_of_all_kinds_lock_together)
{
    world_start(2, NULL);
    given_a_short_lease();
    add_stub(&valkey_9);
    add_stub(&redis_84);
    /* Extends natively; without compare-and-delete, and without scripts here. */
    add_stub(&valkey_81);
    world_open_voting();
    struct redlock_batch *b = given_a_lock();
    int64_t first_us = redlock_batch_deadline_us(b, 0);
    run_until(clock_boot_us() > first_us + 100 * US_PER_MS);
    ck_assert_int_eq(redlock_batch_state(b, 0), REDLOCK_STATE_HELD);
    run_until(world_nodes_with(KEY) == 5);
    redlock_batch_release(b, 0);
    run_until(world_nodes_with(KEY) == 1);
    ck_assert_int_ge(world_calls(0, "evalsha"), 2);
    ck_assert_int_eq(calls(2, "DELIFEQ") - ASKED, 1);
    ck_assert_int_eq(calls(3, "DELEX") - ASKED, 1);
    ck_assert_int_ge(calls(4, "EVALSHA"), 1);
    ck_assert_int_eq(calls(2, "EVALSHA") + calls(3, "EVALSHA"), 2 * OF_CONNECTION);
}
END_TEST

START_TEST(C9_who_wakes_waiters_needs_the_script)
{
    given_stubs(&valkey_9, 1);
    world.options.no_line = false;
    world.options.prefix = "wake:";
    world_open_voting();
    struct redlock_batch *b = given_a_lock();
    redlock_batch_release(b, 0);
    run_until(calls(0, "EVALSHA") >= 1);
    ck_assert_int_eq(calls(0, "DELIFEQ") - ASKED, 0);
}
END_TEST

static void add_tests(TCase *t)
{
    tcase_add_test(t, C9_a_server_with_DELIFEQ_releases_by_it);
    tcase_add_test(t, C9_a_server_with_DELEX_releases_by_it);
    tcase_add_test(t, C9_a_server_with_IFEQ_extends_by_it);
    tcase_add_test(t, C9_E1_extending_creates_nothing_and_overwrites_nobody);
    tcase_add_test(t, C9_E6_a_copy_that_is_missing_is_told_from_anothers_and_healed);
    tcase_add_test(t, C9_R6_a_native_release_tells_missing_from_anothers);
    tcase_add_test(t, C9_R3_a_native_release_that_failed_is_tried_again);
    tcase_add_loop_test(t, C9_K3_a_label_is_compared_with_the_token, 0, 2);
    tcase_add_test(t, C9_nodes_of_all_kinds_lock_together);
    tcase_add_test(t, C9_who_wakes_waiters_needs_the_script);
}

int main(void)
{
    return world_main("redlock_native", add_tests);
}
