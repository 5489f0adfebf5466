/* SPDX-License-Identifier: Apache-2.0
 *
 * The nodes on a loop of our own, for verbs that inspect and measure. Unlike redlock_open() it also
 * opens if nodes are refused, to be able to show why. */
#ifndef CLAIMD_REDLOCK_CMD_SESSION_H
#define CLAIMD_REDLOCK_CMD_SESSION_H

#include "redlock/cmd/cli.h"
#include "redlock/redlock_async.h"

#include <uv.h>

struct session {
    uv_loop_t loop;
    uv_timer_t tick; /* makes the loop turn while nothing else happens */
    struct redlock_async *lock;
    size_t node_count;
    int64_t node_timeout_ms;
    bool is_heard[REDLOCK_NODES_MAX];
    bool is_closed;
};

/* Waits until each node has answered or failed once, for at most two seconds. Returns 0, or an exit
 * code after writing the reason. Ignores SIGPIPE. */
int session_open(struct session *s, const struct cli *cli);
void session_close(struct session *s); /* accepts a zeroed one */

/* Runs the loop until *is_done. */
void session_run_until(struct session *s, const bool *is_done);

#endif
