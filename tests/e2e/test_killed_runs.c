/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs that are killed: all of their processes end, and the next run removes what they left. */
#include "base/clock.h"
#include "cluster/servers.h"
#include "support/suite.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdio.h>
#include <sys/syscall.h>

#define PATH_SIZE (SERVER_PATH_MAX + 96)
#define ARGS_MAX 8
#define STATUS_LINE 8 /* line of postmaster.pid */

#define OK(call)                                                      \
    do {                                                              \
        struct err err = {0};                                         \
        ck_assert_msg((call) == STATUS_OK, "%s: %s", #call, err.msg); \
    } while (0)

/* "%" stands for the folder of the programs, "@" for TMPDIR. */
static const struct kind {
    const char *argv[ARGS_MAX];
} kinds[] = {
    {{"%/claimd-demo"}},
    {{"%/claimd-chaos", "--seconds", "60"}},
    {{"%/claimd-soak", "--jobs", "50000"}},
    {{"%/claimd-bench", "drain", "--jobs", "1000000"}},
    {{"%/claimctl", "dev", "--dir", "@/claimd-aBcD12"}},
    {{"%/test_limits"}},    /* without ctest: all in one process */
    {{"%/test_sql_rules"}}, /* each test in a fork */
    /* As ctest starts it: sh is the process that is killed. */
    {{"/bin/sh", "-c", "%/test_guard @/kept %/test_limits; :"}},
    {{"/bin/sh", "-c",
      "%/test_guard @/kept /bin/sh -c '%/claimctl dev --dir $TMPDIR/dev & wait'; :"}},
};

static char home[SERVER_PATH_MAX];
static char ready_path[PATH_SIZE]; /* postmaster.pid of a PostgreSQL that runs below `home` */

static void setup(void)
{
    OK(dir_make(home, sizeof home, &err));
}

static void teardown(void)
{
    dir_remove(home);
}

/* ---- processes and files ---- */

static bool is_ready(const char *path)
{
    char line[256];
    bool is_ready = false;
    FILE *f = fopen(path, "re");
    for (int n = 1; f != NULL && fgets(line, sizeof line, f) != NULL; n++) {
        is_ready = n == STATUS_LINE && strncmp(line, "ready", 5) == 0;
    }
    if (f != NULL) {
        (void)fclose(f);
    }
    return is_ready;
}

static int find_ready(const char *path, const struct stat *st, int type, struct FTW *where)
{
    (void)st;
    const char *name = path + where->base;
    if (type == FTW_F && strcmp(name, "postmaster.pid") == 0 && is_ready(path)) {
        (void)snprintf(ready_path, sizeof ready_path, "%s", path);
        return 1;
    }
    return 0;
}

static bool has_postgres(void)
{
    return nftw(home, find_ready, 16, FTW_PHYS) == 1;
}

/* True if a file in /proc, or the target of a link there, names our folder. */
static bool names_home(const char *pid, const char *file)
{
    static char text[65536];
    char path[64];
    (void)snprintf(path, sizeof path, "/proc/%.20s/%s", pid, file);
    ssize_t n = readlink(path, text, sizeof text);
    if (n < 0) {
        autoclose int fd = open(path, O_RDONLY | O_CLOEXEC);
        n = fd >= 0 ? read(fd, text, sizeof text) : -1;
    }
    return n > 0 && memmem(text, (size_t)n, home, strlen(home)) != NULL;
}

/* Counts the processes of the run, and returns the name of one. */
static int count_processes(char *ret_name, size_t size)
{
    static const char *const files[] = {"cwd", "environ", "cmdline"};
    int count = 0;
    DIR *all = opendir("/proc");
    for (const struct dirent *e = NULL; all != NULL && (e = readdir(all)) != NULL;) {
        bool is_of_run = false;
        for (size_t i = 0; i < ARRAY_COUNT(files) && isdigit((unsigned char)e->d_name[0]); i++) {
            is_of_run = is_of_run || names_home(e->d_name, files[i]);
        }
        if (is_of_run) {
            count++;
            (void)snprintf(ret_name, size, "%.20s", e->d_name);
        }
    }
    if (all != NULL) {
        (void)closedir(all);
    }
    return count;
}

static bool are_gone(void)
{
    char name[32];
    return count_processes(name, sizeof name) == 0;
}

static void assert_processes_end(void)
{
    char name[32] = "";
    bool is_over = WAIT_UNTIL(are_gone(), SOON_US);
    int count = count_processes(name, sizeof name);
    ck_assert_msg(is_over, "%d processes run on, such as %s", count, name);
}

/* Fails if the folder contains anything besides `known`. */
static void assert_empty(const char *known)
{
    DIR *dir = opendir(home);
    ck_assert_ptr_nonnull(dir);
    for (const struct dirent *e = NULL; (e = readdir(dir)) != NULL;) {
        bool is_known = e->d_name[0] == '.' || strcmp(e->d_name, "run.lock") == 0 ||
                        strcmp(e->d_name, known) == 0;
        ck_assert_msg(is_known, "%s/%s is left", home, e->d_name);
    }
    (void)closedir(dir);
}

static void run_again(void)
{
    char dir[SERVER_PATH_MAX];
    const char *before = getenv("TMPDIR");
    char *copy = before != NULL ? strdup(before) : NULL;
    ck_assert_int_eq(setenv("TMPDIR", home, 1), 0);
    OK(dir_make(dir, sizeof dir, &err));
    dir_remove(dir);
    if (copy != NULL) {
        ck_assert_int_eq(setenv("TMPDIR", copy, 1), 0);
    } else {
        ck_assert_int_eq(unsetenv("TMPDIR"), 0);
    }
    free(copy);
}

static bool runs_until_gone(void)
{
    run_again();
    return are_gone();
}

/* ---- runs ---- */

static void fill_in(const char *text, char *ret, size_t size)
{
    size_t len = 0;
    const char *bin = getenv("CLAIMD_BIN_DIR");
    ck_assert_msg(bin != NULL, "CLAIMD_BIN_DIR is not set: run the test through ctest");
    ret[0] = '\0';
    for (const char *at = text; *at != '\0'; at++) {
        const char one[] = {*at, '\0'};
        const char *part = *at == '%' ? bin : *at == '@' ? home : one;
        len += (size_t)snprintf(ret + len, size - len, "%s", part);
        ck_assert_uint_lt(len, size);
    }
}

/* Starts it as a user does: with our own rights, in a process group of its own. */
static pid_t start(const struct kind *kind)
{
    char words[ARGS_MAX][PATH_SIZE];
    char log[PATH_SIZE];
    char *argv[ARGS_MAX + 1] = {NULL};
    int code = -1;
    for (size_t i = 0; i < ARGS_MAX && kind->argv[i] != NULL; i++) {
        fill_in(kind->argv[i], words[i], sizeof words[i]);
        argv[i] = words[i];
    }
    ck_assert_ptr_nonnull(argv[0]);
    (void)snprintf(log, sizeof log, "%s/.log", home);
    pid_t pid = fork();
    if (pid == 0) {
        int fd = open(log, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
        if (setpgid(0, 0) == 0 && dup2(fd, STDOUT_FILENO) >= 0 && dup2(fd, STDERR_FILENO) >= 0 &&
            setenv("TMPDIR", home, 1) == 0 && setenv(DIR_KEPT_ENV, home, 1) == 0) {
            (void)execv(argv[0], argv);
        }
        _exit(127);
    }
    bool has_begun =
        WAIT_UNTIL(has_postgres() || program_wait(pid, 0, &code, NULL) == STATUS_OK, SOON_US);
    ck_assert_msg(has_begun && code == -1, "%s ended with %d, or has no PostgreSQL: %s", argv[0],
                  code, log);
    return pid;
}

START_TEST(nothing_is_left_of_a_run_that_is_killed_once_the_next_has_begun)
{
    const struct kind *kind = &kinds[_i];
    bool is_dev = strcmp(kind->argv[0], "%/claimctl") == 0; /* it keeps its jobs */
    program_kill(start(kind));
    assert_processes_end();
    run_again();
    assert_empty(is_dev ? "claimd-aBcD12" : "kept");
}
END_TEST

/* As root in a container, without the right to inspect processes of other users. */
static void give_up_tracing(void)
{
    struct __user_cap_header_struct who = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct caps[_LINUX_CAPABILITY_U32S_3] = {{0}};
    ck_assert_int_eq(syscall(SYS_capget, &who, caps), 0);
    caps[CAP_TO_INDEX(CAP_SYS_PTRACE)].effective &= ~CAP_TO_MASK(CAP_SYS_PTRACE);
    ck_assert_int_eq(syscall(SYS_capset, &who, caps), 0);
}

/* PostgreSQL is sent SIGQUIT when its parent dies, which a stopped process does not handle. */
START_TEST(a_server_that_was_stopped_ends_with_the_next_run)
{
    char line[32] = "";
    give_up_tracing();
    pid_t run = start(&kinds[0]);
    FILE *f = fopen(ready_path, "re");
    ck_assert_ptr_nonnull(f);
    ck_assert_ptr_nonnull(fgets(line, sizeof line, f));
    (void)fclose(f);
    ck_assert_int_eq(kill((pid_t)strtol(line, NULL, 10), SIGSTOP), 0);
    program_kill(run);
    /* The lock is free only when the last fork of the run is gone, too. */
    ck_assert_msg(WAIT_UNTIL(runs_until_gone(), SOON_US), "%s: still there", ready_path);
    assert_empty("");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("killed runs");
    TCase *tests = tcase_create("killed runs");
    tcase_set_timeout(tests, 180);
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_loop_test(tests, nothing_is_left_of_a_run_that_is_killed_once_the_next_has_begun, 0,
                        (int)ARRAY_COUNT(kinds));
    tcase_add_test(tests, a_server_that_was_stopped_ends_with_the_next_run);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
