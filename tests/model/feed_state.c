/* SPDX-License-Identifier: Apache-2.0 */
#include "feed_state.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define BEGIN INT8_MIN
#define ZERO (INT8_MIN + 1)
#define NEVER INT8_MAX
#define TICKS_MAX 100
#define FAR 3 /* in ticks: nothing older than this is compared with an interval */
#define PAGE 2

/* ---- times ---- */

static tick pack_us(const struct world *w, int64_t us)
{
    if (us == FEED_NEVER_US) {
        return NEVER;
    }
    if (us == FEED_BEGIN_US || us == 0) {
        return us == 0 ? ZERO : BEGIN;
    }
    int64_t ticks = (us - w->pg_us) / TICK_US;
    assert((us - w->pg_us) % TICK_US == 0 && ticks > -TICKS_MAX && ticks < TICKS_MAX);
    return (tick)ticks;
}

static int64_t unpack_us(tick at)
{
    return at == NEVER   ? FEED_NEVER_US
           : at == BEGIN ? FEED_BEGIN_US
           : at == ZERO  ? 0
                         : WORLD_NOW_US + at * TICK_US;
}

static struct state_pos pack_pos(const struct world *w, struct feed_pos pos)
{
    return (struct state_pos){.us = pack_us(w, pos.us), .id = pos.id > 0 ? (int8_t)pos.id : 0};
}

static struct feed_pos unpack_pos(struct state_pos pos)
{
    return (struct feed_pos){.us = unpack_us(pos.us), .id = pos.id > 0 ? pos.id : INT64_MIN};
}

/* All times of a state that are relative to now. */
struct times {
    tick *at[64];
    size_t count;
};

static void times_add(struct times *t, tick *at)
{
    if (*at > -TICKS_MAX && *at < TICKS_MAX) {
        assert(t->count < ARRAY_COUNT(t->at));
        t->at[t->count++] = at;
    }
}

static void times_of_read(struct times *t, struct state_read *l)
{
    times_add(t, &l->read);
    for (size_t i = 0; i < ROWS_MAX; i++) {
        times_add(t, &l->hint_us[i]);
    }
    for (size_t i = 0; i < l->range_count; i++) {
        times_add(t, &l->ranges[i].to.us);
        times_add(t, &l->ranges[i].last.us);
        times_add(t, &l->ranges[i].first);
    }
}

static void times_of(struct times *t, struct feed_state *s)
{
    t->count = 0;
    for (size_t i = 0; i < ROWS_MAX; i++) {
        times_add(t, &s->rows[i].us);
        times_add(t, &s->rows[i].writing_since);
    }
    for (size_t i = 0; i < LANES_MAX; i++) {
        struct state_lane *l = &s->lanes[i];
        times_add(t, &l->cursor.us);
        times_add(t, &l->behind.us);
        times_add(t, &l->full.us);
        times_add(t, &l->behind_since);
        times_add(t, &l->rewind);
        times_add(t, &s->mark[i]);
        times_add(t, &s->saved[i]);
    }
    times_of_read(t, &s->ahead);
    times_of_read(t, &s->full);
    times_add(t, &s->cap);
    times_add(t, &s->believed);
    times_add(t, &s->last_list);
    times_add(t, &s->fed_low);
}

/* Keeps only the order of times that are older than FAR. */
static void cut_distances(struct feed_state *s)
{
    struct times t;
    bool is_time[TICKS_MAX + 1] = {false};
    tick to[TICKS_MAX + 1];
    tick lowest = 0;
    times_of(&t, s);
    for (size_t i = 0; i < t.count; i++) {
        tick at = *t.at[i];
        lowest = at < lowest ? at : lowest;
        is_time[at < 0 ? -at : 0] = true;
    }
    int next = -FAR - 1;
    for (int at = next; at >= lowest; at--) {
        to[-at] = (tick)next;
        next -= is_time[-at];
    }
    for (size_t i = 0; lowest < -FAR && i < t.count; i++) {
        *t.at[i] = *t.at[i] < -FAR ? to[-*t.at[i]] : *t.at[i];
    }
}

/* ---- packing ---- */

static void pack_rows(const struct world *w, struct feed_state *s)
{
    for (size_t i = 0; i < ROWS_MAX; i++) {
        const struct world_row *r = &w->rows[i];
        struct state_row *to = &s->rows[i];
        bool is_gone = r->phase == ROW_NONE;
        to->phase = (uint8_t)r->phase & 3U;
        to->us = is_gone ? 0 : pack_us(w, r->us);
        to->writing_since = NEVER;
        to->is_hinted = r->is_hinted;
        to->is_owed = r->is_owed;
        to->is_remembered = !is_gone && feed_memory_has(&w->feed.memory, (int64_t)i + 1, r->us);
    }
    for (size_t i = 0; i < w->writers.count; i++) {
        const struct feed_writer *x = &w->writers.list[i];
        s->rows[x->xid - 1].writing_since = pack_us(w, x->since_us);
    }
}

