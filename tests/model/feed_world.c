/* SPDX-License-Identifier: Apache-2.0 */
#include "feed_world.h"

#include "base/minmax.h"
#include "feed_marks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define QUEUE "q"
#define PRIORITY 4
#define PAGE_ROWS 100
#define PAGES_MAX 16 /* per full pass */
#define NEVER FEED_NEVER_US

static struct feed_pos pos_of(const struct world *w, size_t row)
{
    return (struct feed_pos){.us = w->rows[row].us, .id = (int64_t)row + 1};
}

static bool is_committed(const struct world *w, size_t row)
{
    return w->rows[row].phase == ROW_AVAILABLE || w->rows[row].phase == ROW_RUNNING;
}

static size_t hints_held(const struct world *w)
{
    size_t count = 0;
    for (size_t i = 0; i < w->rules->rows; i++) {
        count += w->rows[i].is_hinted;
    }
    return count;
}

struct feed_lane *world_lane(struct world *w, size_t row)
{
    return feed_lane_find(&w->feed, QUEUE, PRIORITY, w->rules->share_of[row]);
}

bool world_is_due(const struct world *w, size_t row)
{
    return w->rows[row].phase == ROW_AVAILABLE && w->rows[row].us <= w->pg_us;
}

bool world_is_in_use(const struct world *w, size_t row)
{
    bool is_pushed = ((w->ahead.hints | w->full.hints) >> row & 1U) != 0;
    bool is_listed = false;
    for (size_t i = 0; i < w->writers.count; i++) {
        is_listed = is_listed || w->writers.list[i].xid == row + 1;
    }
    return w->rows[row].phase != ROW_NONE || w->rows[row].is_hinted || is_pushed || is_listed;
}

/* ---- start and end ---- */

static void owed_forget(struct world *w)
{
    w->is_owed_now = false;
    for (size_t i = 0; i < w->rules->rows; i++) {
        w->rows[i].is_owed = false;
    }
}

void world_clear_memory(struct world *w)
{
    struct feed_memory_half *h = &w->feed.memory.young;
    if (h->count > 0) {
        memset(h->slots, 0, h->cap * sizeof h->slots[0]);
        h->count = 0;
    }
}

bool world_init(struct world *w, const struct world_rules *rules)
{
    const struct feed_limits limits = {.look_ahead = rules->look_ahead,
                                       .look_behind_us = LOOK_BEHIND_US,
                                       .page_rows = PAGE_ROWS,
                                       .behind_rows = PAGE_ROWS,
                                       .read_every_us = 1};
    *w = (struct world){.rules = rules, .boot_us = WORLD_NOW_US, .pg_us = WORLD_NOW_US};
    feed_init(&w->feed, &limits);
    bool is_made = feed_lane_add(&w->feed, QUEUE, PRIORITY, 0, 0, NULL) == STATUS_OK;
    int64_t rewind_us = 0;
    is_made = is_made && feed_served_add(&w->served, QUEUE, "k", NULL) == STATUS_OK;
    is_made =
        is_made && feed_writers_list(&w->writers, "1,2,3", 1, 1, &rewind_us, NULL) == STATUS_OK;
    feed_writers_reset(&w->writers);
    feed_memory_add(&w->feed.memory, 1, 1);
    world_forget(w);
    return is_made && w->feed.memory.young.slots != NULL;
}

void world_release(struct world *w)
{
    feed_release(&w->feed);
    feed_served_release(&w->served);
    feed_writers_release(&w->writers);
}

/* Does the same as feed_release() and feed_init(), but keeps the tables: there are millions of new
 * leaders. */
void world_forget(struct world *w)
{
    struct feed *f = &w->feed;
    f->lane_count = f->order_count = f->group_count = f->groups_used = f->tenants = 0;
    f->plan_from = f->count_from = f->gap_from = f->few_from = f->full_from = 0;
    world_clear_memory(w);
    w->ahead = (struct world_read){0};
    w->full = (struct world_read){0};
    w->is_reset = false;
    owed_forget(w);
}

