/* SPDX-License-Identifier: Apache-2.0
 *
 * F1: what a child of fork() may do with its parent's client. The exit code of a child is the
 * number of the failed line. */
#include "test_redlock_client_world.h"

#include <dirent.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define expect(condition)       \
    do {                        \
        if (!(condition)) {     \
            _exit(line_code()); \
        }                       \
    } while (0)
#define line_code() ((__LINE__) % 250 + 1)

static int code_of_child(void (*body)(void *ctx), void *ctx)
{
    int status = -1;
    (void)fflush(NULL);
    pid_t pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid == 0) {
        body(ctx);
        _exit(0);
    }
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert(WIFEXITED(status));
    return WEXITSTATUS(status);
}

/* Counts descriptors of the kinds that a client uses. */
static size_t count_descriptors(void)
{
    static const char *const kinds[] = {"socket:", "anon_inode:[eventpoll]", "anon_inode:[eventfd]",
                                        "anon_inode:[timerfd]"};
    size_t count = 0;
    DIR *dir = opendir("/proc/self/fd");
    const struct dirent *entry = NULL;
    expect(dir != NULL);
    while ((entry = readdir(dir)) != NULL) {
        char path[300];
        char target[300] = "";
        (void)snprintf(path, sizeof path, "/proc/self/fd/%s", entry->d_name);
        ssize_t len = readlink(path, target, sizeof target - 1);
        for (size_t i = 0; i < ARRAY_COUNT(kinds); i++) {
            count += len > 0 && strncmp(target, kinds[i], strlen(kinds[i])) == 0;
        }
    }
    (void)closedir(dir);
    return count;
}

/* Processes in nested PID namespaces may have the same pid. */
static bool is_same_everywhere;

pid_t getpid(void)
{
    return is_same_everywhere ? 1 : (pid_t)syscall(SYS_getpid);
}

static void use_and_close(void *ctx)
{
    struct redlock_lock *lock = ctx;
    struct redlock_lock *none = NULL;
    struct redlock_owner *owner = NULL;
    struct redlock_stats stats = {0};
    struct redlock_report report = {0};
    const struct redlock_request request = {.key = "job:2", .wait_ms = -1};
    expect(redlock_state(lock) == REDLOCK_STATE_LOST);
    expect(redlock_left_ms(lock) == 0);
    expect(redlock_acquire(world.client, &request, &none, &report) == REDLOCK_SYSTEM);
    expect(none == NULL && strstr(report.message, "fork") != NULL);
    expect(redlock_try(world.client, "job:1", &none) == REDLOCK_SYSTEM);
    expect(redlock_extend(lock) == REDLOCK_SYSTEM);
    expect(redlock_owner_new(world.client, &owner) == REDLOCK_SYSTEM);
    redlock_get_stats(world.client, &stats);
    REDLOCK_WITH(third, redlock_try(world.client, "job:3", &third))
    {
        expect(false);
    }
    expect(redlock_unlock(lock, NULL) == REDLOCK_SYSTEM);
    expect(count_descriptors() > 0);
    redlock_close(world.client);
    expect(count_descriptors() == 0);
}

static uint64_t extended(void)
{
    struct redlock_stats stats = {0};
    redlock_get_stats(world.client, &stats);
    ck_assert_uint_eq(stats.node_errors, 0);
    ck_assert_uint_eq(stats.lost, 0);
    return stats.extended;
}

static atomic_size_t downs;

static void on_event(void *ctx, const struct redlock_event *event)
{
    (void)ctx;
    (void)atomic_fetch_add(&downs, event->kind != REDLOCK_EVENT_UP);
}

START_TEST(F1_a_child_that_closes_and_exits_leaves_the_parents_lock_held_and_renewed)
{
    given_nodes(3, NULL);
    world.options.on_event = on_event;
    world.client = client_of_world();
    struct redlock_lock *lock = given_lock("job:1");
    ck_assert_int_ge(redlock_fd(lock), 0);
    ck_assert_int_eq(code_of_child(use_and_close, lock), 0);
    uint64_t before = extended();
    /* A third of T each: longer than the rest of the lease at the fork. */
    until(extended() >= before + 4);
    ck_assert_int_eq(redlock_state(lock), REDLOCK_STATE_HELD);
    ck_assert_uint_eq(nodes_with("job:1"), 3);
    ck_assert_uint_eq(nodes_with("job:2"), 0);
    ck_assert_int_eq(redlock_unlock(lock, NULL), REDLOCK_OK);
    until(nodes_with("job:1") == 0);
    ck_assert_uint_eq(atomic_load(&downs), 0);
}
END_TEST

