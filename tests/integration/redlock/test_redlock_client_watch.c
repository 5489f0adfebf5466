/* SPDX-License-Identifier: Apache-2.0
 *
 * The work of the client's thread for held locks, and how their holder is notified. */
#include "test_redlock_client_world.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/wait.h>

static atomic_int told[REDLOCK_STATE_LOST + 1];

static void count_state(void *ctx, struct redlock_lock *lock, enum redlock_state state)
{
    (void)ctx;
    (void)lock;
    atomic_fetch_add(&told[state], 1);
}

typedef void on_change(void *ctx, struct redlock_lock *lock, enum redlock_state state);

static struct redlock_lock *given_watched(on_change *change, void *ctx)
{
    struct redlock_lock *lock = NULL;
    const struct redlock_request request = {.key = "job:1", .on_change = change, .ctx = ctx};
    ck_assert_int_eq(redlock_acquire(world.client, &request, &lock, NULL), REDLOCK_OK);
    return lock;
}

static bool is_readable(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    return poll(&p, 1, 0) == 1;
}

START_TEST(W8_suspect_and_lost_are_told_once_each_by_callback_and_descriptor)
{
    uint64_t count = 0;
    given_client(3);
    struct redlock_lock *lock = given_watched(count_state, NULL);
    int fd = redlock_fd(lock);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(redlock_fd(lock), fd);
    ck_assert(!is_readable(fd));
    signal_nodes(0, 3, SIGSTOP);
    until(redlock_state(lock) == REDLOCK_STATE_SUSPECT);
    until(is_readable(fd));
    ck_assert_int_eq(read(fd, &count, sizeof count), sizeof count);
    ck_assert_int_gt(redlock_left_ms(lock), 0); /* the deadline has not changed (lock.E5) */
    until(is_readable(fd));
    ck_assert_int_eq(redlock_state(lock), REDLOCK_STATE_LOST);
    until(atomic_load(&told[REDLOCK_STATE_LOST]) == 1);
    ck_assert_int_eq(atomic_load(&told[REDLOCK_STATE_SUSPECT]), 1);
    signal_nodes(0, 3, SIGCONT);
    ck_assert_int_eq(redlock_unlock(lock, NULL), REDLOCK_OK);
    ck_assert_int_eq(atomic_load(&told[REDLOCK_STATE_HELD]), 0);
}
END_TEST

START_TEST(E5_a_suspect_lock_that_is_confirmed_again_is_held_again)
{
    given_client(3);
    struct redlock_lock *lock = given_watched(count_state, NULL);
    signal_nodes(0, 3, SIGSTOP);
    until(redlock_state(lock) == REDLOCK_STATE_SUSPECT);
    signal_nodes(0, 3, SIGCONT);
    until(redlock_state(lock) == REDLOCK_STATE_HELD);
    until(atomic_load(&told[REDLOCK_STATE_HELD]) == 1);
    ck_assert_int_eq(atomic_load(&told[REDLOCK_STATE_SUSPECT]), 1);
    ck_assert_int_eq(redlock_unlock(lock, NULL), REDLOCK_OK);
}
END_TEST

START_TEST(E3_a_lock_that_another_has_taken_is_lost_before_its_deadline)
{
    given_client(3);
    struct redlock_lock *lock = given_watched(count_state, NULL);
    until(nodes_with("job:1") == 3);
    for (size_t i = 0; i < 3; i++) {
        (void)cli(i, "SET", "job:1", "somebody");
    }
    until(atomic_load(&told[REDLOCK_STATE_LOST]) == 1);
    ck_assert_int_eq(redlock_state(lock), REDLOCK_STATE_LOST);
    ck_assert_int_eq(redlock_left_ms(lock), 0);
    ck_assert(is_readable(redlock_fd(lock))); /* made after the loss, and readable nevertheless */
    ck_assert_int_eq(redlock_unlock(lock, NULL), REDLOCK_OK);
    ck_assert_str_eq(cli(0, "GET", "job:1"), "somebody");
}
END_TEST

