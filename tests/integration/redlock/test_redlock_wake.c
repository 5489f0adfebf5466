/* SPDX-License-Identifier: Apache-2.0 */
#include "base/rand.h"
#include "test_redlock_waiters.h"

#include <signal.h>
#include <stdio.h>

#define JOB "claimd:job:1"
#define MARKER "redlock:waiting"
#define WAITERS 50
#define ROUNDS 200
#define wakeups() redlock_async_counters(world.lock)->wakeups
#define times_held(lock) redlock_async_counters(lock)->results[REDLOCK_HELD_BY_OTHER]

static struct waiter waiters[WAITERS];

static void start_world(size_t count)
{
    world_start(count, NULL);
    world.options.wake_prefix = "redlock:";
    world_open_voting();
}

/* So many nodes tell of releases of this job. */
static size_t nodes_telling(int job)
{
    char channel[64];
    size_t count = 0;
    (void)snprintf(channel, sizeof channel, "redlock:claimd:job:%d", job);
    for (size_t i = 0; i < world.count; i++) {
        const char *subscribers = strrchr(cli(i, "PUBSUB", "NUMSUB", channel), '\n');
        bool is_heard = subscribers != NULL && strtol(subscribers, NULL, 10) > 0;
        count += is_heard && strcmp(cli(i, "EXISTS", MARKER), "1") == 0;
    }
    return count;
}

/* Starts to wait for job 1, which another holds, and yields when it sleeps. */
static void start_asleep(struct waiter *w)
{
    uint64_t before = times_held(world.lock);
    ck_assert_int_eq(waiter_start(world.lock, w, 1, 1, FOR_EVER, 0), 0);
    run_until(nodes_telling(1) == world.count && times_held(world.lock) >= before + 2);
    world_run_for(20 * US_PER_MS); /* its own releases have gone */
}

static int64_t release_and_win(struct redlock_batch *held, struct waiter *w)
{
    int64_t t0_us = clock_boot_us();
    world_release_all(held);
    run_until(w->order != 0);
    ck_assert_int_eq(w->result, REDLOCK_WON);
    return w->at_us - t0_us;
}

/* Commands that a node ran, but for those that ask it so and those that extend the holder's
 * keys. */
static long commands_of(size_t node)
{
    long sum = 0;
    const char *text = cli(node, "INFO", "commandstats");
    for (const char *at = text; (at = strstr(at, "cmdstat_")) != NULL; at++) {
        if (strncmp(at, "cmdstat_info", 12) != 0 && strncmp(at, "cmdstat_pubsub", 14) != 0 &&
            strncmp(at, "cmdstat_exists", 14) != 0 && strncmp(at, "cmdstat_pexpire", 15) != 0) {
            sum += strtol(strstr(at, "calls=") + 6, NULL, 10);
        }
    }
    return sum;
}

START_TEST(waiting_ends_as_soon_as_the_holder_releases)
{
    start_world(3);
    struct redlock_async *other = world_other_client();
    struct redlock_batch *held = world_acquire(other, 1, 1);
    start_asleep(&waiters[0]);
    (void)release_and_win(held, &waiters[0]);
    ck_assert_uint_eq(wakeups(), 1);
    /* Refused, refused while it heard, won; nodes that answer late cost a try each. */
    ck_assert_int_ge(waiters[0].tries, 3);
    ck_assert_int_le(waiters[0].tries, 6);
    world_release_all(waiters[0].batch);
    redlock_async_close(other, NULL, NULL);
}
END_TEST