static void pack_lanes(const struct world *w, struct feed_state *s)
{
    const struct state_pos begin = {.us = BEGIN};
    bool is_full = w->full.stage != READ_IDLE;
    for (size_t i = 0; i < LANES_MAX; i++) {
        s->lanes[i] = (struct state_lane){.behind_since = ZERO, .rewind = NEVER};
        const struct feed_lane *l = &w->feed.lanes[i];
        if (i >= w->feed.lane_count || !l->is_used) {
            continue;
        }
        bool is_behind = l->is_young || l->reading > 0;
        s->lanes[i] = (struct state_lane){.share = (uint8_t)l->share & 1U,
                                          .is_used = 1,
                                          .is_full_read = !is_full || l->is_full_read,
                                          .is_full_open = is_full && l->is_full_open,
                                          .has_more = l->has_more,
                                          .is_young = l->is_young,
                                          .reading = (uint8_t)l->reading & 3U,
                                          .cursor = pack_pos(w, l->cursor),
                                          .behind = is_behind ? pack_pos(w, l->behind) : begin,
                                          .full = is_full ? pack_pos(w, l->full) : begin,
                                          .behind_since = pack_us(w, l->behind_since_us),
                                          .rewind = pack_us(w, l->rewind_us)};
    }
}

static void pack_range(const struct world *w, const struct world_read *l, size_t i,
                       struct state_range *ret)
{
    const struct feed_range *r = &l->ranges[i];
    bool is_full_pass = r->part == FEED_FULL;
    ret->lane = (uint8_t)r->lane & 1U;
    ret->part = (uint8_t)r->part & 3U;
    if (is_full_pass) {
        ret->to = pack_pos(w, r->to);
    }
    if (l->stage != READ_ANSWERED) {
        return;
    }
    ret->rows = l->rows[i] >= r->rows_max ? PAGE : l->rows[i] > 0 ? 1 : 0;
    if (is_full_pass || ret->rows == PAGE || (r->part == FEED_AHEAD && ret->rows > 0)) {
        ret->last = pack_pos(w, l->last[i]);
    }
    if (is_full_pass && w->rules->marks != MARKS_NONE) {
        ret->first = pack_us(w, l->first_us[i]);
    }
}

static void pack_read(const struct world *w, const struct world_read *l, struct state_read *ret)
{
    if (l->stage == READ_IDLE) {
        return;
    }
    ret->stage = (uint8_t)l->stage;
    ret->range_count = (uint8_t)l->range_count;
    if (l->stage == READ_ANSWERED) {
        ret->hints = (uint8_t)l->hints;
        ret->read = pack_us(w, l->pg_us);
    }
    for (size_t i = 0; i < ROWS_MAX; i++) {
        ret->hint_us[i] = ((unsigned)ret->hints >> i & 1U) != 0 ? pack_us(w, l->hint_us[i]) : 0;
    }
    for (size_t i = 0; i < l->range_count; i++) {
        pack_range(w, l, i, &ret->ranges[i]);
    }
}

static void pack_group(const struct world *w, struct feed_state *s)
{
    const struct feed_group *g = &w->feed.groups[0];
    s->fed_low = NEVER;
    if (w->feed.group_count == 0 || g->lanes == 0) {
        return;
    }
    int64_t held_max = 2 * w->rules->look_ahead + 1;
    s->held = (uint8_t)(g->held < held_max ? g->held : held_max);
    s->is_counted = g->is_counted;
    s->fed_low = pack_us(w, g->fed_low_us);
}

void state_pack(struct world *w, struct feed_state *ret)
{
    struct feed_state *s = ret;
    uint8_t clock_steps = s->clock_steps;
    memset(s, 0, sizeof *s);
    s->clock_steps = clock_steps & 7U;
    pack_rows(w, s);
    pack_lanes(w, s);
    pack_read(w, &w->ahead, &s->ahead);
    pack_read(w, &w->full, &s->full);
    pack_group(w, s);
    bool has_marks = w->rules->marks != MARKS_NONE;
    for (size_t i = 0; i < LANES_MAX; i++) {
        s->mark[i] = has_marks ? pack_us(w, w->mark_us[i]) : 0;
        s->saved[i] = has_marks ? pack_us(w, w->saved_us[i]) : 0;
    }
    s->cap = has_marks ? pack_us(w, w->cap_us) : 0;
    s->believed = pack_us(w, w->believed_us);
    s->last_list = pack_us(w, w->writers.last_us);
    s->lane_count = (uint8_t)w->feed.lane_count & 3U;
    s->plan_from = w->feed.order_count > 1 ? (uint8_t)w->feed.plan_from & 3U : 0;
    s->full_from = s->full.stage != READ_IDLE ? (uint8_t)w->feed.full_from & 3U : 0;
    s->is_reset = w->is_reset;
    s->is_owed_now = w->is_owed_now;
    cut_distances(s);
}

