/* SPDX-License-Identifier: Apache-2.0
 *
 * Lines beside clients without a line, with clients that lack the rights for one, and with several
 * keys (lock.L4, L8, L9). */
#include "test_redlock_waiters.h"

#define EARLY "AAAAAAAAAAAA~00000000012345" /* an earlier waiter of another client */

static struct waiter waiters[3];

/* ---- clients without a line ---- */

START_TEST(L8_a_foreign_clients_release_is_found_by_asking)
{
    start_world(3);
    for (size_t i = 0; i < 3; i++) {
        (void)cli(i, "SET", JOB, "foreign", "NX", "PX", "60000");
    }
    ck_assert_int_eq(waiter_start(world.lock, &waiters[0], 1, 1, FOR_EVER, 0), 0);
    run_until(in_line(LINE) == 1 && number(2, "EXISTS", "redlock:foreign:" JOB) == 1);
    for (size_t i = 0; i < 3; i++) {
        (void)cli(i, "DEL", JOB);
    }
    run_until(waiters[0].order != 0);
    ck_assert_int_eq(waiters[0].result, REDLOCK_OK);
    world_release_all(waiters[0].batch);
    close_others();
}
END_TEST

START_TEST(L8_a_foreign_owner_that_never_releases_is_outwaited)
{
    start_world(3);
    int64_t end_us = clock_boot_us() + 1500 * US_PER_MS;
    for (size_t i = 0; i < 3; i++) {
        ck_assert_str_eq(cli(i, "SET", JOB, "foreign", "NX", "PX", "1500"), "OK");
    }
    ck_assert_int_eq(waiter_start(world.lock, &waiters[0], 1, 1, FOR_EVER, 0), 0);
    run_until(waiters[0].order != 0);
    ck_assert_int_eq(waiters[0].result, REDLOCK_OK);
    ck_assert_int_ge(waiters[0].at_us, end_us);
    world_release_all(waiters[0].batch);
    close_others();
}
END_TEST

START_TEST(L8_after_its_turns_the_line_leaves_a_gap)
{
    struct redlock_async *other = NULL;
    struct redlock_batch *held = given_waiter(3, &other, &waiters[0]);
    start_waiting(other, &waiters[1]);
    (void)release_and_win(held, &waiters[0]);
    start_waiting(world.lock, &waiters[2]);
    for (size_t i = 0; i < 3; i++) { /* the turns end while the second one waits */
        (void)cli(i, "SET", "redlock:turns:" JOB, "0");
    }
    world_release_all(waiters[0].batch);
    run_until(waiters[1].order != 0);
    world_release_all(waiters[1].batch); /* its round learned that the turns have ended */
    struct redlock_batch *between = world_acquire(other, 1, 1); /* directly after the release */
    ck_assert_int_eq(redlock_batch_result(between, 0), REDLOCK_OK);
    world_release_all(between);
    run_until(waiters[2].order != 0); /* returns to the line */
    ck_assert_int_eq(waiters[2].result, REDLOCK_OK);
    world_release_all(waiters[2].batch);
    close_others();
}
END_TEST

START_TEST(L9_rights_that_are_missing_are_told_when_a_client_is_opened)
{
    static const char *const missing[] = {"-exists", "-zadd",   "-zrem",   "-zrange",
                                          "-zrank",  "-zscore", "-publish"};
    world_start(1, NULL);
    world.options.no_line = false;
    ck_assert_str_eq(cli(0, "ACL", "SETUSER", "default", missing[_i]), "OK");
    world_open_voting();
    run_until(world_events_of(REDLOCK_EVENT_WARNED) == 1);
    ck_assert_ptr_nonnull(strstr(world_last_event(0)->why, missing[_i] + 1));
    world_flush(world.lock);
    ck_assert_uint_eq(world_events_of(REDLOCK_EVENT_WARNED), 1);
    ck_assert_str_eq(cli(0, "KEYS", "*line*"), "");
}
END_TEST

