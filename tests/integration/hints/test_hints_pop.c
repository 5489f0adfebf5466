/* SPDX-License-Identifier: Apache-2.0 */
#include "test_hints_world.h"

#include <signal.h>
#include <stdio.h>

#define SETS(...) ((const char *const[]){__VA_ARGS__, NULL})

static void push_range(const char *queue, const char *kind, int64_t from, int64_t to, int64_t step,
                       int priority)
{
    static struct hint list[HINTS_PUSH_MAX];
    size_t n = 0;
    for (int64_t id = from; id <= to; id += step) {
        list[n] = given_hint(id, priority, id);
        list[n].queue = queue;
        list[n++].kind = kind;
    }
    push_all(list, n);
    ck_assert_int_eq(world.push_status, STATUS_OK);
}

static void assert_popped_in_order(int64_t from, int64_t to)
{
    for (int64_t id = from; id <= to; id++) {
        ck_assert_int_eq(world.popped[id - from].id, id);
    }
}

START_TEST(a_blocking_pop_is_woken_by_a_push_and_not_by_its_timeout)
{
    world_open_popper_for(SETS("default"), WAIT_US + US_PER_S);
    world_want(10);
    RUN_UNTIL(strstr(CLI(0, "INFO", "clients"), "blocked_clients:1") != NULL);
    push_one("default", NULL, 42, 4, 100);
    RUN_UNTIL(world.popped_count == 1);
    ck_assert_int_eq(world.popped[0].id, 42);
    ck_assert_int_eq(world.popped[0].score, INT64_C(40000000000100));
    ck_assert_str_eq(world.popped[0].set, "default");
}
END_TEST

START_TEST(a_blocking_pop_goes_on_after_its_timeout)
{
    world_open_popper(SETS("default"));
    world_want(10);
    int64_t end_us = clock_boot_us() + 2 * BLOCK_US;
    RUN_UNTIL(clock_boot_us() > end_us);
    push_one("default", NULL, 1, 4, 1);
    RUN_UNTIL(world.popped_count == 1);
    ck_assert_int_eq(world.lost, 0);
}
END_TEST

START_TEST(a_trickle_is_popped_without_looking_for_more_after_each_hint)
{
    world_open_popper_for(SETS("default", "mail"), WAIT_US + US_PER_S);
    world_want(10);
    for (int64_t id = 1; id <= 3; id++) {
        RUN_UNTIL(strstr(CLI(0, "INFO", "clients"), "blocked_clients:1") != NULL);
        push_one("mail", NULL, id, 4, 1);
        RUN_UNTIL(world.popped_count == (size_t)id);
    }
    RUN_UNTIL(strstr(CLI(0, "INFO", "clients"), "blocked_clients:1") != NULL);
    ck_assert_ptr_null(strstr(CLI(0, "INFO", "commandstats"), "cmdstat_evalsha"));
}
END_TEST

START_TEST(under_load_the_lowest_scores_of_all_sets_come_first)
{
    push_range("default", NULL, 1, 999, 3, 4);
    push_range("mail", NULL, 2, 999, 3, 4);
    push_range("mail", "send", 3, 999, 3, 4);
    world_open_popper(SETS("default", "mail", "mail:send"));
    world.is_want_used_up = true;
    world_want(1); /* the first pop blocks, and so takes from one set only */
    RUN_UNTIL(world.popped_count == 1);
    world_want(300);
    RUN_UNTIL(world.popped_count == 301);
    ck_assert_int_le(world.popped[0].id, 3);
    for (size_t i = 0; i < 301; i++) {
        ck_assert_int_le(world.popped[i].id, 301);
    }
    ck_assert_int_eq(count_of("default", NULL, 4), 333 - 101);
    ck_assert_int_eq(count_of("mail", NULL, 4), 333 - 100);
    ck_assert_int_eq(count_of("mail", "send", 4), 333 - 100);
}
END_TEST

START_TEST(no_priority_waits_behind_a_lower_one_of_another_set)
{
    push_range("default", NULL, 1, 99, 2, 9);
    push_range("mail", NULL, 2, 100, 2, 1);
    push_range("default", NULL, 1001, 1010, 1, 0);
    world_open_popper(SETS("default", "mail"));
    world.is_want_used_up = true;
    world_want(1);
    RUN_UNTIL(world.popped_count == 1);
    world_want(200);
    RUN_UNTIL(world.popped_count == 110);
    for (size_t i = 2; i < world.popped_count; i++) {
        ck_assert_int_le(world.popped[i - 1].score, world.popped[i].score);
    }
}
END_TEST

