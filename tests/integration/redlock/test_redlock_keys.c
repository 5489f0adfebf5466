/* SPDX-License-Identifier: Apache-2.0
 *
 * Keys and tokens on the nodes, and the source of the tokens' bytes. */
#include "test_redlock_world.h"

#include <signal.h>
#include <stdio.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The next results of the system's source of randomness; each call takes one. */
enum source { SOURCE_WELL, SOURCE_INTERRUPTED, SOURCE_ONE_BYTE, SOURCE_BROKEN };

static enum source sources[8];
static size_t source_at = ARRAY_COUNT(sources);

ssize_t getrandom(void *bytes, size_t len, unsigned flags)
{
    enum source source = source_at < ARRAY_COUNT(sources) ? sources[source_at++] : SOURCE_WELL;
    if (source == SOURCE_INTERRUPTED || source == SOURCE_BROKEN) {
        errno = source == SOURCE_BROKEN ? ENOSYS : EINTR;
        return -1;
    }
    return syscall(SYS_getrandom, bytes, source == SOURCE_ONE_BYTE ? 1 : len, flags);
}

static void given_source(enum source first, enum source second)
{
    memset(sources, 0, sizeof sources);
    sources[0] = first;
    sources[1] = second;
    source_at = 0;
}

static void keep_batch(void *ctx, struct redlock_batch *batch)
{
    *(struct redlock_batch **)ctx = batch;
}

static int acquire(struct redlock_batch **ret_batch, struct redlock_error *ret_error)
{
    static const struct redlock_async_key key = {.bytes = "claimd:job:1", .len = 12};
    const struct redlock_async_request request = {
        .keys = &key, .count = 1, .done = keep_batch, .ctx = ret_batch};
    return redlock_async_acquire(world.lock, &request, ret_error);
}

START_TEST(K1_without_random_bytes_there_is_no_lock)
{
    struct redlock_batch *b = NULL;
    struct redlock_error e;
    world_start(1, NULL);
    world_open_voting();
    given_source(SOURCE_BROKEN, SOURCE_BROKEN);
    ck_assert_int_eq(acquire(&b, &e), -EIO);
    ck_assert_ptr_nonnull(strstr(e.message, "random"));
    ck_assert_int_eq(world_calls(0, "set"), 0);
    given_source(SOURCE_WELL, SOURCE_WELL);
    ck_assert_int_eq(acquire(&b, &e), 0);
    run_until(b != NULL);
    redlock_batch_release(b, 0);
}
END_TEST

START_TEST(K1_interrupted_and_short_reads_are_read_on)
{
    struct redlock_batch *b = NULL;
    char token[64];
    world_start(1, NULL);
    world_open_voting();
    given_source(SOURCE_INTERRUPTED, SOURCE_ONE_BYTE);
    ck_assert_int_eq(acquire(&b, NULL), 0);
    ck_assert_uint_ge(source_at, 3);
    run_until(b != NULL);
    (void)snprintf(token, sizeof token, "%s", cli(0, "GET", "claimd:job:1"));
    ck_assert_uint_eq(strlen(token), REDLOCK_TOKEN_LEN);
    ck_assert_ptr_null(strstr(token, "AAAAAAAA")); /* bytes that were not drawn */
    redlock_batch_release(b, 0);
}
END_TEST

START_TEST(K2_each_attempt_draws_a_token_of_its_own)
{
    char first[64];
    world_start(1, NULL);
    world_open_voting();
    struct redlock_batch *b = world_acquire(world.lock, 1, 1);
    (void)snprintf(first, sizeof first, "%s", cli(0, "GET", "claimd:job:1"));
    redlock_batch_release(b, 0);
    b = world_acquire(world.lock, 1, 1);
    const char *second = cli(0, "GET", "claimd:job:1");
    ck_assert_uint_eq(strlen(second), REDLOCK_TOKEN_LEN);
    ck_assert_mem_eq(second, first, REDLOCK_PREFIX_LEN);
    ck_assert_mem_ne(second + REDLOCK_PREFIX_LEN, first + REDLOCK_PREFIX_LEN,
                     REDLOCK_TOKEN_LEN - REDLOCK_PREFIX_LEN);
    redlock_batch_release(b, 0);
}
END_TEST

START_TEST(K3_a_key_is_a_plain_string_under_the_callers_bytes)
{
    world_start(3, NULL);
    world_open_voting();
    struct redlock_batch *b = world_acquire(world.lock, 1, 1);
    run_until(world_nodes_with("claimd:job:1") == 3);
    for (size_t i = 0; i < 3; i++) {
        ck_assert_str_eq(cli(i, "KEYS", "claimd:job:[^ct]*"), "claimd:job:1");
        ck_assert_str_eq(cli(i, "TYPE", "claimd:job:1"), "string");
        ck_assert_str_eq(cli(i, "STRLEN", "claimd:job:1"), "27"); /* only the token */
    }
    redlock_batch_release(b, 0);
}
END_TEST

START_TEST(K3_every_node_uses_the_same_database)
{
    const struct redlock_node nodes[] = {{.url = "redis://127.0.0.1:1/2"},
                                         {.url = "redis://127.0.0.1:2/3"}};
    struct redlock_async *lock = NULL;
    struct redlock_error e;
    world_start(1, NULL);
    world.options.nodes = nodes;
    world.options.node_count = 2;
    ck_assert_int_eq(redlock_async_open(&world.options, &lock, &e), -EINVAL);
    ck_assert_ptr_nonnull(strstr(e.message, "127.0.0.1:2 uses database 3, the first one 2"));
}
END_TEST

static void add_tests(TCase *t)
{
    tcase_add_test(t, K1_without_random_bytes_there_is_no_lock);
    tcase_add_test(t, K1_interrupted_and_short_reads_are_read_on);
    tcase_add_test(t, K2_each_attempt_draws_a_token_of_its_own);
    tcase_add_test(t, K3_a_key_is_a_plain_string_under_the_callers_bytes);
    tcase_add_test(t, K3_every_node_uses_the_same_database);
}

int main(void)
{
    return world_main("redlock_keys", add_tests);
}