/* A callback that makes blocking calls itself. */
static void lock_another(void *ctx, struct redlock_lock *lock, enum redlock_state state)
{
    struct redlock_lock *other = NULL;
    struct redlock_report released = {0};
    struct redlock_stats stats = {0};
    if (state == REDLOCK_STATE_LOST && redlock_try(world.client, "job:2", &other) == REDLOCK_OK &&
        redlock_unlock(other, &released) == REDLOCK_OK && released.deleted == 3 &&
        redlock_unlock(lock, NULL) == REDLOCK_OK) { /* the lock that the callback is about */
        redlock_get_stats(world.client, &stats);
        atomic_store((atomic_int *)ctx, 1 + (int)stats.held);
    }
}

START_TEST(W8_a_callback_may_lock_and_unlock)
{
    atomic_int done = 0;
    given_client(3);
    (void)given_watched(lock_another, &done);
    until(nodes_with("job:1") == 3);
    for (size_t i = 0; i < 3; i++) {
        (void)cli(i, "SET", "job:1", "somebody");
    }
    until(atomic_load(&done) != 0);
    ck_assert_int_eq(atomic_load(&done), 1);
}
END_TEST

struct held_mutex {
    pthread_mutex_t mutex;
    atomic_int is_waiting;
};

static void take_mutex(void *ctx, struct redlock_lock *lock, enum redlock_state state)
{
    struct held_mutex *m = ctx;
    (void)lock;
    /* By the timer, in the same turn that would extend the lock. */
    if (state == REDLOCK_STATE_LOST) {
        atomic_store(&m->is_waiting, 1);
        (void)pthread_mutex_lock(&m->mutex);
        (void)pthread_mutex_unlock(&m->mutex);
    }
}

/* The thread that extends a lock does not depend on what the holder does and which mutexes it
 * holds. */
START_TEST(W2_a_lock_is_kept_while_its_holder_computes_and_never_calls)
{
    struct held_mutex m = {.mutex = PTHREAD_MUTEX_INITIALIZER};
    given_client(3);
    struct redlock_lock *lock = given_watched(count_state, NULL);
    (void)pthread_mutex_lock(&m.mutex);
    int64_t end_us = clock_boot_us() + 4 * US_PER_S; /* T is 3 s */
    while (clock_boot_us() < end_us) {
    }
    ck_assert_int_eq(redlock_state(lock), REDLOCK_STATE_HELD);
    ck_assert_uint_eq(nodes_with("job:1"), 3);
    (void)pthread_mutex_unlock(&m.mutex);
    ck_assert_int_eq(redlock_unlock(lock, NULL), REDLOCK_OK);
}
END_TEST

START_TEST(W6_who_unlocks_needs_nothing_that_a_callback_may_be_waiting_for)
{
    struct held_mutex m = {.mutex = PTHREAD_MUTEX_INITIALIZER};
    given_client(3);
    struct redlock_lock *lock = given_watched(take_mutex, &m);
    struct redlock_lock *second = given_lock("job:2");
    (void)pthread_mutex_lock(&m.mutex);
    signal_nodes(0, 3, SIGSTOP);
    until(atomic_load(&m.is_waiting) == 1); /* the thread is waiting for our mutex */
    ck_assert_int_eq(redlock_unlock(second, NULL), REDLOCK_OK);
    ck_assert_int_eq(redlock_unlock(lock, NULL), REDLOCK_OK);
    (void)pthread_mutex_unlock(&m.mutex);
    signal_nodes(0, 3, SIGCONT);
    until(nodes_with("job:1") + nodes_with("job:2") == 0);
}
END_TEST

/* Forks a process that stops its parent for longer than T when it receives a byte. */
static pid_t given_stopper(int *ret_pipe)
{
    int ends[2];
    ck_assert_int_eq(pipe(ends), 0);
    pid_t parent = getpid();
    pid_t pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid == 0) {
        char byte = 0;
        if (read(ends[0], &byte, 1) == 1) {
            int64_t end_us = wait_now_us() + 4 * US_PER_S;
            (void)kill(parent, SIGSTOP);
            (void)WAIT_UNTIL(wait_now_us() >= end_us, LIMIT_US);
            (void)kill(parent, SIGCONT);
        }
        _exit(0);
    }
    *ret_pipe = ends[1];
    return pid;
}

