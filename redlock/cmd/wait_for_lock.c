/* SPDX-License-Identifier: Apache-2.0 */
#include "redlock/cmd/wait_for_lock.h"

#include "base/cleanup.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>

static void *acquire(void *ctx)
{
    struct lock_wait *h = ctx;
    uint64_t one = 1;
    (void)redlock_acquire(h->client, &h->request, &h->lock, &h->report);
    (void)!write(h->done_fd, &one, sizeof one);
    return NULL;
}

static void on_signal(struct lock_wait *h, int number)
{
    if (number == SIGTSTP) {
        (void)raise(SIGSTOP);
    } else if (number == SIGINT || number == SIGTERM || number == SIGHUP || number == SIGQUIT) {
        h->signal_number = number;
        redlock_cancel_fire(h->request.cancel);
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

int wait_for_lock(struct lock_wait *h)
{
    pthread_t thread;
    autoclose int done_fd = eventfd(0, EFD_CLOEXEC);
    if (done_fd < 0) {
        return -errno;
    }
    h->done_fd = done_fd;
    int r = redlock_cancel_new(h->client, &h->request.cancel);
    if (r != 0) {
        return r;
    }
    r = -pthread_create(&thread, NULL, acquire, h);
    if (r == 0) {
        listen_until_done(h);
        (void)pthread_join(thread, NULL);
    }
    redlock_cancel_free(TAKE(h->request.cancel));
    return r;
}
