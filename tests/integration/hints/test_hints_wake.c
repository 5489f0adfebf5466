/* SPDX-License-Identifier: Apache-2.0
 *
 * A blocked pop is woken when the popper listens to other sets. Its timeout is longer than any
 * test, so nothing that arrives here has waited for it. */
#include "base/parse.h"
#include "test_hints_world.h"

#include <signal.h>
#include <stdio.h>

#define SETS(...) ((const char *const[]){__VA_ARGS__, NULL})
#define WAKE_KEY "claimd:hints:!me"

static void open_blocked(const char *const *sets)
{
    world_open_popper_for(sets, 2 * WAIT_US);
    world_want(10);
    RUN_UNTIL(strstr(CLI(0, "INFO", "clients"), "blocked_clients:1") != NULL);
}

/* Returns how often a node received a command. */
static int64_t calls_of(size_t node, const char *command)
{
    char name[64];
    int len = snprintf(name, sizeof name, "cmdstat_%s:calls=", command);
    const char *at = strstr(CLI(node, "INFO", "commandstats"), name);
    return at == NULL ? 0 : strtoll(at + len, NULL, 10);
}

static void assert_popped(const char *queue, int64_t id)
{
    size_t before = world.popped_count;
    push_one(queue, NULL, id, 4, 1);
    RUN_UNTIL(world.popped_count == before + 1);
    ck_assert_int_eq(world.popped[before].id, id);
    ck_assert_int_eq(world.lost, 0);
    ck_assert_uint_eq(hints_popper_counters(world.popper)->lost_replies, 0);
    ck_assert_uint_eq(hints_popper_counters(world.popper)->junk, 0);
}

START_TEST(a_blocked_pop_takes_up_a_new_set_at_once)
{
    open_blocked(SETS("a"));
    world_listen(SETS("a", "b"));
    assert_popped("b", 1);
    ck_assert_int_eq(calls_of(0, "zadd"), 2); /* the wake and the hint */
    ck_assert_str_eq(CLI(0, "EXISTS", WAKE_KEY), "0\n");
}
END_TEST

START_TEST(a_pop_that_lacks_nothing_goes_on)
{
    open_blocked(SETS("a", "b"));
    world_listen(SETS("b"));
    world_listen(SETS("a", "b"));
    assert_popped("a", 1);
    ck_assert_int_eq(calls_of(0, "zadd"), 1);
}
END_TEST

START_TEST(a_blocked_pop_leaves_a_set_at_once_where_that_is_asked)
{
    open_blocked(SETS("a", "b"));
    world_listen_only(SETS("b"));
    RUN_UNTIL(calls_of(0, "bzmpop") == 2);
    push_one("a", NULL, 1, 4, 1);
    assert_popped("b", 2);
    ck_assert_str_eq(CLI(0, "ZCARD", "claimd:hints:a"), "1\n");
}
END_TEST

START_TEST(a_pop_that_listens_to_nothing_any_more_ends_at_once)
{
    open_blocked(SETS("a"));
    world_listen_only(SETS(NULL));
    RUN_UNTIL(strstr(CLI(0, "INFO", "clients"), "blocked_clients:0") != NULL);
    push_one("a", NULL, 1, 4, 1);
    ck_assert_str_eq(CLI(0, "ZCARD", "claimd:hints:a"), "1\n");
    ck_assert_int_eq(world.lost, 0);
}
END_TEST

START_TEST(a_wake_that_comes_before_the_pop_ends_it_and_the_next_one_goes_on)
{
    (void)CLI(0, "ZADD", WAKE_KEY, "0", "w");
    open_blocked(SETS("a"));
    ck_assert_int_eq(calls_of(0, "bzmpop"), 2);
    assert_popped("a", 1);
}
END_TEST

START_TEST(a_wake_that_comes_after_the_pop_costs_one_empty_pop)
{
    open_blocked(SETS("a"));
    world_listen(SETS("a", "b"));
    RUN_UNTIL(calls_of(0, "bzmpop") == 2);
    for (int late = 1; late <= 3; late++) {
        (void)CLI(0, "ZADD", WAKE_KEY, "0", "w");
        RUN_UNTIL(calls_of(0, "bzmpop") == 2 + late);
        RUN_UNTIL(strstr(CLI(0, "INFO", "clients"), "blocked_clients:1") != NULL);
    }
    assert_popped("b", 1);
    ck_assert_int_le(calls_of(0, "bzmpop"), 6);
}
END_TEST

#define OPENINGS 1000

