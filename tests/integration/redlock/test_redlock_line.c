/* SPDX-License-Identifier: Apache-2.0
 *
 * Waiters in line (lock.L1–L9), with nodes whose lines are planted by hand. */
#include "base/rand.h"
#include "test_redlock_waiters.h"

#include <signal.h>
#include <stdio.h>
#include <time.h>

#define ANY "redlock:any"
#define WAITERS 50
#define ROUNDS 200
#define CLIENTS 4
#define HANDOVERS 50
#define IDLE 100000
#define wakeups() redlock_async_counters(world.lock)->wakeups

/* Waiters of other clients: with an early and a late score, unknown to us. */
#define EARLY "AAAAAAAAAAAA~00000000012345"
#define LATE "BBBBBBBBBBBB~U0000000012345"

static struct waiter waiters[WAITERS];

static void plant_waiter(const char *token, const char *score, bool is_alive)
{
    char alive[64];
    (void)snprintf(alive, sizeof alive, "redlock:alive:%.12s", token);
    for (size_t i = 0; i < world.count; i++) {
        (void)cli(i, "ZADD", LINE, score, token);
        (void)cli(i, "SET", ANY, "1", "PX", "60000");
        if (is_alive) {
            (void)cli(i, "SET", alive, "1", "PX", "60000");
        }
    }
}

static size_t nodes_owned_by(const char *token)
{
    size_t count = 0;
    for (size_t i = 0; i < world.count; i++) {
        count += strcmp(cli(i, "GET", JOB), token) == 0;
    }
    return count;
}

/* ---- handing over ---- */

START_TEST(L2_a_release_hands_the_key_over_so_nobody_comes_between)
{
    struct redlock_async *other = NULL;
    struct redlock_batch *held = given_waiter(3, &other, &waiters[0]);
    world_release_all(held);
    (void)world_acquire(other, 1, 1); /* over the same connections, directly after the release */
    ck_assert_uint_eq(redlock_async_counters(other)->results[REDLOCK_HELD], 1);
    run_until(waiters[0].order != 0);
    ck_assert_int_eq(waiters[0].result, REDLOCK_OK);
    ck_assert_uint_ge(wakeups(), 1);
    world_release_all(waiters[0].batch);
    world_flush(world.lock);
    ck_assert_uint_eq(world_nodes_with(JOB), 0);
    ck_assert_int_eq(in_line(LINE), 0);
    close_others();
}
END_TEST

START_TEST(L2_waiters_of_several_clients_are_served_as_they_came)
{
    struct redlock_async *clients[CLIENTS];
    start_world(3);
    struct redlock_async *other = another_client();
    struct redlock_batch *held = world_acquire(other, 1, 1);
    for (size_t i = 0; i < CLIENTS; i++) {
        clients[i] = another_client();
        start_waiting(clients[i], &waiters[i]);
    }
    world_release_all(held);
    for (size_t i = 0; i < CLIENTS; i++) {
        run_until(waiters[i].order != 0);
        ck_assert_int_eq(waiters[i].order, (int)i + 1);
        world_release_all(waiters[i].batch);
    }
    close_others();
}
END_TEST

START_TEST(L1_a_clients_second_waiter_is_served_by_its_own_time_of_arrival)
{
    start_world(3);
    struct redlock_async *other = another_client();
    struct redlock_async *third = another_client();
    struct redlock_batch *held = world_acquire(other, 1, 1);
    start_waiting(world.lock, &waiters[0]);
    ck_assert_int_eq(waiter_start(world.lock, &waiters[1], 1, 1, FOR_EVER, 0), 0);
    world_run_for(2 * US_PER_MS);
    start_waiting(third, &waiters[2]); /* it stands in line before the second one does */
    world_release_all(held);
    run_until(waiters[0].order != 0);
    run_until(in_line(LINE) == 2);
    for (size_t i = 0; i < 3; i++) {
        run_until(waiters[i].order != 0);
        ck_assert_int_eq(waiters[i].order, (int)i + 1);
        world_release_all(waiters[i].batch);
    }
    close_others();
}
END_TEST

