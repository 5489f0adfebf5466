/* SPDX-License-Identifier: Apache-2.0
 *
 * test_guard KEPT COMMAND…: runs a test so that nothing is left of it, whatever ends first.
 *
 * The test gets a folder of its own as TMPDIR, and a place for files that may be kept (the folder
 * KEPT). Two processes watch it: the outer one is the one that ctest may kill; the inner one is the
 * parent of the test, and of all descendants that lose their parent. When the test has ended, or
 * the outer process has died (because of a time limit, or because ctest was killed), the inner one
 * ends everything that is left and removes the folder. If the inner one is killed too, the next run
 * does that (dir_make()). */
#include "base/clock.h"
#include "cluster/servers.h"

#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>

#define SELF_US (3 * US_PER_S) /* servers end with their parents, and clean up */
#define KILL_US (10 * US_PER_S)
#define STEP_NS 100000000
#define CHILDREN_MAX 256

static int complain(const struct err *err)
{
    (void)fprintf(stderr, "test_guard: %s\n", err->msg);
    return EXIT_FAILURE;
}

/* Reaps ended children; returns whether any are left. */
static bool has_children(pid_t test, int *ret_status)
{
    int status = 0;
    pid_t pid = 0;
    while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
        if (pid == test) {
            *ret_status = status;
        }
    }
    return pid == 0;
}

static void kill_children(void)
{
    pid_t children[CHILDREN_MAX];
    size_t count = program_children(getpid(), children, CHILDREN_MAX);
    for (size_t i = 0; i < count; i++) {
        (void)kill(children[i], SIGKILL);
    }
}

/* When a child dies, its own children become ours, so all processes are ours in the end. */
static void end_all(pid_t test, const sigset_t *set)
{
    const struct timespec step = {.tv_nsec = STEP_NS};
    int64_t soft_us = clock_boot_us() + SELF_US;
    int status = 0;
    (void)kill(test, SIGKILL);
    while (has_children(test, &status) && clock_boot_us() < soft_us + KILL_US) {
        if (clock_boot_us() >= soft_us) {
            kill_children();
        }
        (void)sigtimedwait(set, NULL, &step); /* wakes up when a child ends */
    }
}

static void be_test(char **argv, const sigset_t *signals, pid_t parent)
{
    (void)sigprocmask(SIG_SETMASK, signals, NULL);
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 && getppid() == parent) {
        (void)execvp(argv[0], argv);
        (void)fprintf(stderr, "test_guard: %s: %s\n", argv[0], strerrorname_np(errno));
    }
    _exit(127);
}

/* Returns the exit code of the test; -1 if the process that waits for it is gone. */
static int watch(char **argv, const sigset_t *set, const sigset_t *before)
{
    pid_t parent = getpid();
    pid_t test = fork();
    if (test == 0) {
        be_test(argv, before, parent);
    }
    int status = -1;
    while (test > 0 && status == -1 && sigwaitinfo(set, NULL) == SIGCHLD) {
        (void)has_children(test, &status);
    }
    if (test > 0) {
        end_all(test, set);
    }
    return status == -1 ? -1 : WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

static enum status make_places(const char *kept, char *ret_dir, size_t size, struct err *err)
{
    enum status st = dir_ensure(kept, 0755, err);
    if (st != STATUS_OK) {
        return st;
    }
    if (setenv(DIR_KEPT_ENV, kept, 1) != 0) {
        return err_fail_sys(err, STATUS_NOMEM, errno, "set " DIR_KEPT_ENV);
    }
    st = dir_make(ret_dir, size, err);
    if (st != STATUS_OK) {
        return st;
    }
    if (setenv("TMPDIR", ret_dir, 1) != 0 || unsetenv(DIR_MEMORY_ENV) != 0) {
        return err_fail_sys(err, STATUS_NOMEM, errno, "set TMPDIR");
    }
    return STATUS_OK;
}

static int guard(char **argv, pid_t outer)
{
    static const int numbers[] = {SIGCHLD, SIGTERM, SIGINT, SIGHUP, SIGQUIT};
    char dir[SERVER_PATH_MAX];
    struct err err = {0};
    sigset_t set;
    sigset_t before;
    (void)sigemptyset(&set);
    for (size_t i = 0; i < ARRAY_COUNT(numbers); i++) {
        (void)sigaddset(&set, numbers[i]);
    }
    (void)sigprocmask(SIG_BLOCK, &set, &before);
    if (prctl(PR_SET_CHILD_SUBREAPER, 1) != 0 || prctl(PR_SET_PDEATHSIG, SIGTERM) != 0 ||
        getppid() != outer) {
        return EXIT_FAILURE;
    }
    if (make_places(argv[1], dir, sizeof dir, &err) != STATUS_OK) {
        return complain(&err);
    }
    int code = watch(argv + 2, &set, &before);
    dir_remove(dir);
    return code == -1 ? EXIT_FAILURE : code;
}

int main(int argc, char **argv)
{
    pid_t starter = getppid();
    pid_t outer = getpid();
    int status = 0;
    if (argc < 3) {
        (void)fprintf(stderr, "usage: test_guard KEPT COMMAND…\n");
        return 2;
    }
    pid_t inner = fork();
    if (inner == 0) {
        return guard(argv, outer);
    }
    if (inner < 0 || prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != starter) {
        return EXIT_FAILURE;
    }
    while (waitpid(inner, &status, 0) < 0 && errno == EINTR) {
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : EXIT_FAILURE;
}
