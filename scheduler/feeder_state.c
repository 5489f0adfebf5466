/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/feeder_state.h"

#include <assert.h>

static const struct {
    bool leads;
    bool is_under_way;
    enum feeder_state after[FEEDER_EVENT_COUNT];
} states[] = {
    [FEEDER_OFF] = {.after = {[ON_START] = FEEDER_IDLE, [ON_STOP] = FEEDER_OFF}},
    [FEEDER_IDLE] =
        {.leads = true,
         .after =
             {[ON_PASS] = FEEDER_COUNTING, [ON_PASS_END] = FEEDER_IDLE, [ON_STOP] = FEEDER_OFF}},
    [FEEDER_COUNTING] = {.leads = true,
                         .is_under_way = true,
                         .after = {[ON_GLANCE] = FEEDER_GLANCING,
                                   [ON_WHOLE] = FEEDER_READING,
                                   [ON_PASS_END] = FEEDER_IDLE,
                                   [ON_STOP] = FEEDER_STOPPING}},
    [FEEDER_GLANCING] = {.leads = true,
                         .is_under_way = true,
                         .after = {[ON_PASS_END] = FEEDER_IDLE, [ON_STOP] = FEEDER_STOPPING}},
    [FEEDER_READING] = {.leads = true,
                        .is_under_way = true,
                        .after = {[ON_PASS_END] = FEEDER_IDLE, [ON_STOP] = FEEDER_STOPPING}},
    [FEEDER_STOPPING] = {.is_under_way = true,
                         .after = {[ON_PASS_END] = FEEDER_OFF, [ON_STOP] = FEEDER_STOPPING}},
};

void feeder_step(struct feeder_way *way, enum feeder_event event)
{
    enum feeder_state next = states[way->state].after[event];
    assert(next != FEEDER_NONE);
    way->state = next;
}

bool feeder_leads(const struct feeder_way *way)
{
    return states[way->state].leads;
}

bool feeder_is_under_way(const struct feeder_way *way)
{
    return states[way->state].is_under_way;
}

bool feeder_wants(const struct feeder_way *way, enum feeder_wish wish)
{
    return (way->wanted & (unsigned)wish) != 0;
}

void feeder_want(struct feeder_way *way, enum feeder_wish wish)
{
    way->wanted |= (unsigned)wish;
}

void feeder_has_done(struct feeder_way *way, enum feeder_wish wish)
{
    way->wanted &= ~(unsigned)wish;
}