/* A new leader does nothing before its first tick. */
void world_lead(struct world *w)
{
    world_forget(w);
    feed_writers_reset(&w->writers);
    memcpy(w->mark_us, w->saved_us, sizeof w->mark_us);
    w->believed_us = w->pg_us;
    w->cap_us = NEVER;
    world_tick(w);
}

/* ---- a tick ---- */

static void rewind_all(struct world *w, int64_t us)
{
    for (size_t i = 0; i < w->feed.order_count; i++) {
        struct feed_lane *l = &w->feed.lanes[w->feed.order[i]];
        bool has_mark = w->rules->marks != MARKS_NONE;
        feed_lane_rewind(l, has_mark ? max_i64(us, w->mark_us[l->share]) : us);
    }
}

void world_tick(struct world *w)
{
    char text[64] = "";
    size_t used = 0;
    for (size_t i = 0; i < w->rules->rows; i++) {
        if (w->rows[i].phase == ROW_OPEN) {
            used += (size_t)snprintf(text + used, sizeof text - used, "%s%zu", used > 0 ? "," : "",
                                     i + 1);
        }
    }
    int64_t rewind_us = NEVER;
    int64_t pg_us =
        w->rules->is_clock_only_rising ? max_i64(w->pg_us, w->writers.last_us) : w->pg_us;
    if (feed_writers_list(&w->writers, text, pg_us, LOOK_BEHIND_US, &rewind_us, NULL) !=
        STATUS_OK) {
        w->violation = "the list of writers was refused";
    }
    w->cap_us = NEVER;
    for (size_t i = 0; i < w->writers.count; i++) {
        w->cap_us = min_i64(w->cap_us, w->writers.list[i].since_us);
    }
    if (rewind_us != NEVER && !w->rules->is_deaf_to_writers) {
        rewind_all(w, rewind_us);
    }
    for (size_t i = 0; i < w->feed.group_count; i++) {
        struct feed_group *g = &w->feed.groups[i];
        g->is_counted = g->is_counted && g->fed_low_us == NEVER;
    }
}

void world_reset(struct world *w)
{
    w->is_reset = w->ahead.stage != READ_IDLE;
    if (!w->is_reset) {
        world_clear_memory(w);
        feed_forget_counts(&w->feed);
    }
}

/* ---- read ---- */

/* Returns the next row of a range in the order of the index; ROWS_MAX = none. */
static size_t next_row(const struct world *w, const struct feed_range *r, struct feed_pos after)
{
    size_t best = ROWS_MAX;
    int64_t to_us = min_i64(w->pg_us, r->to.us);
    for (size_t i = 0; i < w->rules->rows; i++) {
        struct feed_pos at = pos_of(w, i);
        bool is_in = is_committed(w, i) && w->rules->share_of[i] == w->feed.lanes[r->lane].share &&
                     feed_pos_before(after, at) && at.us <= to_us;
        if (is_in && (best == ROWS_MAX || feed_pos_before(at, pos_of(w, best)))) {
            best = i;
        }
    }
    return best;
}

static void take_row(struct world *w, struct world_read *l, size_t range, size_t row)
{
    bool is_available = w->rows[row].phase == ROW_AVAILABLE;
    l->rows[range]++;
    l->last[range] = pos_of(w, row);
    if (l->first_us[range] == NEVER && (is_available || w->rules->marks == MARKS_AT_ROWS)) {
        l->first_us[range] = w->rows[row].us;
    }
    if (feed_range_row(&w->feed, &l->ranges[range], pos_of(w, row), is_available)) {
        if (w->rows[row].us > w->pg_us) {
            w->violation = "a row was taken before it was due";
        }
        l->hints |= 1U << row;
        l->hint_us[row] = w->rows[row].us;
    }
}

