/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/runner/plugin_probe.h"

#include "worker/protocol.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#define PROBE_TIMEOUT_MS 5000

/* What the child says: one of these, a refusal followed by its text. */
#define SAYS_OK 'y'
#define SAYS_NO 'n'

static _Noreturn void run_child(plugin_probe_fn *step, void *ctx, int out)
{
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    (void)close(RUNNER_FD_FRAMES); /* nothing that a constructor does may reach the worker */
    (void)close(RUNNER_FD_PAGE);
    struct err err = {0};
    enum status st = step(ctx, &err);
    char message[1 + ERR_TEXT_MAX];
    int len = snprintf(message, sizeof message, "%c%s", st == STATUS_OK ? SAYS_OK : SAYS_NO,
                       err.msg); /* < PIPE_BUF: one write, whole */
    _exit(len > 0 && write(out, message, (size_t)len) == len ? 0 : 1);
}

static bool wait_for_end(pid_t child)
{
    autoclose int pidfd = pidfd_open(child, 0);
    struct pollfd p = {.fd = pidfd, .events = POLLIN};
    int n = 0;
    do {
        n = poll(&p, 1, PROBE_TIMEOUT_MS);
    } while (n < 0 && errno == EINTR);
    return pidfd >= 0 && n > 0;
}

static enum status judge(int in, int wait_status, struct err *err)
{
    if (WIFSIGNALED(wait_status)) {
        const char *name = sigabbrev_np(WTERMSIG(wait_status));
        return err_fail(err, STATUS_INVALID, "crashed while loading: SIG%s",
                        name == NULL ? "?" : name);
    }
    char message[1 + ERR_TEXT_MAX];
    ssize_t n = read(in, message, sizeof message - 1);
    if (n < 1 || (message[0] != SAYS_OK && message[0] != SAYS_NO)) {
        return err_fail(err, STATUS_INVALID, "ended its process while loading, exit status %d",
                        WEXITSTATUS(wait_status));
    }
    message[n] = '\0';
    if (message[0] == SAYS_NO) {
        return err_fail(err, STATUS_INVALID, "%s", message + 1);
    }
    return STATUS_OK;
}

enum status plugin_probe(plugin_probe_fn *step, void *ctx, struct err *err)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) {
        return err_fail_sys(err, STATUS_UNAVAILABLE, errno, "pipe");
    }
    autoclose int in = ends[0];
    autoclose int out = ends[1];
    pid_t child = fork();
    if (child < 0) {
        return err_fail_sys(err, STATUS_UNAVAILABLE, errno, "fork");
    }
    if (child == 0) {
        run_child(step, ctx, out);
    }
    bool ended = wait_for_end(child);
    if (!ended) {
        (void)kill(child, SIGKILL);
    }
    int wait_status = 0;
    while (waitpid(child, &wait_status, 0) < 0) {
        if (errno != EINTR) {
            return err_fail_sys(err, STATUS_INTERNAL, errno, "wait");
        }
    }
    if (!ended) {
        return err_fail(err, STATUS_INVALID, "not loaded after %d s", PROBE_TIMEOUT_MS / 1000);
    }
    return judge(in, wait_status, err);
}
