/* SPDX-License-Identifier: Apache-2.0 */
#include "test_redlock_world.h"

#include <signal.h>
#include <stdio.h>

#define KEY "claimd:job:1"

struct seen {
    size_t calls;
    struct redlock_holding holdings[REDLOCK_NODES_MAX];
};

static void on_inspected(void *ctx, const struct redlock_holding *holdings)
{
    struct seen *s = ctx;
    s->calls++;
    memcpy(s->holdings, holdings, world.options.node_count * sizeof holdings[0]);
}

static struct seen inspect(const char *key)
{
    struct seen s = {0};
    ck_assert_int_eq(redlock_async_inspect(world.lock, key, strlen(key), on_inspected, &s), 0);
    ck_assert_uint_eq(s.calls, 0); /* never called from within */
    run_until(s.calls == 1);
    return s;
}

START_TEST(K1_a_holder_is_shown_by_the_start_of_its_token_only)
{
    world_start(3, NULL);
    world_open_voting();
    struct redlock_batch *b = world_acquire(world.lock, 1, 1);
    run_until(world_nodes_with(KEY) == 3);
    struct seen s = inspect(KEY);
    for (size_t i = 0; i < 3; i++) {
        ck_assert_int_eq(s.holdings[i].vote, REDLOCK_VOTE_REFUSED);
        ck_assert_uint_eq(strlen(s.holdings[i].holder), 8);
        ck_assert_mem_eq(s.holdings[i].holder, redlock_async_prefix(world.lock), 8);
        ck_assert_int_gt(s.holdings[i].ttl_ms, 8000);
        ck_assert_int_le(s.holdings[i].ttl_ms, 10000);
    }
    redlock_batch_release(b, 0);
}
END_TEST

START_TEST(each_node_says_what_it_has)
{
    world_start(5, NULL);
    world.options.node_timeout_us = 100 * US_PER_MS;
    world_open_voting();
    (void)cli(1, "SET", KEY, "me\x01you\xff..");
    (void)cli(2, "HSET", KEY, "uuid:1", "1");
    redis_server_kill(&world.servers[4]);
    run_until(redlock_async_voting(world.lock) == 4);
    world_signal(3, 1, SIGSTOP);
    struct seen s = inspect(KEY);
    world_signal(3, 1, SIGCONT);
    ck_assert_int_eq(s.holdings[0].vote, REDLOCK_VOTE_OK);
    ck_assert_str_eq(s.holdings[0].holder, "");
    ck_assert_int_eq(s.holdings[1].vote, REDLOCK_VOTE_REFUSED);
    ck_assert_str_eq(s.holdings[1].holder, "me?y"); /* half of a short value */
    ck_assert_int_eq(s.holdings[1].ttl_ms, -1);
    ck_assert_int_eq(s.holdings[2].vote, REDLOCK_VOTE_REFUSED);
    ck_assert_int_eq(s.holdings[3].vote, REDLOCK_VOTE_ERROR);
    ck_assert_int_eq(s.holdings[4].vote, REDLOCK_VOTE_DOWN);
}
END_TEST

#define TOKEN "a-token-of-27-characters..."
#define LABEL_64 "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

START_TEST(K3_a_holder_is_shown_with_its_label)
{
    static const struct {
        const char *value;
        const char *label;
    } values[] = {
        {TOKEN "|" LABEL_64, LABEL_64},
        {TOKEN "|" LABEL_64 "+", ""},
        {TOKEN, ""},
        {TOKEN "|", ""},
        {"|" TOKEN "|x", ""},
        {TOKEN "|a|b", "a|b"},
        {"", ""},
        {TOKEN "|\x1b]0;x\a\t\x80\xff", "?]0;x????"},
    };
    world_start(1, NULL);
    world.options.label = "db7 4711";
    world_open_voting();
    struct redlock_batch *b = world_acquire(world.lock, 1, 1);
    struct seen s = inspect(KEY);
    ck_assert_str_eq(s.holdings[0].label, "db7 4711");
    ck_assert_mem_eq(s.holdings[0].holder, redlock_async_prefix(world.lock), 8);
    redlock_batch_release(b, 0);
    world_flush(world.lock);
    for (size_t i = 0; i < ARRAY_COUNT(values); i++) {
        (void)cli(0, "SET", KEY, values[i].value);
        ck_assert_str_eq(inspect(KEY).holdings[0].label, values[i].label);
    }
    (void)cli(0, "DEL", KEY);
    (void)cli(0, "HSET", KEY, "uuid:1", "1");
    s = inspect(KEY);
    ck_assert_int_eq(s.holdings[0].vote, REDLOCK_VOTE_REFUSED);
    ck_assert_str_eq(s.holdings[0].label, "");
}
END_TEST

