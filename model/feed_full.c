/* SPDX-License-Identifier: Apache-2.0 */
#include "model/feed_full.h"

#include "base/bug.h"
#include "base/clock.h"

#define ROWS_MIN 16    /* per lane and page */
#define REST_FACTOR 20 /* times the duration of a full pass: 5 % of the time */
#define SOON_FACTOR 2
#define SOON_US (10 * US_PER_MS)
#define RETRY_FIRST_US (100 * US_PER_MS)
#define RETRY_MAX_US (5 * US_PER_S)

void feed_full_begin(struct feed *f)
{
    bool is_remembering = SEEDED_BUG(15);
    is_remembering |= SEEDED_BUG(18);
    is_remembering |= SEEDED_BUG(19);
    for (size_t i = 0; i < f->lane_count; i++) {
        if (!is_remembering) {
            f->lanes[i].full = FEED_BEGIN;
        }
        f->lanes[i].is_full_read = false;
        f->lanes[i].full_rank = 0; /* a full pass relies on nothing that is remembered */
        f->lanes[i].is_full_open = f->lanes[i].reading > 0;
        f->lanes[i].lap.wants_deep = true;
    }
    f->full_from = 0;
}

/* Returns up to where to read: the present cursor, since the part that it has passed meanwhile may
 * contain a late row, too. If a read was in flight when the full pass began, it may have read
 * before the newest rows that this full pass must find were visible, and will move the cursor past
 * them: until it ends, read up to PostgreSQL's now. */
static struct feed_pos full_pass_to(const struct feed_lane *l)
{
    return l->is_full_open ? (struct feed_pos){.us = FEED_NEVER_US} : l->cursor;
}

static bool wants_full_pass(const struct feed_lane *l)
{
    int64_t to_us = full_pass_to(l).us;
    return l->is_used && l->is_served && !l->is_lap && !l->is_full_read && l->full.us <= to_us &&
           to_us > FEED_BEGIN_US;
}

size_t feed_full_plan(struct feed *f, int rows, struct feed_range *ret_ranges, size_t max)
{
    size_t count = 0;
    for (; f->full_from < f->lane_count && count < max; f->full_from++) {
        const struct feed_lane *l = &f->lanes[f->full_from];
        if (wants_full_pass(l)) {
            ret_ranges[count++] = (struct feed_range){
                .lane = f->full_from, .part = FEED_FULL, .after = l->full, .to = full_pass_to(l)};
            if ((size_t)rows / count <= ROWS_MIN) {
                f->full_from++;
                break;
            }
        }
    }
    for (size_t i = 0; i < count; i++) {
        int share = rows / (int)count;
        ret_ranges[i].rows_max = share > ROWS_MIN ? share : ROWS_MIN;
    }
    return count;
}

/* ---- timing ---- */

void feed_full_want(struct feed_full_pace *p, int64_t now_us)
{
    p->wanted_us = p->wanted_us == 0 ? now_us : p->wanted_us;
}

void feed_full_begun(struct feed_full_pace *p, int64_t now_us)
{
    p->begun_us = now_us;
    p->wanted_us = 0;
}

static int64_t retry_us(int failures, int64_t took_us)
{
    int64_t us = RETRY_FIRST_US;
    for (int i = 1; i < failures && us < RETRY_MAX_US; i++) {
        us *= 2;
    }
    us = us < RETRY_MAX_US ? us : RETRY_MAX_US;
    return us > SOON_FACTOR * took_us ? us : SOON_FACTOR * took_us;
}

void feed_full_ended(struct feed_full_pace *p, int64_t now_us, bool is_complete)
{
    if (is_complete) {
        p->failures = 0;
        p->again_us = 0;
        p->ended_us = now_us;
        p->took_us = now_us - p->begun_us;
    } else {
        p->failures++;
        p->again_us = now_us + retry_us(p->failures, now_us - p->begun_us);
    }
}

int64_t feed_full_distance_us(int64_t every_us, int64_t took_us)
{
    return REST_FACTOR * took_us > every_us ? REST_FACTOR * took_us : every_us;
}

int64_t feed_full_next_us(const struct feed_full_pace *p)
{
    if (p->failures > 0) {
        return p->again_us;
    }
    int64_t next_us = p->ended_us + feed_full_distance_us(p->every_us, p->took_us);
    if (p->wanted_us > 0) {
        int64_t soon_us = p->ended_us + SOON_FACTOR * p->took_us;
        soon_us = soon_us > p->wanted_us + SOON_US ? soon_us : p->wanted_us + SOON_US;
        next_us = soon_us < next_us ? soon_us : next_us;
    }
    return next_us;
}