/* ---- unpacking ---- */

static void unpack_rows(const struct feed_state *s, struct world *w)
{
    w->writers.count = 0;
    for (size_t i = 0; i < ROWS_MAX; i++) {
        const struct state_row *r = &s->rows[i];
        w->rows[i] = (struct world_row){.phase = (enum row_phase)r->phase,
                                        .us = unpack_us(r->us),
                                        .is_hinted = r->is_hinted,
                                        .is_owed = r->is_owed};
        if (r->is_remembered) {
            feed_memory_add(&w->feed.memory, (int64_t)i + 1, w->rows[i].us);
        }
        if (r->writing_since != NEVER) {
            w->writers.list[w->writers.count++] =
                (struct feed_writer){.xid = i + 1, .since_us = unpack_us(r->writing_since)};
        }
    }
}

static void unpack_lanes(const struct feed_state *s, struct world *w)
{
    struct feed *f = &w->feed;
    f->lane_count = s->lane_count;
    f->order_count = 0;
    f->tenants = 0;
    for (size_t i = 0; i < f->lane_count; i++) {
        const struct state_lane *l = &s->lanes[i];
        f->lanes[i] = (struct feed_lane){.queue = "q",
                                         .priority = 4,
                                         .share = l->share,
                                         .cursor = unpack_pos(l->cursor),
                                         .behind = unpack_pos(l->behind),
                                         .behind_since_us = unpack_us(l->behind_since),
                                         .rewind_us = unpack_us(l->rewind),
                                         .high = FEED_BEGIN,
                                         .next_due_us = FEED_NEVER_US,
                                         .full = unpack_pos(l->full),
                                         .is_full_read = l->is_full_read,
                                         .is_full_open = l->is_full_open,
                                         .has_more = l->has_more,
                                         .is_young = l->is_young,
                                         .is_served = l->is_used,
                                         .is_used = l->is_used,
                                         .reading = l->reading};
        if (l->is_used) {
            f->order[f->order_count++] = i;
            f->tenants += l->share;
        }
    }
    if (f->order_count == 2 && f->lanes[f->order[0]].share > f->lanes[f->order[1]].share) {
        f->order[0] = 1;
        f->order[1] = 0;
    }
}

static void unpack_read(const struct state_read *from, const struct world *w, struct world_read *l)
{
    l->stage = (enum read_stage)from->stage;
    l->range_count = from->range_count;
    l->hints = from->hints;
    l->pg_us = unpack_us(from->read);
    for (size_t i = 0; i < ROWS_MAX; i++) {
        l->hint_us[i] = unpack_us(from->hint_us[i]);
    }
    for (size_t i = 0; i < from->range_count; i++) {
        const struct state_range *r = &from->ranges[i];
        int rows_max = from->stage == READ_PLANNED ? ROWS_MAX + 1 : PAGE;
        l->ranges[i] = (struct feed_range){.lane = r->lane,
                                           .part = (enum feed_part)r->part,
                                           .after = w->feed.lanes[r->lane].full,
                                           .to = unpack_pos(r->to),
                                           .rows_max = rows_max};
        l->rows[i] = r->rows;
        l->last[i] = unpack_pos(r->last);
        l->first_us[i] = unpack_us(r->first);
        l->due_us[i] = FEED_NEVER_US;
    }
}

void state_unpack(const struct feed_state *s, struct world *w)
{
    world_clear_memory(w);
    w->boot_us = w->pg_us = WORLD_NOW_US;
    w->violation = NULL;
    unpack_rows(s, w);
    unpack_lanes(s, w);
    unpack_read(&s->ahead, w, &w->ahead);
    unpack_read(&s->full, w, &w->full);
    struct feed *f = &w->feed;
    f->group_count = f->lane_count > 0 ? 1 : 0;
    f->groups_used = f->order_count > 0 ? 1 : 0;
    f->groups[0] = (struct feed_group){.queue = "q",
                                       .priority = 4,
                                       .held = s->held,
                                       .is_counted = s->is_counted,
                                       .fed_low_us = unpack_us(s->fed_low),
                                       .lanes = f->order_count,
                                       .tenants = f->tenants};
    f->plan_from = s->plan_from;
    f->full_from = s->full_from;
    f->count_from = f->gap_from = f->few_from = 0;
    f->count_call = 0;
    for (size_t i = 0; i < LANES_MAX; i++) {
        w->mark_us[i] = unpack_us(s->mark[i]);
        w->saved_us[i] = unpack_us(s->saved[i]);
    }
    w->cap_us = unpack_us(s->cap);
    w->believed_us = unpack_us(s->believed);
    w->writers.last_us = unpack_us(s->last_list);
    w->is_reset = s->is_reset;
    w->is_owed_now = s->is_owed_now;
}
