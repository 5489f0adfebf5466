/* SPDX-License-Identifier: Apache-2.0
 *
 * What follows from the events of one turn of the loop. A part that has changed something does not
 * call the parts that depend on it: it marks what is due, and this is done once, after the loop has
 * polled, however many events have asked for it. What timers mark is done before the next poll. */
#ifndef CLAIMD_WORKER_TURN_H
#define CLAIMD_WORKER_TURN_H

#include "base/err.h"

#include <uv.h>

struct worker;

struct turn {
    uv_prepare_t before_poll;
    uv_check_t after_poll;
    uv_timer_t tick; /* for what depends on time, such as deadlines */
    uv_idle_t again; /* active while something became due after the last chance to do it */
};

enum status turn_open(struct worker *w, struct err *err) MUST_USE;
void turn_close(struct worker *w);

#endif
