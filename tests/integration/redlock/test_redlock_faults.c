/* SPDX-License-Identifier: Apache-2.0
 *
 * The lock over a slow and lossy network: times and votes. */
#include "test_redlock_proxies.h"

#include <stdio.h>

#define ATTEMPTS 3 /* the fastest one counts, since the machine has other work */
#define AWAY_US (2 * US_PER_S)
#define FAR_US (20 * US_PER_S) /* waiting for this long would be noticed */

static int64_t fastest_attempt_us(enum redlock_result want)
{
    int64_t fastest_us = INT64_MAX;
    for (int i = 0; i < ATTEMPTS; i++) {
        int64_t start_us = clock_boot_us();
        ck_assert_int_eq(proxies_try(i), want);
        int64_t took_us = clock_boot_us() - start_us;
        fastest_us = took_us < fastest_us ? took_us : fastest_us;
    }
    return fastest_us;
}

static void given_patient_proxies(void)
{
    proxies_start(5);
    world.options.node_timeout_us = 2 * FAR_US;
    world.options.ttl_us = 20 * FAR_US;
    world.options.ttl_max_us = world.options.ttl_us;
    world_open_voting();
}

static int64_t attempt_us(int key)
{
    int64_t start_us = clock_boot_us();
    ck_assert_int_eq(proxies_try(key), REDLOCK_OK);
    return clock_boot_us() - start_us;
}

/* If each node were asked only after the one before had answered, a quorum would take three times
 * as long. */
START_TEST(A3_five_nodes_that_are_far_away_are_asked_in_the_time_of_one)
{
    static const int64_t ways[][2] = {
        {0, AWAY_US}, {AWAY_US, 0}, {AWAY_US / 2, AWAY_US - AWAY_US / 2}};
    given_patient_proxies();
    proxies_delay(0, 5, ways[_i][0], ways[_i][1]);
    int64_t took_us = attempt_us(1);
    ck_assert_int_ge(took_us, AWAY_US);
    ck_assert_int_lt(took_us, 5 * AWAY_US / 2);
    proxies_stop();
}
END_TEST

START_TEST(A3_the_slowest_of_the_quorum_decides_and_not_the_slowest_of_all)
{
    given_patient_proxies();
    proxies_delay(3, 2, 0, FAR_US);
    ck_assert_int_lt(attempt_us(1), FAR_US / 2);
    proxies_delay(0, 3, 0, AWAY_US / 10);
    int64_t took_us = attempt_us(2);
    ck_assert_int_ge(took_us, AWAY_US / 10);
    ck_assert_int_lt(took_us, FAR_US / 2);
    proxies_stop();
}
END_TEST

START_TEST(A5_A6_nodes_that_swallow_every_reply_are_no_quorum_after_one_timeout)
{
    const struct fault swallow = {.kind = FAULT_SWALLOW};
    int64_t fastest_us = INT64_MAX;
    proxies_start(5);
    world_open_voting();
    for (int i = 0; i < 3; i++) {
        proxies_all_vote();
        proxies_fault(0, 5, &swallow);
        int64_t start_us = clock_boot_us();
        ck_assert_int_eq(proxies_try(i), REDLOCK_NO_QUORUM);
        int64_t took_us = clock_boot_us() - start_us;
        ck_assert_int_ge(took_us, PROXIES_TIMEOUT_US);
        fastest_us = took_us < fastest_us ? took_us : fastest_us;
        proxies_fault(0, 5, NULL);
    }
    ck_assert_int_lt(fastest_us, 5 * US_PER_S);
    proxies_all_vote();
    run_until(proxies_try(9) == REDLOCK_OK);
    proxies_stop();
}
END_TEST

START_TEST(A5_a_node_that_accepts_and_never_answers_holds_nobody_up)
{
    proxies_start(5);
    world.options.node_timeout_us = 5 * US_PER_S;
    world.options.ttl_us = 60 * US_PER_S;
    world.options.ttl_max_us = world.options.ttl_us;
    fault_proxy_half_open(proxy(0), true);
    fault_proxy_half_open(proxy(1), true);
    world_open();
    run_until(redlock_async_voting(world.lock) == 3);
    ck_assert_int_lt(attempt_us(1), world.options.node_timeout_us);
    run_until(world_events_of(REDLOCK_EVENT_DOWN) >= 2);
    ck_assert_ptr_nonnull(strstr(world_last_event(0)->why, "no connection in time"));
    fault_proxy_half_open(proxy(0), false);
    fault_proxy_half_open(proxy(1), false);
    proxies_all_vote();
    proxies_stop();
}
END_TEST

START_TEST(A13_all_nodes_that_never_answer_are_no_quorum_at_once)
{
    proxies_start(3);
    for (size_t i = 0; i < 3; i++) {
        fault_proxy_half_open(proxy(i), true);
    }
    world_open();
    ck_assert_int_lt(fastest_attempt_us(REDLOCK_NO_QUORUM), 5 * US_PER_S);
    proxies_stop();
}
END_TEST

