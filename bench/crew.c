/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/crew.h"

#include "base/clock.h"

#include <assert.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>

#define POLL_US (5 * US_PER_MS)
#define READY_US (60 * US_PER_S)
#define WORK_US (900 * US_PER_S)

/* Sent by a member when it is ready, and when its work is done or has failed. */
struct report {
    enum status st;
    struct err err;
    int64_t end_us;
    int64_t cpu_us;
    int64_t counts[CREW_COUNTS];
};
static_assert(sizeof(struct report) <= PIPE_BUF, "reports must not be torn");

static int64_t own_cpu_us(void)
{
    struct rusage u = {0};
    (void)getrusage(RUSAGE_SELF, &u);
    return (u.ru_utime.tv_sec + u.ru_stime.tv_sec) * US_PER_S + u.ru_utime.tv_usec +
           u.ru_stime.tv_usec;
}

/* ---- inside a member ---- */

static enum status tell(const struct crew_member *self, const struct report *report,
                        struct err *err)
{
    if (write(self->report_fd, report, sizeof *report) != sizeof *report) {
        return err_fail_sys(err, STATUS_UNAVAILABLE, errno, "report");
    }
    return STATUS_OK;
}

enum status crew_ready(struct crew_member *self, struct err *err)
{
    const struct report ready = {.st = STATUS_OK};
    char go = 0;
    enum status st = tell(self, &ready, err);
    if (st != STATUS_OK) {
        return st;
    }
    if (read(self->start_fd, &go, 1) != 1) {
        return err_fail(err, STATUS_UNAVAILABLE, "there is nobody to begin with");
    }
    self->cpu_us = own_cpu_us();
    return STATUS_OK;
}

enum status crew_done(struct crew_member *self, struct err *err)
{
    struct report done = {.end_us = clock_boot_us(), .cpu_us = own_cpu_us() - self->cpu_us};
    struct pollfd end = {.fd = self->start_fd}; /* not read: the bytes in it are for others */
    memcpy(done.counts, self->counts, sizeof done.counts);
    enum status st = tell(self, &done, err);
    if (st != STATUS_OK) {
        return st;
    }
    while (poll(&end, 1, -1) < 0 && errno == EINTR) {
    }
    return STATUS_OK;
}

static _Noreturn void be_member(crew_work_fn *work, const void *ctx, struct crew_member *self)
{
    struct report failure = {0};
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    (void)signal(SIGINT, SIG_DFL);
    (void)signal(SIGTERM, SIG_DFL);
    failure.st = work(ctx, self, &failure.err);
    if (failure.st != STATUS_OK) {
        (void)tell(self, &failure, NULL);
    }
    _exit(failure.st == STATUS_OK ? EXIT_SUCCESS : EXIT_FAILURE);
}

/* ---- in the measuring program ---- */

/* Takes the next report. Runs the loop in the meantime, so that it can be interrupted. */
static enum status take_report(struct crew *crew, struct cluster *c, int64_t end_us,
                               struct report *ret, struct err *err)
{
    for (;;) {
        ssize_t n = read(crew->report_fd, ret, sizeof *ret);
        if (n == sizeof *ret) {
            break;
        }
        if (n >= 0 || (errno != EAGAIN && errno != EINTR)) {
            return err_fail(err, STATUS_UNAVAILABLE, "clients have ended without a report");
        }
        if (clock_boot_us() >= end_us) {
            return err_fail(err, STATUS_TIMEOUT, "clients don't end");
        }
        enum status st = cluster_wait(c, POLL_US, err);
        if (st != STATUS_OK) {
            return st;
        }
    }
    if (ret->st != STATUS_OK && err != NULL) {
        *err = ret->err;
    }
    return ret->st;
}

static enum status fork_member(struct crew *crew, crew_work_fn *work, const void *ctx,
                               const int reports[2], const int starts[2], struct err *err)
{
    struct crew_member self = {
        .index = crew->count, .report_fd = reports[1], .start_fd = starts[0]};
    pid_t pid = fork();
    if (pid < 0) {
        return err_fail_sys(err, STATUS_UNAVAILABLE, errno, "fork");
    }
    if (pid == 0) {
        (void)close(reports[0]);
        (void)close(starts[1]);
        be_member(work, ctx, &self);
    }
    crew->pids[crew->count++] = pid;
    return STATUS_OK;
}