START_TEST(those_in_line_are_counted)
{
    world_start(3, NULL);
    world.options.no_line = false;
    world.options.prefix = "redlock:";
    world_open_voting();
    (void)cli(0, "ZADD", "redlock:line:" KEY, "1", "a", "2", "b", "3", "c");
    (void)cli(1, "SET", "redlock:line:" KEY, "no line");
    (void)cli(2, "ZADD", "redlock:line:" KEY, "1", "a");
    ck_assert_str_eq(cli(2, "ACL", "SETUSER", "default", "-zcard"), "OK");
    struct seen s = inspect(KEY);
    ck_assert_uint_eq(s.holdings[0].waiting, 3);
    for (size_t i = 0; i < 3; i++) { /* the remaining answers are valid */
        ck_assert_uint_eq(s.holdings[i].waiting, i == 0 ? 3 : 0);
        ck_assert_int_eq(s.holdings[i].vote, REDLOCK_VOTE_OK);
    }
    ck_assert_uint_eq(redlock_async_voting(world.lock), 3);
    ck_assert_uint_eq(redlock_async_counters(world.lock)->node_errors, 0);
}
END_TEST

START_TEST(C5_who_knows_no_line_asks_for_none)
{
    world_start(1, NULL);
    world_open_voting();
    (void)cli(0, "ZADD", "redlock:line:" KEY, "1", "a");
    ck_assert_uint_eq(inspect(KEY).holdings[0].waiting, 0);
    ck_assert_int_eq(world_calls(0, "zcard"), 0);
}
END_TEST

START_TEST(nobody_to_ask_is_an_answer)
{
    world_start(1, NULL);
    world_open_voting();
    redis_server_kill(&world.servers[0]);
    run_until(redlock_async_voting(world.lock) == 0);
    ck_assert_int_eq(inspect(KEY).holdings[0].vote, REDLOCK_VOTE_DOWN);
}
END_TEST

static struct seen seen_at_close;

START_TEST(closing_ends_it)
{
    world_start(1, NULL);
    world.options.node_timeout_us = 100 * US_PER_MS;
    world_open_voting();
    world_signal(0, 1, SIGSTOP);
    ck_assert_int_eq(redlock_async_inspect(world.lock, KEY, 3, on_inspected, &seen_at_close), 0);
    redlock_async_close(TAKE(world.lock), NULL, NULL);
    run_until(seen_at_close.calls == 1);
    ck_assert_int_eq(seen_at_close.holdings[0].vote, REDLOCK_VOTE_ERROR);
    world_signal(0, 1, SIGCONT);
}
END_TEST

START_TEST(a_key_out_of_bounds_is_refused)
{
    static char longest[REDLOCK_KEY_LEN_MAX + 1];
    struct seen s = {0};
    world_start(1, NULL);
    world_open_voting();
    ck_assert_int_eq(redlock_async_inspect(world.lock, "", 0, on_inspected, &s), -EINVAL);
    ck_assert_int_eq(redlock_async_inspect(world.lock, longest, sizeof longest, on_inspected, &s),
                     -EINVAL);
    ck_assert_int_eq(
        redlock_async_inspect(world.lock, longest, sizeof longest - 1, on_inspected, &s), 0);
    run_until(s.calls == 1);
    ck_assert_int_eq(s.holdings[0].vote, REDLOCK_VOTE_OK);
}
END_TEST

static void add_tests(TCase *t)
{
    tcase_add_test(t, K1_a_holder_is_shown_by_the_start_of_its_token_only);
    tcase_add_test(t, each_node_says_what_it_has);
    tcase_add_test(t, K3_a_holder_is_shown_with_its_label);
    tcase_add_test(t, those_in_line_are_counted);
    tcase_add_test(t, C5_who_knows_no_line_asks_for_none);
    tcase_add_test(t, nobody_to_ask_is_an_answer);
    tcase_add_test(t, closing_ends_it);
    tcase_add_test(t, a_key_out_of_bounds_is_refused);
}

int main(void)
{
    return world_main("redlock_inspect", add_tests);
}
