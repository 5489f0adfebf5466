/* SPDX-License-Identifier: Apache-2.0
 *
 * The lock with nodes that answer with nonsense, with far too much, or break off: it is not won by
 * them, never hangs, never exceeds its memory, and works again when they do. */
#include "test_redlock_proxies.h"

#include <stdio.h>

#define MEMORY_MAX_KIB (256L << 10)

static const struct fault faults[] = {
    {.kind = FAULT_REPLACE, .text = "\0\377\200 not the protocol\r\n", .text_len = 23},
    {.kind = FAULT_REPLACE, .text = "HTTP/1.1 400 Bad Request\r\n\r\n"},
    {.kind = FAULT_REPLACE, .text = "\r\n"},
    {.kind = FAULT_REPLACE, .text = "$-"}, /* and nothing more */
    {.kind = FAULT_REPLACE, .text = "+PONG\r\n"},
    {.kind = FAULT_REPLACE, .text = "+QUEUED\r\n"},
    /* The reply to a SET without GET, which was not sent. */
    {.kind = FAULT_REPLACE, .text = "+OK\r\n"},
    {.kind = FAULT_REPLACE, .text = ":1\r\n"},
    {.kind = FAULT_REPLACE, .text = "$0\r\n\r\n"},
    {.kind = FAULT_REPLACE, .text = "$-2\r\n"},
    {.kind = FAULT_REPLACE, .text = "*0\r\n"},
    {.kind = FAULT_REPLACE, .text = "*1\r\n$-1\r\n"},
    {.kind = FAULT_REPLACE, .text = "*3\r\n$-1\r\n*1\r\n:1\r\n:99999999999999999999\r\n"},
    {.kind = FAULT_REPLACE, .text = "-\r\n"},
    {.kind = FAULT_REPLACE, .text = "-LOADING Redis is loading the dataset in memory\r\n"},
    {.kind = FAULT_REPLACE, .text = "_\r\n"},
    {.kind = FAULT_ENDLESS, .text = "+", .more = "OK"},
    {.kind = FAULT_ENDLESS, .text = "$1073741824\r\n", .more = "OK"},
    {.kind = FAULT_ENDLESS, .text = "*2147483647\r\n", .more = ":1\r\n"},
    {.kind = FAULT_ENDLESS, .text = "*1000000\r\n", .more = "$-1\r\n"},
    {.kind = FAULT_ENDLESS, .text = "*1\r\n", .more = "*1\r\n"},
    {.kind = FAULT_ENDLESS, .text = "*3\r\n", .more = "*1000\r\n"},
    {.kind = FAULT_ENDLESS, .text = "\377", .more = "\377"},
    {.kind = FAULT_RESET},
    {.kind = FAULT_CUT},
};

#define ARRAYS_AT 10 /* the entries before it resemble no reply of a script */

/* Returns the peak of this process's memory. */
static long memory_peak_kib(void)
{
    char line[128];
    long kib = 0;
    FILE *f = fopen("/proc/self/status", "re");
    ck_assert_ptr_nonnull(f);
    while (fgets(line, sizeof line, f) != NULL) {
        if (strncmp(line, "VmHWM:", 6) == 0) {
            kib = strtol(line + 6, NULL, 10);
        }
    }
    (void)fclose(f);
    return kib;
}

static void check_memory(long before_kib)
{
/* Sanitizers keep freed memory. */
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    ck_assert_int_lt(memory_peak_kib() - before_kib, MEMORY_MAX_KIB);
#else
    (void)before_kib;
#endif
}

static struct fault fault_on(const char *command, int which)
{
    struct fault f = faults[which];
    f.on = command;
    return f;
}

/* Makes attempts beside two bad nodes until the answers of the three good ones are on time. An
 * attempt without a late answer must win. */
static void must_win_beside(const struct fault *fault, int key)
{
    for (;;) {
        proxies_fault(1, 2, fault);
        int64_t start_us = clock_boot_us();
        if (proxies_try(key) == REDLOCK_OK) {
            return;
        }
        ck_assert_int_ge(clock_boot_us() - start_us, PROXIES_TIMEOUT_US);
        proxies_fault(1, 2, NULL);
        proxies_all_vote();
        world_flush(world.lock);
    }
}

START_TEST(A8_bad_replies_of_two_nodes_of_five_do_not_matter)
{
    const struct fault fault = fault_on("SET", _i);
    proxies_start(5);
    world_open_voting();
    long before_kib = memory_peak_kib();
    for (int i = 0; i < 3; i++) {
        must_win_beside(&fault, i);
    }
    world_run_for(2 * PROXIES_TIMEOUT_US); /* endless replies have continued all the time */
    proxies_fault(0, 5, NULL);
    proxies_all_vote();
    run_until(proxies_try(9) == REDLOCK_OK);
    check_memory(before_kib);
    world_flush(world.lock);
    run_until(world_nodes_with("claimd:job:1") == 0);
    proxies_stop();
}
END_TEST

START_TEST(A15_bad_replies_of_a_quorum_are_never_won)
{
    const struct fault fault = fault_on("SET", _i);
    size_t bad = 3;
    proxies_start(5);
    world_open_voting();
    long before_kib = memory_peak_kib();
    for (int i = 0; i < 4; i++) {
        proxies_fault(0, bad, &fault);
        int64_t start_us = clock_boot_us();
        ck_assert_int_ne(proxies_try(i), REDLOCK_OK);
        ck_assert_int_lt(clock_boot_us() - start_us, 5 * US_PER_S);
        bad = 5; /* then all nodes */
    }
    world_run_for(2 * PROXIES_TIMEOUT_US);
    proxies_fault(0, 5, NULL);
    proxies_all_vote();
    run_until(proxies_try(9) == REDLOCK_OK);
    check_memory(before_kib);
    proxies_stop();
}
END_TEST

