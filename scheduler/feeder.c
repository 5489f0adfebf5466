/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/feeder.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/probe.h"
#include "model/feed_pace.h"
#include "model/hint.h"
#include "store/feed_store.h"

#define RETRY_US (100 * US_PER_MS)
#define QUERY_CANCELED "57014"
#define COUNTS_MAX 1024 /* groups counted before one pass */
#define GAPS_ALWAYS_LANES 16
#define SAVE_EVERY 5 /* ticks */
#define DRY_EVERY 2  /* ticks */

enum stage { STAGE_IDLE, STAGE_COUNTING, STAGE_READING, STAGE_PUSHING };

/* What came of a range, kept until its rows are pushed. */
struct range_end {
    int rows;
    struct feed_pos last;
    int64_t next_due_us;
};

struct count {
    struct feeder *feeder;
    size_t group;
    int64_t sum;
    int pending;
};

struct feeder {
    struct feeder_options options;
    struct feed feed;
    struct feed_pace pace;
    struct feed_served served;
    struct feeder_counters counters;
    uv_timer_t timer;

    enum stage stage;
    bool is_started;
    bool is_woken;
    bool is_reset; /* during the pass under way */
    bool is_count_failed;
    bool progress;    /* hints went away since they were counted before */
    int hungry_told;  /* what table `cluster` says: 0, 1, −1 = not known */
    int64_t pg_us;    /* PostgreSQL's time … */
    int64_t pg_at_us; /* … at this BOOTTIME */
    int64_t gaps_us;
    int64_t begun_us;
    int64_t told_fed;
    struct complaint complaint; /* about lanes that can't be taken */
    int ticks;

    struct count counts[COUNTS_MAX];
    int counts_pending;
    struct feed_range ranges[FEED_RANGES_MAX];
    struct range_end ends[FEED_RANGES_MAX];
    size_t range_count;
    struct feed_gap gaps[FEED_GAPS_MAX];
    struct hint hints[HINTS_PUSH_MAX];
    size_t hint_groups[HINTS_PUSH_MAX];
    int64_t hint_ready_us[HINTS_PUSH_MAX];
    size_t hint_count;
};

static void pass_begin(struct feeder *f);
static void forget_all(struct feeder *f);

/* ---- when ---- */

static int64_t pg_now_us(const struct feeder *f)
{
    return f->pg_us + (clock_boot_us() - f->pg_at_us);
}

static void on_timer(uv_timer_t *timer)
{
    pass_begin(timer->data);
}

/* The next look: when the pace says, or earlier when a row falls due. */
static void schedule(struct feeder *f)
{
    if (!f->is_started || f->stage != STAGE_IDLE) {
        return;
    }
    int64_t now_us = clock_boot_us();
    int64_t at_us = f->is_woken ? feed_pace_woken_us(&f->pace, now_us) : f->pace.next_us;
    int64_t due_us = feed_next_due_us(&f->feed);
    if (due_us != FEED_NEVER_US) {
        int64_t due_at_us = now_us + (due_us - pg_now_us(f));
        int64_t soonest_us = feed_pace_woken_us(&f->pace, now_us);
        due_at_us = due_at_us > soonest_us ? due_at_us : soonest_us;
        at_us = due_at_us < at_us ? due_at_us : at_us;
    }
    int64_t wait_us = at_us > now_us ? at_us - now_us : 0;
    uv_update_time(f->options.loop);
    (void)uv_timer_start(&f->timer, on_timer, (uint64_t)((wait_us + 999) / US_PER_MS), 0);
}

static void on_hungry_told(void *ctx, enum status st, const struct pg_result *const *results,
                           const struct err *err)
{
    struct feeder *f = ctx;
    (void)results;
    (void)err;
    if (st != STATUS_OK) {
        f->hungry_told = -1;
    }
}

static void tell_hungry(struct feeder *f)
{
    int wanted = f->pace.is_hungry ? 1 : 0;
    if (f->hungry_told != wanted &&
        feed_store_hungry(f->options.pg, f->pace.is_hungry, on_hungry_told, f, NULL) == STATUS_OK) {
        f->hungry_told = wanted;
    }
}

