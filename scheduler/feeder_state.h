/* SPDX-License-Identifier: Apache-2.0
 *
 * What a feeder does, and what is left for it to do. Pure. */
#ifndef CLAIMD_SCHEDULER_FEEDER_STATE_H
#define CLAIMD_SCHEDULER_FEEDER_STATE_H

#include <stdbool.h>

enum feeder_state {
    FEEDER_NONE, /* of the table alone */
    FEEDER_OFF,
    FEEDER_IDLE, /* leads, between two passes */
    FEEDER_COUNTING,
    FEEDER_GLANCING, /* reads only what lies ahead of the cursors */
    FEEDER_READING,
    FEEDER_STOPPING /* leads no more; what is under way has yet to end */
};

enum feeder_event {
    ON_START,
    ON_PASS,
    ON_GLANCE,
    ON_WHOLE,
    ON_PASS_END, /* or it could not even begin */
    ON_STOP,
    FEEDER_EVENT_COUNT
};

/* What was asked for and is not done yet, a set of bits. */
enum feeder_wish {
    WANT_ROWS = 1,  /* somebody announced some */
    WANT_LANES = 2, /* a NOTIFY arrived since unknown lanes were last searched for */
    WANT_RESET = 4, /* once the pass under way has ended */
    WANT_FORGET = 8 /* lanes without rows, once nothing is under way */
};

struct feeder_way {
    enum feeder_state state; /* FEEDER_OFF at first */
    unsigned wanted;         /* enum feeder_wish */
};

/* The event must be named in the table for its state: nothing else can happen (asserted). */
void feeder_step(struct feeder_way *way, enum feeder_event event);
bool feeder_leads(const struct feeder_way *way);
bool feeder_is_under_way(const struct feeder_way *way); /* a pass */

bool feeder_wants(const struct feeder_way *way, enum feeder_wish wish);
void feeder_want(struct feeder_way *way, enum feeder_wish wish);
void feeder_has_done(struct feeder_way *way, enum feeder_wish wish);

#endif