START_TEST(L3_an_offer_that_is_not_confirmed_ends_and_the_next_one_has_its_turn)
{
    struct redlock_async *other = NULL;
    struct redlock_batch *held = given_waiter(3, &other, &waiters[0]);
    plant_waiter(EARLY, "1", true); /* it is offered the key, and never asks */
    world_release_all(held);
    world_flush(other);
    run_until(waiters[0].order != 0);
    ck_assert_int_eq(waiters[0].result, REDLOCK_OK);
    ck_assert_int_lt(waiters[0].tries, 20);
    world_release_all(waiters[0].batch);
    close_others();
}
END_TEST

START_TEST(L7_twenty_dead_clients_cost_less_than_their_sessions)
{
    struct redlock_batch *held = given_waiter(3, NULL, &waiters[0]);
    for (size_t i = 0; i < 20; i++) { /* each is offered the key in turn, and never asks */
        char token[] = EARLY;
        char score[8];
        token[0] = (char)('A' + i);
        (void)snprintf(score, sizeof score, "%zu", 1 + i);
        plant_waiter(token, score, true);
    }
    int64_t took_us = release_and_win(held, &waiters[0]);
    (void)printf("past 20 dead clients in %lld ms, %d tries\n", (long long)took_us / US_PER_MS,
                 waiters[0].tries);
    ck_assert_int_lt(took_us, 30 * US_PER_S); /* half of the time that their sessions last here */
    world_release_all(waiters[0].batch);
    close_others();
}
END_TEST

START_TEST(L5_votes_go_to_the_lowest_score)
{
    start_world(4);
    (void)cli(0, "SET", JOB, EARLY, "PX", "60000");
    (void)cli(1, "SET", JOB, EARLY, "PX", "60000");
    plant_waiter(EARLY, "1", true);
    for (size_t i = 2; i < 4; i++) { /* in line, but not first: the offer comes from the yield */
        (void)cli(i, "ZADD", LINE, "9007199254740991", EARLY);
    }
    ck_assert_int_eq(waiter_start(world.lock, &waiters[0], 1, 1, FOR_EVER, 0), 0);
    for (size_t i = 2; i < 4; i++) { /* an offer removes it from the line */
        run_until(strcmp(cli(i, "ZRANK", LINE, EARLY), "") == 0);
    }
    ck_assert_int_eq(waiters[0].order, 0);
    close_others();
}
END_TEST

START_TEST(L5_a_higher_score_is_waited_for_with_votes_kept)
{
    start_world(4);
    (void)cli(0, "SET", JOB, LATE, "PX", "1500");
    (void)cli(1, "SET", JOB, LATE, "PX", "1500");
    ck_assert_int_eq(waiter_start(world.lock, &waiters[0], 1, 1, FOR_EVER, 0), 0);
    run_until(in_line(LINE) == 0 && number(2, "EXISTS", JOB) == 1 && number(3, "EXISTS", JOB) == 1);
    ck_assert_int_eq(waiters[0].order, 0);
    run_until(waiters[0].order != 0);
    ck_assert_int_eq(waiters[0].result, REDLOCK_OK);
    world_release_all(waiters[0].batch);
    close_others();
}
END_TEST

START_TEST(L6_waiters_whose_client_is_dead_are_passed_over)
{
    struct redlock_batch *held = given_waiter(3, NULL, &waiters[0]);
    plant_waiter(EARLY, "1", false);
    (void)release_and_win(held, &waiters[0]);
    ck_assert_uint_eq(nodes_owned_by(EARLY), 0);
    world_release_all(waiters[0].batch);
    close_others();
}
END_TEST