static int compare(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a;
    int64_t y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

START_TEST(waiting_is_tried_once_more_as_soon_as_releases_are_heard_of)
{
    start_world(3);
    struct redlock_async *other = world_other_client();
    struct redlock_batch *held = world_acquire(other, 1, 2);
    start_asleep(&waiters[0]); /* the connections are there */
    uint64_t before = times_held(world.lock);
    ck_assert_int_eq(waiter_start(world.lock, &waiters[1], 2, 1, FOR_EVER, 0), 0);
    run_until(times_held(world.lock) >= before + 2);
    world_run_for(1500 * US_PER_MS); /* it sleeps; a node that answers late costs a try */
    ck_assert_uint_le(times_held(world.lock), before + 2 + world.count);
    world_release_all(held);
    run_until(waiters_told(waiters, 2) == 2);
    world_release_all(waiters[0].batch);
    world_release_all(waiters[1].batch);
    redlock_async_close(other, NULL, NULL);
}
END_TEST

/* Sorted. */
static void print_latencies(int nodes, const int64_t *took_us)
{
    (void)printf("release to WON, %d nodes, us: p50 %lld, p90 %lld, p99 %lld, max %lld;", nodes,
                 (long long)took_us[ROUNDS / 2], (long long)took_us[ROUNDS * 90 / 100],
                 (long long)took_us[ROUNDS * 99 / 100], (long long)took_us[ROUNDS - 1]);
    size_t at = 0;
    for (int64_t limit_us = 250; at < ROUNDS; limit_us *= 2) {
        size_t first = at;
        while (at < ROUNDS && took_us[at] <= limit_us) {
            at++;
        }
        (void)printf(" <=%lld: %zu", (long long)limit_us, at - first);
    }
    (void)printf("\n");
    (void)fflush(stdout);
}

/* A quorum told, and nobody waits for the rest: a release is heard of in a few round trips. */
START_TEST(waiting_ends_within_a_few_round_trips)
{
    static int64_t took_us[ROUNDS];
    int64_t acquire_us = INT64_MAX;
    start_world((size_t)_i);
    struct redlock_async *other = world_other_client();
    struct rand rand;
    rand_seed(&rand, 1);
    for (size_t i = 0; i < ROUNDS; i++) {
        int64_t start_us = clock_boot_us();
        struct redlock_batch *held = world_acquire(other, 1, 1);
        int64_t us = clock_boot_us() - start_us;
        acquire_us = us < acquire_us ? us : acquire_us;
        ck_assert_int_eq(waiter_start(world.lock, &waiters[0], 1, 1, FOR_EVER, 0), 0);
        world_run_for(15 * US_PER_MS + rand_below(&rand, 5 * US_PER_MS));
        took_us[i] = release_and_win(held, &waiters[0]);
        world_release_all(waiters[0].batch);
        world_flush(world.lock);
    }
    qsort(took_us, ROUNDS, sizeof took_us[0], compare);
    print_latencies(_i, took_us);
    ck_assert_int_lt(took_us[0], 20 * acquire_us); /* each the fastest of this run */
    redlock_async_close(other, NULL, NULL);
}
END_TEST

START_TEST(waiting_misses_no_release_whenever_it_comes)
{
    start_world(3);
    struct redlock_async *other = world_other_client();
    struct rand rand;
    rand_seed_from_system(&rand);
    for (int i = 0; i < 300; i++) {
        int job = i + 1; /* a new channel each time: it is subscribed in the midst of it */
        struct redlock_batch *held = world_acquire(other, job, 1);
        ck_assert_int_eq(waiter_start(world.lock, &waiters[0], job, 1, FOR_EVER, 0), 0);
        int64_t end_us = clock_boot_us() + rand_below(&rand, 1500);
        while (clock_boot_us() < end_us) {
            (void)uv_run(&world.loop, UV_RUN_NOWAIT);
        }
        ck_assert_int_lt(release_and_win(held, &waiters[0]), world.options.ttl_us / 2);
        world_release_all(waiters[0].batch);
    }
    redlock_async_close(other, NULL, NULL);
}
END_TEST

START_TEST(waiting_costs_less_than_a_command_per_second_and_waiter)
{
    bool is_one_key = _i == 0;
    long before[3];
    start_world(3);
    struct redlock_async *other = world_other_client();
    struct redlock_batch *held = world_acquire(other, 1, is_one_key ? 1 : WAITERS);
    for (int i = 0; i < WAITERS; i++) {
        int job = is_one_key ? 1 : 1 + i;
        ck_assert_int_eq(waiter_start(world.lock, &waiters[i], job, 1, FOR_EVER, 0), 0);
        if (is_one_key && i == 0) {
            for (size_t n = 0; n < 3; n++) {
                before[n] = commands_of(n);
            }
        }
    }
    run_until(nodes_telling(is_one_key ? 1 : WAITERS) == 3);
    if (!is_one_key) { /* once they sleep: each key costs two tries at first */
        run_until(times_held(world.lock) >= 2 * WAITERS);
        world_run_for(300 * US_PER_MS);
        for (size_t n = 0; n < 3; n++) {
            before[n] = commands_of(n);
        }
    }
    world_run_for(3 * US_PER_S);
    for (size_t n = 0; n < 3; n++) {
        long holders = world_extends_by_set(n) && !is_one_key ? WAITERS : 0; /* one round at most */
        long ran = commands_of(n) - before[n] - holders;
        ck_assert_int_lt(ran, 3 * WAITERS);
        (void)printf("%d waiters, %s, 3 s: node %zu ran %ld commands\n", WAITERS,
                     is_one_key ? "one key, from the start on" : "a key each, asleep", n, ran);
        (void)fflush(stdout);
        ck_assert_int_lt(ran, 30); /* nearly nothing */
    }
    ck_assert_uint_eq(waiters_told(waiters, WAITERS), 0);
    world_release_all(held);
    for (size_t i = 0; i < WAITERS; i++) {
        run_until(waiters[i].order != 0);
        ck_assert_int_eq(waiters[i].result, REDLOCK_WON);
        world_release_all(waiters[i].batch);
    }
    redlock_async_close(other, NULL, NULL);
}
END_TEST

START_TEST(waiting_goes_on_with_a_node_stopped)
{
    start_world(3);
    struct redlock_async *other = world_other_client();
    struct redlock_batch *held = world_acquire(other, 1, 1);
    run_until(world_nodes_with(JOB) == 3);
    world_signal(2, 1, SIGSTOP);
    ck_assert_int_eq(waiter_start(world.lock, &waiters[0], 1, 1, FOR_EVER, 0), 0);
    run_until(times_held(world.lock) >= 2); /* refused while two nodes told it of releases */
    (void)release_and_win(held, &waiters[0]);
    ck_assert_uint_eq(wakeups(), 1);
    world_signal(2, 1, SIGCONT);
    world_release_all(waiters[0].batch);
    redlock_async_close(other, NULL, NULL);
}
END_TEST

START_TEST(waiting_goes_on_when_a_node_was_restarted)
{
    struct err err = {0};
    start_world(3);
    struct redlock_async *other = world_other_client();
    struct redlock_batch *held = world_acquire(other, 1, 1);
    start_asleep(&waiters[0]);
    redis_server_kill(&world.servers[0]);
    run_until(redlock_async_voting(world.lock) == 2);
    ck_assert_int_eq(redis_server_restart(&world.servers[0], &err), STATUS_OK);
    run_until(nodes_telling(1) == 3); /* it has its marker again */
    ck_assert_int_eq(waiters[0].order, 0);
    (void)release_and_win(held, &waiters[0]);
    ck_assert_uint_eq(wakeups(), 1);
    world_release_all(waiters[0].batch);
    redlock_async_close(other, NULL, NULL);
}
END_TEST

START_TEST(waiting_for_one_who_publishes_nothing_ends_with_his_ttl)
{
    start_world(3);
    int64_t end_us = clock_boot_us() + 1500 * US_PER_MS;
    for (size_t i = 0; i < 3; i++) {
        ck_assert_str_eq(cli(i, "SET", JOB, "foreign", "NX", "PX", "1500"), "OK");
    }
    ck_assert_int_eq(waiter_start(world.lock, &waiters[0], 1, 1, FOR_EVER, 0), 0);
    run_until(waiters[0].order != 0);
    ck_assert_int_eq(waiters[0].result, REDLOCK_WON);
    ck_assert_int_ge(waiters[0].at_us, end_us);
    ck_assert_int_lt(waiters[0].at_us, end_us + 5 * US_PER_S);
    ck_assert_int_le(waiters[0].tries, 5);
    world_release_all(waiters[0].batch);
}
END_TEST

START_TEST(waiting_without_leave_to_subscribe_falls_back_to_looking)
{
    start_world(3);
    for (size_t i = 0; i < 3; i++) {
        ck_assert_str_eq(cli(i, "ACL", "SETUSER", "default", "-subscribe"), "OK");
    }
    struct redlock_async *other = world_other_client();
    struct redlock_batch *held = world_acquire(other, 1, 1);
    ck_assert_int_eq(waiter_start(world.lock, &waiters[0], 1, 1, FOR_EVER, 0), 0);
    world_run_for(1500 * US_PER_MS);
    ck_assert_uint_le(times_held(world.lock), 8);
    run_until(times_held(world.lock) >= 2);
    ck_assert_int_lt(release_and_win(held, &waiters[0]), world.options.ttl_us / 2);
    ck_assert_uint_eq(wakeups(), 0);
    world_release_all(waiters[0].batch);
    redlock_async_close(other, NULL, NULL);
}
END_TEST

static const char *const rights[] = {"on",         ">secret",      "resetkeys",
                                     "~claimd:*",  "~redlock:*",   "resetchannels",
                                     "&redlock:*", "-@all",        "+set",
                                     "+get",       "+mget",        "+del",
                                     "+pexpire",   "+pttl",        "+evalsha",
                                     "+eval",      "+script|load", "+time",
                                     "+info",      "+ping",        "+hello",
                                     "+auth",      "+select",      "+command|info",
                                     "+client|id", "+client|kill", "+client|unblock",
                                     "+publish",   "+subscribe",   "+unsubscribe",
                                     NULL};

START_TEST(C5_the_rights_that_are_named_are_enough_to_be_woken)
{
    world_start(3, NULL);
    world.options.wake_prefix = "redlock:";
    for (size_t i = 0; i < 3; i++) {
        for (const char *const *word = rights; *word != NULL; word++) {
            ck_assert_str_eq(cli(i, "ACL", "SETUSER", "locks", *word), "OK");
        }
        world.nodes[i].user = "locks";
        world.nodes[i].password = "secret";
    }
    world_open_voting();
    struct redlock_async *other = world_other_client();
    for (int i = 0; i < 2; i++) { /* the second time on a channel that was given up */
        struct redlock_batch *held = world_acquire(other, 1, 1);
        start_asleep(&waiters[0]);
        (void)release_and_win(held, &waiters[0]);
        world_release_all(waiters[0].batch);
        world_flush(world.lock);
        run_until(nodes_telling(1) == 0);
    }
    ck_assert_uint_eq(wakeups(), 2);
    for (size_t i = 0; i < 3; i++) {
        ck_assert_str_eq(cli(i, "ACL", "LOG"), "");
    }
    redlock_async_close(other, NULL, NULL);
}
END_TEST

START_TEST(waiting_for_two_holders_ends_when_both_have_released)
{
    start_world(3);
    struct redlock_async *other = world_other_client();
    struct redlock_batch *first = world_acquire(other, 1, 1);
    struct redlock_batch *second = world_acquire(other, 2, 1);
    ck_assert_int_eq(waiter_start(world.lock, &waiters[0], 1, 2, FOR_EVER, 0), 0);
    run_until(nodes_telling(2) == 3 && times_held(world.lock) >= 4);
    world_run_for(20 * US_PER_MS);
    world_release_all(first);
    world_run_for(50 * US_PER_MS);
    ck_assert_uint_eq(wakeups(), 0);
    (void)release_and_win(second, &waiters[0]);
    ck_assert_uint_eq(wakeups(), 1);
    world_release_all(waiters[0].batch);
    redlock_async_close(other, NULL, NULL);
}
END_TEST

START_TEST(waiting_leaves_no_connection_behind)
{
    start_world(2);
    struct redlock_async *other = world_other_client();
    struct redlock_batch *held = world_acquire(other, 1, 1);
    ck_assert_str_eq(cli(0, "EXISTS", MARKER), "0"); /* nobody waits: nothing is published */
    start_asleep(&waiters[0]);
    long pttl = strtol(cli(0, "PTTL", MARKER), NULL, 10);
    ck_assert_int_gt(pttl, 30000);
    ck_assert_int_le(pttl, 60000);
    ck_assert_str_ne(cli(0, "CLIENT", "LIST", "TYPE", "pubsub"), "");
    redlock_wait_cancel(waiters[0].wait);
    run_until(waiters[0].order != 0);
    run_until(nodes_telling(1) == 0);
    run_until(strcmp(cli(0, "CLIENT", "LIST", "TYPE", "pubsub"), "") == 0);
    world_release_all(held);
    redlock_async_close(other, NULL, NULL);
}
END_TEST

/* ---- several clients that want one key ---- */

#define CLIENTS 4

struct contender {
    struct redlock_async *lock;
    struct waiter waiter;
    bool is_waiting;
    int wins;
};

START_TEST(waiting_clients_pass_a_key_on_without_a_stall)
{
    static struct contender contenders[CLIENTS];
    start_world(5);
    contenders[0].lock = world.lock;
    for (size_t i = 1; i < CLIENTS; i++) {
        contenders[i].lock = world_other_client();
    }
    int64_t last_us = clock_boot_us();
    int64_t longest_us = 0;
    int wins = 0;
    while (wins < 200) {
        for (size_t i = 0; i < CLIENTS; i++) {
            struct contender *c = &contenders[i];
            if (!c->is_waiting) {
                ck_assert_int_eq(waiter_start(c->lock, &c->waiter, 1, 1, FOR_EVER, 0), 0);
                c->is_waiting = true;
            } else if (c->waiter.order != 0) {
                ck_assert_int_eq(c->waiter.result, REDLOCK_WON);
                int64_t now_us = clock_boot_us();
                longest_us = now_us - last_us > longest_us ? now_us - last_us : longest_us;
                last_us = now_us;
                wins++;
                c->wins++;
                c->is_waiting = false;
                world_release_all(c->waiter.batch);
            }
        }
        (void)uv_run(&world.loop, UV_RUN_ONCE);
    }
    (void)printf("%d clients, 200 grants: longest gap %lld us; wins %d %d %d %d\n", CLIENTS,
                 (long long)longest_us, contenders[0].wins, contenders[1].wins, contenders[2].wins,
                 contenders[3].wins);
    (void)fflush(stdout);
    ck_assert_int_lt(longest_us,
                     world.options.ttl_us / 2); /* none slept until the ttl of a mere contender */
    for (size_t i = 0; i < CLIENTS; i++) {
        if (contenders[i].waiter.order == 0) {
            redlock_wait_cancel(contenders[i].waiter.wait);
        }
    }
    for (size_t i = 1; i < CLIENTS; i++) {
        redlock_async_close(contenders[i].lock, NULL, NULL);
    }
    world_run_for(50 * US_PER_MS);
}
END_TEST

static void add_tests(TCase *t)
{
    tcase_add_test(t, waiting_ends_as_soon_as_the_holder_releases);
    tcase_add_test(t, waiting_is_tried_once_more_as_soon_as_releases_are_heard_of);
    tcase_add_loop_test(t, waiting_ends_within_a_few_round_trips, 3, 6);
    tcase_add_test(t, waiting_misses_no_release_whenever_it_comes);
    tcase_add_loop_test(t, waiting_costs_less_than_a_command_per_second_and_waiter, 0, 2);
    tcase_add_test(t, waiting_goes_on_with_a_node_stopped);
    tcase_add_test(t, waiting_goes_on_when_a_node_was_restarted);
    tcase_add_test(t, waiting_for_one_who_publishes_nothing_ends_with_his_ttl);
    tcase_add_test(t, waiting_without_leave_to_subscribe_falls_back_to_looking);
    tcase_add_test(t, C5_the_rights_that_are_named_are_enough_to_be_woken);
    tcase_add_test(t, waiting_for_two_holders_ends_when_both_have_released);
    tcase_add_test(t, waiting_leaves_no_connection_behind);
    tcase_add_test(t, waiting_clients_pass_a_key_on_without_a_stall);
}

int main(void)
{
    return world_main("redlock_wake", add_tests);
}
