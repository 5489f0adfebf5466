/* SPDX-License-Identifier: Apache-2.0
 *
 * A semaphore: several slots of one key. */
#include "test_redlock_client_world.h"

#include <pthread.h>
#include <stdatomic.h>

#define SLOTS 3
#define WAITERS 6
#define ROUNDS 15

static const struct redlock_request one_slot = {.key = "pool", .slots = SLOTS};

static struct redlock_lock *given_slot(struct redlock_client *client)
{
    struct redlock_lock *lock = NULL;
    struct redlock_report report = {0};
    ck_assert_msg(redlock_acquire(client, &one_slot, &lock, &report) == REDLOCK_OK, "%s",
                  report.message);
    return lock;
}

static void give_back(struct redlock_lock *lock)
{
    struct redlock_report released = {0};
    ck_assert_int_eq(redlock_unlock(lock, &released), REDLOCK_OK);
    ck_assert_uint_eq(released.stolen, 0);
}

static void given_all_slots(struct redlock_lock *locks[SLOTS])
{
    for (size_t i = 0; i < SLOTS; i++) {
        locks[i] = given_slot(world.client);
    }
}

static void give_all_back(struct redlock_lock *const locks[SLOTS])
{
    for (size_t i = 0; i < SLOTS; i++) {
        give_back(locks[i]);
    }
}

static size_t keys_left(void)
{
    return nodes_with("pool#1") + nodes_with("pool#2") + nodes_with("pool#3");
}

static size_t in_line(void)
{
    size_t count = 0;
    for (size_t node = 0; node < world.count; node++) {
        count += (size_t)strtoul(cli(node, "ZCARD", "redlock:line:pool#1"), NULL, 10);
        count += (size_t)strtoul(cli(node, "ZCARD", "redlock:line:pool#2"), NULL, 10);
        count += (size_t)strtoul(cli(node, "ZCARD", "redlock:line:pool#3"), NULL, 10);
    }
    return count;
}

START_TEST(L10_so_many_clients_have_a_slot_each_and_the_next_one_none)
{
    struct redlock_lock *locks[SLOTS];
    struct redlock_lock *none = NULL;
    struct redlock_report report = {0};
    unsigned seen = 0;
    given_client(3);
    struct redlock_client *other = client_of_world();
    for (size_t i = 0; i < SLOTS; i++) {
        locks[i] = given_slot(i % 2 == 0 ? world.client : other);
        const char *key = redlock_lock_key(locks[i], NULL);
        ck_assert_int_eq(strncmp(key, "pool#", 5), 0);
        seen |= 1U << strtoul(key + 5, NULL, 10);
    }
    ck_assert_uint_eq(seen, 1U << 1 | 1U << 2 | 1U << 3);
    ck_assert_int_eq(redlock_acquire(other, &one_slot, &none, &report), REDLOCK_HELD);
    ck_assert_ptr_null(none);
    ck_assert_int_eq(report.tries, SLOTS);
    ck_assert_str_ne(report.holder, "");
    give_back(locks[1]);
    locks[1] = given_slot(other);
    give_all_back(locks);
    ck_assert_uint_eq(keys_left(), 0);
    redlock_close(other);
}
END_TEST

struct waiter {
    pthread_t thread;
    struct redlock_client *client;
    int number;
    int rounds;
    struct redlock_request request;
    struct redlock_lock *lock;
    enum redlock_result result;
};

static atomic_int turn;   /* how many have had a slot so far */
static atomic_int inside; /* how many have one now */
static atomic_int most;
static atomic_int turns[WAITERS]; /* by turn: number of the waiter, plus 1; 0 = none yet */

static void *run_waiter(void *arg)
{
    struct waiter *w = arg;
    w->result = redlock_acquire(w->client, &w->request, &w->lock, NULL);
    if (w->result == REDLOCK_OK) {
        atomic_store(&turns[atomic_fetch_add(&turn, 1)], w->number + 1);
    }
    return NULL;
}

static void start_waiter(struct waiter *w, int number, struct redlock_client *client, int64_t ms)
{
    uint64_t before = waiting_in(client);
    *w = (struct waiter){.client = client, .number = number, .request = one_slot};
    w->request.wait_ms = ms;
    size_t stood = in_line();
    ck_assert_int_eq(pthread_create(&w->thread, NULL, run_waiter, w), 0);
    until(waiting_in(client) == before + 1);
    if (before == 0) { /* only the first waiter of a client stands in line */
        until(in_line() == stood + SLOTS * world.count);
    }
}

