/* SPDX-License-Identifier: Apache-2.0
 *
 * The first steps of a runner (INTERFACES rule 11, fault.J4, J6): before it looks at a plugin, it
 * gives up whatever it inherited that could harm the worker, and makes sure that it does not
 * outlive the worker. */
#include "base/bug.h"
#include "protocol/runner_env.h"
#include "runner/runner.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>

#define RUNNER_UMASK 022

static enum status tie_to_parent(pid_t parent, struct err *err)
{
    if (parent == 0) {
        return STATUS_OK;
    }
    if (SEEDED_BUG(14)) {
        return STATUS_OK;
    }
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) {
        return err_fail_sys(err, STATUS_INTERNAL, errno, "PR_SET_PDEATHSIG");
    }
    if (getppid() != parent) { /* it died before the signal was requested */
        return err_fail(err, STATUS_UNAVAILABLE, "parent is process %d, expected %d",
                        (int)getppid(), (int)parent);
    }
    return STATUS_OK;
}

static enum status lead_own_group(struct err *err)
{
    if (getpgrp() != getpid() && setpgid(0, 0) != 0) {
        return err_fail_sys(err, STATUS_INTERNAL, errno, "setpgid");
    }
    return STATUS_OK;
}

static void reset_signals(void)
{
    const struct sigaction by_default = {.sa_handler = SIG_DFL};
    for (int number = 1; number <= SIGRTMAX; number++) {
        (void)sigaction(number, &by_default,
                        NULL); /* KILL, STOP and libc's own signals refuse, which is fine */
    }
    sigset_t none;
    (void)sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
}

static enum status scrub_environment(struct err *err)
{
    char *kept[RUNNER_ENV_MAX] = {NULL};
    enum status st = STATUS_OK;
    for (size_t i = 0; RUNNER_ENV_NAMES[i] != NULL; i++) {
        const char *value = getenv(RUNNER_ENV_NAMES[i]);
        kept[i] = value == NULL ? NULL : strdup(value);
        if (value != NULL && kept[i] == NULL) {
            st = err_fail(err, STATUS_NOMEM, "environment");
        }
    }
    (void)clearenv();
    for (size_t i = 0; RUNNER_ENV_NAMES[i] != NULL; i++) {
        if (kept[i] != NULL && setenv(RUNNER_ENV_NAMES[i], kept[i], 1) != 0) {
            st = err_fail(err, STATUS_NOMEM, "environment");
        }
        free(kept[i]);
    }
    return st;
}

static enum status give_up_powers(struct err *err)
{
    const struct rlimit no_core = {0};
    if (setrlimit(RLIMIT_CORE, &no_core) != 0) {
        return err_fail_sys(err, STATUS_INTERNAL, errno, "RLIMIT_CORE");
    }
    if (prctl(PR_SET_DUMPABLE, 0) != 0) {
        return err_fail_sys(err, STATUS_INTERNAL, errno, "PR_SET_DUMPABLE");
    }
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) {
        return err_fail_sys(err, STATUS_INTERNAL, errno, "PR_SET_NO_NEW_PRIVS");
    }
    /* A daemon that a handler leaves behind becomes a child of the runner, which finds and ends it
     * (fault.G4). */
    if (prctl(PR_SET_CHILD_SUBREAPER, 1) != 0) {
        return err_fail_sys(err, STATUS_INTERNAL, errno, "PR_SET_CHILD_SUBREAPER");
    }
    return STATUS_OK;
}

enum status confine_process(pid_t parent, int last_fd, struct err *err)
{
    enum status st = tie_to_parent(parent, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = lead_own_group(err);
    if (st != STATUS_OK) {
        return st;
    }
    reset_signals();
    if (close_range((unsigned)last_fd + 1, ~0U, 0) != 0) {
        return err_fail_sys(err, STATUS_INTERNAL, errno, "close_range");
    }
    (void)umask(RUNNER_UMASK);
    st = scrub_environment(err);
    if (st != STATUS_OK) {
        return st;
    }
    return give_up_powers(err);
}
