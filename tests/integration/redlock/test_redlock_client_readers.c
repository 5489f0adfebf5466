/* SPDX-License-Identifier: Apache-2.0
 *
 * A read-write lock: many readers or one writer. */
#include "test_redlock_client_world.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

#define READERS 3
#define ROUNDS 20

static const struct redlock_request reader = {.key = "map", .mode = REDLOCK_MODE_SHARED};
static const struct redlock_request writer = {.key = "map", .mode = REDLOCK_MODE_EXCLUSIVE};

static struct redlock_lock *given(struct redlock_client *client,
                                  const struct redlock_request *request)
{
    struct redlock_lock *lock = NULL;
    struct redlock_report report = {0};
    ck_assert_msg(redlock_acquire(client, request, &lock, &report) == REDLOCK_OK, "%s",
                  report.message);
    return lock;
}

static enum redlock_result tried(struct redlock_client *client,
                                 const struct redlock_request *request)
{
    struct redlock_lock *none = NULL;
    enum redlock_result result = redlock_acquire(client, request, &none, NULL);
    ck_assert_ptr_null(none);
    return result;
}

static void give_back(struct redlock_lock *lock)
{
    struct redlock_report released = {0};
    ck_assert_int_eq(redlock_unlock(lock, &released), REDLOCK_OK);
    ck_assert_uint_eq(released.stolen, 0);
}

static size_t keys_left(void)
{
    size_t count = nodes_with("map#0");
    for (int i = 1; i <= REDLOCK_READERS; i++) {
        char key[16];
        (void)snprintf(key, sizeof key, "map#%d", i);
        count += nodes_with(key);
    }
    return count;
}

START_TEST(L11_readers_share_and_a_writer_is_alone)
{
    struct redlock_lock *readers[READERS];
    given_client(3);
    struct redlock_client *other = client_of_world();
    for (size_t i = 0; i < READERS; i++) {
        readers[i] = given(i % 2 == 0 ? world.client : other, &reader);
    }
    ck_assert_int_eq(tried(other, &writer), REDLOCK_HELD);
    for (size_t i = 0; i < READERS; i++) {
        give_back(readers[i]);
    }
    struct redlock_lock *lock = given(other, &writer);
    ck_assert_str_eq(redlock_lock_key(lock, NULL), "map#0");
    ck_assert_int_eq(tried(world.client, &reader), REDLOCK_HELD);
    ck_assert_int_eq(tried(world.client, &writer), REDLOCK_HELD);
    give_back(lock);
    give_back(given(world.client, &reader));
    ck_assert_uint_eq(keys_left(), 0);
    redlock_close(other);
}
END_TEST

START_TEST(L11_so_many_readers_as_were_asked_for_share)
{
    struct redlock_request two = reader;
    struct redlock_request alone = writer;
    two.slots = alone.slots = 2;
    given_client(3);
    struct redlock_lock *first = given(world.client, &two);
    struct redlock_lock *second = given(world.client, &two);
    ck_assert_int_eq(tried(world.client, &two), REDLOCK_HELD);
    give_back(first);
    give_back(second);
    give_back(given(world.client, &alone));
}
END_TEST

struct waiter {
    pthread_t thread;
    struct redlock_client *client;
    struct redlock_request request;
    struct redlock_lock *lock;
    struct redlock_report report;
    enum redlock_result result;
    int rounds;
    atomic_bool has_ended;
};

static void *run_waiter(void *arg)
{
    struct waiter *w = arg;
    w->result = redlock_acquire(w->client, &w->request, &w->lock, &w->report);
    atomic_store(&w->has_ended, true);
    return NULL;
}

static void start_waiter(struct waiter *w, struct redlock_client *client,
                         const struct redlock_request *request, int64_t wait_ms)
{
    *w = (struct waiter){.client = client, .request = *request};
    w->request.wait_ms = wait_ms;
    ck_assert_int_eq(pthread_create(&w->thread, NULL, run_waiter, w), 0);
    until(waiting_in(client) == 1);
}

