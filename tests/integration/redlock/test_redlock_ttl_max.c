/* SPDX-License-Identifier: Apache-2.0
 *
 * All clients agree on the longest ttl of any client through the nodes (lock.N10): a node that
 * restarts has no vote for that long, for any of them. */
#include "test_redlock_world.h"

#include <stdio.h>

#define TTL_MAX "claimd:job:ttl_max"
#define SHORT_US (2 * US_PER_S)
#define LONG_US (600 * US_PER_S)

/* The clients of these tests trust servers when they first see them, but not restarted ones. */
static void given_world(void)
{
    world_start(3, NULL);
    world.options.ttl_us = SHORT_US;
    world.options.ttl_max_us = SHORT_US;
    world.options.node_timeout_us = 200 * US_PER_MS;
    world_open_voting();
}

static struct redlock_async *open_with(int64_t ttl_max_us)
{
    struct redlock_async *lock = NULL;
    struct redlock_async_options options = world.options;
    struct redlock_error error;
    options.ttl_max_us = ttl_max_us;
    ck_assert_msg(redlock_async_open(&options, &lock, &error) == 0, "%s", error.message);
    run_until(redlock_async_voting(lock) == 3);
    return lock;
}

static void on_closed(void *ctx)
{
    *(bool *)ctx = true;
}

static void close_it(struct redlock_async *lock)
{
    bool is_closed = false;
    redlock_async_close(lock, on_closed, &is_closed);
    run_until(is_closed);
}

static int64_t quarantine_ms(const struct redlock_async *lock, size_t node)
{
    struct redlock_node_info info;
    redlock_async_node(lock, node, &info);
    return info.quarantine_ms;
}

static void restart(size_t node)
{
    redis_server_kill(&world.servers[node]);
    ck_assert_int_eq(redis_server_restart(&world.servers[node], NULL), STATUS_OK);
}

static long kept_ms(size_t node)
{
    return strtol(cli(node, "GET", TTL_MAX), NULL, 10);
}

START_TEST(N10_a_restarted_node_has_no_vote_for_the_longest_ttl_of_any_client)
{
    given_world();
    struct redlock_async *other = open_with(LONG_US);
    ck_assert_int_eq(kept_ms(0), LONG_US / US_PER_MS);
    restart(0);
    run_until(quarantine_ms(world.lock, 0) > LONG_US / US_PER_MS / 2);
    close_it(other);
}
END_TEST

START_TEST(N10_who_comes_later_goes_by_it_as_well)
{
    given_world();
    struct redlock_async *other = open_with(LONG_US);
    struct redlock_async *later = open_with(SHORT_US);
    close_it(other);
    restart(1);
    run_until(quarantine_ms(later, 1) > LONG_US / US_PER_MS / 2);
    close_it(later);
}
END_TEST

START_TEST(N10_a_longer_ttl_is_no_reason_to_distrust_nodes_that_lost_nothing)
{
    given_world();
    struct redlock_async *other = open_with(LONG_US);
    struct redlock_async *later = open_with(SHORT_US);
    ck_assert_uint_eq(redlock_async_voting(world.lock), 3);
    ck_assert_uint_eq(redlock_async_voting(later), 3);
    close_it(other);
    close_it(later);
}
END_TEST

START_TEST(N10_it_ends_a_minute_after_the_locks_that_it_stands_for)
{
    given_world();
    long ms = strtol(cli(0, "PTTL", TTL_MAX), NULL, 10);
    ck_assert_int_gt(ms, 0);
    ck_assert_int_le(ms, SHORT_US / US_PER_MS + 60000);
    struct redlock_async *other = open_with(LONG_US);
    ms = strtol(cli(0, "PTTL", TTL_MAX), NULL, 10);
    ck_assert_int_gt(ms, LONG_US / US_PER_MS);
    close_it(other);
}
END_TEST

START_TEST(N10_a_node_that_forgot_it_is_told_again)
{
    given_world();
    (void)cli(0, "DEL", TTL_MAX);
    run_until(kept_ms(0) == SHORT_US / US_PER_MS); /* at the next check (lock.N3) */
    restart(2);
    run_until(kept_ms(2) == SHORT_US / US_PER_MS);
}
END_TEST

static const char *const junk[] = {"", "-1", "0", "1e300", "nan", "inf", "99999999999999999999",
                                   "x"};

START_TEST(N10_junk_in_the_key_changes_nothing)
{
    given_world();
    for (size_t i = 0; i < 3; i++) {
        ck_assert_str_eq(cli(i, "SET", TTL_MAX, junk[_i]), "OK");
    }
    struct redlock_async *later = open_with(SHORT_US);
    restart(0);
    run_until(quarantine_ms(later, 0) > 0);
    ck_assert_int_le(quarantine_ms(later, 0), 2 * SHORT_US / US_PER_MS);
    run_until(redlock_async_voting(later) == 3);
    close_it(later);
}
END_TEST

START_TEST(N10_a_key_of_another_type_or_without_rights_costs_no_vote)
{
    given_world();
    for (size_t i = 0; i < 3; i++) {
        ck_assert_str_eq(cli(i, "DEL", TTL_MAX), "1");
        ck_assert_str_eq(cli(i, "LPUSH", TTL_MAX, "1"), "1");
    }
    close_it(open_with(LONG_US));
    for (size_t i = 0; i < 3; i++) {
        ck_assert_str_eq(
            cli(i, "ACL", "SETUSER", "default", "resetkeys", "~claimd:job:canary", "~claimd:job:1"),
            "OK");
    }
    close_it(open_with(LONG_US));
}
END_TEST

static void add_tests(TCase *t)
{
    tcase_add_test(t, N10_a_restarted_node_has_no_vote_for_the_longest_ttl_of_any_client);
    tcase_add_test(t, N10_who_comes_later_goes_by_it_as_well);
    tcase_add_test(t, N10_a_longer_ttl_is_no_reason_to_distrust_nodes_that_lost_nothing);
    tcase_add_test(t, N10_it_ends_a_minute_after_the_locks_that_it_stands_for);
    tcase_add_test(t, N10_a_node_that_forgot_it_is_told_again);
    tcase_add_loop_test(t, N10_junk_in_the_key_changes_nothing, 0, (int)ARRAY_COUNT(junk));
    tcase_add_test(t, N10_a_key_of_another_type_or_without_rights_costs_no_vote);
}

int main(void)
{
    return world_main("redlock_ttl_max", add_tests);
}