START_TEST(W4_a_holder_that_was_stopped_for_longer_than_its_lease_first_sees_that_it_is_lost)
{
    int to_stopper = -1;
    pid_t stopper = given_stopper(&to_stopper);
    given_client(3);
    struct redlock_lock *lock = given_watched(count_state, NULL);
    int64_t start_us = clock_boot_us();
    signal_nodes(0, 3, SIGSTOP); /* so that no node can be asked */
    ck_assert_int_eq(write(to_stopper, "x", 1), 1);
    while (clock_boot_us() - start_us < 3500 * US_PER_MS) {
        wait_step(); /* until we were stopped and continued */
    }
    ck_assert_int_eq(redlock_state(lock), REDLOCK_STATE_LOST);
    ck_assert_int_eq(redlock_left_ms(lock), 0);
    until(atomic_load(&told[REDLOCK_STATE_LOST]) == 1);
    signal_nodes(0, 3, SIGCONT);
    ck_assert_int_eq(redlock_extend(lock), REDLOCK_LOST); /* permanently (lock.E8) */
    ck_assert_int_eq(redlock_unlock(lock, NULL), REDLOCK_OK);
    (void)waitpid(stopper, NULL, 0);
}
END_TEST

struct heard {
    atomic_int downs;
    atomic_int ups;
    atomic_int waiting; /* for a call from within, which must not block forever */
    char why[REDLOCK_TEXT_SIZE];
};

static void hear(void *ctx, const struct redlock_event *event)
{
    struct heard *h = ctx;
    struct redlock_stats stats = {0};
    if (event->node == 1 && event->kind == REDLOCK_EVENT_DOWN) {
        (void)snprintf(h->why, sizeof h->why, "%s", event->text);
        redlock_get_stats(world.client, &stats);
        atomic_store(&h->waiting, (int)stats.waiting);
        atomic_fetch_add(&h->downs, 1);
    }
    atomic_fetch_add(&h->ups,
                     event->kind == REDLOCK_EVENT_UP || event->kind == REDLOCK_EVENT_QUARANTINED);
}

START_TEST(nodes_that_come_and_go_are_told_with_the_reason)
{
    struct heard h = {.waiting = -1};
    given_nodes(3, NULL);
    world.options.on_event = hear;
    world.options.ctx = &h;
    world.client = client_of_world();
    ck_assert_int_eq(redlock_unlock(given_lock("job:1"), NULL),
                     0); /* the callback may use it now */
    until(atomic_load(&h.ups) == 3);
    redis_server_kill(&world.servers[1]);
    until(atomic_load(&h.downs) == 1);
    ck_assert_int_eq(atomic_load(&h.waiting), 0);
    ck_assert_msg(strstr(h.why, world.servers[1].path) != NULL, "%s", h.why);
    ck_assert_int_eq(redis_server_restart(&world.servers[1], NULL), STATUS_OK);
    until(atomic_load(&h.ups) == 4);
    redlock_close(TAKE(world.client));
}
END_TEST

struct handler {
    struct redlock_lock *lock;
    int64_t stopped_us;
};

static void *work_while_held(void *arg)
{
    struct handler *h = arg;
    while (is_held(h->lock)) {
        wait_step();
    }
    h->stopped_us = clock_boot_us();
    return NULL;
}

START_TEST(W9_a_handler_that_polls_its_lock_has_stopped_before_another_gets_it)
{
    struct redlock_lock *others = NULL;
    pthread_t thread;
    const struct redlock_request request = {.key = "job:1", .wait_ms = -1};
    given_client(3);
    struct redlock_client *other = client_of_world();
    struct handler h = {.lock = given_lock("job:1")};
    ck_assert_int_eq(pthread_create(&thread, NULL, work_while_held, &h), 0);
    signal_nodes(0, 3, SIGSTOP); /* so that it cannot be extended */
    until(redlock_state(h.lock) == REDLOCK_STATE_LOST);
    signal_nodes(0, 3, SIGCONT);
    ck_assert_int_eq(redlock_acquire(other, &request, &others, NULL), REDLOCK_OK);
    int64_t won_us = clock_boot_us();
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    ck_assert_int_lt(h.stopped_us, won_us);
    ck_assert_int_eq(redlock_unlock(h.lock, NULL), REDLOCK_OK);
    ck_assert_int_eq(redlock_unlock(others, NULL), REDLOCK_OK);
    redlock_close(other);
}
END_TEST