START_TEST(one_set_is_popped_in_order_whole_and_once)
{
    push_range("default", NULL, 1, 5000, 1, 4);
    world_open_popper(SETS("default", "empty"));
    world_want(HINTS_POP_MAX);
    RUN_UNTIL(world.popped_count == 5000);
    assert_popped_in_order(1, 5000);
    ck_assert_uint_le(world.biggest_pop, HINTS_POP_MAX);
    ck_assert_uint_eq(hints_popper_counters(world.popper)->popped, 5000);
    ck_assert_str_eq(CLI(0, "EXISTS", "claimd:hints:default"), "0\n");
}
END_TEST

START_TEST(a_lower_number_is_a_higher_priority)
{
    push_range("default", NULL, 101, 200, 1, 5);
    push_range("default", NULL, 1, 100, 1, 0);
    world_open_popper(SETS("default"));
    world_want(150);
    RUN_UNTIL(world.popped_count == 200);
    assert_popped_in_order(1, 200);
}
END_TEST

/* So that hints that are put back keep their priority. */
START_TEST(each_priority_of_a_set_comes_with_a_score_of_its_own)
{
    push_range("default", NULL, 1, 3, 1, 4);
    world_open_popper(SETS("default"));
    world.is_want_used_up = true;
    world_want(3); /* leaves the loop in the state in which the script pops next */
    RUN_UNTIL(world.popped_count == 3);
    push_range("default", NULL, 10, 12, 1, 4);
    push_range("default", NULL, 20, 22, 1, 7);
    world_want(6);
    RUN_UNTIL(world.popped_count == 9);
    for (size_t i = 3; i < 9; i++) {
        ck_assert_int_eq(world.popped[i].score, world.popped[i].id < 20 ? INT64_C(40000000000010)
                                                                        : INT64_C(70000000000020));
    }
}
END_TEST

START_TEST(H3_members_that_are_no_ids_are_dropped_and_counted)
{
    (void)CLI(0, "ZADD", "claimd:hints:default", "1", "x", "2", "-1");
    (void)CLI(0, "ZADD", "claimd:hints:default", "3", "9223372036854775808");
    (void)CLI(0, "ZADD", "claimd:hints:default", "3", "01", "-inf", "0");
    (void)CLI(0, "ZADD", "claimd:hints:default", "inf", "5", "7", "6");
    world_open_popper(SETS("default"));
    world_want(2);
    RUN_UNTIL(world.popped_count == 2);
    ck_assert_int_eq(world.popped[0].id, 6);
    ck_assert_int_eq(world.popped[1].id, 5);
    ck_assert_uint_eq(hints_popper_counters(world.popper)->junk, 5);
    ck_assert_int_eq(world.lost, 0);
}
END_TEST

/* redteam 20: BZMPOP serves the first set that is not empty. */
START_TEST(a_set_that_is_never_empty_does_not_starve_the_others)
{
    push_range("busy", NULL, 1000, 2000, 1, 4);
    push_one("calm", NULL, 7, 0, 1);
    world_open_popper(SETS("busy", "calm"));
    world.is_want_used_up = true;
    world_want(1);
    RUN_UNTIL(world.popped_count >= 1);
    world_want(1);
    RUN_UNTIL(world.popped_count >= 2);
    ck_assert(world.popped[0].id == 7 || world.popped[1].id == 7);
}
END_TEST

START_TEST(blocking_pops_begin_with_another_set_each_time)
{
    bool was_first[4] = {false};
    world_open_popper(SETS("a", "b", "c"));
    world.is_want_used_up = true;
    push_one("a", NULL, 1, 4, 1);
    world_want(1);
    RUN_UNTIL(world.popped_count == 1);
    for (int round = 1; round <= 3; round++) {
        char calls[64];
        (void)snprintf(calls, sizeof calls, "cmdstat_evalsha:calls=%d,", round);
        (void)CLI(0, "FLUSHALL");
        world_want(1); /* a script pop that finds nothing */
        world.want = 0;
        RUN_UNTIL(strstr(CLI(0, "INFO", "commandstats"), calls) != NULL);
        push_one("a", NULL, 1, 4, 1);
        push_one("b", NULL, 2, 4, 1);
        push_one("c", NULL, 3, 4, 1);
        world_want(1);
        RUN_UNTIL(world.popped_count == 1 + (size_t)round);
        was_first[world.popped[round].id] = true;
    }
    ck_assert(was_first[1] && was_first[2] && was_first[3]);
}
END_TEST

static void on_put_back(void *ctx, enum status st, int64_t added)
{
    ck_assert_int_eq(st, STATUS_OK);
    *(int64_t *)ctx += added;
}