START_TEST(an_opening_costs_a_blocked_node_two_commands_and_loses_no_reply)
{
    open_blocked(SETS("a", "b"));
    int64_t before = calls_of(0, "zadd") + calls_of(0, "bzmpop");
    for (int i = 0; i < OPENINGS; i++) {
        world_listen(SETS("a"));
        world_listen(SETS("a", "b"));
        (void)uv_run(&world.loop, UV_RUN_NOWAIT);
    }
    int64_t after = calls_of(0, "zadd") + calls_of(0, "bzmpop");
    ck_assert_int_le(after - before, 2 * OPENINGS);
    assert_popped("b", 1);
}
END_TEST

/* Each opening follows the end of the pop before it, so none are merged. */
START_TEST(openings_that_take_turns_with_pops_cost_no_more)
{
    open_blocked(SETS("a"));
    int64_t before = calls_of(0, "zadd") + calls_of(0, "bzmpop");
    for (int i = 1; i <= 50; i++) {
        char queue[16];
        (void)snprintf(queue, sizeof queue, "q%d", i);
        world_listen(SETS("a", queue));
        RUN_UNTIL(calls_of(0, "bzmpop") == 1 + i);
    }
    int64_t after = calls_of(0, "zadd") + calls_of(0, "bzmpop");
    ck_assert_int_le(after - before, 2 * 50);
    assert_popped("q50", 1);
}
END_TEST

START_TEST(where_a_node_is_down_the_others_are_woken)
{
    open_blocked(SETS("a"));
    redis_server_kill(&world.servers[1]);
    world_listen(SETS("a", "b"));
    push_one("b", NULL, 1, 4, 1);
    RUN_UNTIL(world.popped_count == 1);
    world_listen(SETS("a", "b", "c"));
    push_one("c", NULL, 2, 4, 1);
    RUN_UNTIL(world.popped_count == 2);
    ck_assert_int_le(world.lost, 1); /* of the killed connection */
}
END_TEST

START_TEST(H3_a_stranger_may_fill_the_set_that_wakes)
{
    for (int i = 0; i < 20; i++) {
        char members[4][16];
        for (int k = 0; k < 4; k++) {
            (void)snprintf(members[k], sizeof members[k], "%d", 100 + 4 * i + k);
        }
        (void)CLI(0, "ZADD", WAKE_KEY, "1", members[0], "-inf", members[1], "2", members[2], "inf",
                  members[3]);
    }
    open_blocked(SETS("a"));
    RUN_UNTIL(strcmp(CLI(0, "EXISTS", WAKE_KEY), "0\n") == 0);
    RUN_UNTIL(strstr(CLI(0, "INFO", "clients"), "blocked_clients:1") != NULL);
    ck_assert_int_le(calls_of(0, "bzmpop"), 4); /* not one pop for each of them */
    ck_assert_uint_eq(world.popped_count, 0);
    assert_popped("a", 1);
}
END_TEST

START_TEST(H3_another_type_in_the_place_of_the_set_that_wakes_is_taken_away)
{
    (void)CLI(0, "SET", WAKE_KEY, "junk");
    world_open_popper_for(SETS("a"), 2 * WAIT_US);
    world_want(10);
    RUN_UNTIL(world.node_downs[0] == 1); /* it is down for a second */
    RUN_UNTIL(strstr(CLI(0, "INFO", "clients"), "blocked_clients:1") != NULL);
    assert_popped("a", 1);
    RUN_UNTIL(strstr(CLI(0, "INFO", "clients"), "blocked_clients:1") != NULL);
    (void)CLI(0, "SET", WAKE_KEY, "junk"); /* while the pop is blocked */
    world_listen(SETS("a", "b"));
    assert_popped("b", 2);
    ck_assert_str_eq(CLI(0, "EXISTS", WAKE_KEY), "0\n");
}
END_TEST

START_TEST(C5_the_worker_of_the_example_acl_may_wake)
{
    (void)CLI(0, "ACL", "SETUSER", "default", "resetkeys", "resetchannels", "-@all",
              "(~claimd:hints:* +zadd +bzmpop +eval +evalsha +zrange +zremrangebyrank +zcard"
              " +zcount +unlink)",
              "+script|load", "+time", "+info", "+client|id", "+client|kill", "+command|info");
    open_blocked(SETS("a"));
    world_listen(SETS("a", "b"));
    assert_popped("b", 1);
    hints_forget_sleeper(world.hints, "me");
    assert_popped("a", 2);
    ck_assert_int_eq(world.node_downs[0], 0);
}
END_TEST