#define MANY 400
static struct redlock_lock *many[MANY];
static atomic_size_t next_lock;

static void *unlock_some(void *arg)
{
    size_t i = 0;
    (void)arg;
    while ((i = atomic_fetch_add(&next_lock, 1)) < MANY) {
        (void)redlock_unlock(many[i], NULL);
    }
    return NULL;
}

static uint64_t extended(void)
{
    struct redlock_stats stats = {0};
    redlock_get_stats(world.client, &stats);
    return stats.extended;
}

START_TEST(W6_what_was_unlocked_while_it_was_being_renewed_is_renewed_no_more)
{
    const struct redlock_request request = {0};
    enum redlock_result results[MANY];
    const char *keys[MANY];
    static char names[MANY][16];
    pthread_t threads[4];
    given_nodes(3, NULL);
    world.options.ttl_ms = 1000;
    world.options.node_timeout_ms = 100;
    world.client = client_of_world();
    for (size_t i = 0; i < MANY; i++) {
        (void)snprintf(names[i], sizeof names[i], "many:%zu", i);
        keys[i] = names[i];
    }
    /* In separate batches, which are extended at different times. */
    for (size_t i = 0; i < MANY; i += 8) {
        ck_assert_int_eq(acquire_each(world.client, &request, keys + i, 8, many + i, results),
                         REDLOCK_OK);
    }
    until(extended() >= MANY);
    for (size_t i = 0; i < 4; i++) {
        ck_assert_int_eq(pthread_create(&threads[i], NULL, unlock_some, NULL), 0);
    }
    for (size_t i = 0; i < 4; i++) {
        ck_assert_int_eq(pthread_join(threads[i], NULL), 0);
    }
    for (size_t i = 0; i < 3; i++) {
        until(strcmp(cli(i, COUNT_LOCKS), "0") == 0);
    }
    uint64_t before = extended();
    int64_t end_us = clock_boot_us() + 700 * US_PER_MS; /* two intervals of extensions */
    until(clock_boot_us() >= end_us);
    ck_assert_uint_eq(extended(), before);
}
END_TEST

START_TEST(looking_at_nodes_and_holders)
{
    struct redlock_node_info nodes[REDLOCK_NODES_MAX];
    struct redlock_holding holdings[REDLOCK_NODES_MAX];
    struct redlock_report error = {0};
    given_client(3);
    struct redlock_lock *lock = given_lock("job:1");
    until(nodes_with("job:1") == 3);
    ck_assert_uint_eq(redlock_nodes(world.client, nodes, REDLOCK_NODES_MAX), 3);
    ck_assert_uint_eq(redlock_nodes(world.client, nodes, 2), 2);
    for (size_t i = 0; i < 2; i++) {
        ck_assert_str_eq(nodes[i].name, world.urls[i]);
        ck_assert(nodes[i].is_up && nodes[i].may_vote && nodes[i].is_master);
    }
    (void)cli(2, "DEL", "job:1");
    ck_assert_int_eq(redlock_inspect(world.client, "job:1", holdings, &error), REDLOCK_OK);
    ck_assert_int_eq(holdings[0].vote, REDLOCK_VOTE_REFUSED);
    ck_assert_int_eq(holdings[2].vote, REDLOCK_VOTE_OK);
    ck_assert_int_gt(holdings[0].ttl_ms, 0);
    ck_assert_uint_eq(strlen(holdings[0].holder), 8);
    ck_assert_int_eq(redlock_inspect(world.client, "", holdings, &error), REDLOCK_INVALID);
    ck_assert_ptr_nonnull(strstr(error.message, "empty key"));
    ck_assert_int_eq(redlock_unlock(lock, NULL), REDLOCK_OK);
}
END_TEST

