/* SPDX-License-Identifier: Apache-2.0
 *
 * The effect of stopped and killed masters and clients on a held lock and on attempts: T3 and T4 of
 * the list of tests for the lock. */
#include "test_redlock_client_world.h"

#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#define TTL_MS 2000
#define TTL_US (TTL_MS * US_PER_MS)
#define TIMEOUT_US (100 * US_PER_MS)

static struct redlock_client *other;

static void given_five_nodes(void)
{
    given_nodes(5, NULL);
    world.options.ttl_ms = TTL_MS;
    world.options.node_timeout_ms = TIMEOUT_US / US_PER_MS;
}

static void given_two_clients(void)
{
    given_five_nodes();
    world.client = client_of_world();
    other = client_of_world();
}

static void pass(int64_t us)
{
    int64_t end_us = clock_boot_us() + us;
    until(clock_boot_us() >= end_us);
}

static enum redlock_result other_tries(const char *key, int64_t *ret_us)
{
    struct redlock_lock *lock = NULL;
    int64_t start_us = clock_boot_us();
    enum redlock_result result = redlock_try(other, key, &lock);
    *ret_us = clock_boot_us() - start_us;
    (void)redlock_unlock(lock, NULL);
    return result;
}

START_TEST(T3_A8_stopped_masters_of_a_minority_change_nothing)
{
    int64_t us = 0;
    int64_t fastest_us = INT64_MAX;
    given_two_clients();
    struct redlock_lock *lock = given_lock("held");
    signal_nodes(0, (size_t)_i, SIGSTOP);
    /* An attempt that waits for a timeout is never faster. */
    int64_t end_us = clock_boot_us() + LIMIT_US;
    for (int i = 0; i < 5 || (fastest_us >= TIMEOUT_US && clock_boot_us() < end_us); i++) {
        ck_assert_int_eq(other_tries("another", &us), REDLOCK_OK);
        fastest_us = us < fastest_us ? us : fastest_us;
        /* SPLIT if two refusals and the stopped node ended it (lock.A9). */
        ck_assert_int_ne(other_tries("held", &us), REDLOCK_OK);
    }
    ck_assert_int_lt(fastest_us, TIMEOUT_US);
    pass(2 * TTL_US);
    ck_assert_int_eq(redlock_state(lock), REDLOCK_STATE_HELD);
    ck_assert_int_ne(other_tries("held", &us), REDLOCK_OK);
    ck_assert_int_eq(redlock_unlock(lock, NULL), 0);
    signal_nodes(0, (size_t)_i, SIGCONT);
    until(nodes_with("held") + nodes_with("another") == 0);
    redlock_close(other);
}
END_TEST

START_TEST(T3_A6_E5_with_a_stopped_majority_nothing_is_won_and_leases_last_to_their_deadline)
{
    int64_t us = 0;
    int64_t fastest_us = INT64_MAX;
    given_two_clients();
    struct redlock_lock *lock = given_lock("held");
    signal_nodes(0, 3, SIGSTOP);
    int64_t stopped_us = clock_boot_us();
    for (int i = 0; i < 5; i++) {
        ck_assert_int_ne(other_tries("another", &us), REDLOCK_OK);
        fastest_us = us < fastest_us ? us : fastest_us;
    }
    ck_assert_int_lt(fastest_us, 5 * US_PER_S);
    until(redlock_state(lock) == REDLOCK_STATE_LOST);
    int64_t lasted_us = clock_boot_us() - stopped_us;
    ck_assert_int_lt(lasted_us, TTL_US + 5 * US_PER_S);
    ck_assert_int_eq(redlock_left_ms(lock), 0);
    signal_nodes(0, 3, SIGCONT);
    until(other_tries("held", &us) == REDLOCK_OK); /* its keys expire */
    ck_assert_int_eq(redlock_state(lock), REDLOCK_STATE_LOST);
    ck_assert_int_eq(redlock_unlock(lock, NULL), 0);
    redlock_close(other);
}
END_TEST

START_TEST(T3_E5_a_majority_that_is_stopped_for_less_than_the_lease_costs_no_lock)
{
    given_two_clients();
    struct redlock_lock *lock = given_lock("held");
    signal_nodes(0, 3, SIGSTOP);
    until(redlock_state(lock) == REDLOCK_STATE_SUSPECT);
    signal_nodes(0, 3, SIGCONT);
    until(redlock_state(lock) == REDLOCK_STATE_HELD);
    pass(2 * TTL_US);
    ck_assert_int_eq(redlock_state(lock), REDLOCK_STATE_HELD);
    ck_assert_int_eq(redlock_unlock(lock, NULL), 0);
    redlock_close(other);
}
END_TEST