START_TEST(L6_one_session_is_enough_for_all_waiters_of_a_client)
{
    long before[3];
    bool is_one_key = _i == 0;
    start_world(3);
    struct redlock_async *other = another_client();
    struct redlock_batch *held = world_acquire(other, 1, is_one_key ? 1 : WAITERS);
    for (int i = 0; i < WAITERS; i++) {
        int job = is_one_key ? 1 : 1 + i;
        ck_assert_int_eq(waiter_start(world.lock, &waiters[i], job, 1, FOR_EVER, 0), 0);
    }
    char last[64];
    (void)snprintf(last, sizeof last, "redlock:line:claimd:job:%d", is_one_key ? 1 : WAITERS);
    run_until(in_line(last) == 1);
    for (size_t n = 0; n < 3; n++) {
        before[n] = world_calls(n, "evalsha");
    }
    world_run_for(4 * US_PER_S);
    for (size_t n = 0; n < 3; n++) {
        long ran = world_calls(n, "evalsha") - before[n];
        (void)printf("%d waiters, %s, 4 s: node %zu ran %ld scripts\n", WAITERS,
                     is_one_key ? "one key" : "a key each", n, ran);
        ck_assert_int_lt(ran, 12); /* only refreshes and the holder's rounds */
    }
    ck_assert_uint_eq(waiters_told(waiters, WAITERS), 0);
    world_release_all(held);
    for (size_t i = 0; i < WAITERS; i++) {
        run_until(waiters[i].order != 0);
        ck_assert_int_eq(waiters[i].result, REDLOCK_OK);
        world_release_all(waiters[i].batch);
    }
    close_others();
}
END_TEST

START_TEST(L7_what_no_message_told_is_found)
{
    struct redlock_batch *held = given_waiter(3, NULL, &waiters[0]);
    for (size_t i = 0; i < 3; i++) { /* refuses the PUBLISH of the release script */
        ck_assert_str_eq(cli(i, "ACL", "SETUSER", "default", "-publish"), "OK");
    }
    (void)release_and_win(held, &waiters[0]);
    ck_assert_uint_eq(redlock_async_voting(world.lock), 3);
    world_release_all(waiters[0].batch);
    close_others();
}
END_TEST

START_TEST(L7_a_line_that_a_node_lost_is_there_again)
{
    struct redlock_batch *held = given_waiter(3, NULL, &waiters[0]);
    for (size_t i = 0; i < 3; i++) {
        (void)cli(i, "DEL", LINE, ANY);
    }
    run_until(in_line(LINE) == 1 && number(0, "EXISTS", ANY) == 1);
    (void)release_and_win(held, &waiters[0]);
    world_release_all(waiters[0].batch);
    close_others();
}
END_TEST

START_TEST(L7_no_release_is_missed_whenever_it_comes)
{
    struct rand rand;
    start_world(3);
    struct redlock_async *other = another_client();
    rand_seed_from_system(&rand);
    for (int i = 0; i < 300; i++) {
        struct redlock_batch *held = world_acquire(other, 1, 1);
        ck_assert_int_eq(waiter_start(world.lock, &waiters[0], 1, 1, FOR_EVER, 0), 0);
        int64_t end_us = clock_boot_us() + rand_below(&rand, 1500);
        while (clock_boot_us() < end_us) {
            (void)uv_run(&world.loop, UV_RUN_NOWAIT);
        }
        ck_assert_int_lt(release_and_win(held, &waiters[0]), world.options.ttl_us / 2);
        world_release_all(waiters[0].batch);
        world_flush(world.lock);
    }
    close_others();
}
END_TEST

/* ---- nodes that fail ---- */

START_TEST(L2_a_line_goes_on_with_a_node_stopped)
{
    start_world(3);
    struct redlock_async *other = another_client();
    struct redlock_batch *held = world_acquire(other, 1, 1);
    run_until(world_nodes_with(JOB) == 3);
    world_signal(2, 1, SIGSTOP);
    ck_assert_int_eq(waiter_start(world.lock, &waiters[0], 1, 1, FOR_EVER, 0), 0);
    run_until(number(0, "ZCARD", LINE) == 1 && number(1, "ZCARD", LINE) == 1);
    (void)release_and_win(held, &waiters[0]);
    world_signal(2, 1, SIGCONT);
    world_release_all(waiters[0].batch);
    close_others();
}
END_TEST