START_TEST(R8_an_operator_breaks_a_lock_and_its_holder_sees_it)
{
    struct redlock_report report = {0};
    struct redlock_holding holdings[REDLOCK_NODES_MAX];
    given_nodes(3, NULL);
    world.options.label = "the holder";
    world.client = client_of_world();
    struct redlock_lock *lock = given_lock("job:1");
    until(nodes_with("job:1") == 3);
    world.options.label = NULL;
    struct redlock_client *other = client_of_world();
    struct redlock_lock *none = NULL;
    const struct redlock_request request = {.key = "job:1"};
    ck_assert_int_eq(redlock_acquire(other, &request, &none, &report), REDLOCK_HELD);
    ck_assert_str_eq(report.holder, "the holder");
    ck_assert_ptr_nonnull(strstr(report.message, "the holder"));
    ck_assert_int_eq(redlock_inspect(other, "job:1", holdings, NULL), REDLOCK_OK);
    ck_assert_str_eq(holdings[0].label, "the holder");
    ck_assert_int_eq(redlock_break(other, "job:1", &report), REDLOCK_OK);
    ck_assert_uint_eq(report.deleted, 3);
    until(redlock_state(lock) == REDLOCK_STATE_LOST);
    ck_assert_int_eq(redlock_break(other, "job:2", &report), REDLOCK_OK);
    ck_assert_uint_eq(report.missing, 3); /* it was free */
    ck_assert_int_eq(redlock_break(other, "", &report), REDLOCK_INVALID);
    ck_assert_int_eq(redlock_unlock(lock, NULL), REDLOCK_OK);
    redlock_close(other);
}
END_TEST

START_TEST(counters_tell_what_happened)
{
    struct redlock_stats stats = {0};
    struct redlock_report released = {0};
    struct redlock_lock *none = NULL;
    uint64_t rounds = 0;
    given_nodes(3, NULL);
    world.client = client_of_world();
    struct redlock_lock *lock = given_lock("job:1");
    ck_assert_int_eq(redlock_try(world.client, "job:1", &none), REDLOCK_HELD);
    until(nodes_with("job:1") == 3);
    redlock_get_stats(world.client, &stats);
    ck_assert_uint_eq(stats.results[REDLOCK_OK], 1);
    ck_assert_uint_eq(stats.results[REDLOCK_HELD], 1);
    ck_assert_uint_eq(stats.held, 1);
    for (size_t i = 0; i < REDLOCK_LATENCY_BUCKETS; i++) {
        rounds += stats.latency[i];
    }
    ck_assert_uint_eq(rounds, 1);
    ck_assert_int_eq(redlock_unlock(lock, &released), REDLOCK_OK);
    redlock_get_stats(world.client, &stats);
    ck_assert_uint_eq(stats.held, 0);
    ck_assert_uint_eq(stats.release_deleted, 3);
}
END_TEST

static void add_tests(TCase *t)
{
    tcase_add_test(t, W8_suspect_and_lost_are_told_once_each_by_callback_and_descriptor);
    tcase_add_test(t, E5_a_suspect_lock_that_is_confirmed_again_is_held_again);
    tcase_add_test(t, E3_a_lock_that_another_has_taken_is_lost_before_its_deadline);
    tcase_add_test(t, W8_a_callback_may_lock_and_unlock);
    tcase_add_test(t, W2_a_lock_is_kept_while_its_holder_computes_and_never_calls);
    tcase_add_test(t, W6_who_unlocks_needs_nothing_that_a_callback_may_be_waiting_for);
    tcase_add_test(
        t, W4_a_holder_that_was_stopped_for_longer_than_its_lease_first_sees_that_it_is_lost);
    tcase_add_test(t, W6_what_was_unlocked_while_it_was_being_renewed_is_renewed_no_more);
    tcase_add_test(t, looking_at_nodes_and_holders);
    tcase_add_test(t, W9_a_handler_that_polls_its_lock_has_stopped_before_another_gets_it);
    tcase_add_test(t, nodes_that_come_and_go_are_told_with_the_reason);
    tcase_add_test(t, R8_an_operator_breaks_a_lock_and_its_holder_sees_it);
    tcase_add_test(t, counters_tell_what_happened);
}

int main(void)
{
    return client_world_main("redlock_client_watch", add_tests);
}