static void use_and_close_as_same(void *ctx)
{
    is_same_everywhere = true;
    use_and_close(ctx);
}

START_TEST(F1_a_child_with_its_parents_process_id_knows_that_it_is_one)
{
    given_nodes(3, NULL);
    is_same_everywhere = true;
    world.client = client_of_world();
    is_same_everywhere = false; /* PDEATHSIG and the like need the real pids */
    struct redlock_lock *lock = given_lock("job:1");
    ck_assert_int_ge(redlock_fd(lock), 0);
    ck_assert_int_eq(code_of_child(use_and_close_as_same, lock), 0);
    ck_assert_int_eq(redlock_unlock(lock, NULL), REDLOCK_OK);
    until(nodes_with("job:1") == 0);
}
END_TEST

static void exit_at_once(void *ctx)
{
    (void)ctx;
}

START_TEST(F1_a_child_that_just_exits_does_no_harm)
{
    given_client(3);
    struct redlock_lock *lock = given_lock("job:1");
    ck_assert_int_eq(code_of_child(exit_at_once, NULL), 0);
    uint64_t before = extended();
    until(extended() >= before + 1);
    ck_assert_int_eq(redlock_unlock(lock, NULL), REDLOCK_OK);
}
END_TEST

#ifndef __SANITIZE_THREAD__
static void open_another(void *ctx)
{
    struct redlock_client *own = NULL;
    struct redlock_lock *lock = NULL;
    struct redlock_lock *parents = NULL;
    (void)ctx;
    expect(redlock_open(&world.options, &own, NULL) == REDLOCK_OK);
    redlock_close(world.client);
    expect(redlock_try(own, "job:2", &lock) == REDLOCK_OK);
    expect(redlock_try(own, "job:1", &parents) == REDLOCK_HELD);
    expect(redlock_unlock(lock, NULL) == REDLOCK_OK);
    redlock_close(own);
}

START_TEST(F1_a_child_may_open_a_client_of_its_own)
{
    given_client(3);
    struct redlock_lock *lock = given_lock("job:1");
    ck_assert_int_eq(code_of_child(open_another, NULL), 0);
    ck_assert_int_eq(redlock_state(lock), REDLOCK_STATE_HELD);
    ck_assert_int_eq(redlock_unlock(lock, NULL), REDLOCK_OK);
    until(nodes_with("job:1") + nodes_with("job:2") == 0);
}
END_TEST

#endif

static void unlock_twice(void *ctx)
{
    expect(redlock_unlock(ctx, NULL) == REDLOCK_SYSTEM);
    expect(redlock_unlock(ctx, NULL) == REDLOCK_SYSTEM);
    redlock_close(world.client);
}

START_TEST(F1_a_reentrant_lock_may_be_unlocked_in_a_child_as_often_as_it_was_locked)
{
    struct redlock_owner *owner = NULL;
    struct redlock_lock *lock = NULL;
    given_client(1);
    ck_assert_int_eq(redlock_owner_new(world.client, &owner), REDLOCK_OK);
    const struct redlock_request request = {.key = "job:1", .owner = owner};
    ck_assert_int_eq(redlock_acquire(world.client, &request, &lock, NULL), REDLOCK_OK);
    ck_assert_int_eq(redlock_acquire(world.client, &request, &lock, NULL), REDLOCK_OK);
    ck_assert_int_eq(code_of_child(unlock_twice, lock), 0);
    ck_assert_int_eq(redlock_unlock(lock, NULL), REDLOCK_OK);
    ck_assert_uint_eq(nodes_with("job:1"), 1);
    ck_assert_int_eq(redlock_unlock(lock, NULL), REDLOCK_OK);
    until(nodes_with("job:1") == 0);
    redlock_owner_free(owner);
}
END_TEST

static void add_tests(TCase *t)
{
    tcase_add_test(t, F1_a_child_that_closes_and_exits_leaves_the_parents_lock_held_and_renewed);
    tcase_add_test(t, F1_a_child_with_its_parents_process_id_knows_that_it_is_one);
    tcase_add_test(t, F1_a_child_that_just_exits_does_no_harm);
#ifndef __SANITIZE_THREAD__ /* TSan allows no thread in a child of a multi-threaded process */
    tcase_add_test(t, F1_a_child_may_open_a_client_of_its_own);
#endif
    tcase_add_test(t, F1_a_reentrant_lock_may_be_unlocked_in_a_child_as_often_as_it_was_locked);
}

int main(void)
{
    return client_world_main("redlock_client_fork", add_tests);
}