static void pass_end(struct feeder *f)
{
    int64_t now_us = clock_boot_us();
    f->counters.ended_us = now_us;
    feed_pass_took(&f->feed, now_us - f->begun_us);
    metric_observe_us(f->options.pass_seconds, now_us - f->begun_us);
    struct feed_pass pass = {.begun_us = f->begun_us,
                             .now_us = now_us,
                             .rows = (int)f->hint_count,
                             .has_more = feed_has_more(&f->feed),
                             .is_full = feed_is_full(&f->feed),
                             .progress = f->progress};
    feed_pace_passed(&f->pace, &pass, f->options.every_us);
    f->stage = STAGE_IDLE;
    if (!f->is_started) {
        forget_all(f);
        return;
    }
    tell_hungry(f);
    if (f->is_reset) {
        feeder_reset(f);
    }
    schedule(f);
}

/* Nothing was fed for certain: everything is read again. */
static void pass_fail(struct feeder *f)
{
    for (size_t i = 0; i < f->range_count; i++) {
        feed_range_failed(&f->feed, &f->ranges[i]);
    }
    f->range_count = 0;
    f->stage = STAGE_IDLE;
    if (!f->is_started) {
        forget_all(f);
        return;
    }
    feed_memory_release(&f->feed.memory);
    f->is_reset = false;
    feeder_reset(f);
    f->pace.next_us = clock_boot_us() + RETRY_US;
    f->is_woken = false;
    schedule(f);
}

/* ---- push ---- */

static void ranges_done(struct feeder *f)
{
    for (size_t i = 0; i < f->range_count; i++) {
        const struct feed_range *range = &f->ranges[i];
        if (range->part == FEED_AHEAD) {
            f->feed.lanes[range->lane].next_due_us = f->ends[i].next_due_us;
        }
        feed_range_done(&f->feed, range, f->ends[i].rows, f->ends[i].last, f->pg_us);
    }
    f->range_count = 0;
}

static void on_pushed(void *ctx, enum status st, int64_t added)
{
    struct feeder *f = ctx;
    if (st != STATUS_OK) {
        pass_fail(f);
        return;
    }
    /* With several groups in one push it isn't known whose were new: at most all of them. */
    for (size_t i = 0; i < f->hint_count; i++) {
        feed_memory_add(&f->feed.memory, f->hints[i].id, f->hint_ready_us[i]);
        feed_group_added(&f->feed, f->hint_groups[i], f->hint_ready_us[i], (int64_t)i < added);
    }
    f->counters.fed += f->hint_count;
    f->counters.added += (uint64_t)added;
    ranges_done(f);
    pass_end(f);
}

/* ---- read ---- */

static void take_row(struct feeder *f, const struct feed_look_row *row)
{
    struct feed_range *range = &f->ranges[row->range];
    struct feed_pos at = {.us = row->us, .id = row->id};
    f->ends[row->range].rows++;
    f->ends[row->range].last = at;
    const struct feed_lane *lane = &f->feed.lanes[range->lane];
    struct hint hint = {.id = row->id, .score = hint_score(lane->priority, row->us)};
    bool is_wanted = feed_range_row(&f->feed, range, at, row->is_available);
    if (is_wanted && f->hint_count < HINTS_PUSH_MAX &&
        feeder_route(f, lane->queue, row->name, &hint)) {
        f->hint_groups[f->hint_count] = lane->group;
        f->hint_ready_us[f->hint_count] = row->us;
        f->hints[f->hint_count++] = hint;
    }
}

static void take_lane(struct feeder *f, const struct feed_look_row *row)
{
    struct err err = {0};
    enum status st =
        feed_lane_add(&f->feed, row->name, row->priority, row->share, -1, f->pg_us, &err);
    if (st != STATUS_OK && st != STATUS_CONFLICT && complaint_due(&f->complaint, clock_boot_us())) {
        log_error("feed_failed", LOG_TEXT("queue", row->name), LOG_TEXT("err", err.msg));
    }
}

