/* SPDX-License-Identifier: Apache-2.0
 *
 * The servers in a daemon's `ready` line: what it is connected to, and their versions. */
#ifndef CLAIMD_DAEMON_READY_H
#define CLAIMD_DAEMON_READY_H

#include "config/config.h"
#include "redlock/redlock_async.h"

struct ready_servers {
    char postgres[24];        /* "15.8" */
    char redis[32];           /* "4 of 5 voting" */
    char redis_versions[128]; /* "redis 7.0.15, valkey 8.1.1", of the nodes that answered */
};

/* True once every lock node has answered or failed, so that the line is accurate, but at the latest
 * two node timeouts after `since_us`: a node that is down must not keep a daemon from being
 * ready. */
bool ready_is_time(const struct config *c, const struct redlock_async *lock, int64_t since_us);

/* Fills *ret. `pg_version` is numeric, such as 150008. */
void ready_describe(const struct config *c, const struct redlock_async *lock, int pg_version,
                    struct ready_servers *ret);

#endif