static void join(struct waiter *w)
{
    ck_assert_int_eq(pthread_join(w->thread, NULL), 0);
}

/* True if a writer holds the gate, as it does while it waits for readers. */
static bool has_gate(void)
{
    return nodes_with("map#0") == world.count;
}

START_TEST(L11_a_reader_that_comes_while_a_writer_waits_stands_behind_it)
{
    struct waiter waiting_writer;
    struct waiter late;
    given_client(3);
    struct redlock_client *second = client_of_world();
    struct redlock_client *third = client_of_world();
    struct redlock_lock *first = given(world.client, &reader);
    start_waiter(&waiting_writer, second, &writer, -1);
    until(has_gate());
    ck_assert_int_eq(tried(third, &reader), REDLOCK_HELD); /* although slots are free */
    start_waiter(&late, third, &reader, -1);
    until(strcmp(cli(0, "ZCARD", "redlock:line:map#0"), "1") == 0);
    give_back(first);
    join(&waiting_writer);
    ck_assert_int_eq(waiting_writer.result, REDLOCK_OK);
    ck_assert(!atomic_load(&late.has_ended));
    give_back(waiting_writer.lock);
    join(&late);
    ck_assert_int_eq(late.result, REDLOCK_OK);
    until(nodes_with("map#0") == 0); /* the gate is free for the next one */
    give_back(late.lock);
    until(keys_left() == 0);
    redlock_close(second);
    redlock_close(third);
}
END_TEST

START_TEST(A6_L11_a_writer_that_gives_up_lets_the_readers_pass)
{
    struct waiter waiting_writer;
    struct waiter late;
    given_client(3);
    struct redlock_client *second = client_of_world();
    struct redlock_client *third = client_of_world();
    struct redlock_lock *first = given(world.client, &reader);
    start_waiter(&waiting_writer, second, &writer, 1000);
    until(has_gate());
    start_waiter(&late, third, &reader, -1);
    join(&waiting_writer);
    ck_assert_int_eq(waiting_writer.result, REDLOCK_HELD);
    join(&late);
    ck_assert_int_eq(late.result, REDLOCK_OK);
    give_back(late.lock);
    give_back(first);
    until(keys_left() == 0);
    redlock_close(second);
    redlock_close(third);
}
END_TEST

START_TEST(A15_L11_a_cancelled_reader_leaves_the_line_at_the_gate)
{
    struct waiter late;
    struct redlock_owner *owner = NULL;
    struct redlock_request request = reader;
    given_client(3);
    struct redlock_client *other = client_of_world();
    ck_assert_int_eq(redlock_owner_new(other, &owner), REDLOCK_OK);
    request.owner = owner;
    struct redlock_lock *lock = given(world.client, &writer);
    start_waiter(&late, other, &request, -1);
    until(strcmp(cli(0, "ZCARD", "redlock:line:map#0"), "1") == 0);
    redlock_cancel(owner);
    join(&late);
    ck_assert_int_eq(late.result, REDLOCK_CANCELLED);
    until(strcmp(cli(0, "ZCARD", "redlock:line:map#0"), "0") == 0);
    give_back(lock);
    redlock_owner_free(owner);
    redlock_close(other);
}
END_TEST

START_TEST(L11_closing_the_client_ends_those_that_stand_at_the_gate)
{
    struct waiter late;
    given_client(3);
    struct redlock_client *other = client_of_world();
    struct redlock_lock *lock = given(world.client, &writer);
    start_waiter(&late, other, &reader, -1);
    redlock_close(other);
    join(&late);
    ck_assert_int_eq(late.result, REDLOCK_CANCELLED);
    give_back(lock);
    until(keys_left() == 0);
}
END_TEST

