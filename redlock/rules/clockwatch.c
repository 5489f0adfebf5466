/* SPDX-License-Identifier: Apache-2.0 */
#include "redlock/rules/clockwatch.h"

#include <stddef.h>

#define PPM 1000000

static struct clockwatch known_by(const struct clock_sample *s)
{
    return (struct clockwatch){.low_us = s->server_us - s->received_us,
                               .high_us = s->server_us - s->sent_us,
                               .at_us = s->sent_us,
                               .is_set = true};
}

static int64_t most(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

int64_t clockwatch_take(struct clockwatch *w, const struct clock_sample *s, int64_t tolerance_us,
                        int drift_ppm)
{
    struct clockwatch now = known_by(s);
    if (!w->is_set) {
        *w = now;
        return 0;
    }
    int64_t apart_us = s->received_us - w->at_us;
    int64_t drift_us = apart_us / PPM * drift_ppm + apart_us % PPM * drift_ppm / PPM;
    int64_t low_us = w->low_us - drift_us;
    int64_t high_us = w->high_us + drift_us;
    int64_t gap_us = now.low_us > high_us ? now.low_us - high_us : least(now.high_us - low_us, 0);
    if (gap_us == 0) { /* both hold, so the offset is where they overlap */
        now.low_us = most(now.low_us, low_us);
        now.high_us = least(now.high_us, high_us);
        *w = now;
        return 0;
    }
    if (gap_us <= tolerance_us && -gap_us <= tolerance_us) {
        *w = now;
        return 0;
    }
    bool is_second = gap_us > 0 ? w->last_gap_us > 0 : w->last_gap_us < 0;
    if (is_second) {
        *w = now;
        return gap_us;
    }
    w->last_gap_us = gap_us;
    return 0;
}