/* Lanes last: they may move the table that the hints' queues point into. */
static void take_lanes(struct feeder *f, const struct pg_result *rows)
{
    struct feed_look_row row;
    for (int i = 0; i < pg_row_count(rows); i++) {
        feed_look_row(rows, i, &row);
        if (row.part == FEED_LOOK_LANE) {
            take_lane(f, &row);
        }
    }
}

static void take_rows(struct feeder *f, const struct pg_result *rows)
{
    struct feed_look_row row;
    for (int i = 0; i < pg_row_count(rows); i++) {
        feed_look_row(rows, i, &row);
        if (row.part == FEED_LOOK_NOW) {
            f->pg_us = row.us;
            f->pg_at_us = clock_boot_us();
        } else if (row.part == FEED_LOOK_DUE) {
            f->ends[row.range].next_due_us = row.us;
        } else if (row.part == FEED_LOOK_ROW) {
            take_row(f, &row);
        }
    }
}

/* PostgreSQL cut the look off (statement_timeout of this session). */
static void pass_too_long(struct feeder *f)
{
    log_warn("feed_too_long", LOG_I64("ranges", f->range_count),
             LOG_TEXT("action", "young rows first; the rest with the next full pass"));
    for (size_t i = 0; i < f->range_count; i++) {
        feed_range_too_long(&f->feed, &f->ranges[i], pg_now_us(f));
    }
    f->range_count = 0;
    pass_end(f);
}

static void on_read(void *ctx, enum status st, const struct pg_result *const *results,
                    const struct err *err)
{
    struct feeder *f = ctx;
    if (st != STATUS_OK && f->is_started && strcmp(err->code, QUERY_CANCELED) == 0) {
        pass_too_long(f);
        return;
    }
    if (st != STATUS_OK || !f->is_started) {
        pass_fail(f); /* the connection's owner complains */
        return;
    }
    take_rows(f, results[0]);
    probe("S3");
    f->stage = STAGE_PUSHING;
    bool is_pushing = f->hint_count > 0;
    if (is_pushing &&
        hints_push(f->options.hints, f->hints, f->hint_count, on_pushed, f, NULL) != STATUS_OK) {
        pass_fail(f);
        return;
    }
    if (!is_pushing) {
        ranges_done(f);
    }
    take_lanes(f, results[0]);
    if (!is_pushing) {
        pass_end(f);
    }
}

static void pass_read(struct feeder *f)
{
    int64_t now_us = clock_boot_us();
    f->range_count = feed_plan(&f->feed, now_us, pg_now_us(f), f->is_woken || f->pace.is_hungry,
                               f->ranges, FEED_RANGES_MAX);
    for (size_t i = 0; i < f->range_count; i++) {
        f->ends[i] = (struct range_end){.next_due_us = FEED_NEVER_US};
    }
    size_t gap_count = 0;
    if (now_us - f->gaps_us >= f->options.every_us ||
        (f->pace.is_hungry && f->feed.lane_count <= GAPS_ALWAYS_LANES)) {
        gap_count = feed_gaps(&f->feed, f->gaps, FEED_GAPS_MAX);
        f->gaps_us = now_us;
    }
    f->is_woken = false;
    if (f->range_count + gap_count == 0) {
        pass_end(f);
        return;
    }
    f->stage = STAGE_READING;
    f->counters.passes++;
    if (feed_store_look(f->options.pg, &f->feed, f->ranges, f->range_count, f->gaps, gap_count,
                        on_read, f, NULL) != STATUS_OK) {
        pass_fail(f);
    }
}

/* ---- count ---- */

