/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/feeder.h"

#include "base/bug.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/timer.h"
#include "model/feed_pace.h"
#include "scheduler/feed_count.h"
#include "scheduler/feed_reader.h"
#include "scheduler/feeder_state.h"
#include "scheduler/full_pass.h"
#include "store/feed_store.h"

#define RETRY_FIRST_US (100 * US_PER_MS)
#define RETRY_MAX_US (5 * US_PER_S)
#define FEW_LANES 16 /* up to this many, each pass reads all of them and the gaps between them */
#define COUNT_FAILED "the hints can't be counted"
#define DRY_EVERY 2                 /* ticks */
#define GLANCES_US (10 * US_PER_MS) /* longest time without a whole pass */
#define FORGET_US (600 * US_PER_S)  /* a lane without rows for this long is forgotten */

struct feeder {
    struct feeder_options options;
    struct feed feed;
    struct feed_pace pace;
    struct feed_served served;
    struct feeder_counters counters;
    struct feed_count *count;
    struct feed_reader *reader;
    struct full_pass *full_pass;
    uv_timer_t timer;

    struct feeder_way way;
    /* when the next whole pass is due, BOOTTIME; FEED_NEVER_US = no glance since the last one */
    int64_t whole_due_us;
    int hungry_told; /* `hungry` in table `cluster`: 0, 1, −1 = not known */
    int failures;    /* in a row */
    int64_t hold_us; /* no pass before this BOOTTIME */
    int64_t gaps_us;
    int64_t begun_us;
    int64_t told_fed;
    struct complaint complaint;
};

static void pass_begin(struct feeder *f);

/* ---- timing ---- */

static void on_timer(uv_timer_t *timer)
{
    pass_begin(timer->data);
}

/* Returns when the next pass is due: by the pace, earlier if a row falls due, later while passes
 * fail. */
static int64_t next_us(const struct feeder *f, int64_t now_us)
{
    int64_t soonest_us = feed_pace_woken_us(&f->pace, now_us);
    int64_t at_us = feeder_wants(&f->way, WANT_ROWS) ? soonest_us : f->pace.next_us;
    int64_t due_us = feed_next_due_us(&f->feed);
    if (due_us != FEED_NEVER_US) {
        int64_t due_at_us = now_us + (due_us - feed_reader_pg_us(f->reader));
        due_at_us = due_at_us > soonest_us ? due_at_us : soonest_us;
        at_us = due_at_us < at_us ? due_at_us : at_us;
    }
    int64_t lanes_us = feeder_wants(&f->way, WANT_LANES)
                           ? feed_gaps_due_us(&f->feed, f->gaps_us, f->options.every_us)
                           : at_us;
    at_us = lanes_us < at_us ? lanes_us : at_us;
    at_us = f->whole_due_us < at_us ? f->whole_due_us : at_us;
    return at_us > f->hold_us ? at_us : f->hold_us;
}