/* INTERFACES rule 6. */
START_TEST(surplus_can_be_put_back_with_its_score_and_comes_again)
{
    int64_t added = 0;
    struct hint list[4];
    push_range("default", NULL, 1, 4, 1, 4);
    world_open_popper(SETS("default"));
    world.is_want_used_up = true;
    world_want(4);
    RUN_UNTIL(world.popped_count == 4);
    for (size_t i = 0; i < 4; i++) {
        list[i] = (struct hint){
            .id = world.popped[i].id, .score = world.popped[i].score, .queue = "default"};
    }
    assert_ok(hints_push(world.hints, list, 4, on_put_back, &added, err));
    RUN_UNTIL(added == 4);
    world_want(4);
    RUN_UNTIL(world.popped_count == 8);
    ck_assert_int_eq(world.popped[4].score, world.popped[0].score);
}
END_TEST

START_TEST(without_want_nothing_is_popped_until_poked)
{
    push_range("default", NULL, 1, 3, 1, 4);
    world_open_popper(SETS("default"));
    int64_t end_us = clock_boot_us() + 50 * US_PER_MS;
    RUN_UNTIL(clock_boot_us() > end_us);
    ck_assert_uint_eq(world.popped_count, 0);
    ck_assert_str_eq(CLI(0, "ZCARD", "claimd:hints:default"), "3\n");
    world_want(3);
    RUN_UNTIL(world.popped_count == 3);
}
END_TEST

START_TEST(sets_that_are_left_count_until_the_next_pop)
{
    world_open_popper(SETS("a", "b:kind"));
    world_want(5);
    RUN_UNTIL(strstr(CLI(0, "INFO", "clients"), "blocked_clients:1") != NULL);
    world_listen(SETS("b:kind"));
    push_one("a", NULL, 1, 4, 1); /* the blocked pop still returns it, under its own name */
    RUN_UNTIL(world.popped_count == 1);
    ck_assert_str_eq(world.popped[0].set, "a");
    push_one("b", "kind", 2, 4, 1);
    RUN_UNTIL(world.popped_count == 2);
    ck_assert_str_eq(world.popped[1].set, "b:kind");
    push_one("a", NULL, 3, 4, 1);
    int64_t end_us = clock_boot_us() + 50 * US_PER_MS;
    RUN_UNTIL(clock_boot_us() > end_us);
    ck_assert_uint_eq(world.popped_count, 2);
}
END_TEST

START_TEST(a_popper_hears_of_pushes_to_any_node)
{
    world_open_popper(SETS("default"));
    world_want(5);
    push_one("default", NULL, 1, 4, 1);
    RUN_UNTIL(world.popped_count == 1);
    redis_server_kill(&world.servers[0]);
    RUN_UNTIL(hints_active_node(world.hints) == 1);
    push_one("default", NULL, 2, 4, 2);
    RUN_UNTIL(world.popped_count == 2);
    ck_assert_int_eq(world.popped[1].id, 2);
}
END_TEST

START_TEST(a_flush_leaves_a_popper_that_goes_on)
{
    push_range("default", NULL, 1, 1000, 1, 4);
    world_open_popper(SETS("default"));
    world.is_want_used_up = true;
    world_want(100);
    RUN_UNTIL(world.popped_count >= 100);
    (void)CLI(0, "FLUSHALL");
    (void)CLI(0, "SCRIPT", "FLUSH");
    world.is_want_used_up = false;
    world_want(100);
    push_range("default", NULL, 5000, 5009, 1, 4);
    RUN_UNTIL(world.popped[world.popped_count - 1].id == 5009);
}
END_TEST

/* crash.W0 */
START_TEST(W0_a_reply_lost_with_its_connection_is_told)
{
    world_open_popper(SETS("default"));
    world_want(5);
    RUN_UNTIL(strstr(CLI(0, "INFO", "clients"), "blocked_clients:1") != NULL);
    (void)CLI(0, "CLIENT", "KILL", "TYPE", "normal");
    RUN_UNTIL(world.lost == 1);
    ck_assert_uint_eq(hints_popper_counters(world.popper)->lost_replies, 1);
    RUN_UNTIL(hints_is_up(world.hints) && hints_active_node(world.hints) == 0);
    push_one("default", NULL, 9, 4, 1);
    RUN_UNTIL(world.popped_count == 1);
}
END_TEST

START_TEST(W0_a_stopped_server_is_a_lost_reply_after_the_deadline)
{
    push_range("default", NULL, 1, 10, 1, 4);
    world_open_popper(SETS("default"));
    ck_assert_int_eq(kill(world.servers[0].pid, SIGSTOP), 0);
    world_want(5);
    RUN_UNTIL(world.lost == 1);
    ck_assert_int_eq(kill(world.servers[0].pid, SIGCONT), 0);
    RUN_UNTIL(world.popped_count >= 5);
}
END_TEST