START_TEST(L10_waiters_are_served_as_they_came_whichever_slot_is_freed)
{
    struct redlock_lock *locks[SLOTS];
    struct waiter waiters[WAITERS];
    struct redlock_client *clients[WAITERS];
    given_client(3);
    given_all_slots(locks);
    for (int i = 0; i < WAITERS; i++) {
        clients[i] = client_of_world();
        start_waiter(&waiters[i], i, clients[i], -1);
    }
    for (int i = 0; i < WAITERS; i++) { /* one after the other, so that only their order matters */
        give_back(i < SLOTS ? locks[i] : waiters[i - SLOTS].lock);
        until(atomic_load(&turns[i]) != 0);
        ck_assert_int_eq(atomic_load(&turns[i]), i + 1);
        ck_assert_int_eq(pthread_join(waiters[i].thread, NULL), 0);
    }
    for (int i = WAITERS - SLOTS; i < WAITERS; i++) {
        give_back(waiters[i].lock);
    }
    until(keys_left() + in_line() == 0);
    for (int i = 0; i < WAITERS; i++) {
        redlock_close(clients[i]);
    }
}
END_TEST

START_TEST(L10_slots_that_are_freed_at_once_serve_as_many_waiters)
{
    struct redlock_lock *locks[SLOTS];
    struct waiter waiters[SLOTS];
    given_client(3);
    struct redlock_client *other = client_of_world();
    given_all_slots(locks);
    for (int i = 0; i < SLOTS; i++) {
        start_waiter(&waiters[i], i, other, -1);
    }
    for (size_t i = 0; i < SLOTS; i++) {
        ck_assert_int_eq(redlock_unlock(locks[i], NULL), REDLOCK_OK);
    }
    until(atomic_load(&turn) == SLOTS);
    for (int i = 0; i < SLOTS; i++) {
        ck_assert_int_eq(pthread_join(waiters[i].thread, NULL), 0);
        ck_assert_int_eq(waiters[i].result, REDLOCK_OK);
        give_back(waiters[i].lock);
    }
    until(keys_left() + in_line() == 0);
    redlock_close(other);
}
END_TEST

START_TEST(A6_L10_a_waiter_gives_up_at_its_deadline_and_leaves_all_lines)
{
    struct redlock_lock *locks[SLOTS];
    struct waiter w;
    given_client(3);
    struct redlock_client *other = client_of_world();
    given_all_slots(locks);
    start_waiter(&w, 0, other, 5000);
    ck_assert_int_eq(pthread_join(w.thread, NULL), 0);
    ck_assert_int_eq(w.result, REDLOCK_HELD);
    until(in_line() == 0);
    give_all_back(locks);
    redlock_close(other);
}
END_TEST

START_TEST(A15_L10_a_cancelled_waiter_leaves_all_lines)
{
    struct redlock_lock *locks[SLOTS];
    struct redlock_owner *owner = NULL;
    struct waiter w = {.request = one_slot};
    given_client(3);
    given_all_slots(locks);
    ck_assert_int_eq(redlock_owner_new(world.client, &owner), REDLOCK_OK);
    w.client = world.client;
    w.request.owner = owner;
    w.request.wait_ms = -1;
    ck_assert_int_eq(pthread_create(&w.thread, NULL, run_waiter, &w), 0);
    until(in_line() == SLOTS * world.count);
    redlock_cancel(owner);
    ck_assert_int_eq(pthread_join(w.thread, NULL), 0);
    ck_assert_int_eq(w.result, REDLOCK_CANCELLED);
    until(in_line() == 0);
    give_all_back(locks);
    redlock_owner_free(owner);
}
END_TEST

START_TEST(L10_an_owner_enters_the_slot_that_it_has)
{
    struct redlock_lock *first = NULL;
    struct redlock_lock *second = NULL;
    struct redlock_owner *owner = NULL;
    given_client(3);
    ck_assert_int_eq(redlock_owner_new(world.client, &owner), REDLOCK_OK);
    struct redlock_request request = one_slot;
    request.owner = owner;
    ck_assert_int_eq(redlock_acquire(world.client, &request, &first, NULL), REDLOCK_OK);
    ck_assert_int_eq(redlock_acquire(world.client, &request, &second, NULL), REDLOCK_OK);
    ck_assert_ptr_eq(first, second);
    ck_assert_uint_eq(keys_left(), 3); /* one key of one slot on each node */
    ck_assert_int_eq(redlock_unlock(second, NULL), REDLOCK_OK);
    ck_assert_int_eq(redlock_state(first), REDLOCK_STATE_HELD);
    give_back(first);
    redlock_owner_free(owner);
}
END_TEST

