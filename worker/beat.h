/* SPDX-License-Identifier: Apache-2.0
 *
 * The heartbeat of the worker's row: how the others know that it lives. */
#ifndef CLAIMD_WORKER_BEAT_H
#define CLAIMD_WORKER_BEAT_H

#include "base/err.h"
#include "base/log.h"

#include <uv.h>

struct worker;

struct beat {
    uv_timer_t timer; /* the next one; runs while there is a row */
    bool is_in_flight;
    bool is_wanted;           /* another one, when the one in flight is answered */
    bool is_news;             /* there is something to learn by the next one */
    int64_t sent_us;          /* of the one in flight */
    int64_t confirmed_us;     /* when the last confirmed one was sent; 0 = none */
    bool has_lost_pop;        /* told to the scheduler with the next one */
    bool is_telling_lost_pop; /* by the one in flight */
    struct complaint complaint;
};

enum status beat_open(struct worker *w, struct err *err) MUST_USE;
void beat_close(struct worker *w);

void beat_start(struct worker *w);
void beat_stop(struct worker *w);
void beat_now(struct worker *w); /* unless one is under way */
/* An operator may have changed something: a beat within 50 ms, whose answer says what. */
void beat_soon(struct worker *w);

#endif
