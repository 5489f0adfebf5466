/* SPDX-License-Identifier: Apache-2.0 */
#include "cluster/child.h"

#include "base/proc.h"
#include "cluster/servers.h"

#include <assert.h>
#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define ENV_MAX 512
#define PG_LIB_DIR "/usr/lib/postgresql"

struct user {
    bool is_wanted; /* running as root: switch to this user */
    uid_t uid;
    gid_t gid;
};

static struct user servers_user(void)
{
    static const char *const names[] = {"postgres", "nobody"};
    if (geteuid() != 0) {
        return (struct user){0};
    }
    for (size_t i = 0; i < ARRAY_COUNT(names); i++) {
        const struct passwd *pw = getpwnam(names[i]); /* NOLINT(concurrency-mt-unsafe) */
        if (pw != NULL) {
            return (struct user){.is_wanted = true, .uid = pw->pw_uid, .gid = pw->pw_gid};
        }
    }
    return (struct user){.is_wanted = true, .uid = 65534, .gid = 65534};
}

bool child_user_is(uid_t uid)
{
    struct user u = servers_user();
    return uid == geteuid() || (u.is_wanted && uid == u.uid);
}

enum status child_user_owns(const char *path, struct err *err)
{
    struct user u = servers_user();
    if (u.is_wanted && chown(path, u.uid, u.gid) != 0) {
        return err_fail_sys(err, STATUS_UNAVAILABLE, errno, "give %s to the servers' user", path);
    }
    return STATUS_OK;
}

static bool may(const struct user *u, const struct stat *st, mode_t bits)
{
    mode_t mode = st->st_mode;
    mode = st->st_uid == u->uid ? mode >> 6 : st->st_gid == u->gid ? mode >> 3 : mode;
    return (mode & bits) == bits;
}

/* True if the user can read `path`, through all directories above it. A path that does not exist
 * counts as reachable: its absence is not a matter of rights. */
static bool user_reaches(const struct user *u, const char *path)
{
    char real[PATH_MAX];
    struct stat st;
    if (realpath(path, real) == NULL || stat(real, &st) != 0) {
        return true;
    }
    if (!may(u, &st, S_ISDIR(st.st_mode) ? 05 : 04)) {
        return false;
    }
    for (char *slash = strrchr(real, '/'); slash != NULL && slash != real;
         slash = strrchr(real, '/')) {
        *slash = '\0';
        if (stat(real, &st) != 0 || !may(u, &st, 01)) {
            return false;
        }
    }
    return true;
}

bool child_programs_stay_root(void)
{
    struct user u = servers_user();
    return u.is_wanted && !user_reaches(&u, "/proc/self/exe");
}

bool program_user_reaches(const char *path)
{
    struct user u = servers_user();
    return !u.is_wanted || user_reaches(&u, path);
}

/* A checkout in root's home is closed to every other user. A program stays root if it lives in such
 * a place, or if an argument or a variable names a file there. */
static bool spec_is_reachable(const struct user *u, const struct child_spec *spec)
{
    for (size_t i = 0; spec->argv[i] != NULL; i++) {
        if (spec->argv[i][0] == '/' && !user_reaches(u, spec->argv[i])) {
            return false;
        }
    }
    for (size_t i = 0; spec->env != NULL && spec->env[i] != NULL; i++) {
        const char *value = strchr(spec->env[i], '=');
        if (value != NULL && value[1] == '/' && !user_reaches(u, value + 1)) {
            return false;
        }
    }
    return true;
}

static bool has_same_name(const char *a, const char *b)
{
    size_t len = strcspn(a, "=");
    return len == strcspn(b, "=") && memcmp(a, b, len) == 0;
}

/* Puts the additions before our own variables: getenv() returns the first match of a name. */
static void build_env(const char *const *additions, char *ret_env[ENV_MAX])
{
    size_t n = 0;
    for (size_t i = 0; additions != NULL && additions[i] != NULL && n < ENV_MAX - 1; i++) {
        memcpy(&ret_env[n++], &additions[i], sizeof(char *));
    }
    size_t own = n;
    for (size_t i = 0; environ[i] != NULL && n < ENV_MAX - 1; i++) {
        bool is_replaced = false;
        for (size_t k = 0; k < own; k++) {
            is_replaced = is_replaced || has_same_name(ret_env[k], environ[i]);
        }
        if (!is_replaced) {
            ret_env[n++] = environ[i];
        }
    }
    ret_env[n] = NULL;
}

static void child_fail(int report_fd)
{
    int sys = errno;
    ssize_t written = write(report_fd, &sys, sizeof sys);
    (void)written;
    _exit(127);
}

static bool become(const struct user *u)
{
    return !u->is_wanted || (setgroups(1, &u->gid) == 0 && setresgid(u->gid, u->gid, u->gid) == 0 &&
                             setresuid(u->uid, u->uid, u->uid) == 0);
}

static void reset_signals(void)
{
    sigset_t none;
    (void)sigemptyset(&none);
    for (int s = 1; s < NSIG; s++) {
        (void)signal(s, SIG_DFL);
    }
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
}

/* Runs in the child between fork and exec. The death signal comes after the change of user, which
 * clears it. */
