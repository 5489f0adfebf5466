/* SPDX-License-Identifier: Apache-2.0
 *
 * Guards a command: a small process that kills the command's group when the lease ends or when
 * `redlock exec` is gone, because `redlock exec` may itself be stopped or killed at that moment. */
#ifndef CLAIMD_REDLOCK_CMD_GUARD_H
#define CLAIMD_REDLOCK_CMD_GUARD_H

#include <stdint.h>
#include <sys/types.h>

struct guard_orders;

struct guard {
    struct guard_orders *orders; /* shared memory */
    int pipe_fd;                 /* its other end becomes readable when we die */
    pid_t pid;
};

/* Starts the guard; call it before there are threads and connections. The guard reads its orders
 * once per `period_us`. Returns 0 or a negative errno. */
int guard_start(struct guard *g, int64_t period_us);

/* Orders the guard to kill `group` at `at_us` (CLOCK_BOOTTIME; INT64_MAX = never) or when we die;
 * group 0 = none. */
void guard_tell(struct guard *g, pid_t group, int64_t at_us);

/* Ends the guard without any action. Accepts a guard that was not started. */
void guard_dismiss(struct guard *g);

#endif