static int64_t next_due_us(const struct world *w, int share)
{
    int64_t us = NEVER;
    for (size_t i = 0; i < w->rules->rows; i++) {
        if (is_committed(w, i) && w->rules->share_of[i] == share && w->rows[i].us > w->pg_us) {
            us = min_i64(us, w->rows[i].us);
        }
    }
    return us;
}

static void read_answer(struct world *w, struct world_read *l)
{
    l->stage = READ_ANSWERED;
    l->hints = 0;
    l->pg_us = w->pg_us;
    for (size_t i = 0; i < l->range_count; i++) {
        l->rows[i] = 0;
        l->last[i] = l->ranges[i].after;
        l->first_us[i] = NEVER;
        l->due_us[i] = next_due_us(w, w->feed.lanes[l->ranges[i].lane].share);
        size_t row = next_row(w, &l->ranges[i], l->last[i]);
        while (row != ROWS_MAX && l->rows[i] < l->ranges[i].rows_max) {
            if (__builtin_popcount(l->hints) == w->rules->push_max) {
                l->rows[i] = l->ranges[i].rows_max; /* as at the end of a page */
                break;
            }
            take_row(w, l, i, row);
            row = next_row(w, &l->ranges[i], l->last[i]);
        }
    }
}

static bool is_in_gap(const struct feed_gap *g, int share)
{
    if (strcmp(g->queue, QUEUE) != 0) {
        return false;
    }
    return g->form == FEED_GAP_PRIORITIES
               ? PRIORITY > g->lo && PRIORITY < g->hi
               : g->priority == PRIORITY && share > g->lo && share < g->hi;
}

static void find_lanes(struct world *w, const struct feed_gap *gaps, size_t count)
{
    for (size_t i = 0; i < w->rules->rows; i++) {
        int share = w->rules->share_of[i];
        bool is_found = false;
        for (size_t k = 0; k < count && is_committed(w, i); k++) {
            is_found = is_found || is_in_gap(&gaps[k], share);
        }
        if (is_found &&
            feed_lane_add(&w->feed, QUEUE, PRIORITY, share, w->boot_us, NULL) == STATUS_OK) {
            marks_begin_lane(w, world_lane(w, i));
        }
    }
}

/* ---- push ---- */

/* Pushes hints into Redis; returns how many were new. */
static size_t push(struct world *w, const struct world_read *l)
{
    size_t added = 0;
    for (size_t i = 0; i < w->rules->rows; i++) {
        if ((l->hints >> i & 1U) != 0) {
            added += !w->rows[i].is_hinted;
            w->rows[i].is_hinted = true;
            w->rows[i].is_owed = false;
        }
    }
    return added;
}

static void count_pushed(struct world *w, const struct world_read *l, size_t added, bool remembers)
{
    size_t nth = 0;
    for (size_t i = 0; i < w->rules->rows; i++) {
        if ((l->hints >> i & 1U) == 0) {
            continue;
        }
        if (remembers) {
            feed_memory_add(&w->feed.memory, (int64_t)i + 1, l->hint_us[i]);
        }
        if (remembers || added > 0) {
            feed_group_added(&w->feed, world_lane(w, i)->group, l->hint_us[i], nth < added);
        }
        nth++;
    }
}

static void read_finish(struct world *w, struct world_read *l, bool is_done)
{
    for (size_t i = 0; i < l->range_count; i++) {
        if (is_done && l->ranges[i].part == FEED_AHEAD) {
            w->feed.lanes[l->ranges[i].lane].next_due_us = l->due_us[i];
        }
        if (is_done) {
            feed_range_done(&w->feed, &l->ranges[i], l->rows[i], l->last[i], l->pg_us);
        } else {
            feed_range_failed(&w->feed, &l->ranges[i]);
        }
    }
    l->stage = READ_IDLE;
    l->range_count = 0;
    l->hints = 0;
}

/* A row that was due and without a hint during a whole full pass must not be behind the cursor
 * afterwards, because only the next full pass would find it. */