/* `_i` masters are killed and restarted empty at once: they have lost the lock, and no client may
 * win it through them while its holder relies on it. */
START_TEST(T4_N1_masters_that_lost_their_memory_make_no_second_owner)
{
    struct err err = {0};
    struct redlock_lock *second = NULL;
    size_t count = (size_t)_i;
    given_two_clients();
    struct redlock_lock *lock = given_lock("held");
    until(nodes_with("held") == 5);
    for (size_t i = 0; i < count; i++) {
        redis_server_kill(&world.servers[i]);
    }
    for (size_t i = 0; i < count; i++) {
        ck_assert_int_eq(redis_server_restart(&world.servers[i], &err), STATUS_OK);
    }
    int64_t end_us = clock_boot_us() + 4 * TTL_US;
    while (clock_boot_us() < end_us && second == NULL) {
        bool is_won = redlock_try(other, "held", &second) == REDLOCK_OK;
        ck_assert_msg(!is_won || !is_held(lock), "two owners");
        wait_step();
    }
    bool is_kept = count < 3;
    ck_assert_int_eq(redlock_state(lock), is_kept ? REDLOCK_STATE_HELD : REDLOCK_STATE_LOST);
    ck_assert_int_eq(second == NULL, is_kept); /* it may win after the quarantine */
    (void)redlock_unlock(second, NULL);
    ck_assert_int_eq(redlock_unlock(lock, NULL), 0);
    redlock_close(other);
}
END_TEST

#define CHILD_FIRST_SAW_LOST 42

/* The holder in a process of its own: it reports when it holds the lock, is stopped, and ends with
 * what it sees first when it continues. */
__attribute__((noreturn)) static void hold_and_look(int tell_fd)
{
    struct redlock_lock *lock = NULL;
    int64_t last_us = 0;
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    struct redlock_client *client = client_of_world();
    if (redlock_try(client, "held", &lock) != REDLOCK_OK || write(tell_fd, "h", 1) != 1) {
        _exit(1);
    }
    for (;;) { /* a gap in time means that it was stopped */
        int64_t now_us = clock_boot_us();
        if (last_us != 0 && now_us - last_us > TTL_US) {
            _exit(is_held(lock) ? 1 : CHILD_FIRST_SAW_LOST);
        }
        last_us = now_us;
        wait_step();
    }
}

START_TEST(T3_F3_a_client_stopped_for_longer_than_its_lease_finds_it_lost_before_anything_else)
{
    int fds[2];
    char held = 0;
    int64_t us = 0;
    int wait_status = 0;
    given_five_nodes();
    ck_assert_int_eq(pipe(fds), 0);
    pid_t pid = fork(); /* before this process has threads */
    ck_assert_int_ge(pid, 0);
    if (pid == 0) {
        hold_and_look(fds[1]);
    }
    (void)close(fds[1]);
    ck_assert_int_eq(read(fds[0], &held, 1), 1);
    other = client_of_world();
    pass(2 * TTL_US); /* the lock is kept */
    ck_assert_int_eq(other_tries("held", &us), REDLOCK_HELD);
    ck_assert_int_eq(kill(pid, SIGSTOP), 0);
    int64_t stopped_us = clock_boot_us();
    until(other_tries("held", &us) == REDLOCK_OK);
    ck_assert_int_lt(clock_boot_us() - stopped_us, TTL_US + 5 * US_PER_S);
    pass(TTL_US);
    ck_assert_int_eq(kill(pid, SIGCONT), 0);
    ck_assert_int_eq(waitpid(pid, &wait_status, 0), pid);
    ck_assert(WIFEXITED(wait_status));
    ck_assert_int_eq(WEXITSTATUS(wait_status), CHILD_FIRST_SAW_LOST);
    redlock_close(other);
}
END_TEST

static void add_tests(TCase *t)
{
    tcase_add_loop_test(t, T3_A8_stopped_masters_of_a_minority_change_nothing, 1, 3);
    tcase_add_test(
        t, T3_A6_E5_with_a_stopped_majority_nothing_is_won_and_leases_last_to_their_deadline);
    tcase_add_test(t, T3_E5_a_majority_that_is_stopped_for_less_than_the_lease_costs_no_lock);
    tcase_add_loop_test(t, T4_N1_masters_that_lost_their_memory_make_no_second_owner, 1, 6);
    tcase_add_test(
        t, T3_F3_a_client_stopped_for_longer_than_its_lease_finds_it_lost_before_anything_else);
}

int main(void)
{
    return client_world_main("redlock_faults_real", add_tests);
}