static void on_counted(void *ctx, enum status st, int64_t value)
{
    struct count *c = ctx;
    struct feeder *f = c->feeder;
    c->sum += value;
    f->is_count_failed = f->is_count_failed || st != STATUS_OK;
    if (--c->pending == 0 && !f->is_count_failed) {
        f->progress = f->progress || c->sum < f->feed.groups[c->group].held;
        feed_group_counted(&f->feed, c->group, c->sum, clock_boot_us(),
                           DRY_EVERY * f->options.every_us);
    }
    if (--f->counts_pending > 0) {
        return;
    }
    if (f->is_started && !f->is_count_failed && pg_is_up(f->options.pg)) {
        pass_read(f);
    } else {
        pass_fail(f);
    }
}

static void count_set(struct count *c, const char *kind)
{
    struct feeder *f = c->feeder;
    const struct feed_group *g = &f->feed.groups[c->group];
    if (hints_count(f->options.hints, g->queue, kind, g->priority, on_counted, c, NULL) ==
        STATUS_OK) {
        c->pending++;
        f->counts_pending++;
    } else {
        f->is_count_failed = true;
    }
}

static void count_kind(void *ctx, const char *kind)
{
    count_set(ctx, kind);
}

static void pass_count(struct feeder *f)
{
    size_t groups[COUNTS_MAX];
    size_t count = feed_counts_wanted(&f->feed, groups, COUNTS_MAX);
    f->counts_pending = 0;
    f->is_count_failed = false;
    for (size_t i = 0; i < count; i++) {
        struct count *c = &f->counts[i];
        *c = (struct count){.feeder = f, .group = groups[i]};
        count_set(c, NULL);
        feed_served_partial(&f->served, f->feed.groups[groups[i]].queue, count_kind, c);
    }
    if (f->counts_pending > 0) {
        return;
    }
    if (f->is_count_failed) {
        pass_fail(f);
    } else {
        pass_read(f);
    }
}

static void pass_begin(struct feeder *f)
{
    if (!f->is_started || f->stage != STAGE_IDLE) {
        return;
    }
    f->begun_us = clock_boot_us();
    f->hint_count = 0;
    f->progress = false;
    if (!hints_is_up(f->options.hints) || !pg_is_up(f->options.pg)) {
        f->pace.next_us = f->begun_us + RETRY_US;
        schedule(f);
        return;
    }
    f->stage = STAGE_COUNTING;
    pass_count(f);
}

/* ---- from outside ---- */

void feeder_wake(struct feeder *f)
{
    f->is_woken = true;
    if (f->is_started && f->stage == STAGE_IDLE) {
        int64_t now_us = clock_boot_us();
        if (feed_pace_woken_us(&f->pace, now_us) <= now_us) {
            pass_begin(f);
        } else {
            schedule(f);
        }
    }
}

void feeder_reset(struct feeder *f)
{
    if (f->stage != STAGE_IDLE) {
        f->is_reset = true;
        return;
    }
    f->is_reset = false;
    f->hungry_told = -1;
    feed_forget_counts(&f->feed);
    feed_rewind(&f->feed, NULL, 0);
    f->is_woken = true;
    schedule(f);
}

void feeder_serve(struct feeder *f, struct feed_served *served)
{
    struct feed_served old = f->served;
    f->served = *served;
    *served = (struct feed_served){0};
    for (size_t i = 0; i < f->feed.lane_count; i++) {
        struct feed_lane *lane = &f->feed.lanes[i];
        if (feed_served_differs(&old, &f->served, lane->queue)) {
            feed_lane_rewind(lane, 0);
            f->is_woken = true;
        }
    }
    feed_served_release(&old);
    if (f->is_woken) {
        schedule(f);
    }
}

const struct feed_served *feeder_served(const struct feeder *f)
{
    return &f->served;
}

bool feeder_route(const struct feeder *f, const char *queue, const char *kind,
                  struct hint *ret_hint)
{
    enum feed_route route = feed_served_route(&f->served, queue, kind);
    ret_hint->queue = queue;
    ret_hint->kind = route == FEED_ROUTE_KIND ? kind : NULL;
    return route != FEED_ROUTE_NONE;
}

struct feed *feeder_feed(struct feeder *f)
{
    return &f->feed;
}

bool feeder_is_started(const struct feeder *f)
{
    return f->is_started;
}