/* ---- A9: the test determines what every node answers ---- */

#define PATIENT_US (900 * US_PER_MS) /* each node answers, even if late */

enum said { SAID_OK, SAID_REFUSED, SAID_NONSENSE, SAID_COUNT };

static void nodes_will_say(size_t n, const enum said *says)
{
    static const char *const texts[SAID_COUNT] = {"$-1\r\n", "$5\r\nother\r\n", ":7\r\n"};
    for (size_t i = 0; i < n; i++) {
        fault_proxy_set(
            proxy(i), &(struct fault){.kind = FAULT_REPLACE, .on = "SET", .text = texts[says[i]]});
    }
}

/* Which of several failures is reported may depend on the order of answers; whether the lock is won
 * may not. */
static void check_attempt(size_t n, const enum said *says, int key)
{
    size_t counts[SAID_COUNT] = {0};
    size_t quorum = n / 2 + 1;
    size_t blocking = n - quorum + 1;
    char text[REDLOCK_NODES_MAX + 1] = "";
    for (size_t i = 0; i < n; i++) {
        counts[says[i]]++;
        text[i] = "+-?"[says[i]];
    }
    nodes_will_say(n, says);
    enum redlock_result result = proxies_try(key);
    bool is_right = false;
    if (counts[SAID_OK] >= quorum) {
        is_right = result == REDLOCK_OK;
    } else if (counts[SAID_NONSENSE] == 0) {
        is_right = result == REDLOCK_HELD;
    } else if (counts[SAID_REFUSED] == 0) {
        is_right = result == REDLOCK_NO_QUORUM;
    } else {
        is_right = result == REDLOCK_SPLIT ||
                   (result == REDLOCK_HELD && counts[SAID_REFUSED] >= blocking) ||
                   (result == REDLOCK_NO_QUORUM && counts[SAID_NONSENSE] >= blocking);
    }
    ck_assert_msg(is_right, "%s of %zu nodes: %s", text, n, redlock_text(result));
}

START_TEST(A9_every_combination_of_answers_of_up_to_five_nodes_ends_in_its_verdict)
{
    size_t n = (size_t)_i;
    int combinations = 1;
    proxies_start(n);
    world.options.node_timeout_us = PATIENT_US;
    world_open_voting();
    for (size_t i = 0; i < n; i++) {
        combinations *= SAID_COUNT;
    }
    for (int c = 0; c < combinations; c++) {
        enum said says[REDLOCK_NODES_MAX];
        int rest = c;
        for (size_t i = 0; i < n; i++) {
            says[i] = (enum said)(rest % SAID_COUNT);
            rest /= SAID_COUNT;
        }
        check_attempt(n, says, c);
    }
    proxies_fault(0, n, NULL);
    world_flush(world.lock);
    for (size_t i = 0; i < n; i++) {
        ck_assert_str_eq(cli(i, COUNT_LOCKS), "0");
    }
    proxies_stop();
}
END_TEST

START_TEST(A9_every_count_of_answers_of_six_to_nine_nodes_ends_in_its_verdict)
{
    size_t n = (size_t)_i;
    int key = 0;
    proxies_start(n);
    world.options.node_timeout_us = PATIENT_US;
    world_open_voting();
    for (size_t ok = 0; ok <= n; ok++) {
        for (size_t refused = 0; refused <= n - ok; refused++) {
            enum said says[REDLOCK_NODES_MAX];
            for (size_t i = 0; i < n; i++) {
                says[i] = i < ok ? SAID_OK : i < ok + refused ? SAID_REFUSED : SAID_NONSENSE;
            }
            check_attempt(n, says, key++);
        }
    }
    proxies_stop();
}
END_TEST

START_TEST(A9_any_number_of_silent_nodes_ends_in_its_verdict)
{
    const struct fault swallow = {.kind = FAULT_SWALLOW};
    size_t n = (size_t)_i;
    proxies_start(n);
    world.options.on_node = NULL; /* nodes go down and up more often than it can record */
    world_open_voting();
    for (size_t silent = 0; silent <= n; silent++) {
        proxies_all_vote();
        proxies_fault(0, silent, &swallow);
        int64_t start_us = clock_boot_us();
        bool is_possible = n - silent >= n / 2 + 1;
        ck_assert_int_eq(proxies_try((int)silent), is_possible ? REDLOCK_OK : REDLOCK_NO_QUORUM);
        ck_assert_int_lt(clock_boot_us() - start_us, 5 * US_PER_S);
        run_until(is_possible || redlock_async_voting(world.lock) < n);
        proxies_fault(0, n, NULL);
    }
    proxies_stop();
}
END_TEST

/* ---- late replies ---- */