START_TEST(L7_a_restarted_node_has_its_line_again)
{
    struct err err = {0};
    struct redlock_batch *held = given_waiter(3, NULL, &waiters[0]);
    redis_server_kill(&world.servers[0]);
    run_until(redlock_async_voting(world.lock) == 2);
    ck_assert_int_eq(redis_server_restart(&world.servers[0], &err), STATUS_OK);
    (void)release_and_win(held, &waiters[0]);
    world_release_all(waiters[0].batch);
    close_others();
}
END_TEST

START_TEST(L6_waiting_leaves_no_connection_and_no_place_behind)
{
    start_world(2);
    struct redlock_async *other = another_client();
    struct redlock_batch *held = world_acquire(other, 1, 1);
    ck_assert_str_eq(cli(0, "EXISTS", ANY), "0"); /* without waiters, releases read no lines */
    start_waiting(world.lock, &waiters[0]);
    run_until(strcmp(cli(0, "CLIENT", "LIST", "TYPE", "pubsub"), "") != 0);
    redlock_wait_cancel(waiters[0].wait);
    run_until(waiters[0].order != 0);
    run_until(in_line(LINE) == 0);
    run_until(strcmp(cli(0, "CLIENT", "LIST", "TYPE", "pubsub"), "") == 0);
    run_until(number(0, "EXISTS", ANY) == 0);
    world_release_all(held);
    close_others();
}
END_TEST

/* ---- latency and contests ---- */

static int compare(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a;
    int64_t y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

START_TEST(L2_a_release_is_heard_of_within_a_few_round_trips)
{
    static int64_t took_us[ROUNDS];
    int64_t acquire_us = INT64_MAX;
    start_world((size_t)_i);
    struct redlock_async *other = another_client();
    for (size_t i = 0; i < ROUNDS; i++) {
        int64_t start_us = clock_boot_us();
        struct redlock_batch *held = world_acquire(other, 1, 1);
        int64_t us = clock_boot_us() - start_us;
        acquire_us = us < acquire_us ? us : acquire_us;
        ck_assert_int_eq(waiter_start(world.lock, &waiters[0], 1, 1, FOR_EVER, 0), 0);
        world_run_for(15 * US_PER_MS);
        took_us[i] = release_and_win(held, &waiters[0]);
        world_release_all(waiters[0].batch);
        world_flush(world.lock);
    }
    qsort(took_us, ROUNDS, sizeof took_us[0], compare);
    (void)printf("release to WON, %d nodes, us: p50 %lld, p90 %lld, p99 %lld; a round: %lld\n", _i,
                 (long long)took_us[ROUNDS / 2], (long long)took_us[ROUNDS * 90 / 100],
                 (long long)took_us[ROUNDS * 99 / 100], (long long)acquire_us);
    ck_assert_int_lt(took_us[0], 20 * acquire_us); /* compares the fastest ones of this run */
    close_others();
}
END_TEST

/* Returns the CPU time of this process for handing over job 1 `HANDOVERS` times. */
static int64_t handovers_us(struct redlock_async *other)
{
    struct timespec began;
    struct timespec ended;
    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &began);
    for (int i = 0; i < HANDOVERS; i++) {
        struct redlock_batch *held = world_acquire(other, 1, 1);
        ck_assert_int_eq(waiter_start(world.lock, &waiters[0], 1, 1, FOR_EVER, 0), 0);
        (void)release_and_win(held, &waiters[0]);
        world_release_all(waiters[0].batch);
        world_flush(world.lock);
    }
    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ended);
    return (ended.tv_sec - began.tv_sec) * US_PER_S + (ended.tv_nsec - began.tv_nsec) / 1000;
}

