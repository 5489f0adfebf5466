/* SPDX-License-Identifier: Apache-2.0 */
#include "model/hint.h"
#include "test_hints_world.h"

#include <signal.h>
#include <stdio.h>

START_TEST(a_pushed_id_lies_in_its_set_under_its_score)
{
    push_one("default", NULL, 42, 4, 1700000000123);
    push_one("mail", "send", 43, 0, 5);
    ck_assert_str_eq(CLI(0, "ZRANGE", "claimd:hints:default", "0", "-1", "WITHSCORES"),
                     "42\n41700000000123\n");
    ck_assert_str_eq(CLI(0, "ZRANGE", "claimd:hints:mail:send", "0", "-1", "WITHSCORES"),
                     "43\n5\n");
    ck_assert_str_eq(CLI(1, "DBSIZE"), "0\n"); /* only one node at a time is used */
}
END_TEST

START_TEST(an_id_pushed_twice_is_there_once)
{
    push_one("default", NULL, 7, 4, 100);
    ck_assert_int_eq(world.added, 1);
    push_one("default", NULL, 7, 4, 100);
    ck_assert_int_eq(world.added, 0);
    ck_assert_str_eq(CLI(0, "ZCARD", "claimd:hints:default"), "1\n");
}
END_TEST

START_TEST(an_earlier_score_promotes_and_a_later_one_does_not_demote)
{
    push_one("default", NULL, 7, 4, 100);
    push_one("default", NULL, 7, 2, 900);
    ck_assert_str_eq(CLI(0, "ZSCORE", "claimd:hints:default", "7"), "20000000000900\n");
    push_one("default", NULL, 7, 9, 900);
    ck_assert_str_eq(CLI(0, "ZSCORE", "claimd:hints:default", "7"), "20000000000900\n");
}
END_TEST

START_TEST(hints_are_counted_by_priority)
{
    struct hint list[30];
    for (int i = 0; i < 30; i++) {
        list[i] = given_hint(1 + i, i < 10 ? 3 : 4, i == 9 ? INT64_C(9999999999999) : i);
    }
    push_all(list, 30);
    ck_assert_int_eq(count_of("default", NULL, 3), 10);
    ck_assert_int_eq(count_of("default", NULL, 4), 20);
    ck_assert_int_eq(count_of("default", NULL, 5), 0);
    ck_assert_int_eq(count_of("default", "other", 4), 0);
}
END_TEST

START_TEST(the_first_score_of_a_priority_comes_with_its_count)
{
    push_one("default", NULL, 7, 4, 100);
    push_one("default", NULL, 8, 4, 90);
    push_one("default", NULL, 9, 5, 1);
    ck_assert_int_eq(first_of("default", 4), hint_score(4, 90 * US_PER_MS));
    ck_assert_int_eq(first_of("default", 5), hint_score(5, US_PER_MS));
    ck_assert_int_eq(first_of("default", 3), -1);
    ck_assert_int_eq(first_of("other", 4), -1);
}
END_TEST

START_TEST(a_full_push_over_many_sets_arrives_whole)
{
    static struct hint list[HINTS_PUSH_MAX];
    static char queues[100][16];
    for (int i = 0; i < 100; i++) {
        (void)snprintf(queues[i], sizeof queues[i], "q%d", i);
    }
    for (int i = 0; i < HINTS_PUSH_MAX; i++) {
        list[i] = given_hint(1 + i, 4, i);
        list[i].queue = queues[i % 100];
    }
    push_all(list, HINTS_PUSH_MAX);
    ck_assert_int_eq(world.push_status, STATUS_OK);
    ck_assert_int_eq(world.added, HINTS_PUSH_MAX);
    ck_assert_str_eq(CLI(0, "DBSIZE"), "100\n");
    ck_assert_int_eq(count_of("q0", NULL, 4), HINTS_PUSH_MAX / 100);
    ck_assert_int_eq(count_of("q99", NULL, 4), HINTS_PUSH_MAX / 100);
}
END_TEST

START_TEST(pushes_move_to_the_next_node_and_back)
{
    push_one("default", NULL, 1, 4, 1);
    ck_assert_int_eq(hints_active_node(world.hints), 0);
    redis_server_kill(&world.servers[0]);
    RUN_UNTIL(world.node_downs[0] == 1);
    ck_assert_int_eq(hints_active_node(world.hints), 1);
    push_one("default", NULL, 2, 4, 2);
    ck_assert_str_eq(CLI(1, "ZRANGE", "claimd:hints:default", "0", "-1"), "2\n");
    assert_ok(redis_server_restart(&world.servers[0], err));
    RUN_UNTIL(world.node_ups[0] == 2);
    ck_assert_int_eq(hints_active_node(world.hints), 0);
}
END_TEST

