/* SPDX-License-Identifier: Apache-2.0 */
#include "model/feed_pace.h"

#include "base/clock.h"

#define STREAM_DELAY_US (2 * US_PER_MS)
#define FED_US (10 * US_PER_MS)
#define FULL_US_MIN (5 * US_PER_MS)
#define FULL_US_MAX (250 * US_PER_MS)
#define STILL_US (100 * US_PER_MS)

/* Producers whose trigger read the flag before it was set commit without a NOTIFY; these passes
 * find their rows. */
static const int64_t hungry_us[] = {2 * US_PER_MS, 10 * US_PER_MS, 50 * US_PER_MS, 250 * US_PER_MS};

static int64_t hungry_pass_us(struct feed_pace *p, int64_t every_us)
{
    int at = p->passes;
    if (at < (int)(sizeof hungry_us / sizeof hungry_us[0])) {
        p->passes++;
        return hungry_us[at] < every_us ? hungry_us[at] : every_us;
    }
    return every_us;
}

/* Workers take hints in batches, so a pass or two without fewer hints means nothing; and the job of
 * a tenant without a hint waits for the next pass (feat.B28). */
static void pace_full(struct feed_pace *p, const struct feed_pass *pass)
{
    if (!pass->is_full || pass->progress) {
        p->moved_us = pass->now_us;
    }
    bool is_still = pass->now_us - p->moved_us >= STILL_US;
    int64_t next_us = is_still && p->full_us > 0 ? 2 * p->full_us : FULL_US_MIN;
    p->full_us = next_us < FULL_US_MAX ? next_us : FULL_US_MAX;
}

void feed_pace_passed(struct feed_pace *p, const struct feed_pass *pass, int64_t every_us)
{
    p->passed_us = pass->begun_us;
    if (pass->rows >= FEED_FED_ROWS) {
        p->is_hungry = false;
    } else if (!p->is_hungry && pass->rows == 0 && !pass->has_more && !pass->is_full) {
        p->is_hungry = true;
        p->passes = 0;
    }
    pace_full(p, pass);
    if (pass->has_more) {
        p->next_us = pass->now_us;
    } else if (pass->is_full) {
        p->next_us = pass->now_us + p->full_us;
    } else if (p->is_hungry) {
        p->next_us = pass->now_us + hungry_pass_us(p, every_us);
    } else {
        p->next_us = pass->now_us + FED_US;
    }
}

int64_t feed_pace_woken_us(const struct feed_pace *p, int64_t now_us)
{
    int64_t at = p->passed_us + STREAM_DELAY_US;
    return at > now_us ? at : now_us;
}