START_TEST(C2_bad_replies_to_the_greeting_keep_a_node_out_until_it_is_well)
{
    struct fault fault = faults[_i];
    proxies_start(3);
    proxies_fault(2, 1, &fault);
    world_open();
    run_until(redlock_async_voting(world.lock) == 2);
    run_until(proxies_try(1) == REDLOCK_OK);
    /* Down, or refused if its answers are not Redis; a slow machine sees one, then the other. */
    run_until(world_events_of(REDLOCK_EVENT_DOWN) + world_events_of(REDLOCK_EVENT_REFUSED) >= 1);
    ck_assert_uint_eq(redlock_async_voting(world.lock), 2);
    proxies_fault(2, 1, NULL);
    proxies_all_vote();
    proxies_stop();
}
END_TEST

START_TEST(E5_bad_replies_to_the_rounds_of_extending_end_no_lease_early)
{
    const struct fault fault = fault_on("EVALSHA", _i);
    proxies_start(5);
    world.options.on_node = NULL; /* nodes go down and up too often to be recorded */
    world.options.ttl_us = 10 * PROXIES_TIMEOUT_US;
    world.options.ttl_max_us = 10 * PROXIES_TIMEOUT_US;
    world_open_voting();
    struct redlock_batch *b = proxies_acquire(1, 3);
    int64_t deadline_us = redlock_batch_deadline_us(b, 0);
    proxies_fault(0, 5, &fault);
    run_until(world.states[REDLOCK_STATE_LOST] > 0); /* there was no confirmation */
    ck_assert_int_ge(world.lost_at_us, deadline_us);
    run_until(world.states[REDLOCK_STATE_LOST] == 3);
    ck_assert_int_eq(redlock_batch_deadline_us(b, 0), deadline_us);
    world_release_all(b);
    proxies_stop();
}
END_TEST

START_TEST(R4_bad_replies_to_a_release_are_no_acknowledgement)
{
    const struct fault fault = fault_on("EVALSHA", _i);
    proxies_start(5);
    world.options.on_node = NULL; /* nodes go down and up too often to be recorded */
    world_open_voting();
    struct redlock_batch *b = proxies_acquire(1, 1);
    run_until(world_nodes_with("claimd:job:1") == 5);
    proxies_fault(0, 5, &fault);
    redlock_batch_release(b, 0);
    world_run_for(3 * PROXIES_TIMEOUT_US);
    ck_assert_uint_eq(redlock_async_counters(world.lock)->release_deleted, 0);
    proxies_fault(0, 5, NULL);
    /* The release was sent again. */
    run_until(redlock_async_counters(world.lock)->release_missing == 5);
    ck_assert_uint_eq(world_nodes_with("claimd:job:1"), 0);
    proxies_stop();
}
END_TEST

START_TEST(C2_connections_that_are_reset_in_the_middle_come_back)
{
    proxies_start(5);
    /* Nodes go down and up too often to be recorded. */
    world.options.on_node = NULL;
    world.options.node_timeout_us = 5 * US_PER_S; /* a reset is noticed at once */
    world.options.ttl_us = 60 * US_PER_S;
    world.options.ttl_max_us = 60 * US_PER_S;
    world_open_voting();
    for (int i = 0; i < 20; i++) {
        struct fault_proxy *broken[2] = {proxy((size_t)i % 5), proxy((size_t)(i + 1) % 5)};
        size_t before[2] = {fault_proxy_counts(broken[0]).accepted,
                            fault_proxy_counts(broken[1]).accepted};
        world_acquire_start(world.lock, 1, 100);
        fault_proxy_break(broken[0], i % 2 == 0);
        fault_proxy_break(broken[1], i % 2 != 0);
        run_until(world_acquired() != NULL);
        struct redlock_batch *b = world_acquired();
        for (size_t k = 0; k < 100; k++) {
            ck_assert_int_eq(redlock_batch_result(b, k), REDLOCK_OK);
        }
        world_release_all(b);
        /* Waits until it is noticed, or the next round would have fewer nodes. */
        for (size_t n = 0; n < 2; n++) {
            run_until(fault_proxy_counts(broken[n]).accepted > before[n]);
        }
        proxies_all_vote();
        for (size_t n = 0; n < 5; n++) { /* a node without the release yet would answer HELD */
            run_until(strcmp(cli(n, COUNT_LOCKS), "0") == 0);
        }
    }
    proxies_stop();
}
END_TEST

static void add_tests(TCase *t)
{
    int count = (int)ARRAY_COUNT(faults);
    tcase_add_loop_test(t, A8_bad_replies_of_two_nodes_of_five_do_not_matter, 0, count);
    tcase_add_loop_test(t, A15_bad_replies_of_a_quorum_are_never_won, 0, count);
    tcase_add_loop_test(t, C2_bad_replies_to_the_greeting_keep_a_node_out_until_it_is_well, 0,
                        count);
    tcase_add_loop_test(t, E5_bad_replies_to_the_rounds_of_extending_end_no_lease_early, ARRAYS_AT,
                        count);
    tcase_add_loop_test(t, R4_bad_replies_to_a_release_are_no_acknowledgement, ARRAYS_AT, count);
    tcase_add_test(t, C2_connections_that_are_reset_in_the_middle_come_back);
}

int main(void)
{
    return world_main("redlock_faults_bytes", add_tests);
}