const struct feeder_counters *feeder_counters(const struct feeder *f)
{
    return &f->counters;
}

/* ---- each second ---- */

static void on_saved(void *ctx, enum status st, const struct pg_result *const *results,
                     const struct err *err)
{
    struct feeder *f = ctx;
    (void)err;
    for (int i = 0; st == STATUS_OK && i < pg_row_count(results[0]); i++) {
        struct feed_tick_row row;
        feed_saved_row(results[0], i, &row);
        struct feed_lane *lane = feed_lane_find(&f->feed, row.name, row.priority, row.share);
        if (lane != NULL) {
            lane->saved_us = row.us;
        }
    }
}

static void save_marks(struct feeder *f, bool is_all)
{
    const struct feed_lane *lanes[FEED_RANGES_MAX];
    size_t count = 0;
    for (size_t i = 0; i < f->feed.lane_count && count < FEED_RANGES_MAX; i++) {
        const struct feed_lane *l = &f->feed.lanes[i];
        if (l->saved_us < 0 || (is_all && l->mark_us > l->saved_us)) {
            lanes[count++] = l;
        }
    }
    struct err err = {0};
    if (count > 0 && feed_store_save(f->options.pg, lanes, count, on_saved, f, &err) != STATUS_OK) {
        log_debug("marks_kept", LOG_TEXT("err", err.msg)); /* saved the next time */
    }
}

void feeder_tick(struct feeder *f)
{
    int64_t now_us = clock_boot_us();
    feed_memory_turn(&f->feed.memory, now_us, f->options.limits.look_behind_us);
    for (size_t i = 0; i < f->feed.group_count; i++) {
        struct feed_group *g = &f->feed.groups[i];
        g->is_counted = g->is_counted && g->fed_low_us == FEED_NEVER_US;
    }
    save_marks(f, ++f->ticks % SAVE_EVERY == 0);
    int64_t fed = (int64_t)f->counters.fed;
    if (fed > f->told_fed) {
        log_info("fed", LOG_I64("jobs", fed - f->told_fed), LOG_I64("lanes", f->feed.lane_count));
        f->told_fed = fed;
    }
}

/* ---- life ---- */

enum status feeder_open(const struct feeder_options *options, struct feeder **ret, struct err *err)
{
    struct feeder *f = calloc(1, sizeof *f);
    if (f == NULL) {
        return err_fail(err, STATUS_NOMEM, "no memory for the feeder");
    }
    f->options = *options;
    f->hungry_told = -1;
    feed_init(&f->feed, &options->limits);
    (void)uv_timer_init(options->loop, &f->timer);
    f->timer.data = f;
    *ret = f;
    return STATUS_OK;
}

static void on_closed(uv_handle_t *timer)
{
    struct feeder *f = timer->data;
    feed_release(&f->feed);
    feed_served_release(&f->served);
    free(f);
}

void feeder_close(struct feeder *f)
{
    if (f != NULL) {
        uv_close((uv_handle_t *)&f->timer, on_closed);
    }
}

void feeder_set_limits(struct feeder *f, int look_ahead, int page_rows)
{
    f->options.limits.look_ahead = look_ahead;
    f->options.limits.page_rows = page_rows;
    feed_set_limits(&f->feed, &f->options.limits);
}

/* A leader that comes back begins from the saved marks. */
static void forget_all(struct feeder *f)
{
    feed_release(&f->feed);
    feed_init(&f->feed, &f->options.limits);
}

bool feeder_start(struct feeder *f, int64_t pg_us)
{
    if (f->is_started || f->stage != STAGE_IDLE) {
        return f->is_started;
    }
    f->is_started = true;
    f->pg_us = pg_us;
    f->pg_at_us = clock_boot_us();
    f->pace = (struct feed_pace){0};
    f->hungry_told = -1;
    f->is_woken = true;
    schedule(f);
    return true;
}

void feeder_stop(struct feeder *f)
{
    f->is_started = false;
    (void)uv_timer_stop(&f->timer);
    if (f->stage == STAGE_IDLE) {
        forget_all(f);
    }
}