static void owed_check(struct world *w)
{
    for (size_t i = 0; i < w->rules->rows; i++) {
        const struct feed_lane *l = world_lane(w, i);
        if (w->rows[i].is_owed && (l == NULL || !feed_pos_before(l->cursor, pos_of(w, i)))) {
            w->violation = "a full pass was complete and had left out a row behind the cursor";
        }
    }
    owed_forget(w);
}

/* ---- a pass of the feed ---- */

static void count_hints(struct world *w)
{
    size_t groups[LANES_MAX];
    size_t count = feed_counts_wanted(&w->feed, groups, LANES_MAX);
    for (size_t i = 0; i < count; i++) {
        feed_group_counted(&w->feed, groups[i], (int64_t)hints_held(w), w->boot_us, 0);
    }
}

static int64_t plan_pg_us(const struct world *w)
{
    int64_t us = w->believed_us;
    for (size_t i = 0; w->rules->is_clock_only_rising && i < w->feed.lane_count; i++) {
        us = max_i64(us, w->feed.lanes[i].cursor.us);
    }
    return us;
}

/* A lane that is read gets room for at least one row; a tenant that is next may be read even if
 * the group is full. */
static void room_check(struct world *w)
{
    const struct feed_group *g = &w->feed.groups[0];
    int64_t room = w->rules->look_ahead - g->held;
    int64_t rows = 0;
    int64_t lanes = 0;
    for (size_t i = 0; i < w->ahead.range_count; i++) {
        bool is_ahead = w->ahead.ranges[i].part == FEED_AHEAD;
        rows += is_ahead ? w->ahead.ranges[i].rows_max : 0;
        lanes += is_ahead;
    }
    bool may_read = g->is_counted && (room > 0 || feed_group_has_tenants(g));
    if (rows > max_i64(room, lanes) || (lanes > 0 && !may_read)) {
        w->violation = "a pass asks for more rows than there is room for";
    }
}

static size_t plan_pass(struct world *w, enum pass_kind kind)
{
    struct feed_range *ranges = w->ahead.ranges;
    int64_t pg_us = plan_pg_us(w);
    return kind == PASS_GLANCE
               ? feed_plan_ahead(&w->feed, w->boot_us, pg_us, ranges, READ_RANGES_MAX)
               : feed_plan(&w->feed, w->boot_us, pg_us, true, ranges, READ_RANGES_MAX);
}

void world_pass(struct world *w, enum pass_kind kind)
{
    struct feed_gap gaps[8 * LANES_MAX];
    size_t gap_count = 0;
    struct world_read *l = &w->ahead;
    count_hints(w);
    l->range_count = plan_pass(w, kind);
    room_check(w);
    if (kind == PASS_EVERYWHERE) {
        gap_count = feed_gaps(&w->feed, &w->served, gaps, ARRAY_COUNT(gaps));
    }
    if (l->range_count + gap_count == 0) {
        return;
    }
    w->believed_us = w->pg_us;
    read_answer(w, l);
    find_lanes(w, gaps, gap_count);
}

static void pass_fail(struct world *w)
{
    w->is_reset = false;
    world_clear_memory(w);
    feed_forget_counts(&w->feed);
}

void world_pass_uncounted(struct world *w)
{
    pass_fail(w);
}

static void pass_over(struct world *w, bool is_done)
{
    if (!is_done) {
        pass_fail(w);
    } else if (w->is_reset) {
        world_reset(w);
    }
    if (w->is_owed_now) {
        owed_check(w);
    }
}

void world_pass_end(struct world *w, enum push_end end)
{
    size_t added = end == PUSH_LOST ? 0 : push(w, &w->ahead);
    bool is_done = end == PUSH_DONE;
    if (is_done) {
        count_pushed(w, &w->ahead, added, true);
    }
    read_finish(w, &w->ahead, is_done || w->rules->is_moved_before_push);
    pass_over(w, is_done);
}

