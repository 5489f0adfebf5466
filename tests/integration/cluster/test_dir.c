/* SPDX-License-Identifier: Apache-2.0
 *
 * The directories of runs: which run removes which, and where they are made. */
#include "base/clock.h"
#include "cluster/servers.h"
#include "support/suite.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define IN_MEMORY_MAX 8

static char home[SERVER_PATH_MAX]; /* TMPDIR of the tests */

#define OK(call)                                                      \
    do {                                                              \
        struct err err = {0};                                         \
        ck_assert_msg((call) == STATUS_OK, "%s: %s", #call, err.msg); \
    } while (0)

static void setup(void)
{
    OK(dir_make(home, sizeof home, &err));
    ck_assert_int_eq(setenv("TMPDIR", home, 1), 0);
    ck_assert_int_eq(unsetenv(DIR_KEPT_ENV), 0);
}

static void teardown(void)
{
    dir_remove(home);
}

static bool is_there(const char *dir)
{
    return access(dir, F_OK) == 0;
}

static void put_file(const char *dir, const char *name)
{
    char path[SERVER_PATH_MAX + 64];
    (void)snprintf(path, sizeof path, "%s/%s", dir, name);
    autoclose int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    ck_assert_int_ge(fd, 0);
}

/* Starts a process that makes a directory and then waits to be killed. */
static pid_t start_run(char *ret_dir, size_t size)
{
    int ends[2];
    ck_assert_int_eq(pipe2(ends, O_CLOEXEC), 0);
    pid_t pid = fork();
    if (pid == 0) {
        char dir[SERVER_PATH_MAX] = "";
        bool is_made = dir_make(dir, sizeof dir, NULL) == STATUS_OK;
        ssize_t n = write(ends[1], dir, is_made ? strlen(dir) : 0);
        if (n > 0) {
            (void)pause();
        }
        _exit(EXIT_FAILURE);
    }
    (void)close(ends[1]);
    ssize_t n = read(ends[0], ret_dir, size - 1);
    (void)close(ends[0]);
    ck_assert_int_gt(n, 0);
    ret_dir[n] = '\0';
    return pid;
}

START_TEST(a_directory_is_removed_when_its_run_was_killed_and_not_before)
{
    char dead[SERVER_PATH_MAX];
    char own[SERVER_PATH_MAX];
    pid_t pid = start_run(dead, sizeof dead);
    put_file(dead, "file");
    OK(dir_make(own, sizeof own, &err));
    ck_assert(is_there(dead));
    dir_remove(own);
    program_kill(pid);
    OK(dir_make(own, sizeof own, &err));
    ck_assert(!is_there(dead));
    ck_assert(is_there(own));
}
END_TEST

START_TEST(a_directory_without_a_lock_is_left_alone)
{
    char foreign[SERVER_PATH_MAX + 16];
    char own[SERVER_PATH_MAX];
    (void)snprintf(foreign, sizeof foreign, "%s/claimd-ab12CD", home);
    ck_assert_int_eq(mkdir(foreign, 0700), 0);
    OK(dir_make(own, sizeof own, &err));
    ck_assert(is_there(foreign));
}
END_TEST

START_TEST(what_is_kept_outlives_its_run)
{
    char kept[SERVER_PATH_MAX];
    char own[SERVER_PATH_MAX];
    pid_t pid = start_run(kept, sizeof kept);
    dir_keep(kept);
    program_kill(pid);
    OK(dir_make(own, sizeof own, &err));
    ck_assert(is_there(kept));
}
END_TEST

/* The owner of a directory may be another user, who could make root remove anything. */
START_TEST(links_in_a_dead_directory_are_not_followed)
{
    char dead[SERVER_PATH_MAX];
    char own[SERVER_PATH_MAX];
    char victim[SERVER_PATH_MAX + 16];
    char link[SERVER_PATH_MAX + 32];
    (void)snprintf(victim, sizeof victim, "%s/victim", home);
    ck_assert_int_eq(mkdir(victim, 0700), 0);
    put_file(victim, "precious");
    pid_t pid = start_run(dead, sizeof dead);
    (void)snprintf(link, sizeof link, "%s/link", dead);
    ck_assert_int_eq(symlink(victim, link), 0);
    program_kill(pid);
    OK(dir_make(own, sizeof own, &err));
    ck_assert(!is_there(dead));
    (void)snprintf(link, sizeof link, "%s/precious", victim);
    ck_assert(is_there(link));
}
END_TEST

START_TEST(at_most_eight_directories_are_in_memory_and_further_ones_on_disk)
{
    char dirs[IN_MEMORY_MAX + 1][SERVER_PATH_MAX];
    int in_memory = 0;
    ck_assert_int_eq(setenv(DIR_MEMORY_ENV, "/dev/shm", 1), 0);
    for (size_t i = 0; i < ARRAY_COUNT(dirs); i++) {
        OK(dir_make(dirs[i], sizeof dirs[i], &err));
        in_memory += strncmp(dirs[i], home, strlen(home)) != 0 ? 1 : 0;
    }
    for (size_t i = 0; i < ARRAY_COUNT(dirs); i++) {
        dir_remove(dirs[i]);
    }
    ck_assert_int_le(in_memory, IN_MEMORY_MAX);
}
END_TEST

START_TEST(what_may_be_kept_is_not_made_in_memory)
{
    char dir[SERVER_PATH_MAX];
    ck_assert_int_eq(setenv("TMPDIR", "/dev/shm", 1), 0);
    OK(dir_make_on_disk(dir, sizeof dir, &err));
    ck_assert_msg(strncmp(dir, "/var/tmp/", 9) == 0, "%s", dir);
    dir_remove(dir);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("directories of runs");
    TCase *tests = tcase_create("directories of runs");
    tcase_set_timeout(tests, 60);
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_test(tests, a_directory_is_removed_when_its_run_was_killed_and_not_before);
    tcase_add_test(tests, a_directory_without_a_lock_is_left_alone);
    tcase_add_test(tests, what_is_kept_outlives_its_run);
    tcase_add_test(tests, links_in_a_dead_directory_are_not_followed);
    tcase_add_test(tests, at_most_eight_directories_are_in_memory_and_further_ones_on_disk);
    tcase_add_test(tests, what_may_be_kept_is_not_made_in_memory);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