static void *use_slots(void *arg)
{
    struct waiter *w = arg;
    for (int i = 0; i < w->rounds && w->result == REDLOCK_OK; i++) {
        w->result = redlock_acquire(w->client, &w->request, &w->lock, NULL);
        if (w->result == REDLOCK_OK) {
            int now = atomic_fetch_add(&inside, 1) + 1;
            int seen = atomic_load(&most);
            while (now > seen && !atomic_compare_exchange_weak(&most, &seen, now)) {
            }
            w->result = redlock_fence(w->lock) > 0 ? redlock_extend(w->lock) : REDLOCK_LOST;
            atomic_fetch_sub(&inside, 1);
            (void)redlock_unlock(w->lock, NULL);
        }
    }
    return NULL;
}

START_TEST(L10_never_more_than_so_many_are_inside)
{
    enum { THREADS = 8 };
    struct waiter waiters[THREADS];
    given_nodes(3, NULL);
    world.options.ttl_ms = 20000; /* a busy machine must not lose a lease */
    world.options.node_timeout_ms = 2000;
    world.client = client_of_world();
    struct redlock_client *other = client_of_world();
    for (int i = 0; i < THREADS; i++) {
        waiters[i] = (struct waiter){
            .client = i % 2 == 0 ? world.client : other, .rounds = ROUNDS, .request = one_slot};
        waiters[i].request.wait_ms = -1;
        waiters[i].request.fence = true;
        ck_assert_int_eq(pthread_create(&waiters[i].thread, NULL, use_slots, &waiters[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        ck_assert_int_eq(pthread_join(waiters[i].thread, NULL), 0);
        ck_assert_int_eq(waiters[i].result, REDLOCK_OK);
    }
    ck_assert_int_le(atomic_load(&most), SLOTS);
    until(keys_left() + in_line() == 0);
    redlock_close(other);
}
END_TEST

static const struct {
    struct redlock_request request;
    const char *says;
} refusals[] = {
    {{.key = "k", .slots = -1}, "-1 slots, allowed are 0 to 64"},
    {{.key = "k", .slots = 65}, "65 slots, allowed are 0 to 64"},
    {{.key = "k", .slots = 2, .each = true}, "slots and modes need a single key, without each"},
    {{.keys = (const struct redlock_key[]){{"a", 1}, {"b", 1}}, .count = 2, .slots = 2},
     "slots and modes need a single key, without each"},
    {{.key = "", .slots = 2}, "an empty key"},
};

START_TEST(L10_what_is_no_semaphore_is_refused)
{
    struct redlock_lock *none = NULL;
    struct redlock_report report = {0};
    given_client(1);
    ck_assert_int_eq(redlock_acquire(world.client, &refusals[_i].request, &none, &report),
                     REDLOCK_INVALID);
    ck_assert_msg(strstr(report.message, refusals[_i].says) != NULL, "%s", report.message);
}
END_TEST

START_TEST(L10_the_longest_key_leaves_room_for_the_number)
{
    char key[REDLOCK_KEY_LEN_MAX + 1] = "";
    struct redlock_lock *lock = NULL;
    given_client(1);
    memset(key, 'k', REDLOCK_KEY_LEN_MAX - 3);
    struct redlock_request request = {.key = key, .slots = REDLOCK_SLOTS_MAX};
    ck_assert_int_eq(redlock_acquire(world.client, &request, &lock, NULL), REDLOCK_OK);
    ck_assert_int_eq(strncmp(redlock_lock_key(lock, NULL), key, strlen(key)), 0);
    give_back(lock);
    key[REDLOCK_KEY_LEN_MAX - 3] = 'k';
    ck_assert_int_eq(redlock_acquire(world.client, &request, &lock, NULL), REDLOCK_INVALID);
}
END_TEST

static void add_tests(TCase *t)
{
    tcase_add_test(t, L10_so_many_clients_have_a_slot_each_and_the_next_one_none);
    tcase_add_test(t, L10_waiters_are_served_as_they_came_whichever_slot_is_freed);
    tcase_add_test(t, L10_slots_that_are_freed_at_once_serve_as_many_waiters);
    tcase_add_test(t, A6_L10_a_waiter_gives_up_at_its_deadline_and_leaves_all_lines);
    tcase_add_test(t, A15_L10_a_cancelled_waiter_leaves_all_lines);
    tcase_add_test(t, L10_an_owner_enters_the_slot_that_it_has);
    tcase_add_test(t, L10_never_more_than_so_many_are_inside);
    tcase_add_loop_test(t, L10_what_is_no_semaphore_is_refused, 0, (int)ARRAY_COUNT(refusals));
    tcase_add_test(t, L10_the_longest_key_leaves_room_for_the_number);
}

int main(void)
{
    return client_world_main("redlock_client_slots", add_tests);
}
