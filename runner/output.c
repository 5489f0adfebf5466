/* SPDX-License-Identifier: Apache-2.0 */
#include "runner/output.h"

#include "base/cleanup.h"
#include "base/log.h"
#include "base/log_out.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdio_ext.h>
#include <sys/stat.h>

/* There is one per process; it outlives every stack frame. */
static struct {
    pthread_mutex_t mutex;
    struct run_output from;
} output = {.mutex = PTHREAD_MUTEX_INITIALIZER, .from = {.fd = RUNNER_FD_OUTPUT}};

/* `arg`: a semaphore, posted when the thread has started and holds no lock. */
static void *run(void *arg)
{
    struct pollfd p = {.fd = RUNNER_FD_OUTPUT, .events = POLLIN};
    (void)sem_post(arg);
    while (poll(&p, 1, -1) >= 0 || errno == EINTR) {
        (void)pthread_mutex_lock(&output.mutex);
        run_output_take(&output.from, RUNNER_FD_LOG);
        (void)pthread_mutex_unlock(&output.mutex);
    }
    return NULL;
}

/* Called around each fork, whether for a trial of a plugin or by a handler: a lock that the reader
 * holds while it works (of the log, of malloc) would stay locked in the child for ever. Without the
 * mutex, the reader only polls. */
static void before_fork(void)
{
    (void)pthread_mutex_lock(&output.mutex);
}

static void after_fork(void)
{
    (void)pthread_mutex_unlock(&output.mutex);
}

/* Sets O_NONBLOCK on a file description of the runner's own, if it can get one
 * (docs/decisions/0010): the reader of the log may stop between the check and a write. */
static void stop_waiting_for_reader(void)
{
    struct stat st;
    if (fstat(RUNNER_FD_LOG, &st) != 0 || !S_ISFIFO(st.st_mode)) {
        return;
    }
    autoclose int fd = log_out_reopen(RUNNER_FD_LOG);
    if (fd >= 0) {
        (void)dup3(fd, RUNNER_FD_LOG, O_CLOEXEC);
    }
}

enum status output_start(struct runner_page *page, struct err *err)
{
    sigset_t all;
    sigset_t before;
    pthread_t thread;
    sem_t has_started;
    output.from.page = page;
    stop_waiting_for_reader();
    log_to(RUNNER_FD_LOG);
    /* Keeps one writer open. If there were none, as after a handler has closed 1 and 2, poll()
     * would always return at once. */
    (void)fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, RUNNER_FD_LAST + 1);
    (void)setvbuf(stdout, NULL, _IOLBF, 0);
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all,
                          &before); /* inherited by the thread: signals go to the handler */
    int rc = pthread_atfork(before_fork, after_fork, after_fork);
    (void)sem_init(&has_started, 0, 0);
    rc = rc != 0 ? rc : pthread_create(&thread, NULL, run, &has_started);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (rc != 0) {
        return err_fail_sys(err, STATUS_UNAVAILABLE, rc,
                            "cannot start the reader of what handlers print");
    }
    (void)pthread_detach(thread);
    while (sem_wait(&has_started) != 0 && errno == EINTR) {
    }
    return STATUS_OK;
}

void output_begin(int64_t job)
{
    (void)pthread_mutex_lock(&output.mutex);
    output.from.job = job;
    (void)pthread_mutex_unlock(&output.mutex);
}

void output_end(void)
{
    if (__fpending(stdout) > 0) {
        (void)fflush(stdout);
    }
    (void)pthread_mutex_lock(&output.mutex);
    run_output_take(&output.from, RUNNER_FD_LOG);
    run_output_end_line(&output.from, RUNNER_FD_LOG);
    output.from.job = 0;
    (void)pthread_mutex_unlock(&output.mutex);
}
