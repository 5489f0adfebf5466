/* SPDX-License-Identifier: Apache-2.0 */
#include "runner/program_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>

#define FD_FIRST 200 /* lowest descriptor of pipes that stay open between jobs */

/* What the child needs, and where it reports what failed: after vfork() it runs in the memory of
 * its parent until it executes the program. */
struct start {
    const struct handler_file *file;
    char *const *argv;
    char *const *env;
    int in;
    int out;
    int input;
    int print_to;
    pid_t parent;
    sigset_t mask;
    volatile int failed; /* errno */
    const char *volatile what;
};

static bool limit(int resource, int64_t value)
{
    const struct rlimit both = {.rlim_cur = (rlim_t)value, .rlim_max = (rlim_t)value};
    return value == 0 || setrlimit((__rlimit_resource_t)resource, &both) == 0;
}

/* Puts the pipes in their places and closes all other descriptors. A program that runs once has no
 * descriptor 3. The sources lie above 4, since up to 4 are the runner's own (protocol.h). */
static bool arrange(const struct start *s)
{
    bool is_told = s->in >= 0 ? dup2(s->in, PROGRAM_FD_IN) >= 0 : close(PROGRAM_FD_IN) == 0;
    return is_told && dup2(s->out, PROGRAM_FD_OUT) >= 0 &&
           (s->input < 0 || dup2(s->input, STDIN_FILENO) >= 0) &&
           (s->print_to < 0 || dup2(s->print_to, STDOUT_FILENO) >= 0) &&
           close_range(PROGRAM_FD_OUT + 1, ~0U, 0) == 0;
}

static const char *prepare_child(const struct start *s)
{
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != s->parent) {
        return "be tied to its runner";
    }
    if (!arrange(s)) {
        return "arrange its descriptors";
    }
    if (chdir(s->file->cwd) != 0) {
        return s->file->cwd;
    }
    if (!limit(RLIMIT_CPU, s->file->cpu_seconds) || !limit(RLIMIT_DATA, s->file->memory) ||
        !limit(RLIMIT_NOFILE, s->file->open_files)) {
        return "limit it";
    }
    return NULL;
}

static _Noreturn void run_child(struct start *s)
{
    s->what = prepare_child(s);
    if (s->what == NULL) {
        (void)sigprocmask(SIG_SETMASK, &s->mask, NULL);
        (void)execve(s->argv[0], s->argv, s->env);
        s->what = s->argv[0];
    }
    s->failed = errno;
    _exit(127);
}

/* Blocks all signals: until the child executes the program it shares our memory, so no signal
 * handler may run in it. */
static pid_t fork_child(struct start *s)
{
    sigset_t all;
    sigset_t before;
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    pid_t pid = vfork(); /* NOLINT(clang-analyzer-security.insecureAPI.vfork) */
    if (pid == 0) {
        run_child(s); /* NOLINT(clang-analyzer-unix.Vfork): it only executes or exits */
    }
    int failed = errno;
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    errno = failed;
    return pid;
}

static enum status start(struct start *s, pid_t *ret_pid, struct err *err)
{
    (void)sigemptyset(&s->mask);
    pid_t pid = fork_child(s);
    if (pid < 0) {
        return err_fail_sys(err, STATUS_UNAVAILABLE, errno, "fork");
    }
    if (s->what != NULL) {
        (void)waitpid(pid, NULL, 0);
        return err_fail_sys(err, STATUS_UNAVAILABLE, s->failed, "%s", s->what);
    }
    *ret_pid = pid;
    return STATUS_OK;
}

static void close_ends(const int ends[2])
{
    close_slot(&ends[0]);
    close_slot(&ends[1]);
}

static bool set_nonblocking(int fd)
{
    return fcntl(fd, F_SETFL, O_NONBLOCK) == 0;
}

/* Moves a descriptor to FD_FIRST or above. −1: there is no room. */
static int raise_fd(int fd)
{
    int high = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, FD_FIRST);
    close_slot(&fd);
    return high;
}

/* Moves the descriptors of a process that stays between jobs to high numbers. */
static void make_lasting(struct program_process *p)
{
    close_slot(&p->held);
    p->held = -1;
    p->in = raise_fd(p->in);
    p->out = raise_fd(p->out);
    p->pidfd = raise_fd(p->pidfd);
}

static enum status make_pipes(const struct handler_file *h, int to[2], int from[2], struct err *err)
{
    if ((!h->is_once && pipe2(to, O_CLOEXEC) != 0) || pipe2(from, O_CLOEXEC) != 0) {
        return err_fail_sys(err, STATUS_UNAVAILABLE, errno, "pipe");
    }
    return STATUS_OK;
}

enum status program_process_start(const struct handler_file *h, char *const *argv, char *const *env,
                                  int input, int print_to, struct program_process *ret,
                                  struct err *err)
{
    int to[2] = {-1, -1};
    int from[2] = {-1, -1};
    struct program_process p = {.pid = 0};
    enum status st = make_pipes(h, to, from, err);
    struct start s = {.file = h,
                      .argv = argv,
                      .env = env,
                      .in = to[0],
                      .out = from[1],
                      .input = input,
                      .print_to = print_to,
                      .parent = getpid()};
    if (st == STATUS_OK) {
        st = start(&s, &p.pid, err);
    }
    if (st != STATUS_OK) {
        close_ends(to);
        close_ends(from);
        return st;
    }
    close_slot(&to[0]);
    p.in = to[1];
    p.out = from[0];
    p.held = from[1];
    p.pidfd = pidfd_open(p.pid, 0);
    if (!h->is_once) {
        make_lasting(&p);
    }
    if (p.pidfd < 0 || !set_nonblocking(p.out) || !(h->is_once || set_nonblocking(p.in))) {
        program_process_end(&p);
        return err_fail(err, STATUS_UNAVAILABLE, "no descriptor is left for its process");
    }
    *ret = p;
    return STATUS_OK;
}

void program_process_end(struct program_process *p)
{
    if (p->pid > 0) {
        (void)kill(p->pid, SIGKILL);
        while (waitpid(p->pid, NULL, 0) < 0 && errno == EINTR) {
        }
    }
    close_slot(&p->in);
    close_slot(&p->out);
    close_slot(&p->held);
    close_slot(&p->pidfd);
    *p = (struct program_process){.pidfd = -1, .in = -1, .out = -1, .held = -1};
}

static void describe_exit(const siginfo_t *info, struct program_exit *ret)
{
    ret->exit_code = info->si_code == CLD_EXITED ? info->si_status : -1;
    if (ret->exit_code >= 0) {
        (void)snprintf(ret->how, sizeof ret->how, "exit status %d", ret->exit_code);
        return;
    }
    const char *name = sigabbrev_np(info->si_status);
    (void)snprintf(ret->how, sizeof ret->how, "SIG%s", name == NULL ? "?" : name);
}

bool program_process_ended(const struct program_process *p, int wait_ms, struct program_exit *ret)
{
    struct pollfd polled = {.fd = p->pidfd, .events = POLLIN};
    siginfo_t info = {.si_pid = 0};
    if (poll(&polled, 1, wait_ms) <= 0 ||
        waitid(P_PID, (id_t)p->pid, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == 0) {
        return false;
    }
    describe_exit(&info, ret);
    return true;
}

void program_process_reap(struct program_process *p, struct program_exit *ret)
{
    siginfo_t info = {.si_pid = 0};
    while (waitid(P_PID, (id_t)p->pid, &info, WEXITED) != 0 && errno == EINTR) {
    }
    p->pid = 0;
    describe_exit(&info, ret);
}
