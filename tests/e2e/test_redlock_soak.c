/* SPDX-License-Identifier: Apache-2.0
 *
 * Very many locks one after the other, while one node dies and returns now and then: no key is left
 * behind, and neither memory nor descriptors grow. */
#include "test_redlock_client_world.h"

#include <dirent.h>
#include <malloc.h>
#include <stdio.h>

#define NODES 5
#define BATCH 500
#define SINGLES_PER_BATCH 25
#define PAIRS 20000
#define PAIRS_SOAK 1000000
#define DEATHS 4
#define DEATHS_SOAK 20
#define TTL_MS 2000
#define GROWTH_MAX_KIB 4096

static size_t pairs;
static size_t failed;
static uint64_t next_key;

static bool is_long_form(void)
{
    return getenv("CLAIMD_SOAK") != NULL; /* NOLINT(concurrency-mt-unsafe) */
}

static void lock_a_batch(void)
{
    static char names[BATCH][32];
    const char *keys[BATCH];
    struct redlock_lock *locks[BATCH] = {NULL};
    enum redlock_result results[BATCH];
    const struct redlock_request request = {0};
    for (size_t i = 0; i < BATCH; i++) {
        (void)snprintf(names[i], sizeof names[i], "soak:%llu", (unsigned long long)next_key++);
        keys[i] = names[i];
    }
    (void)acquire_each(world.client, &request, keys, BATCH, locks, results);
    for (size_t i = 0; i < BATCH; i++) {
        failed += results[i] != REDLOCK_OK;
        pairs += results[i] == REDLOCK_OK;
        ck_assert_int_eq(redlock_unlock(locks[i], NULL), 0);
    }
}

static void lock_one(void)
{
    char key[32];
    struct redlock_lock *lock = NULL;
    (void)snprintf(key, sizeof key, "soak:%llu", (unsigned long long)next_key++);
    enum redlock_result result = redlock_try(world.client, key, &lock);
    failed += result != REDLOCK_OK;
    pairs += result == REDLOCK_OK;
    ck_assert_int_eq(redlock_unlock(lock, NULL), 0);
}

static void lock_until(size_t count)
{
    while (pairs < count) {
        lock_a_batch();
        for (int i = 0; i < SINGLES_PER_BATCH; i++) {
            lock_one();
        }
    }
}

static bool are_all_voting(void)
{
    struct redlock_node_info nodes[NODES];
    size_t voting = 0;
    size_t count = redlock_nodes(world.client, nodes, NODES);
    for (size_t i = 0; i < count; i++) {
        voting += nodes[i].is_up && nodes[i].may_vote;
    }
    return voting == NODES;
}

/* Returns the memory in use: a burst leaves holes in the heap, which are no leak. */
static long memory_kib(void)
{
    long kib = 0;
    char line[128];
    (void)malloc_trim(0);
    FILE *f = fopen("/proc/self/status", "re");
    ck_assert_ptr_nonnull(f);
    while (fgets(line, sizeof line, f) != NULL) {
        if (strncmp(line, "VmRSS:", 6) == 0) {
            kib = strtol(line + 6, NULL, 10);
        }
    }
    (void)fclose(f);
    return kib;
}

static size_t descriptors(void)
{
    size_t count = 0;
    DIR *dir = opendir("/proc/self/fd");
    ck_assert_ptr_nonnull(dir);
    while (readdir(dir) != NULL) { /* NOLINT(concurrency-mt-unsafe) */
        count++;
    }
    (void)closedir(dir);
    return count;
}

static bool is_empty(void)
{
    for (size_t i = 0; i < NODES; i++) {
        if (strcmp(cli(i, COUNT_LOCKS), "0") != 0) {
            return false;
        }
    }
    return true;
}

START_TEST(T9_many_locks_leave_no_key_no_memory_and_no_descriptor_behind)
{
    struct err err = {0};
    size_t wanted = is_long_form() ? PAIRS_SOAK : PAIRS;
    size_t deaths = is_long_form() ? DEATHS_SOAK : DEATHS;
    size_t warm = wanted / 5;
    given_nodes(NODES, NULL);
    world.options.ttl_ms = TTL_MS;
    world.options.node_timeout_ms = TTL_MS / 10;
    world.client = client_of_world();
    lock_until(warm);
    until(are_all_voting());
    long kib = 0;
    size_t fds = descriptors();
    for (size_t i = 1; i <= deaths; i++) {
        struct redis_server *s = &world.servers[i % NODES];
        redis_server_kill(s);
        lock_until(warm + (wanted - warm) * (2 * i - 1) / (2 * deaths));
        ck_assert_int_eq(redis_server_restart(s, &err), STATUS_OK);
        until(are_all_voting()); /* its quarantine is over */
        lock_until(warm + (wanted - warm) * i / deaths);
        kib = i == 1 ? memory_kib() : kib; /* a node's death adds to it once */
        fds = i == 1 && descriptors() > fds ? descriptors() : fds;
    }
    until(are_all_voting());
    printf("%zu pairs, %zu failed; memory %ld then %ld KiB, descriptors %zu then %zu\n", pairs,
           failed, kib, memory_kib(), fds, descriptors());
    (void)fflush(stdout);
    ck_assert_uint_lt(failed, pairs / 10); /* a pause of the machine fails all that are in flight */
    /* A new one may have been opening when they were counted. */
    until(descriptors() < fds + deaths);
/* Sanitizers keep freed memory. */
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    ck_assert_int_lt(memory_kib() - kib, GROWTH_MAX_KIB);
#endif
    ck_assert(WAIT_UNTIL(is_empty(), (int64_t)2 * TTL_MS * US_PER_MS));
}
END_TEST

static void add_tests(TCase *t)
{
    tcase_set_timeout(t, 1200);
    tcase_add_test(t, T9_many_locks_leave_no_key_no_memory_and_no_descriptor_behind);
}

int main(void)
{
    return client_world_main("redlock_soak", add_tests);
}