START_TEST(W0_a_pop_under_way_at_the_close_may_have_lost_ids)
{
    world_open_popper(SETS("default"));
    world_want(5);
    RUN_UNTIL(strstr(CLI(0, "INFO", "clients"), "blocked_clients:1") != NULL);
    hints_popper_close(TAKE(world.popper));
    ck_assert_int_ge(world.lost, 1);
}
END_TEST

START_TEST(a_key_of_another_type_rests_the_node_and_is_reported)
{
    (void)CLI(0, "SET", "claimd:hints:default", "junk");
    world_open_popper(SETS("default"));
    world_want(5);
    RUN_UNTIL(world.node_downs[0] == 1);
    ck_assert_ptr_nonnull(strstr(world.why.msg, "WRONGTYPE"));
    ck_assert_int_eq(world.lost, 0);
    (void)CLI(0, "DEL", "claimd:hints:default");
    push_one("default", NULL, 1, 4, 1);
    RUN_UNTIL(world.popped_count == 1);
}
END_TEST

START_TEST(C5_the_documented_acl_is_enough)
{
    (void)CLI(0, "ACL", "SETUSER", "default", "resetkeys", "resetchannels", "-@all", "~claimd:*",
              "&claimd:*", "+set", "+get", "+mget", "+del", "+pexpire", "+pttl", "+evalsha",
              "+eval", "+script|load", "+time", "+info", "+ping", "+hello", "+auth", "+select",
              "+command|info", "+client|id", "+client|kill", "+client|unblock", "+publish",
              "+subscribe", "+zadd", "+bzmpop", "+zrange", "+zremrangebyrank", "+zcard", "+zcount",
              "+zrem");
    ck_assert_ptr_nonnull(strstr(CLI(0, "FLUSHALL"), "NOPERM"));
    world_open_popper(SETS("default", "mail:send"));
    push_range("default", NULL, 1, 99, 2, 4);
    push_range("mail", "send", 2, 100, 2, 4);
    ck_assert_int_eq(count_of("default", NULL, 4), 50);
    world_want(10);
    RUN_UNTIL(world.popped_count == 100);
    ck_assert_int_eq(world.node_downs[0], 0);
}
END_TEST

START_TEST(more_sets_than_a_pop_takes_are_refused)
{
    static struct hints_set sets[HINTS_SETS_MAX + 1];
    world_open_popper(SETS("default"));
    ck_assert_int_eq(
        hints_popper_listen(world.popper, sets, HINTS_SETS_MAX + 1, HINTS_LEFT_BLOCKED, NULL),
        STATUS_LIMIT);
}
END_TEST

static void add_tests(TCase *t)
{
    tcase_add_test(t, a_blocking_pop_is_woken_by_a_push_and_not_by_its_timeout);
    tcase_add_test(t, a_blocking_pop_goes_on_after_its_timeout);
    tcase_add_test(t, a_trickle_is_popped_without_looking_for_more_after_each_hint);
    tcase_add_test(t, under_load_the_lowest_scores_of_all_sets_come_first);
    tcase_add_test(t, no_priority_waits_behind_a_lower_one_of_another_set);
    tcase_add_test(t, one_set_is_popped_in_order_whole_and_once);
    tcase_add_test(t, a_lower_number_is_a_higher_priority);
    tcase_add_test(t, each_priority_of_a_set_comes_with_a_score_of_its_own);
    tcase_add_test(t, H3_members_that_are_no_ids_are_dropped_and_counted);
    tcase_add_test(t, a_set_that_is_never_empty_does_not_starve_the_others);
    tcase_add_test(t, blocking_pops_begin_with_another_set_each_time);
    tcase_add_test(t, surplus_can_be_put_back_with_its_score_and_comes_again);
    tcase_add_test(t, without_want_nothing_is_popped_until_poked);
    tcase_add_test(t, sets_that_are_left_count_until_the_next_pop);
    tcase_add_test(t, a_popper_hears_of_pushes_to_any_node);
    tcase_add_test(t, a_flush_leaves_a_popper_that_goes_on);
    tcase_add_test(t, W0_a_reply_lost_with_its_connection_is_told);
    tcase_add_test(t, W0_a_stopped_server_is_a_lost_reply_after_the_deadline);
    tcase_add_test(t, W0_a_pop_under_way_at_the_close_may_have_lost_ids);
    tcase_add_test(t, a_key_of_another_type_rests_the_node_and_is_reported);
    tcase_add_test(t, C5_the_documented_acl_is_enough);
    tcase_add_test(t, more_sets_than_a_pop_takes_are_refused);
}

int main(void)
{
    return world_main("hints_pop", add_tests);
}
