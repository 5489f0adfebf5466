/* SPDX-License-Identifier: Apache-2.0 */
#include "feed_marks.h"

#include "base/minmax.h"

void marks_begin_lane(struct world *w, struct feed_lane *l)
{
    if (w->rules->marks != MARKS_NONE) {
        w->mark_us[l->share] = w->saved_us[l->share];
        l->cursor = (struct feed_pos){.us = w->saved_us[l->share], .id = INT64_MIN};
    }
}

void marks_begin_full(struct world *w)
{
    for (size_t i = 0; w->rules->marks != MARKS_NONE && i < w->feed.lane_count; i++) {
        struct feed_lane *l = &w->feed.lanes[i];
        l->full = (struct feed_pos){.us = w->mark_us[l->share], .id = INT64_MIN};
    }
}

static int64_t cap_us_of(const struct world *w)
{
    return w->rules->is_cap_stale ? w->cap_us : min_i64(w->cap_us, w->writers.last_us - TICK_US);
}

void marks_raise(struct world *w, size_t range)
{
    const struct feed_range *r = &w->full.ranges[range];
    const struct feed_lane *l = &w->feed.lanes[r->lane];
    int64_t *mark_us = &w->mark_us[l->share];
    if (w->rules->marks == MARKS_NONE || r->after.us != *mark_us) {
        return;
    }
    int64_t us = min_i64(w->full.first_us[range], min_i64(r->to.us, l->rewind_us));
    us = min_i64(us, min_i64(w->full.pg_us - LOOK_BEHIND_US, cap_us_of(w)));
    *mark_us = max_i64(*mark_us, us);
    if (!w->rules->is_mark_saved_later) {
        w->saved_us[l->share] = *mark_us;
    }
}

void marks_lower(struct world *w, size_t row)
{
    uint8_t share = w->rules->share_of[row];
    if (w->rules->marks != MARKS_NONE && w->saved_us[share] > w->rows[row].us) {
        w->saved_us[share] = w->rows[row].us;
        w->mark_us[share] = min_i64(w->mark_us[share], w->rows[row].us);
        struct feed_lane *l = world_lane(w, row);
        if (l != NULL) {
            feed_lane_rewind(l, w->rows[row].us);
        }
    }
}