START_TEST(L9_who_may_not_stand_in_line_polls)
{
    world_start(3, NULL);
    world.options.no_line = false;
    for (size_t i = 0; i < 3; i++) {
        ck_assert_str_eq(cli(i, "ACL", "SETUSER", "default", "-zadd"), "OK");
    }
    world_open_voting();
    struct redlock_async *other = another_client();
    struct redlock_batch *held = world_acquire(other, 1, 1);
    ck_assert_int_eq(waiter_start(world.lock, &waiters[0], 1, 1, FOR_EVER, 0), 0);
    run_until(world_events_of(REDLOCK_EVENT_WARNED) == 3);
    ck_assert_uint_eq(redlock_async_voting(world.lock), 3);
    (void)release_and_win(held, &waiters[0]);
    ck_assert_int_lt(waiters[0].tries, 20);
    ck_assert_ptr_null(strchr(cli(0, "GET", JOB), '~'));
    world_release_all(waiters[0].batch);
    close_others();
}
END_TEST

/* Its first release is refused because there is a waiter, and sent again as a plain one. */
START_TEST(L9_a_holder_that_may_not_hand_over_releases_while_others_stand_in_line)
{
    static const char *const missing[] = {"-exists", "-zadd", "-zrem", "-zrange", "-zrank", NULL};
    start_world(3);
    for (size_t i = 0; i < 3; i++) {
        ck_assert_str_eq(cli(i, "ACL", "SETUSER", "old", "on", ">secret", "+@all", "~*", "&*"),
                         "OK");
        for (const char *const *word = missing; *word != NULL; word++) {
            ck_assert_str_eq(cli(i, "ACL", "SETUSER", "old", *word), "OK");
        }
        world.nodes[i].user = "old";
        world.nodes[i].password = "secret";
    }
    struct redlock_async *old = another_client();
    struct redlock_batch *held = world_acquire(old, 1, 1);
    start_waiting(world.lock, &waiters[0]);
    ck_assert_int_lt(release_and_win(held, &waiters[0]), 5 * US_PER_S); /* the ttl is 10 s */
    ck_assert_uint_eq(redlock_async_voting(old), 3);
    world_release_all(waiters[0].batch);
    close_others();
}
END_TEST

START_TEST(L9_a_client_without_lines_runs_none_of_their_commands)
{
    static const char *const commands[] = {"zadd", "zrem", "zrange", "exists", "publish", NULL};
    world_start(3, NULL); /* the settings of claimd's daemons */
    world_open_voting();
    world_release_all(world_acquire(world.lock, 1, 3));
    world_flush(world.lock);
    for (const char *const *command = commands; *command != NULL; command++) {
        ck_assert_int_eq(world_calls(0, *command), 0);
    }
    (void)cli(0, "DEL", "claimd:job:canary", "claimd:job:ttl_max");
    ck_assert_str_eq(cli(0, "KEYS", "*"), ""); /* no other keys */
}
END_TEST

static const char *const rights[] = {
    "on",           ">secret",       "resetkeys",       "~claimd:*",
    "~redlock:*",   "resetchannels", "&redlock:*",      "-@all",
    "+set",         "+get",          "+mget",           "+del",
    "+pexpire",     "+pttl",         "+evalsha",        "+eval",
    "+script|load", "+time",         "+info",           "+ping",
    "+hello",       "+auth",         "+select",         "+command|info",
    "+client|id",   "+client|kill",  "+client|unblock", "+publish",
    "+subscribe",   "+exists",       "+zadd",           "+zrem",
    "+zrange",      "+zrank",        "+zscore",         NULL};