START_TEST(a_restart_is_noticed_as_an_empty_memory)
{
    ck_assert_int_eq(world.node_empties[1], 0);
    redis_server_kill(&world.servers[1]);
    assert_ok(redis_server_restart(&world.servers[1], err));
    RUN_UNTIL(world.node_ups[1] == 2);
    ck_assert_int_eq(world.node_empties[1], 1);
    ck_assert_int_eq(world.node_empties[0], 0);
}
END_TEST

START_TEST(a_lost_connection_alone_is_no_empty_memory)
{
    (void)CLI(0, "CLIENT", "KILL", "TYPE", "normal");
    RUN_UNTIL(world.node_ups[0] == 2);
    ck_assert_int_eq(world.node_downs[0], 1);
    ck_assert_int_eq(world.node_empties[0], 0);
}
END_TEST

static void on_pushed(void *ctx, enum status st, int64_t added)
{
    (void)added;
    *(enum status *)ctx = st;
}

START_TEST(without_a_node_a_push_is_refused_at_once)
{
    struct hint h = given_hint(1, 4, 1);
    enum status st = STATUS_OK;
    redis_server_kill(&world.servers[0]);
    redis_server_kill(&world.servers[1]);
    RUN_UNTIL(world.node_downs[0] == 1 && world.node_downs[1] == 1);
    ck_assert(!hints_is_up(world.hints));
    ck_assert_int_eq(hints_active_node(world.hints), -1);
    ck_assert_int_eq(hints_push(world.hints, &h, 1, on_pushed, &st, NULL), STATUS_UNAVAILABLE);
}
END_TEST

/* A full server answers with OOM: the connection works, but not the node. */
START_TEST(a_node_that_refuses_a_push_rests_and_the_next_one_takes_over)
{
    struct hint h = given_hint(1, 4, 1);
    (void)CLI(0, "CONFIG", "SET", "maxmemory", "1");
    push_all(&h, 1);
    ck_assert_int_eq(world.push_status, STATUS_UNAVAILABLE);
    ck_assert_int_eq(hints_active_node(world.hints), 1);
    RUN_UNTIL(world.node_downs[0] == 1);
    ck_assert_ptr_nonnull(strstr(world.why.msg, "OOM"));
    push_all(&h, 1);
    ck_assert_int_eq(world.push_status, STATUS_OK);
    (void)CLI(0, "CONFIG", "SET", "maxmemory", "0");
    RUN_UNTIL(world.node_ups[0] == 2);
    ck_assert_int_eq(hints_active_node(world.hints), 0);
}
END_TEST

START_TEST(a_replica_is_refused)
{
    (void)CLI(0, "REPLICAOF", "127.0.0.1", "1");
    (void)CLI(0, "CLIENT", "KILL", "TYPE", "normal");
    RUN_UNTIL(world.node_downs[0] >= 1 && strstr(world.why.msg, "replica") != NULL);
    ck_assert_int_eq(hints_active_node(world.hints), 1);
}
END_TEST

START_TEST(closing_answers_what_is_under_way)
{
    struct hint h = given_hint(1, 4, 1);
    enum status st = STATUS_OK;
    ck_assert_int_eq(kill(world.servers[0].pid, SIGSTOP), 0);
    assert_ok(hints_push(world.hints, &h, 1, on_pushed, &st, err));
    hints_close(TAKE(world.hints));
    ck_assert_int_eq(st, STATUS_UNAVAILABLE);
    ck_assert_int_eq(kill(world.servers[0].pid, SIGCONT), 0);
}
END_TEST

static void add_tests(TCase *t)
{
    tcase_add_test(t, a_pushed_id_lies_in_its_set_under_its_score);
    tcase_add_test(t, an_id_pushed_twice_is_there_once);
    tcase_add_test(t, an_earlier_score_promotes_and_a_later_one_does_not_demote);
    tcase_add_test(t, hints_are_counted_by_priority);
    tcase_add_test(t, the_first_score_of_a_priority_comes_with_its_count);
    tcase_add_test(t, a_full_push_over_many_sets_arrives_whole);
    tcase_add_test(t, pushes_move_to_the_next_node_and_back);
    tcase_add_test(t, a_restart_is_noticed_as_an_empty_memory);
    tcase_add_test(t, a_lost_connection_alone_is_no_empty_memory);
    tcase_add_test(t, without_a_node_a_push_is_refused_at_once);
    tcase_add_test(t, a_node_that_refuses_a_push_rests_and_the_next_one_takes_over);
    tcase_add_test(t, a_replica_is_refused);
    tcase_add_test(t, closing_answers_what_is_under_way);
}

int main(void)
{
    return world_main("hints_push", add_tests);
}
