/* SPDX-License-Identifier: Apache-2.0
 *
 * Acquiring and releasing a lock allocates no memory after the first few locks: every allocation of
 * this program, including its libraries, is counted. */
#include "redlock/redlock.h"
#include "test_redlock_world.h"

#include <signal.h>

#define WARM_UP 200
#define PAIRS 1000
#define ROUNDS_MAX 20 /* a late answer sometimes needs space, which is then kept */

static size_t allocations = 1; /* by all threads, added atomically */

/* Sanitizers bring their own malloc, and blocks are not reused under them. */
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *memory, size_t size);
void __libc_free(void *memory);

static void note(void)
{
    (void)__atomic_add_fetch(&allocations, 1, __ATOMIC_RELAXED);
}

void *malloc(size_t size)
{
    note();
    return __libc_malloc(size);
}

void *calloc(size_t count, size_t size)
{
    note();
    return __libc_calloc(count, size);
}

void *realloc(void *memory, size_t size)
{
    note();
    return __libc_realloc(memory, size);
}

void free(void *memory)
{
    __libc_free(memory);
}
#endif

static size_t allocations_now(void)
{
    return __atomic_load_n(&allocations, __ATOMIC_RELAXED);
}

static void keep_batch(void *ctx, struct redlock_batch *batch)
{
    *(struct redlock_batch **)ctx = batch;
}

static void on_released(void *ctx, const struct redlock_released *released)
{
    *(unsigned *)ctx = released->deleted;
}

/* Takes one single lock, from its first byte to its last reply. Returns success instead of
 * asserting, since assertions allocate. */
static bool lock_and_unlock_async(void *unused)
{
    static const struct redlock_async_key key = {.bytes = "claimd:job:1", .len = 12};
    struct redlock_batch *b = NULL;
    unsigned deleted = 0;
    (void)unused;
    const struct redlock_async_request request = {
        .keys = &key, .count = 1, .done = keep_batch, .ctx = &b};
    if (redlock_async_acquire(world.lock, &request, NULL) != 0) {
        return false;
    }
    while (b == NULL) {
        (void)uv_run(&world.loop, UV_RUN_ONCE);
    }
    if (redlock_batch_result(b, 0) != REDLOCK_OK) {
        return false;
    }
    redlock_batch_release_tell(b, 0, on_released, &deleted);
    while (deleted == 0) {
        (void)uv_run(&world.loop, UV_RUN_ONCE);
    }
    return deleted == world.count;
}

static int done; /* number of pairs */

/* Repeats rounds of pairs until one allocates nothing; returns true then. */
static bool do_often(bool (*pair)(void *ctx), void *ctx)
{
    size_t before = 0;
    bool is_well = true;
    for (done = 0; done < WARM_UP; done++) {
        is_well = is_well && pair(ctx);
    }
    for (int round = 0; round < ROUNDS_MAX && is_well && before != allocations_now(); round++) {
        before = allocations_now();
        for (int i = 0; i < PAIRS; i++) {
            is_well = is_well && pair(ctx);
            done++;
        }
    }
    return is_well && before == allocations_now();
}

START_TEST(a_lock_alone_allocates_nothing_after_the_first_ones)
{
    world_start(5, NULL);
    world_open_voting();
    ck_assert(do_often(lock_and_unlock_async, NULL));
    ck_assert_int_eq(world_calls(0, "set"), done); /* one round trip each */
    ck_assert_int_eq(world_calls(0, "evalsha"), done);
}
END_TEST

static bool lock_and_unlock(void *client)
{
    struct redlock_lock *lock = NULL;
    struct redlock_report report = {0};
    return redlock_try(client, "claimd:job:1", &lock) == REDLOCK_OK &&
           /* The report waits, or a slow node's releases would pile up. */
           redlock_unlock(lock, &report) == REDLOCK_OK;
}

START_TEST(the_blocking_client_allocates_nothing_either)
{
    char nodes[5 * SERVER_PATH_MAX];
    size_t len = 0;
    struct redlock_client *client = NULL;
    struct redlock_report report = {0};
    world_start(5, NULL);
    for (size_t i = 0; i < world.count; i++) {
        len += (size_t)snprintf(nodes + len, sizeof nodes - len, "%s%s", i > 0 ? "," : "",
                                world.nodes[i].url);
    }
    const struct redlock_options options = {.nodes = nodes, .trust_fresh = true};
    ck_assert_msg(redlock_open(&options, &client, &report) == REDLOCK_OK, "%s", report.message);
    ck_assert(do_often(lock_and_unlock, client));
    redlock_close(client);
}
END_TEST

static void add_tests(TCase *t)
{
    tcase_add_test(t, a_lock_alone_allocates_nothing_after_the_first_ones);
    tcase_add_test(t, the_blocking_client_allocates_nothing_either);
}

int main(void)
{
    return world_main("redlock_memory", add_tests);
}
