/* SPDX-License-Identifier: Apache-2.0
 *
 * The folders of workers: which worker owns them, and which abandoned ones may be removed. */
#include "cluster/servers.h"
#include "support/suite.h"
#include "worker/membership/state_dir.h"

#include <check.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#define ID "00000000-0000-4000-8000-000000000001"

static char parent[SERVER_PATH_MAX];
static char ours[2 * SERVER_PATH_MAX];
static int lock_fd = -1;

static void path_of(const char *name, char ret[2 * SERVER_PATH_MAX])
{
    (void)snprintf(ret, 2 * SERVER_PATH_MAX, "%s/%s", parent, name);
}

static bool is_there(const char *name)
{
    char path[2 * SERVER_PATH_MAX];
    path_of(name, path);
    return access(path, F_OK) == 0;
}

/* Makes a folder as a worker leaves it that registered that long ago. */
static void given_left(const char *name, int64_t age_s)
{
    char dir[2 * SERVER_PATH_MAX];
    char file[2 * SERVER_PATH_MAX];
    char predecessor[WORKER_ID_SIZE];
    struct err err = {0};
    int fd = -1;
    path_of(name, dir);
    ck_assert_msg(state_dir_open(dir, &fd, predecessor, &err) == STATUS_OK, "%s", err.msg);
    state_dir_write(dir, ID);
    ck_assert_int_eq(close(fd), 0);
    struct timespec times[2] = {{.tv_sec = time(NULL) - age_s}, {.tv_sec = time(NULL) - age_s}};
    (void)snprintf(file, sizeof file, "%.400s/worker_id", dir);
    ck_assert_int_eq(utimensat(AT_FDCWD, file, times, 0), 0);
}

static void given_file(const char *name)
{
    char path[2 * SERVER_PATH_MAX];
    path_of(name, path);
    int fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(close(fd), 0);
}

static void setup(void)
{
    char predecessor[WORKER_ID_SIZE];
    struct err err = {0};
    ck_assert_msg(dir_make(parent, sizeof parent, &err) == STATUS_OK, "%s", err.msg);
    path_of("ours", ours);
    ck_assert_msg(state_dir_open(ours, &lock_fd, predecessor, &err) == STATUS_OK, "%s", err.msg);
}

static void teardown(void)
{
    (void)close(lock_fd);
    dir_remove(parent);
}

START_TEST(a_folder_that_was_left_a_day_ago_is_removed_and_a_younger_one_stays)
{
    given_left("old", STATE_DIR_KEPT_S + 60);
    given_left("young", STATE_DIR_KEPT_S - 3600);
    ck_assert_uint_eq(state_dir_prune(ours), 1);
    ck_assert(!is_there("old"));
    ck_assert(is_there("young/worker_id"));
    ck_assert(is_there("ours/lock"));
    ck_assert_uint_eq(state_dir_prune(ours), 0);
}
END_TEST

START_TEST(a_folder_in_which_a_worker_lives_stays_however_old_it_is)
{
    char dir[2 * SERVER_PATH_MAX];
    char predecessor[WORKER_ID_SIZE];
    int fd = -1;
    given_left("lived_in", 10 * STATE_DIR_KEPT_S);
    path_of("lived_in", dir);
    ck_assert_int_eq(state_dir_open(dir, &fd, predecessor, NULL), STATUS_OK);
    ck_assert_str_eq(predecessor, ID);
    ck_assert_uint_eq(state_dir_prune(ours), 0);
    ck_assert(is_there("lived_in/worker_id"));
    ck_assert_int_eq(close(fd), 0);
}
END_TEST

START_TEST(what_is_not_a_workers_alone_stays)
{
    char path[2 * SERVER_PATH_MAX];
    given_left("with_more", 2 * STATE_DIR_KEPT_S);
    given_file("with_more/notes");
    path_of("empty", path);
    ck_assert_int_eq(mkdir(path, 0700), 0);
    given_file("file");
    char target[2 * SERVER_PATH_MAX];
    given_left("target", 60);
    path_of("target", target);
    path_of("link", path);
    ck_assert_int_eq(symlink(target, path), 0);
    ck_assert_uint_eq(state_dir_prune(ours), 0);
    ck_assert(is_there("with_more/notes"));
    ck_assert(is_there("with_more/lock"));
    ck_assert(is_there("empty"));
    ck_assert(is_there("file"));
    ck_assert(is_there("link"));
}
END_TEST

START_TEST(two_workers_do_not_live_in_one_folder)
{
    char predecessor[WORKER_ID_SIZE];
    struct err err = {0};
    int fd = -1;
    ck_assert_int_eq(state_dir_open(ours, &fd, predecessor, &err), STATUS_CONFLICT);
    ck_assert_msg(strstr(err.msg, "another worker uses it") != NULL, "%s", err.msg);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("state dir");
    TCase *c = tcase_create("folders");
    tcase_add_checked_fixture(c, setup, teardown);
    tcase_add_test(c, a_folder_that_was_left_a_day_ago_is_removed_and_a_younger_one_stays);
    tcase_add_test(c, a_folder_in_which_a_worker_lives_stays_however_old_it_is);
    tcase_add_test(c, what_is_not_a_workers_alone_stays);
    tcase_add_test(c, two_workers_do_not_live_in_one_folder);
    suite_add_tcase(suite, c);
    return suite_run(suite);
}