void world_pass_cut(struct world *w)
{
    for (size_t i = 0; i < w->ahead.range_count; i++) {
        feed_range_too_long(&w->feed, &w->ahead.ranges[i], w->believed_us);
    }
    w->ahead = (struct world_read){0};
    owed_forget(w); /* it requests another full pass */
    pass_over(w, true);
}

/* ---- a full pass ---- */

static void full_room_check(struct world *w)
{
    for (size_t i = 0; i < w->full.range_count; i++) {
        const struct feed_range *r = &w->full.ranges[i];
        bool is_second = r->after.us > FEED_BEGIN_US && w->rules->marks == MARKS_NONE;
        if (is_second && w->feed.groups[0].held > 2 * w->rules->look_ahead) {
            w->violation = "a full pass goes on although there are too many hints";
        }
    }
}

static void full_plan(struct world *w)
{
    struct world_read *l = &w->full;
    l->range_count = feed_full_plan(&w->feed, PAGE_ROWS, l->ranges, READ_RANGES_MAX);
    l->stage = l->range_count > 0 ? READ_PLANNED : READ_IDLE;
    l->hints = 0;
    if (l->stage != READ_IDLE) {
        full_room_check(w);
        return;
    }
    if (w->ahead.stage == READ_IDLE) {
        owed_check(w);
    } else {
        w->is_owed_now = true; /* that read may hold rows that are older than the full pass */
    }
}

void world_full_begin(struct world *w)
{
    const struct feed_gap all = {
        .form = FEED_GAP_PRIORITIES, .queue = QUEUE, .lo = -1, .hi = JOB_PRIORITY_MAX + 1};
    find_lanes(w, &all, 1);
    feed_full_begin(&w->feed);
    for (size_t i = 0; w->rules->is_full_to_the_cursor && i < w->feed.lane_count; i++) {
        w->feed.lanes[i].is_full_open = false;
    }
    marks_begin_full(w);
    w->is_owed_now = false;
    for (size_t i = 0; i < w->rules->rows; i++) {
        w->rows[i].is_owed = world_is_due(w, i) && !w->rows[i].is_hinted;
    }
    full_plan(w);
}

void world_full_read(struct world *w)
{
    read_answer(w, &w->full);
}

static void full_finish_read(struct world *w)
{
    struct feed_pos cursors[LANES_MAX];
    for (size_t i = 0; i < w->feed.lane_count; i++) {
        cursors[i] = w->feed.lanes[i].cursor;
    }
    read_finish(w, &w->full, true);
    for (size_t i = 0; w->rules->is_rewound_by_time_only && i < w->feed.lane_count; i++) {
        struct feed_lane *l = &w->feed.lanes[i];
        l->cursor = l->cursor.us == cursors[i].us ? cursors[i] : l->cursor;
    }
}

void world_full_end(struct world *w, enum push_end end)
{
    struct world_read *l = &w->full;
    size_t added = end == PUSH_LOST ? 0 : push(w, l);
    if (end != PUSH_DONE && !w->rules->is_full_done_by_failing) {
        read_finish(w, l, false);
        owed_forget(w);
        return;
    }
    count_pushed(w, l, added, false);
    w->recovered += added;
    for (size_t i = 0; i < l->range_count; i++) {
        marks_raise(w, i);
    }
    full_finish_read(w);
    full_plan(w);
}

void world_full_finish(struct world *w)
{
    for (int i = 0; w->full.stage != READ_IDLE; i++) {
        if (i == PAGES_MAX) {
            w->violation = "a full pass has no end";
            return;
        }
        if (w->full.stage == READ_PLANNED) {
            world_full_read(w);
        }
        world_full_end(w, PUSH_DONE);
    }
}

/* ---- a row ---- */

void world_row_set(struct world *w, size_t row, enum row_phase phase, int64_t us)
{
    w->rows[row].phase = phase;
    w->rows[row].us = us;
    w->rows[row].is_owed = false;
}

void world_row_back(struct world *w, size_t row)
{
    world_row_set(w, row, ROW_AVAILABLE, w->rows[row].us);
    marks_lower(w, row);
}
