/* SPDX-License-Identifier: Apache-2.0 */
#include "chaos/load_process.h"

#include "base/clock.h"
#include "cluster/child.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>

static volatile sig_atomic_t is_stopping;

static void on_term(int number)
{
    (void)number;
    is_stopping = 1;
}

bool load_process_must_end(void)
{
    return is_stopping != 0;
}

enum status load_process_start(load_process_fn *run, void *ctx, pid_t *ret_pid, struct err *err)
{
    (void)fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        (void)signal(SIGTERM, on_term);
        (void)signal(SIGINT, SIG_IGN); /* handled by the parent */
        _exit(run(ctx));
    }
    if (pid < 0) {
        return err_fail_sys(err, STATUS_UNAVAILABLE, errno, "fork the load");
    }
    *ret_pid = pid;
    return STATUS_OK;
}

bool load_process_stop(pid_t pid, int64_t most_us)
{
    static const int ladder[] = {SIGTERM, SIGKILL};
    int status = -1;
    (void)kill(pid, SIGTERM);
    if (child_wait_gone(pid, most_us, &status)) {
        return status == 0;
    }
    child_end(pid, ladder, ARRAY_COUNT(ladder), US_PER_S);
    return false;
}