static void run_child(const struct child_spec *spec, const struct user *u, const char *dir,
                      char *const *env, pid_t parent, int report_fd)
{
    reset_signals();
    if (setpgid(0, 0) != 0 || (dir != NULL && chdir(dir) != 0) || !become(u) ||
        prctl(PR_SET_PDEATHSIG, spec->death_signal) != 0) {
        child_fail(report_fd);
    }
    if (getppid() != parent) {
        _exit(127);
    }
    int in_fd = spec->in_fd > 0 ? spec->in_fd : open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (in_fd < 0 || dup2(in_fd, STDIN_FILENO) < 0 ||
        (spec->out_fd >= 0 && dup2(spec->out_fd, STDOUT_FILENO) < 0) ||
        (spec->err_fd >= 0 && dup2(spec->err_fd, STDERR_FILENO) < 0)) {
        child_fail(report_fd);
    }
    (void)close_range(STDERR_FILENO + 1, ~0U, CLOSE_RANGE_CLOEXEC);
    char **argv = NULL;
    memcpy(&argv, &spec->argv, sizeof argv); /* execvpe() does not modify it */
    (void)execvpe(argv[0], argv, env);
    child_fail(report_fd);
}

enum status child_start(const struct child_spec *spec, pid_t *ret_pid, struct err *err)
{
    char *env[ENV_MAX];
    build_env(spec->env, env);
    struct user u = servers_user();
    if (u.is_wanted && !spec_is_reachable(&u, spec)) {
        u.is_wanted = false;
    }
    const char *dir = spec->dir;
    if (dir == NULL && u.is_wanted && !user_reaches(&u, ".")) {
        dir = "/"; /* psql complains about a folder that it cannot return to */
    }
    int report[2];
    if (pipe2(report, O_CLOEXEC) != 0) {
        return err_fail_sys(err, STATUS_UNAVAILABLE, errno, "start %s: pipe", spec->argv[0]);
    }
    pid_t parent = getpid();
    pid_t pid = fork();
    if (pid == 0) {
        run_child(spec, &u, dir, env, parent, report[1]);
    }
    int sys = errno;
    (void)close(report[1]);
    if (pid < 0) {
        (void)close(report[0]);
        return err_fail_sys(err, STATUS_UNAVAILABLE, sys, "start %s: fork", spec->argv[0]);
    }
    ssize_t n = read(report[0], &sys, sizeof sys);
    (void)close(report[0]);
    if (n == (ssize_t)sizeof sys) {
        (void)waitpid(pid, NULL, 0);
        return err_fail_sys(err, STATUS_UNAVAILABLE, sys, "start %s", spec->argv[0]);
    }
    *ret_pid = pid;
    return STATUS_OK;
}

bool child_is_gone(pid_t pid, int *ret_wait_status)
{
    int status = 0;
    pid_t got = waitpid(pid, &status, WNOHANG);
    if (got == pid) {
        *ret_wait_status = status;
        return true;
    }
    if (got == 0) {
        return false;
    }
    struct proc_stat stat;
    return !proc_stat(pid, &stat) || stat.state == 'Z' || stat.state == 'X';
}

bool child_wait_gone(pid_t pid, int64_t timeout_us, int *ret_wait_status)
{
    return WAIT_UNTIL(child_is_gone(pid, ret_wait_status), timeout_us);
}

void child_end(pid_t pid, const int *signals, size_t count, int64_t timeout_us)
{
    assert(pid > 0);
    int status = 0;
    for (size_t i = 0; i < count && !child_is_gone(pid, &status); i++) {
        (void)kill(pid, signals[i]);
        (void)kill(pid, SIGCONT); /* a test may have stopped it */
        if (child_wait_gone(pid, timeout_us, &status)) {
            return;
        }
    }
}

static bool find_in_path(const char *name, char *ret_path, size_t size)
{
    const char *path = getenv("PATH");
    for (const char *p = path != NULL ? path : "/usr/bin"; *p != '\0';) {
        int len = (int)strcspn(p, ":");
        int n = snprintf(ret_path, size, "%.*s/%s", len, p, name);
        if (len > 0 && n > 0 && (size_t)n < size && access(ret_path, X_OK) == 0) {
            return true;
        }
        p += len;
        p += *p == ':' ? 1 : 0;
    }
    return false;
}

static bool find_in_pg_lib(const char *name, char *ret_path, size_t size)
{
    DIR *dir = opendir(PG_LIB_DIR);
    long newest = 0;
    for (struct dirent *e = NULL; dir != NULL && (e = readdir(dir)) != NULL;) {
        long version = isdigit((unsigned char)e->d_name[0]) ? strtol(e->d_name, NULL, 10) : 0;
        char path[PATH_MAX];
        int n = snprintf(path, sizeof path, PG_LIB_DIR "/%s/bin/%s", e->d_name, name);
        if (version > newest && n > 0 && (size_t)n < size && access(path, X_OK) == 0) {
            newest = version;
            memcpy(ret_path, path, (size_t)n + 1);
        }
    }
    if (dir != NULL) {
        (void)closedir(dir);
    }
    return newest > 0;
}

enum status child_find_program(const char *name, char *ret_path, size_t size, struct err *err)
{
    if (find_in_path(name, ret_path, size) || find_in_pg_lib(name, ret_path, size)) {
        return STATUS_OK;
    }
    return err_fail(err, STATUS_NOT_FOUND,
                    "%s: not in $PATH nor in " PG_LIB_DIR "/*/bin (./dev setup installs it)", name);
}

void child_log_tail(const char *path, char *ret_text, size_t size)
{
    ret_text[0] = '\0';
    autoclose int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return;
    }
    off_t length = lseek(fd, 0, SEEK_END);
    off_t from = length > (off_t)size - 1 ? length - (off_t)size + 1 : 0;
    ssize_t n = pread(fd, ret_text, size - 1, from);
    ret_text[n > 0 ? n : 0] = '\0';
}
