/* SPDX-License-Identifier: Apache-2.0
 *
 * Waiting for a lock while signals are listened to: the library's call blocks, so it has a thread
 * of its own for as long as it takes. */
#ifndef CLAIMD_REDLOCK_CMD_WAIT_FOR_LOCK_H
#define CLAIMD_REDLOCK_CMD_WAIT_FOR_LOCK_H

#include "redlock/redlock.h"

struct lock_wait {
    struct redlock *client;
    struct redlock_request request;
    int signal_fd;
    int done_fd;
    int signal_number; /* INT, TERM, HUP or QUIT that ended it; 0 = none */
    struct redlock_lock *lock;
    struct redlock_report report;
};

/* Until there is a result; a signal cancels it, the stop of job control stops us. 0, with
 * `lock` = NULL if it was not won, or a negative errno. */
int wait_for_lock(struct lock_wait *h);

#endif