START_TEST(L11_a_writers_owner_reads_under_its_lock_and_a_readers_owner_does_not_write)
{
    struct redlock_owner *owner = NULL;
    struct redlock_request read = reader;
    struct redlock_request write = writer;
    given_client(3);
    ck_assert_int_eq(redlock_owner_new(world.client, &owner), REDLOCK_OK);
    read.owner = write.owner = owner;
    struct redlock_lock *lock = given(world.client, &write);
    ck_assert_ptr_eq(given(world.client, &read), lock);
    ck_assert_int_eq(redlock_unlock(lock, NULL), REDLOCK_OK);
    give_back(lock);
    lock = given(world.client, &read);
    ck_assert_int_eq(tried(world.client, &write), REDLOCK_INVALID); /* it would wait for itself */
    give_back(lock);
    redlock_owner_free(owner);
}
END_TEST

static atomic_int reading;
static atomic_int writing;
static atomic_bool has_overlapped;

static void be_inside(struct redlock_lock *lock, enum redlock_mode mode)
{
    bool writes = mode == REDLOCK_MODE_EXCLUSIVE;
    atomic_fetch_add(writes ? &writing : &reading, 1);
    if (atomic_load(&writing) > 1 || (atomic_load(&writing) > 0 && atomic_load(&reading) > 0)) {
        atomic_store(&has_overlapped, true);
    }
    if (redlock_extend(lock) != REDLOCK_OK) { /* takes a round trip */
        atomic_store(&has_overlapped, true);
    }
    atomic_fetch_sub(writes ? &writing : &reading, 1);
}

static void *read_or_write(void *arg)
{
    struct waiter *w = arg;
    for (int i = 0; i < w->rounds && w->result == REDLOCK_OK; i++) {
        w->result = redlock_acquire(w->client, &w->request, &w->lock, &w->report);
        if (w->result == REDLOCK_OK) {
            be_inside(w->lock, w->request.mode);
            (void)redlock_unlock(w->lock, NULL);
        }
    }
    return NULL;
}

START_TEST(L11_a_writer_never_meets_another_client_and_none_starves)
{
    enum { THREADS = 8 };
    struct waiter waiters[THREADS];
    given_nodes(3, NULL);
    world.options.ttl_ms = 20000; /* a busy machine must not lose a lease */
    world.options.node_timeout_ms = 2000;
    world.client = client_of_world();
    struct redlock_client *other = client_of_world();
    for (int i = 0; i < THREADS; i++) {
        waiters[i] = (struct waiter){.client = i % 2 == 0 ? world.client : other,
                                     .rounds = ROUNDS,
                                     .request = i < 2 ? writer : reader};
        waiters[i].request.wait_ms = -1;
        ck_assert_int_eq(pthread_create(&waiters[i].thread, NULL, read_or_write, &waiters[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        join(&waiters[i]);
        ck_assert_msg(waiters[i].result == REDLOCK_OK, "%s", waiters[i].report.message);
    }
    ck_assert(!atomic_load(&has_overlapped));
    until(keys_left() == 0);
    redlock_close(other);
}
END_TEST

START_TEST(L11_an_unknown_mode_is_refused)
{
    struct redlock_request request = {.key = "map", .mode = (enum redlock_mode)3};
    given_client(1);
    ck_assert_int_eq(tried(world.client, &request), REDLOCK_INVALID);
}
END_TEST

static void add_tests(TCase *t)
{
    tcase_add_test(t, L11_readers_share_and_a_writer_is_alone);
    tcase_add_test(t, L11_so_many_readers_as_were_asked_for_share);
    tcase_add_test(t, L11_a_reader_that_comes_while_a_writer_waits_stands_behind_it);
    tcase_add_test(t, A6_L11_a_writer_that_gives_up_lets_the_readers_pass);
    tcase_add_test(t, A15_L11_a_cancelled_reader_leaves_the_line_at_the_gate);
    tcase_add_test(t, L11_closing_the_client_ends_those_that_stand_at_the_gate);
    tcase_add_test(t, L11_a_writers_owner_reads_under_its_lock_and_a_readers_owner_does_not_write);
    tcase_add_test(t, L11_a_writer_never_meets_another_client_and_none_starves);
    tcase_add_test(t, L11_an_unknown_mode_is_refused);
}

int main(void)
{
    return client_world_main("redlock_client_readers", add_tests);
}
