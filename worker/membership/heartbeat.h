/* SPDX-License-Identifier: Apache-2.0
 *
 * The heartbeat: the worker updates its row, which shows the schedulers that it is alive. */
#ifndef CLAIMD_WORKER_MEMBERSHIP_HEARTBEAT_H
#define CLAIMD_WORKER_MEMBERSHIP_HEARTBEAT_H

#include "base/err.h"
#include "base/log.h"

#include <uv.h>

struct membership;

struct heartbeat {
    uv_timer_t timer; /* sends the next one; active while the worker has a row */
    bool is_in_flight;
    bool is_wanted;           /* send another one when the one in flight is answered */
    bool is_news;             /* the reply to the next one may bring news */
    int64_t sent_us;          /* when the last one was sent */
    bool is_telling_lost_pop; /* the one in flight reports it */
    struct complaint complaint;
};

enum status heartbeat_open(struct membership *m, struct err *err) MUST_USE;
void heartbeat_close(struct membership *m);

void heartbeat_start(struct membership *m);
void heartbeat_stop(struct membership *m);
void heartbeat_now(struct membership *m); /* does nothing while one is in flight */
/* Sends a heartbeat at once. One in flight may have read the rows before a change, so another one
 * follows it. */
void heartbeat_request(struct membership *m);
/* Sends a heartbeat within 50 ms, since an operator may have changed something; its reply says
 * what. */
void heartbeat_soon(struct membership *m);

#endif