enum status crew_open(struct crew *crew, struct cluster *c, size_t count, crew_work_fn *work,
                      const void *ctx, struct err *err)
{
    int reports[2];
    int starts[2];
    assert(count <= CREW_MAX);
    *crew = (struct crew){.report_fd = -1, .start_fd = -1};
    if (pipe2(reports, O_CLOEXEC) != 0) {
        return err_fail_sys(err, STATUS_UNAVAILABLE, errno, "pipe");
    }
    crew->report_fd = reports[0];
    if (pipe2(starts, O_CLOEXEC) != 0) {
        (void)close(reports[1]);
        return err_fail_sys(err, STATUS_UNAVAILABLE, errno, "pipe");
    }
    crew->start_fd = starts[1];
    (void)fcntl(crew->report_fd, F_SETFL, O_NONBLOCK);
    enum status st = STATUS_OK;
    for (size_t i = 0; i < count && st == STATUS_OK; i++) {
        st = fork_member(crew, work, ctx, reports, starts, err);
    }
    (void)close(reports[1]);
    (void)close(starts[0]);
    int64_t end_us = clock_boot_us() + READY_US;
    for (size_t i = 0; i < count && st == STATUS_OK; i++) {
        struct report ready;
        st = take_report(crew, c, end_us, &ready, err);
    }
    return st;
}

enum status crew_start(struct crew *crew, const struct cluster *c, struct err *err)
{
    char go[CREW_MAX] = {0};
    crew->before = cluster_cpu(c);
    crew->start_us = clock_boot_us();
    if (write(crew->start_fd, go, crew->count) != (ssize_t)crew->count) {
        return err_fail_sys(err, STATUS_UNAVAILABLE, errno, "start the clients");
    }
    return STATUS_OK;
}

static void add(struct crew_result *sum, const struct report *one, int64_t start_us)
{
    int64_t us = one->end_us - start_us;
    sum->us = us > sum->us ? us : sum->us;
    sum->cpu_us += one->cpu_us;
    for (size_t i = 0; i < CREW_COUNTS; i++) {
        sum->counts[i] += one->counts[i];
    }
}

enum status crew_wait(struct crew *crew, struct cluster *c, struct err *err)
{
    int64_t end_us = clock_boot_us() + WORK_US;
    for (size_t i = 0; i < crew->count; i++) {
        struct report report;
        enum status st = take_report(crew, c, end_us, &report, err);
        if (st != STATUS_OK) {
            return st;
        }
        add(&crew->result, &report, crew->start_us);
    }
    struct cluster_cpu after = cluster_cpu(c);
    crew->result.postgres_us = after.postgres_us - crew->before.postgres_us;
    crew->result.redis_us = after.redis_us - crew->before.redis_us;
    crew->is_done = true;
    return STATUS_OK;
}

void crew_close(struct crew *crew)
{
    close_slot(&crew->start_fd);
    for (size_t i = 0; i < crew->count; i++) {
        if (!crew->is_done) {
            (void)kill(crew->pids[i], SIGKILL);
        }
        while (waitpid(crew->pids[i], NULL, 0) < 0 && errno == EINTR) {
        }
    }
    close_slot(&crew->report_fd);
    crew->count = 0;
}

enum status crew_run(struct cluster *c, size_t count, crew_work_fn *work, const void *ctx,
                     struct crew_result *ret, struct err *err)
{
    struct crew crew;
    enum status st = crew_open(&crew, c, count, work, ctx, err);
    if (st == STATUS_OK) {
        st = crew_start(&crew, c, err);
    }
    if (st == STATUS_OK) {
        st = crew_wait(&crew, c, err);
    }
    crew_close(&crew);
    if (st != STATUS_OK) {
        return st;
    }
    *ret = crew.result;
    return STATUS_OK;
}
