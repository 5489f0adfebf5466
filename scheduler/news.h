/* SPDX-License-Identifier: Apache-2.0
 *
 * What an operator changes in PostgreSQL (a pause, a resume) reaches schedulers by a NOTIFY.
 * Workers would hear of it with their next beat; the leader makes them beat at once, through Redis:
 * if each worker listened to PostgreSQL, each NOTIFY of an insert would wake all of their sessions
 * there. A beat in time finds what is lost here. */
#ifndef CLAIMD_SCHEDULER_NEWS_H
#define CLAIMD_SCHEDULER_NEWS_H

#include "hints/hints.h"
#include "scheduler/roll_call.h"

#define NEWS_PAYLOAD "changed" /* of the NOTIFY, by pause_queue() and others */

struct news {
    struct roll_call *roll_call;
    struct hints *hints;
    uv_timer_t timer; /* runs after news; news that come before it ends wait for its end */
    bool is_more;
};

/* Both are borrowed. */
void news_open(struct news *n, uv_loop_t *loop, struct roll_call *roll_call, struct hints *hints);
void news_close(struct news *n);

/* Calls the roll and tells all workers; not more often than every 50 ms, since anybody can send a
 * NOTIFY. */
void news_take(struct news *n);
void news_roll(struct news *n, const struct roll *roll);

#endif
