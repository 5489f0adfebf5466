/* SPDX-License-Identifier: Apache-2.0 */
#include "runner/watchdog.h"

#include "base/bug.h"
#include "base/clock.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <time.h>

#define WATCHDOG_STACK_BYTES ((size_t)64 << 10)

bool watchdog_time_is_up(const struct runner_page *page, int64_t now_us)
{
    int64_t kill_at_us = atomic_load(&page->kill_at_us);
    return kill_at_us > 0 && now_us >= kill_at_us;
}

static _Noreturn void end_group(pid_t self)
{
    (void)kill(-self, SIGKILL); /* by number: a handler may have moved it to another group */
    (void)kill(self, SIGKILL);
    _exit(1);
}

static void sleep_until(int64_t until_us)
{
    const struct timespec until = {.tv_sec = (time_t)(until_us / US_PER_S),
                                   .tv_nsec = (long)(until_us % US_PER_S * 1000)};
    (void)clock_nanosleep(CLOCK_BOOTTIME, TIMER_ABSTIME, &until, NULL);
}

/* False after pthread_exit() in a handler: then the thread that would answer is gone. Checked only
 * while a job runs. If the state can't be read, the thread counts as alive. */
static bool has_main_thread(pid_t self)
{
    char path[48];
    char text[256];
    (void)snprintf(path, sizeof path, "/proc/self/task/%d/stat", (int)self);
    autoclose int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    if (n <= 0) {
        return true;
    }
    text[n] = '\0';
    const char *state = strrchr(text, ')'); /* "pid (name) S …" */
    return state == NULL || state[1] != ' ' || (state[2] != 'Z' && state[2] != 'X');
}

static void *watch(void *arg)
{
    struct watchdog *w = (struct watchdog *)arg;
    for (;;) {
        int64_t now_us = clock_boot_us();
        if ((getppid() != w->parent && !SEEDED_BUG(14)) ||
            (atomic_load(&w->job_runs) && watchdog_time_is_up(w->page, now_us))) {
            end_group(w->self);
        }
        if (atomic_load(&w->job_runs) && !has_main_thread(w->self)) {
            atomic_store(&w->page->was_left, 1);
            end_group(w->self);
        }
        int64_t wake_us = now_us + WATCHDOG_PERIOD_US;
        int64_t kill_at_us = atomic_load(&w->page->kill_at_us);
        if (kill_at_us > now_us && kill_at_us < wake_us) {
            wake_us = kill_at_us;
        }
        sleep_until(wake_us);
    }
}

enum status watchdog_start(struct watchdog *w, struct runner_page *page, pid_t parent,
                           struct err *err)
{
    *w = (struct watchdog){.page = page, .parent = parent, .self = getpid()};
    pthread_attr_t attr;
    int rc = pthread_attr_init(&attr);
    if (rc != 0) {
        return err_fail_sys(err, STATUS_NOMEM, rc, "watchdog");
    }
    (void)pthread_attr_setstacksize(&attr, WATCHDOG_STACK_BYTES);
    (void)pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    sigset_t all;
    sigset_t before;
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all,
                          &before); /* inherited by the thread: signals go to the handler */
    pthread_t thread;
    rc = pthread_create(&thread, &attr, watch, w);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    (void)pthread_attr_destroy(&attr);
    if (rc != 0) {
        return err_fail_sys(err, STATUS_UNAVAILABLE, rc, "cannot start the watchdog");
    }
    return STATUS_OK;
}
