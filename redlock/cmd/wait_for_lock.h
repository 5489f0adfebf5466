/* SPDX-License-Identifier: Apache-2.0
 *
 * Waits for a lock and handles signals meanwhile. */
#ifndef CLAIMD_REDLOCK_CMD_WAIT_FOR_LOCK_H
#define CLAIMD_REDLOCK_CMD_WAIT_FOR_LOCK_H

#include "redlock/redlock.h"

struct lock_wait {
    struct redlock_client *client;
    struct redlock_request request;
    int signal_fd;
    int done_fd;
    int signal_number; /* INT, TERM, HUP or QUIT that ended it; 0 = none */
    struct redlock_lock *lock;
    struct redlock_report report;
};

/* Blocks until there is a result. A signal cancels the wait; a stop by job control stops us. */
enum redlock_result wait_for_lock(struct lock_wait *h);

#endif
