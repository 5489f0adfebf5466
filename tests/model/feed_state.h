/* SPDX-License-Identifier: Apache-2.0
 *
 * One state of the feed's model, packed: times are ticks relative to PostgreSQL's now. */
#ifndef CLAIMD_TESTS_MODEL_FEED_STATE_H
#define CLAIMD_TESTS_MODEL_FEED_STATE_H

#include "feed_world.h"

typedef int8_t tick; /* −128 and up: before every row; 0 since 1970; ticks; never */

struct state_pos {
    tick us;
    int8_t id;
};

struct state_row {
    tick us;
    tick writing_since; /* as the leader knows it; never = unknown */
    uint8_t phase : 2;
    uint8_t is_hinted : 1;
    uint8_t is_owed : 1;
    uint8_t is_remembered : 1;
};

struct state_lane {
    uint8_t share : 1;
    uint8_t is_used : 1;
    uint8_t is_full_read : 1;
    uint8_t is_full_open : 1;
    uint8_t has_more : 1;
    uint8_t is_young : 1;
    uint8_t reading : 2;
    struct state_pos cursor;
    struct state_pos behind;
    struct state_pos full;
    tick behind_since;
    tick rewind;
};

struct state_range {
    uint8_t lane : 1;
    uint8_t part : 2;
    uint8_t rows : 2; /* none, some, or all rows of a page */
    struct state_pos to;
    struct state_pos last;
    tick first;
};

struct state_read {
    uint8_t stage;
    uint8_t range_count;
    uint8_t hints;
    tick read;
    tick hint_us[ROWS_MAX];
    struct state_range ranges[READ_RANGES_MAX];
};

struct feed_state {
    struct state_row rows[ROWS_MAX];
    struct state_lane lanes[LANES_MAX];
    struct state_read ahead;
    struct state_read full;
    tick mark[LANES_MAX];
    tick saved[LANES_MAX];
    tick cap;
    tick believed;
    tick last_list;
    tick fed_low;
    uint8_t held;
    uint8_t lane_count : 2;
    uint8_t plan_from : 2;
    uint8_t full_from : 2;
    uint8_t is_counted : 1;
    uint8_t is_reset : 1;
    uint8_t is_owed_now : 1;
    uint8_t clock_steps : 3;
};

/* Unused parts are zeroed, and intervals longer than any comparison are cut, so that states differ
 * only if they behave differently, and their number is finite. */
void state_pack(struct world *w, struct feed_state *ret);
void state_unpack(const struct feed_state *s, struct world *w);

#endif