START_TEST(A14_waiters_for_other_keys_cost_a_waiter_nothing)
{
    static struct waiter idle[IDLE];
    start_world(3);
    struct redlock_async *other = another_client();
    struct redlock_batch *held = world_acquire(other, 2, 1);
    int64_t alone_us = handovers_us(other);
    for (size_t i = 0; i < IDLE; i++) {
        ck_assert_int_eq(waiter_start(world.lock, &idle[i], 2, 1, FOR_EVER, 0), 0);
    }
    run_until(in_line("redlock:line:claimd:job:2") == 1);
    int64_t among_us = handovers_us(other);
    (void)printf("%d handovers: %lld us of CPU, beside %d waiters %lld\n", HANDOVERS,
                 (long long)alone_us, IDLE, (long long)among_us);
    ck_assert_int_lt(among_us, 3 * alone_us);
    world_release_all(held);
    close_others();
}
END_TEST

START_TEST(L2_clients_that_want_one_key_get_the_same_share)
{
    struct redlock_async *clients[CLIENTS];
    int wins[CLIENTS] = {0};
    start_world(5);
    for (size_t i = 0; i < CLIENTS; i++) {
        clients[i] = i == 0 ? world.lock : another_client();
        ck_assert_int_eq(waiter_start(clients[i], &waiters[i], 1, 1, FOR_EVER, 0), 0);
    }
    for (int sum = 0; sum < 200;) {
        for (size_t i = 0; i < CLIENTS; i++) {
            if (waiters[i].order != 0) {
                ck_assert_int_eq(waiters[i].result, REDLOCK_OK);
                wins[i]++;
                sum++;
                world_release_all(waiters[i].batch);
                ck_assert_int_eq(waiter_start(clients[i], &waiters[i], 1, 1, FOR_EVER, 0), 0);
            }
        }
        (void)uv_run(&world.loop, UV_RUN_ONCE);
    }
    (void)printf("%d clients, 200 grants: %d %d %d %d\n", CLIENTS, wins[0], wins[1], wins[2],
                 wins[3]);
    for (size_t i = 0; i < CLIENTS; i++) {
        ck_assert_int_ge(wins[i], 15); /* of 50: silent nodes on a busy machine cost turns */
        redlock_wait_cancel(waiters[i].wait);
    }
    run_until(waiters_told(waiters, CLIENTS) == CLIENTS);
    close_others();
}
END_TEST

static void add_tests(TCase *t)
{
    tcase_add_test(t, L2_a_release_hands_the_key_over_so_nobody_comes_between);
    tcase_add_test(t, L2_waiters_of_several_clients_are_served_as_they_came);
    tcase_add_test(t, L1_a_clients_second_waiter_is_served_by_its_own_time_of_arrival);
    tcase_add_test(t, L3_an_offer_that_is_not_confirmed_ends_and_the_next_one_has_its_turn);
    tcase_add_test(t, L7_twenty_dead_clients_cost_less_than_their_sessions);
    tcase_add_test(t, L5_votes_go_to_the_lowest_score);
    tcase_add_test(t, L5_a_higher_score_is_waited_for_with_votes_kept);
    tcase_add_test(t, L6_waiters_whose_client_is_dead_are_passed_over);
    tcase_add_loop_test(t, L6_one_session_is_enough_for_all_waiters_of_a_client, 0, 2);
    tcase_add_test(t, L7_what_no_message_told_is_found);
    tcase_add_test(t, L7_a_line_that_a_node_lost_is_there_again);
    tcase_add_test(t, L7_no_release_is_missed_whenever_it_comes);
    tcase_add_test(t, L2_a_line_goes_on_with_a_node_stopped);
    tcase_add_test(t, L7_a_restarted_node_has_its_line_again);
    tcase_add_test(t, L6_waiting_leaves_no_connection_and_no_place_behind);
    tcase_add_loop_test(t, L2_a_release_is_heard_of_within_a_few_round_trips, 3, 6);
    tcase_add_test(t, A14_waiters_for_other_keys_cost_a_waiter_nothing);
    tcase_add_test(t, L2_clients_that_want_one_key_get_the_same_share);
}

int main(void)
{
    return world_main("redlock_line", add_tests);
}