START_TEST(A12_late_replies_of_a_won_key_are_votes_that_are_given_back)
{
    proxies_start(5);
    world.options.node_timeout_us = US_PER_S;
    world_open_voting();
    proxies_delay(3, 2, 0, 300 * US_PER_MS);
    struct redlock_batch *b = world_acquire(world.lock, 1, 1);
    ck_assert_int_eq(redlock_batch_result(b, 0), REDLOCK_OK);
    run_until(world_nodes_with("claimd:job:1") == 5);
    redlock_batch_release(b, 0);
    world_flush(world.lock);
    ck_assert_uint_eq(world_nodes_with("claimd:job:1"), 0);
    ck_assert_uint_eq(redlock_async_counters(world.lock)->release_deleted, 5);
    proxies_stop();
}
END_TEST

START_TEST(A10_A12_sets_that_arrive_after_their_attempt_failed_are_undone)
{
    proxies_start(5);
    world_open_voting();
    /* Delays requests: they run after the verdict. */
    proxies_delay(0, 5, 2 * PROXIES_TIMEOUT_US, 0);
    ck_assert_int_eq(proxies_try(1), REDLOCK_NO_QUORUM);
    proxies_delay(0, 5, 0, 0);
    /* They run, unless their connection is killed first (lock.R1). */
    world_run_for(3 * PROXIES_TIMEOUT_US);
    proxies_all_vote();
    run_until(world_nodes_with("claimd:job:1") == 0);
    world_run_for(3 * PROXIES_TIMEOUT_US);
    ck_assert_uint_eq(world_nodes_with("claimd:job:1"), 0);
    proxies_stop();
}
END_TEST

START_TEST(C3_a_late_vote_is_never_taken_for_that_of_the_next_attempt)
{
    static const enum said refused[5] = {SAID_REFUSED, SAID_REFUSED, SAID_REFUSED, SAID_REFUSED,
                                         SAID_REFUSED};
    proxies_start(5);
    world_open_voting();
    for (int i = 0; i < 5; i++) {
        size_t before = fault_proxy_counts(proxy(0)).accepted;
        proxies_all_vote();
        proxies_delay(0, 5, 0, 10 * PROXIES_TIMEOUT_US);
        ck_assert_int_eq(proxies_try(1), REDLOCK_NO_QUORUM); /* five votes are in flight */
        proxies_delay(0, 5, 0, 0);
        nodes_will_say(5, refused);
        run_until(redlock_async_voting(world.lock) == 5);
        ck_assert_int_eq(proxies_try(2), REDLOCK_HELD);
        ck_assert_uint_gt(fault_proxy_counts(proxy(0)).accepted, before);
        proxies_fault(0, 5, NULL);
    }
    ck_assert_uint_eq(redlock_async_counters(world.lock)->results[REDLOCK_OK], 0);
    proxies_stop();
}
END_TEST

START_TEST(C3_a_reply_that_nobody_asked_for_ends_the_connection_and_is_no_vote)
{
    static const enum said refused[5] = {SAID_REFUSED, SAID_REFUSED, SAID_REFUSED, SAID_REFUSED,
                                         SAID_REFUSED};
    proxies_start(5);
    world_open_voting();
    nodes_will_say(5, refused);
    for (size_t i = 0; i < 5; i++) {
        fault_proxy_inject(proxy(i), "$-1\r\n");
    }
    run_until(world_events_of(REDLOCK_EVENT_DOWN) == 5);
    proxies_all_vote();
    ck_assert_int_eq(proxies_try(1), REDLOCK_HELD);
    proxies_stop();
}
END_TEST

static void add_tests(TCase *t)
{
    tcase_add_loop_test(t, A3_five_nodes_that_are_far_away_are_asked_in_the_time_of_one, 0, 3);
    tcase_add_test(t, A3_the_slowest_of_the_quorum_decides_and_not_the_slowest_of_all);
    tcase_add_test(t, A5_A6_nodes_that_swallow_every_reply_are_no_quorum_after_one_timeout);
    tcase_add_test(t, A5_a_node_that_accepts_and_never_answers_holds_nobody_up);
    tcase_add_test(t, A13_all_nodes_that_never_answer_are_no_quorum_at_once);
    tcase_add_loop_test(t, A9_every_combination_of_answers_of_up_to_five_nodes_ends_in_its_verdict,
                        1, 6);
    tcase_add_loop_test(t, A9_every_count_of_answers_of_six_to_nine_nodes_ends_in_its_verdict, 6,
                        REDLOCK_NODES_MAX + 1);
    tcase_add_loop_test(t, A9_any_number_of_silent_nodes_ends_in_its_verdict, 1,
                        REDLOCK_NODES_MAX + 1);
    tcase_add_test(t, A12_late_replies_of_a_won_key_are_votes_that_are_given_back);
    tcase_add_test(t, A10_A12_sets_that_arrive_after_their_attempt_failed_are_undone);
    tcase_add_test(t, C3_a_late_vote_is_never_taken_for_that_of_the_next_attempt);
    tcase_add_test(t, C3_a_reply_that_nobody_asked_for_ends_the_connection_and_is_no_vote);
}

int main(void)
{
    return world_main("redlock_faults", add_tests);
}