START_TEST(C5_the_rights_that_are_named_are_enough_to_stand_in_line)
{
    world_start(4, NULL);
    world.options.no_line = false;
    world.options.prefix = "redlock:";
    for (size_t i = 0; i < 4; i++) {
        for (const char *const *word = rights; *word != NULL; word++) {
            ck_assert_str_eq(cli(i, "ACL", "SETUSER", "locks", *word), "OK");
        }
        world.nodes[i].user = "locks";
        world.nodes[i].password = "secret";
    }
    world_open_voting();
    struct redlock_async *other = another_client();
    struct redlock_batch *held = world_acquire(other, 1, 1);
    start_waiting(world.lock, &waiters[0]);
    (void)release_and_win(held, &waiters[0]);
    (void)cli(0, "SET", "claimd:job:2", EARLY, "PX", "2000"); /* votes are yielded */
    (void)cli(1, "SET", "claimd:job:2", EARLY, "PX", "2000");
    ck_assert_int_eq(waiter_start(world.lock, &waiters[1], 2, 1, FOR_EVER, 0), 0);
    run_until(waiters[1].order != 0); /* with refreshes in the meantime */
    ck_assert_int_eq(waiters[1].result, REDLOCK_OK);
    for (size_t i = 0; i < 4; i++) {
        ck_assert_str_eq(cli(i, "ACL", "LOG"), "");
    }
    world_release_all(waiters[0].batch);
    world_release_all(waiters[1].batch);
    close_others();
}
END_TEST

/* ---- several keys ---- */

START_TEST(L4_several_keys_are_held_one_by_one_and_won_together)
{
    start_world(3);
    struct redlock_async *other = another_client();
    struct redlock_batch *first = world_acquire(other, 1, 1);
    struct redlock_batch *second = world_acquire(other, 2, 1);
    ck_assert_int_eq(waiter_start(world.lock, &waiters[0], 1, 3, FOR_EVER, 0), 0);
    run_until(in_line(LINE) == 1);
    ck_assert_uint_eq(world_nodes_with("claimd:job:3"), 0); /* one after the other */
    world_release_all(first);
    run_until(in_line("redlock:line:claimd:job:2") == 1);
    ck_assert_uint_eq(world_nodes_with(JOB), 3); /* it is held in the meantime */
    ck_assert_int_eq(waiters[0].order, 0);
    world_release_all(second);
    run_until(waiters[0].order != 0);
    ck_assert_int_eq(waiters[0].result, REDLOCK_OK);
    ck_assert_uint_eq(redlock_batch_count(waiters[0].batch), 3);
    world_release_all(waiters[0].batch);
    world_flush(world.lock);
    ck_assert_uint_eq(world_nodes_with(JOB), 0);
    ck_assert_uint_eq(world_nodes_with("claimd:job:3"), 0);
    close_others();
}
END_TEST

START_TEST(L4_giving_up_gives_back_what_was_held_of_several_keys)
{
    start_world(3);
    struct redlock_async *other = another_client();
    struct redlock_batch *second = world_acquire(other, 2, 1);
    ck_assert_int_eq(waiter_start(world.lock, &waiters[0], 1, 2, FOR_EVER, 0), 0);
    run_until(in_line("redlock:line:claimd:job:2") == 1);
    redlock_wait_cancel(waiters[0].wait);
    run_until(waiters[0].order != 0);
    world_flush(world.lock);
    ck_assert_uint_eq(world_nodes_with(JOB), 0);
    ck_assert_int_eq(in_line("redlock:line:claimd:job:2"), 0);
    world_release_all(second);
    close_others();
}
END_TEST

static void add_tests(TCase *t)
{
    tcase_add_test(t, L8_a_foreign_clients_release_is_found_by_asking);
    tcase_add_test(t, L8_a_foreign_owner_that_never_releases_is_outwaited);
    tcase_add_test(t, L8_after_its_turns_the_line_leaves_a_gap);
    tcase_add_loop_test(t, L9_rights_that_are_missing_are_told_when_a_client_is_opened, 0, 7);
    tcase_add_test(t, L9_who_may_not_stand_in_line_polls);
    tcase_add_test(t, L9_a_holder_that_may_not_hand_over_releases_while_others_stand_in_line);
    tcase_add_test(t, L9_a_client_without_lines_runs_none_of_their_commands);
    tcase_add_test(t, C5_the_rights_that_are_named_are_enough_to_stand_in_line);
    tcase_add_test(t, L4_several_keys_are_held_one_by_one_and_won_together);
    tcase_add_test(t, L4_giving_up_gives_back_what_was_held_of_several_keys);
}

int main(void)
{
    return world_main("redlock_line_others", add_tests);
}