static void schedule(struct feeder *f)
{
    if (f->way.state != FEEDER_IDLE) {
        return;
    }
    int64_t now_us = clock_boot_us();
    int64_t wait_us = next_us(f, now_us) - now_us;
    uint64_t wait_ms = wait_us > 0 ? (uint64_t)((wait_us + 999) / US_PER_MS) : 0;
    timer_start(&f->timer, on_timer, wait_ms, 0);
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

static void pass_passed(struct feeder *f, size_t rows)
{
    int64_t now_us = clock_boot_us();
    f->counters.ended_us = now_us;
    f->failures = 0;
    f->hold_us = 0;
    log_recovered("feed_recovered", &f->complaint);
    feed_pass_took(&f->feed, now_us - f->begun_us);
    metric_observe_us(f->options.pass_seconds, now_us - f->begun_us);
    struct feed_pass pass = {.begun_us = f->begun_us,
                             .now_us = now_us,
                             .rows = (int)rows,
                             .has_more = feed_has_more(&f->feed),
                             .is_full = feed_is_full(&f->feed),
                             .progress = feed_count_was_less(f->count)};
    feed_pace_passed(&f->pace, &pass, f->options.every_us);
}

/* Ends a pass. After one that read something, the next may begin at once: we were called from a
 * reply, so this is no recursion. */
static void pass_end(struct feeder *f, size_t rows, bool has_read)
{
    feeder_step(&f->way, ON_PASS_END);
    if (!feeder_leads(&f->way)) {
        return;
    }
    pass_passed(f, rows);
    tell_hungry(f);
    if (feeder_wants(&f->way, WANT_RESET)) {
        feeder_reset(f);
    }
    int64_t now_us = clock_boot_us();
    if (has_read && next_us(f, now_us) <= now_us) {
        pass_begin(f);
    } else {
        schedule(f);
    }
}

/* Delays the next pass, longer after each failure: what refused this one will probably refuse the
 * next one, too. */
static void hold(struct feeder *f)
{
    int64_t wait_us = RETRY_FIRST_US;
    for (int i = 0; i < f->failures && wait_us < RETRY_MAX_US; i++) {
        wait_us *= 2;
    }
    f->failures++;
    f->hold_us = clock_boot_us() + (wait_us < RETRY_MAX_US ? wait_us : RETRY_MAX_US);
}

/* Ends a pass that failed: nothing is certain to have been fed, so all is read again. */
static void pass_fail(struct feeder *f, const char *why)
{
    feeder_step(&f->way, ON_PASS_END);
    if (!feeder_leads(&f->way)) {
        return;
    }
    hold(f);
    if (f->failures > 1 && complaint_due(&f->complaint, clock_boot_us())) {
        log_warn("feed_failed", LOG_TEXT("err", why), LOG_TEXT("action", "trying again"));
    }
    feed_memory_release(&f->feed.memory);
    feed_forget_counts(&f->feed);
    f->hungry_told = -1;
    feeder_has_done(&f->way, WANT_RESET);
    schedule(f);
}

/* ---- read ---- */

static void on_read(void *ctx, const struct feed_read_result *result)
{
    struct feeder *f = ctx;
    if (result->end == FEED_READ_FAILED) {
        pass_fail(f, result->why);
        return;
    }
    if (result->end == FEED_READ_CUT_OFF) {
        log_warn("feed_too_long", LOG_TEXT("err", result->why),
                 LOG_TEXT("action", "young rows first; the rest with the next full pass"));
        full_pass_want(f->full_pass);
    }
    f->counters.fed += result->pushed;
    f->counters.added += (uint64_t)result->added;
    if (f->way.state == FEEDER_GLANCING && result->pushed == 0) {
        f->whole_due_us = clock_boot_us();
    }
    pass_end(f, result->pushed, true);
}

/* A NOTIFY almost always announces rows ahead of a cursor, and reading only those is much cheaper.
 * The whole pass that follows finds unknown lanes and rows that committed late; it follows at once
 * if the glance found nothing. */
static bool may_glance(const struct feeder *f, int64_t now_us)
{
    return feeder_wants(&f->way, WANT_ROWS) && f->pace.is_hungry &&
           !feeder_wants(&f->way, WANT_LANES) && f->feed.order_count <= FEW_LANES &&
           now_us < f->whole_due_us;
}

static size_t plan_glance(struct feeder *f, int64_t now_us)
{
    if (f->whole_due_us == FEED_NEVER_US) {
        f->whole_due_us = now_us + GLANCES_US;
    }
    return feed_plan_ahead(&f->feed, now_us, feed_reader_pg_us(f->reader),
                           feed_reader_ranges(f->reader), FEED_RANGES_MAX);
}

static size_t plan_whole(struct feeder *f, int64_t now_us, size_t *ret_gaps)
{
    f->whole_due_us = FEED_NEVER_US;
    size_t ranges = feed_plan(&f->feed, now_us, feed_reader_pg_us(f->reader),
                              feeder_wants(&f->way, WANT_ROWS) || f->pace.is_hungry,
                              feed_reader_ranges(f->reader), FEED_RANGES_MAX);
    bool looks = now_us >= feed_gaps_due_us(&f->feed, f->gaps_us, f->options.every_us) ||
                 (f->pace.is_hungry && f->feed.order_count <= FEW_LANES);
    if (looks) {
        feeder_has_done(&f->way, WANT_LANES);
        *ret_gaps = feed_gaps(&f->feed, &f->served, feed_reader_gaps(f->reader), FEED_GAPS_MAX);
        f->gaps_us = now_us;
    } else if (feeder_wants(&f->way, WANT_ROWS)) {
        feeder_want(&f->way, WANT_LANES);
    }
    return ranges;
}

static void pass_read(struct feeder *f)
{
    int64_t now_us = clock_boot_us();
    struct err err = {0};
    size_t gap_count = 0;
    size_t range_count = may_glance(f, now_us) ? plan_glance(f, now_us) : 0;
    bool is_glance = range_count > 0;
    if (!is_glance) {
        range_count = plan_whole(f, now_us, &gap_count);
    }
    feeder_has_done(&f->way, WANT_ROWS);
    if (range_count + gap_count == 0) {
        pass_end(f, 0, false);
        return;
    }
    feeder_step(&f->way, is_glance ? ON_GLANCE : ON_WHOLE);
    f->counters.passes++;
    if (feed_reader_begin(f->reader, f->options.pg, range_count, gap_count, 0, &err) != STATUS_OK) {
        pass_fail(f, err.msg);
    }
}

/* ---- count ---- */

static void on_counted(void *ctx, enum feed_count_end end)
{
    struct feeder *f = ctx;
    if (feeder_leads(&f->way) && end == FEED_COUNT_DONE && pg_is_up(f->options.pg)) {
        pass_read(f);
    } else {
        pass_fail(f, COUNT_FAILED);
    }
}

static void pass_count(struct feeder *f)
{
    switch (feed_count_begin(f->count)) {
    case FEED_COUNT_NONE:
        pass_read(f);
        break;
    case FEED_COUNT_FAILED:
        pass_fail(f, COUNT_FAILED);
        break;
    case FEED_COUNT_DONE:
        break;
    }
}

/* Forgets lanes and begins or ends laps. Called only while no request that refers to lanes is in
 * flight. */
static void adapt_lanes(struct feeder *f)
{
    char queue[JOB_NAME_MAX + 1];
    struct err err = {0};
    if (feeder_wants(&f->way, WANT_FORGET)) {
        feeder_has_done(&f->way, WANT_FORGET);
        feed_lanes_forget(&f->feed, f->begun_us - FORGET_US);
    }
    if (f->feed.is_crowded && !SEEDED_BUG(22) &&
        feed_laps_begin(&f->feed, queue, &err) == STATUS_OK) {
        log_warn("laps_begun", LOG_TEXT("queue", queue),
                 LOG_TEXT("action", "too many lanes: its tenants are walked in laps"));
        f->gaps_us = 0;
    } else if (feed_laps_end(&f->feed, queue)) {
        log_info("laps_ended", LOG_TEXT("queue", queue));
        f->gaps_us = 0;
        full_pass_want(f->full_pass);
    }
}

static void pass_begin(struct feeder *f)
{
    if (f->way.state != FEEDER_IDLE) {
        return;
    }
    f->begun_us = clock_boot_us();
    f->counters.tried_us = f->begun_us;
    if (!hints_is_up(f->options.hints) || !pg_is_up(f->options.pg)) {
        if (SEEDED_BUG(16)) {
            timer_start(&f->timer, on_timer, 0, 0);
            return;
        }
        pass_fail(f, pg_is_up(f->options.pg) ? "no node for hints is up"
                                             : "not connected to PostgreSQL");
        return;
    }
    if (!full_pass_is_busy(f->full_pass)) {
        adapt_lanes(f);
    }
    feeder_step(&f->way, ON_PASS);
    pass_count(f);
}

/* ---- interface ---- */

void feeder_wake(struct feeder *f)
{
    feeder_want(&f->way, WANT_ROWS);
    if (f->way.state == FEEDER_IDLE) {
        int64_t now_us = clock_boot_us();
        if (next_us(f, now_us) <= now_us) {
            pass_begin(f);
        } else {
            schedule(f);
        }
    }
}

void feeder_full_pass(struct feeder *f)
{
    full_pass_want(f->full_pass);
}

void feeder_reset(struct feeder *f)
{
    if (feeder_is_under_way(&f->way)) {
        feeder_want(&f->way, WANT_RESET);
        return;
    }
    feeder_has_done(&f->way, WANT_RESET);
    f->hungry_told = -1;
    feed_memory_release(&f->feed.memory);
    feed_forget_counts(&f->feed);
    feeder_want(&f->way, WANT_ROWS);
    f->whole_due_us = 0;
    full_pass_want(f->full_pass);
    schedule(f);
}

void feeder_up(struct feeder *f)
{
    f->failures = 0;
    f->hold_us = 0;
    feeder_reset(f);
}

void feeder_serve(struct feeder *f, struct feed_served *served)
{
    struct feed_served old = f->served;
    f->served = *served;
    *served = (struct feed_served){0};
    bool is_changed = feed_serve(&f->feed, &old, &f->served);
    feed_served_release(&old);
    if (is_changed) {
        f->gaps_us = 0;
        full_pass_want(f->full_pass);
        feeder_wake(f);
    }
}

bool feeder_route(const struct feeder *f, const char *queue, const char *kind,
                  struct hint *ret_hint)
{
    return feed_reader_route(&f->served, queue, kind, ret_hint);
}

const struct feeder_counters *feeder_counters(const struct feeder *f)
{
    return &f->counters;
}

const struct full_pass_counters *feeder_full_passes(const struct feeder *f)
{
    return full_pass_counters(f->full_pass);
}

size_t feeder_lane_count(const struct feeder *f)
{
    return feeder_leads(&f->way) ? f->feed.order_count : 0;
}

struct feeder_lanes feeder_lanes(const struct feeder *f)
{
    struct feeder_lanes lanes = {.lanes = feed_lanes_known(&f->feed), .lap_queue = ""};
    lanes.lap_us = feed_laps_longest(&f->feed, &lanes.lap_queue);
    return lanes;
}

/* ---- opening and closing ---- */

static void on_full_pass(void *ctx)
{
    struct feeder *f = ctx;
    feeder_want(&f->way, WANT_FORGET);
}

static enum status parts_open(struct feeder *f, struct err *err)
{
    const struct feeder_options *o = &f->options;
    struct feed_count_options count = {.hints = o->hints,
                                       .feed = &f->feed,
                                       .served = &f->served,
                                       .dry_every_us = DRY_EVERY * o->every_us,
                                       .done = on_counted,
                                       .ctx = f};
    struct feed_reader_options reader = {.hints = o->hints,
                                         .feed = &f->feed,
                                         .served = &f->served,
                                         .remembers = true,
                                         .done = on_read,
                                         .ctx = f};
    struct full_pass_options full_pass = {.loop = o->loop,
                                          .conninfo = o->conninfo,
                                          .hints = o->hints,
                                          .feed = &f->feed,
                                          .served = &f->served,
                                          .timeout_us = o->timeout_us,
                                          .every_us = o->full_pass_us,
                                          .page_rows = o->limits.page_rows,
                                          .on_complete = on_full_pass,
                                          .ctx = f};
    enum status st = feed_count_open(&count, &f->count, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = feed_reader_open(&reader, &f->reader, err);
    if (st != STATUS_OK) {
        return st;
    }
    return full_pass_open(&full_pass, &f->full_pass, err);
}

enum status feeder_open(const struct feeder_options *options, struct feeder **ret, struct err *err)
{
    struct feeder *f = calloc(1, sizeof *f);
    if (f == NULL) {
        return err_fail(err, STATUS_NOMEM, "no memory for the feeder");
    }
    f->options = *options;
    f->way.state = FEEDER_OFF;
    f->hungry_told = -1;
    feed_init(&f->feed, &options->limits);
    enum status st = parts_open(f, err);
    if (st != STATUS_OK) {
        feed_count_close(f->count);
        feed_reader_close(f->reader);
        free(f);
        return st;
    }
    (void)uv_timer_init(options->loop, &f->timer);
    f->timer.data = f;
    *ret = f;
    return STATUS_OK;
}

static void on_closed(uv_handle_t *timer)
{
    struct feeder *f = timer->data;
    feed_count_close(f->count);
    feed_reader_close(f->reader);
    feed_release(&f->feed);
    feed_served_release(&f->served);
    free(f);
}

void feeder_close(struct feeder *f)
{
    if (f != NULL) {
        full_pass_close(f->full_pass);
        uv_close((uv_handle_t *)&f->timer, on_closed);
    }
}

/* ---- leading ---- */

static void on_reload(void *ctx, const struct config *config)
{
    struct feeder *f = ctx;
    f->options.limits.look_ahead = config->scheduler.look_ahead;
    f->options.limits.page_rows = config->scheduler.page_rows;
    f->options.limits.aging_us = config->scheduler.priority_aging_us;
    feed_set_limits(&f->feed, &f->options.limits);
    full_pass_set_every(f->full_pass, config->scheduler.full_pass_us);
    feeder_wake(f);
}

static enum status on_lead(const struct service_env *env, void **ret_self, struct err *err)
{
    (void)err;
    on_reload(env->feeder, env->config);
    *ret_self = env->feeder;
    return STATUS_OK;
}

/* A re-elected leader starts from scratch. Must not run while a read or push still refers to
 * lanes. */
static void forget_all(struct feeder *f)
{
    feed_release(&f->feed);
    feed_init(&f->feed, &f->options.limits);
}

static bool start(struct feeder *f, int64_t pg_us)
{
    struct err err = {0};
    if (feeder_is_under_way(&f->way) || full_pass_is_busy(f->full_pass)) {
        return false;
    }
    forget_all(f);
    if (full_pass_start(f->full_pass, &err) != STATUS_OK) {
        if (complaint_due(&f->complaint, clock_boot_us())) {
            log_error("feed_failed", LOG_TEXT("err", err.msg), LOG_TEXT("action", "trying again"));
        }
        return false;
    }
    feeder_step(&f->way, ON_START);
    feed_reader_set_clock(f->reader, pg_us);
    f->pace = (struct feed_pace){0};
    f->hungry_told = -1;
    f->failures = 0;
    f->hold_us = 0;
    f->gaps_us = 0;
    feeder_want(&f->way, WANT_ROWS);
    f->whole_due_us = 0;
    schedule(f);
    return true;
}

static void notice_dry(struct feeder *f)
{
    for (size_t i = 0; i < f->feed.group_count; i++) {
        struct feed_group *g = &f->feed.groups[i];
        g->is_counted = g->is_counted && g->fed_low_us == FEED_NEVER_US;
    }
}

static void tell_fed(struct feeder *f)
{
    int64_t fed = (int64_t)f->counters.fed;
    if (fed > f->told_fed) {
        log_info("fed", LOG_I64("jobs", fed - f->told_fed), LOG_I64("lanes", f->feed.order_count));
        f->told_fed = fed;
    }
}

static void on_polled(void *ctx, const struct cluster_view *view)
{
    struct feeder *f = ctx;
    if (!feeder_leads(&f->way) && !start(f, view->pg_us)) {
        return;
    }
    if (view->rewind_us != FEED_NEVER_US) {
        feed_rewind(&f->feed, view->rewind_us);
        feeder_wake(f);
    }
    if (view->wants_full_pass) {
        full_pass_want(f->full_pass);
    }
    feed_memory_age(&f->feed.memory, clock_boot_us(), f->options.limits.look_behind_us);
    notice_dry(f);
    tell_fed(f);
}

static void on_stop(void *ctx)
{
    struct feeder *f = ctx;
    feeder_step(&f->way, ON_STOP);
    (void)complaint_end(&f->complaint); /* the event leader_lost ends it */
    (void)uv_timer_stop(&f->timer);
    full_pass_stop(f->full_pass);
}

const struct service feeder_service = {.failed = "feed_failed",
                                       .start = on_lead,
                                       .polled = on_polled,
                                       .reload = on_reload,
                                       .stop = on_stop};
