/* SPDX-License-Identifier: Apache-2.0
 *
 * The states of a feeder, and what is requested of it. Pure. */
#ifndef CLAIMD_SCHEDULER_FEEDER_STATE_H
#define CLAIMD_SCHEDULER_FEEDER_STATE_H

#include <stdbool.h>

enum feeder_state {
    FEEDER_NONE, /* only in the table: no such transition */
    FEEDER_OFF,
    FEEDER_IDLE, /* leads, between two passes */
    FEEDER_COUNTING,
    FEEDER_GLANCING, /* reading only ahead of the cursors */
    FEEDER_READING,
    FEEDER_STOPPING /* no longer leading; the pass in flight has yet to end */
};

enum feeder_event {
    ON_START,
    ON_PASS,
    ON_GLANCE,
    ON_WHOLE,
    ON_PASS_END, /* also when a pass could not even begin */
    ON_STOP,
    FEEDER_EVENT_COUNT
};

/* Requests that are not fulfilled yet, as bits. */
enum feeder_wish {
    WANT_ROWS = 1,  /* a NOTIFY announced some */
    WANT_LANES = 2, /* a NOTIFY arrived since unknown lanes were last searched for */
    WANT_RESET = 4, /* once the pass in progress has ended */
    WANT_FORGET = 8 /* forget lanes without rows, once no request is in flight */
};

struct feeder_way {
    enum feeder_state state; /* initially FEEDER_OFF */
    unsigned wanted;         /* bits of enum feeder_wish */
};

/* Makes the transition for the event. The table must name it for the present state (asserted). */
void feeder_step(struct feeder_way *way, enum feeder_event event);
bool feeder_leads(const struct feeder_way *way);
bool feeder_is_under_way(const struct feeder_way *way); /* true while a pass is in progress */

bool feeder_wants(const struct feeder_way *way, enum feeder_wish wish);
void feeder_want(struct feeder_way *way, enum feeder_wish wish);
void feeder_has_done(struct feeder_way *way, enum feeder_wish wish);

#endif
