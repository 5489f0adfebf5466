/* SPDX-License-Identifier: Apache-2.0 */
#include "model/sweep_clock.h"

#include "base/clock.h"
#include "base/minmax.h"

#define DAY_US (86400 * US_PER_S)
#define HOLD_US DAY_US
#define JUMP_US DAY_US /* further than the leader's own clock */
/* without an own earlier check: there may have been no leader for this long */
#define ABSENCE_US (7 * DAY_US)

int64_t sweep_clock_look(struct sweep_clock *c, int64_t pg_us, int64_t passed_us)
{
    int64_t advanced_us = pg_us - c->at_us;
    int64_t jump_us = passed_us == SWEEP_NEVER_US ? advanced_us : advanced_us - passed_us;
    int64_t most_us = passed_us == SWEEP_NEVER_US ? ABSENCE_US : JUMP_US;
    c->at_us = pg_us;
    if (jump_us > most_us) {
        c->hold_us = HOLD_US;
        return jump_us;
    }
    c->hold_us = max_i64(c->hold_us - max_i64(passed_us, 0), 0);
    return 0;
}
