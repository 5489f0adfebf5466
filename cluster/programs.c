/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs, waits for and kills programs and their children, and reads their output. */
#include "base/buf.h"
#include "base/clock.h"
#include "base/proc.h"
#include "cluster/child.h"
#include "cluster/servers.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>

#define READ_BYTES 16384
#define KILL_US (5 * US_PER_S)

enum status program_start(const char *const *argv, const char *const *env, const char *log_path,
                          pid_t *ret_pid, struct err *err)
{
    autoclose int fd = -1;
    if (log_path != NULL) {
        fd = open(log_path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
        if (fd < 0) {
            return err_fail_sys(err, STATUS_UNAVAILABLE, errno, "open log %s", log_path);
        }
    }
    const struct child_spec spec = {
        .argv = argv, .env = env, .out_fd = -1, .err_fd = fd, .death_signal = SIGKILL};
    return child_start(&spec, ret_pid, err);
}

enum status program_wait(pid_t pid, int64_t timeout_us, int *ret_code, struct err *err)
{
    int status = 0;
    if (!child_wait_gone(pid, timeout_us, &status)) {
        return err_fail(err, STATUS_TIMEOUT, "process %ld still runs after %lld ms", (long)pid,
                        (long long)(timeout_us / US_PER_MS));
    }
    *ret_code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    return STATUS_OK;
}

void program_kill(pid_t pid)
{
    static const int ladder[] = {SIGKILL};
    child_end(pid, ladder, ARRAY_COUNT(ladder), KILL_US);
}

/* Reads until the other end is closed. */
static enum status read_all(int fd, int64_t end_us, struct buf *out, struct err *err)
{
    for (;;) {
        int64_t left_ms = (end_us - clock_boot_us()) / US_PER_MS;
        struct pollfd p = {.fd = fd, .events = POLLIN};
        int n = poll(&p, 1, left_ms > 0 ? (int)left_ms : 0);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            return err_fail(err, STATUS_TIMEOUT, "no end of its output in time");
        }
        char chunk[READ_BYTES];
        ssize_t got = read(fd, chunk, sizeof chunk);
        if (got <= 0) {
            return STATUS_OK;
        }
        enum status st = buf_append(out, chunk, (size_t)got, err);
        if (st != STATUS_OK) {
            return st;
        }
    }
}

enum status program_run(const char *const *argv, const char *const *env, int64_t timeout_us,
                        struct buf *out, int *ret_code, struct err *err)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) {
        return err_fail_sys(err, STATUS_UNAVAILABLE, errno, "run %s: pipe", argv[0]);
    }
    autoclose int read_fd = ends[0];
    const struct child_spec spec = {
        .argv = argv, .env = env, .out_fd = ends[1], .err_fd = ends[1], .death_signal = SIGKILL};
    int64_t end_us = clock_boot_us() + timeout_us;
    pid_t pid = 0;
    enum status st = child_start(&spec, &pid, err);
    (void)close(ends[1]);
    if (st != STATUS_OK) {
        return st;
    }
    st = read_all(read_fd, end_us, out, err);
    if (st == STATUS_OK) {
        st = program_wait(pid, end_us - clock_boot_us() + US_PER_S, ret_code, err);
    }
    if (st != STATUS_OK) {
        err_prefix(err, "run %s", argv[0]);
        program_kill(pid);
    }
    return st;
}

size_t program_children(pid_t parent, pid_t *ret_pids, size_t max)
{
    size_t count = 0;
    struct proc_stat stat;
    DIR *dir = parent > 0 ? opendir("/proc") : NULL;
    for (const struct dirent *e = NULL; dir != NULL && (e = readdir(dir)) != NULL;) {
        pid_t pid = isdigit((unsigned char)e->d_name[0]) ? (pid_t)strtol(e->d_name, NULL, 10) : 0;
        if (pid > 0 && count < max && proc_stat(pid, &stat) && stat.parent == parent) {
            ret_pids[count++] = pid;
        }
    }
    if (dir != NULL) {
        (void)closedir(dir);
    }
    return count;
}
