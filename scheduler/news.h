/* SPDX-License-Identifier: Apache-2.0
 *
 * Passes on what an operator changes in PostgreSQL (a pause, a resume). Schedulers are notified by
 * PostgreSQL. Workers would notice it with their next heartbeat; the leader makes them send one at
 * once, through Redis. They don't listen to PostgreSQL themselves, since each NOTIFY of an insert
 * would then wake all of their sessions. If a message is lost, the next regular heartbeat finds the
 * change. */
#ifndef CLAIMD_SCHEDULER_NEWS_H
#define CLAIMD_SCHEDULER_NEWS_H

#include "hints/hints.h"
#include "scheduler/cluster_poll.h"

#define NEWS_PAYLOAD "changed" /* payload of the NOTIFY that pause_queue() and others send */

struct news {
    struct cluster_poll *cluster_poll;
    struct hints *hints;
    /* runs after a change was passed on; changes that arrive before it ends wait for its end */
    uv_timer_t timer;
    bool is_more;
};

/* Initializes it. cluster_poll and hints are borrowed. */
void news_open(struct news *n, uv_loop_t *loop, struct cluster_poll *cluster_poll,
               struct hints *hints);
void news_close(struct news *n);

/* Polls the cluster and notifies all workers, at most once every 50 ms, since any session can send
 * a NOTIFY. */
void news_take(struct news *n);
void news_polled(struct news *n, const struct cluster_view *view);

#endif