START_TEST(what_a_sleeper_leaves_is_removed_from_every_node)
{
    for (size_t node = 0; node < NODES; node++) {
        (void)CLI(node, "ZADD", WAKE_KEY, "0", "w");
        (void)CLI(node, "ZADD", "claimd:hints:!another", "0", "w");
    }
    hints_forget_sleeper(world.hints, "me");
    RUN_UNTIL(strcmp(CLI(0, "EXISTS", WAKE_KEY), "0\n") == 0 &&
              strcmp(CLI(1, "EXISTS", WAKE_KEY), "0\n") == 0);
    ck_assert_str_eq(CLI(0, "EXISTS", "claimd:hints:!another"), "1\n");
}
END_TEST

START_TEST(news_reach_a_popper_that_blocks)
{
    static const char *const names[] = {"another", "me"};
    open_blocked(SETS("a"));
    assert_ok(hints_tell_sleepers(world.hints, names, 2, err));
    RUN_UNTIL(world.news == 1);
    assert_popped("a", 1);
    ck_assert_int_eq(world.news, 1);
    ck_assert_str_eq(CLI(0, "ZCARD", "claimd:hints:!another"), "1\n");
}
END_TEST

START_TEST(news_reach_a_popper_that_never_blocks)
{
    static const char *const names[] = {"me"};
    static struct hint list[HINTS_PUSH_MAX];
    for (int64_t i = 0; i < HINTS_PUSH_MAX; i++) {
        list[i] = given_hint(1 + i, 4, 1);
        list[i].queue = i % 2 == 0 ? "a" : "b";
    }
    push_all(list, HINTS_PUSH_MAX);
    world_open_popper_for(SETS("a", "b*3"), 2 * WAIT_US);
    world.is_want_used_up = true;
    world_want(10); /* blocks, and gets as many as it asks for */
    RUN_UNTIL(world.want == 0);
    assert_ok(hints_tell_sleepers(world.hints, names, 1, err));
    RUN_UNTIL(calls_of(0, "zadd") > 0 && strcmp(CLI(0, "EXISTS", WAKE_KEY), "1\n") == 0);
    world_want(10);
    RUN_UNTIL(world.want == 0);
    ck_assert_int_eq(world.news, 1);
    ck_assert_uint_eq(world.popped_count, 20);
    ck_assert_int_eq(calls_of(0, "bzmpop"), 1);
    ck_assert_uint_eq(hints_popper_counters(world.popper)->lost_replies, 0);
    ck_assert_uint_eq(hints_popper_counters(world.popper)->junk, 0);
}
END_TEST

START_TEST(a_popper_may_close_while_a_wake_is_under_way)
{
    open_blocked(SETS("a"));
    world_listen(SETS("a", "b"));
    hints_popper_close(TAKE(world.popper));
    push_one("a", NULL, 1, 4, 1);
    ck_assert_int_eq(world.push_status, STATUS_OK);
}
END_TEST

static void add_tests(TCase *t)
{
    tcase_add_test(t, a_blocked_pop_takes_up_a_new_set_at_once);
    tcase_add_test(t, a_pop_that_lacks_nothing_goes_on);
    tcase_add_test(t, a_blocked_pop_leaves_a_set_at_once_where_that_is_asked);
    tcase_add_test(t, a_pop_that_listens_to_nothing_any_more_ends_at_once);
    tcase_add_test(t, a_wake_that_comes_before_the_pop_ends_it_and_the_next_one_goes_on);
    tcase_add_test(t, a_wake_that_comes_after_the_pop_costs_one_empty_pop);
    tcase_add_test(t, an_opening_costs_a_blocked_node_two_commands_and_loses_no_reply);
    tcase_add_test(t, openings_that_take_turns_with_pops_cost_no_more);
    tcase_add_test(t, where_a_node_is_down_the_others_are_woken);
    tcase_add_test(t, H3_a_stranger_may_fill_the_set_that_wakes);
    tcase_add_test(t, H3_another_type_in_the_place_of_the_set_that_wakes_is_taken_away);
    tcase_add_test(t, C5_the_worker_of_the_example_acl_may_wake);
    tcase_add_test(t, what_a_sleeper_leaves_is_removed_from_every_node);
    tcase_add_test(t, news_reach_a_popper_that_blocks);
    tcase_add_test(t, news_reach_a_popper_that_never_blocks);
    tcase_add_test(t, a_popper_may_close_while_a_wake_is_under_way);
}

int main(void)
{
    return world_main("hints_wake", add_tests);
}
