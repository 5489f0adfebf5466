/* SPDX-License-Identifier: Apache-2.0
 *
 * Waits for a lock, and handles signals meanwhile. */
#include "base/cleanup.h"
#include "redlock/cmd/cli.h"

#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>

static void on_done(void *ctx, size_t count, struct redlock_lock *const *locks,
                    const struct redlock_report *const *reports)
{
    struct lock_wait *h = ctx;
    (void)count;
    h->lock = locks[0];
    h->report = *reports[0];
    (void)eventfd_write(h->done_fd, 1);
}

static void on_signal(struct lock_wait *h, int number)
{
    if (number == SIGTSTP) {
        (void)raise(SIGSTOP);
    } else if (number == SIGINT || number == SIGTERM || number == SIGHUP || number == SIGQUIT) {
        h->signal_number = number;
        redlock_cancel(h->request.owner);
    }
}

static void listen_until_done(struct lock_wait *h)
{
    struct pollfd fds[] = {{.fd = h->signal_fd, .events = POLLIN},
                           {.fd = h->done_fd, .events = POLLIN}};
    struct signalfd_siginfo info;
    do {
        (void)poll(fds, ARRAY_COUNT(fds), -1);
        while (read(h->signal_fd, &info, sizeof info) == (ssize_t)sizeof info) {
            on_signal(h, (int)info.ssi_signo);
        }
    } while (fds[1].revents == 0);
}

enum redlock_result wait_for_lock(struct lock_wait *h)
{
    autoclose int done_fd = eventfd(0, EFD_CLOEXEC);
    h->done_fd = done_fd;
    enum redlock_result result =
        done_fd < 0 ? REDLOCK_SYSTEM : redlock_owner_new(h->client, &h->request.owner);
    if (result == REDLOCK_OK) {
        result = redlock_start(h->client, &h->request, on_done, h, &h->report);
    }
    if (result == REDLOCK_OK) {
        listen_until_done(h);
        result = h->report.result;
    }
    redlock_owner_free(TAKE(h->request.owner));
    return result;
}
