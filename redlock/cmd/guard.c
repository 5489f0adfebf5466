/* SPDX-License-Identifier: Apache-2.0 */
#include "redlock/cmd/guard.h"

#include "base/cleanup.h"
#include "base/clock.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/timerfd.h>
#include <sys/wait.h>

#define GUARD_PIPE_FD 3 /* in the guard; apart from its timer, its only open descriptor */

struct guard_orders {
    _Atomic int64_t at_us;
    _Atomic pid_t group;
};

static void arm(int timer_fd, int64_t at_us)
{
    const struct itimerspec when = {.it_value = {.tv_sec = (time_t)(at_us / US_PER_S),
                                                 .tv_nsec = (long)(at_us % US_PER_S * 1000)}};
    (void)timerfd_settime(timer_fd, TFD_TIMER_ABSTIME, &when, NULL);
}

/* Runs until the parent is gone. After a suspend of the machine the timer is due at once
 * (CLOCK_BOOTTIME). */
static void obey(const struct guard_orders *orders, int timer_fd, int64_t period_us)
{
    for (;;) {
        int64_t now_us = clock_boot_us();
        int64_t at_us = atomic_load(&orders->at_us);
        pid_t group = atomic_load(&orders->group);
        if (group > 0 && now_us >= at_us) {
            (void)kill(-group, SIGKILL);
        }
        arm(timer_fd, at_us > now_us && at_us - now_us < period_us ? at_us : now_us + period_us);
        struct pollfd fds[] = {{.fd = GUARD_PIPE_FD, .events = POLLIN},
                               {.fd = timer_fd, .events = POLLIN}};
        if (poll(fds, ARRAY_COUNT(fds), -1) > 0 && fds[0].revents != 0) {
            group = atomic_load(&orders->group);
            if (group > 0) {
                (void)kill(-group, SIGKILL);
            }
            return;
        }
    }
}

/* Leaves terminal, process group and files, so that signals to these don't hit the guard, and no
 * process waits because the guard keeps a file open. */
static _Noreturn void run(const struct guard_orders *orders, int pipe_fd, int64_t period_us)
{
    (void)setsid();
    (void)prctl(PR_SET_NAME, "redlock-guard");
    int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
        (void)dup2(null_fd, fd);
    }
    if (pipe_fd != GUARD_PIPE_FD) {
        (void)dup2(pipe_fd, GUARD_PIPE_FD);
    }
    (void)close_range(GUARD_PIPE_FD + 1, ~0U, 0);
    int timer_fd = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC);
    if (chdir("/") == 0 && timer_fd >= 0) {
        obey(orders, timer_fd, period_us);
    }
    _exit(0);
}

int guard_start(struct guard *g, int64_t period_us)
{
    int ends[2] = {-1, -1};
    *g = (struct guard){.pipe_fd = -1};
    void *shared =
        mmap(NULL, sizeof *g->orders, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED) {
        return -errno;
    }
    if (pipe2(ends, O_CLOEXEC) != 0) {
        int r = -errno;
        (void)munmap(shared, sizeof *g->orders);
        return r;
    }
    g->orders = shared;
    g->pipe_fd = ends[1];
    guard_tell(g, 0, INT64_MAX);
    g->pid = fork();
    if (g->pid == 0) {
        (void)close(ends[1]);
        run(g->orders, ends[0], period_us);
    }
    int r = g->pid < 0 ? -errno : 0;
    (void)close(ends[0]);
    if (r != 0) {
        guard_dismiss(g);
    }
    return r;
}

void guard_tell(struct guard *g, pid_t group, int64_t at_us)
{
    /* stored first, so that a group never has the time of the previous one */
    atomic_store(&g->orders->at_us, at_us);
    atomic_store(&g->orders->group, group);
}

void guard_dismiss(struct guard *g)
{
    if (g->orders == NULL) {
        return;
    }
    guard_tell(g, 0, INT64_MAX);
    (void)close(g->pipe_fd);
    if (g->pid > 0 && waitpid(g->pid, NULL, WNOHANG) == 0) { /* it still runs, or is stopped */
        (void)kill(g->pid, SIGKILL);
        (void)waitpid(g->pid, NULL, 0);
    }
    (void)munmap(g->orders, sizeof *g->orders);
    *g = (struct guard){.pipe_fd = -1};
}
