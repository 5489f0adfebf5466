/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/full_pass.h"

#include "base/bug.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/timer.h"
#include "store/feed_store.h"

#include <assert.h>
#include <stdio.h>

/* One page may have to walk over very many dead entries, at 0.25 µs each. */
#define PAGE_LIMIT_US (60 * US_PER_S)

enum stage { STAGE_IDLE, STAGE_REPAIR, STAGE_LANES, STAGE_ROWS };

struct full_pass {
    struct full_pass_options options;
    struct full_pass_counters counters;
    struct feed_full_pace pace;
    struct pg *pg; /* while leading */
    struct feed_reader *reader;
    uv_timer_t timer;
    enum stage stage;
    char queue[JOB_NAME_MAX + 1]; /* whose lanes are being read */
    struct complaint complaint;
};

static void pass_begin(struct full_pass *p);

static void on_timer(uv_timer_t *timer)
{
    pass_begin(timer->data);
}

static void schedule(struct full_pass *p)
{
    if (p->pg == NULL || p->stage != STAGE_IDLE || SEEDED_BUG(5)) {
        return;
    }
    int64_t wait_us = feed_full_next_us(&p->pace) - clock_boot_us();
    uint64_t wait_ms = wait_us > 0 ? (uint64_t)(wait_us / US_PER_MS) + 1 : 1;
    timer_start(&p->timer, on_timer, wait_ms, 0);
}

/* ---- one pass ---- */

static void pass_fail(struct full_pass *p, const char *why)
{
    p->stage = STAGE_IDLE;
    feed_full_ended(&p->pace, clock_boot_us(), false);
    if (p->pg != NULL && complaint_due(&p->complaint, clock_boot_us())) {
        log_warn("full_pass_failed", LOG_TEXT("err", why), LOG_TEXT("action", "trying again"));
    }
    schedule(p);
}

static void pass_complete(struct full_pass *p)
{
    p->stage = STAGE_IDLE;
    feed_full_ended(&p->pace, clock_boot_us(), true);
    p->counters.passes++;
    p->counters.began_us = p->pace.begun_us;
    p->counters.took_us = p->pace.took_us;
    log_recovered("full_pass_recovered", &p->complaint);
    log_debug("full_pass", LOG_I64("took_us", p->pace.took_us),
              LOG_I64("lanes", p->options.feed->order_count));
    p->options.on_complete(p->options.ctx);
    schedule(p);
}

static void page_read(struct full_pass *p, size_t range_count, size_t gap_count)
{
    struct err err = {0};
    if (feed_reader_begin(p->reader, p->pg, range_count, gap_count,
                          PAGE_LIMIT_US + p->options.timeout_us, &err) != STATUS_OK) {
        pass_fail(p, err.msg);
    }
}

static void next_page(struct full_pass *p)
{
    p->stage = STAGE_ROWS;
    size_t count = feed_full_plan(p->options.feed, p->options.page_rows,
                                  feed_reader_ranges(p->reader), FEED_RANGES_MAX);
    if (count == 0) {
        pass_complete(p);
    } else {
        page_read(p, count, 0);
    }
}

/* Reads all lanes of the next served queue, including known ones: a full pass relies on nothing
 * that is known. Queues that are walked in laps are left out. */
static void next_lanes(struct full_pass *p)
{
    struct feed_gap *gap = &feed_reader_gaps(p->reader)[0];
    const char *queue = p->queue;
    do {
        queue = feed_served_next(p->options.served, queue);
    } while (queue != NULL && feed_queue_has_laps(p->options.feed, queue));
    if (queue == NULL) {
        feed_full_begin(p->options.feed);
        next_page(p);
        return;
    }
    (void)snprintf(p->queue, sizeof p->queue, "%s", queue);
    *gap = (struct feed_gap){.form = FEED_GAP_PRIORITIES, .lo = -1, .hi = JOB_PRIORITY_MAX + 1};
    (void)snprintf(gap->queue, sizeof gap->queue, "%s", queue);
    page_read(p, 0, 1);
}

static void on_read(void *ctx, const struct feed_read_result *result)
{
    struct full_pass *p = ctx;
    if (result->end != FEED_READ_DONE || p->pg == NULL) {
        pass_fail(p, result->why);
        return;
    }
    p->counters.recovered += (uint64_t)result->added;
    if (p->stage == STAGE_LANES && result->lanes == FEED_READ_LANES_MAX) {
        feed_reader_gaps(p->reader)[0] = result->rest;
        page_read(p, 0, 1);
    } else if (p->stage == STAGE_LANES) {
        next_lanes(p);
    } else {
        next_page(p);
    }
}

static void read_lanes(struct full_pass *p)
{
    p->stage = STAGE_LANES;
    p->queue[0] = '\0';
    next_lanes(p);
}

/* Hints of jobs that the repair made claimable are pushed by this same pass. */
static void on_repaired(void *ctx, enum status st, const struct pg_result *const *results,
                        const struct err *err)
{
    struct full_pass *p = ctx;
    (void)results;
    if (st != STATUS_OK || p->pg == NULL) {
        pass_fail(p, err != NULL ? err->msg : "stopped");
        return;
    }
    read_lanes(p);
}

/* Begins with repairs that nothing else makes: limits that no run holds, and batches that wait for
 * jobs that no longer exist. */
static void pass_begin(struct full_pass *p)
{
    if (p->pg == NULL || p->stage != STAGE_IDLE) {
        return;
    }
    feed_full_begun(&p->pace, clock_boot_us());
    if (!pg_is_up(p->pg) || !hints_is_up(p->options.hints)) {
        pass_fail(p, pg_is_up(p->pg) ? "no node for hints is up" : "not connected to PostgreSQL");
        return;
    }
    p->stage = STAGE_REPAIR;
    struct err err = {0};
    if (feed_store_repair(p->pg, on_repaired, p, &err) != STATUS_OK) {
        pass_fail(p, err.msg);
    }
}

/* ---- interface ---- */

void full_pass_want(struct full_pass *p)
{
    feed_full_want(&p->pace, clock_boot_us());
    schedule(p);
}

void full_pass_set_every(struct full_pass *p, int64_t every_us)
{
    p->pace.every_us = every_us;
    schedule(p);
}

bool full_pass_is_busy(const struct full_pass *p)
{
    return p->stage != STAGE_IDLE;
}

const struct full_pass_counters *full_pass_counters(const struct full_pass *p)
{
    return &p->counters;
}

static void on_session(void *ctx, enum status st, const struct pg_result *const *results,
                       const struct err *err)
{
    struct full_pass *p = ctx;
    (void)results;
    if (st == STATUS_OK) {
        p->pace.failures = 0;
        schedule(p);
    } else if (p->pg != NULL && complaint_due(&p->complaint, clock_boot_us())) {
        log_warn("full_pass_failed", LOG_TEXT("err", err->msg), LOG_TEXT("action", "trying again"));
    }
}

static void on_up(void *ctx)
{
    struct full_pass *p = ctx;
    struct err err = {0};
    if (feed_store_session(p->pg, on_session, p, &err) != STATUS_OK) {
        log_error("postgres_failed", LOG_TEXT("err", err.msg));
    }
}

enum status full_pass_start(struct full_pass *p, struct err *err)
{
    assert(p->pg == NULL && !full_pass_is_busy(p));
    struct pg_options pg = {.loop = p->options.loop,
                            .conninfo = p->options.conninfo,
                            .application_name = "claimd-scheduler full pass",
                            .timeout_us = p->options.timeout_us,
                            .statement_timeout_ms = (int)(PAGE_LIMIT_US / US_PER_MS),
                            .on_up = on_up,
                            .ctx = p};
    int64_t every_us = p->pace.every_us;
    p->pace = (struct feed_full_pace){.every_us = every_us, .ended_us = clock_boot_us()};
    p->counters.began_us = p->pace.ended_us;
    enum status st = pg_open(&pg, &p->pg, err);
    schedule(p);
    return st;
}

void full_pass_stop(struct full_pass *p)
{
    struct pg *pg = TAKE(p->pg);
    p->counters.began_us = 0;
    (void)complaint_end(&p->complaint); /* the event leader_lost ends it */
    (void)uv_timer_stop(&p->timer);
    pg_close(pg); /* ends a read that is in flight; a push ends by itself */
}

enum status full_pass_open(const struct full_pass_options *options, struct full_pass **ret,
                           struct err *err)
{
    struct full_pass *p = calloc(1, sizeof *p);
    if (p == NULL) {
        return err_fail(err, STATUS_NOMEM, "no memory for full passes");
    }
    p->options = *options;
    p->pace.every_us = options->every_us;
    struct feed_reader_options reader = {.hints = options->hints,
                                         .feed = options->feed,
                                         .served = options->served,
                                         .done = on_read,
                                         .ctx = p};
    enum status st = feed_reader_open(&reader, &p->reader, err);
    if (st != STATUS_OK) {
        free(p);
        return st;
    }
    (void)uv_timer_init(options->loop, &p->timer);
    p->timer.data = p;
    *ret = p;
    return STATUS_OK;
}

static void on_closed(uv_handle_t *timer)
{
    struct full_pass *p = timer->data;
    feed_reader_close(p->reader);
    free(p);
}

void full_pass_close(struct full_pass *p)
{
    if (p != NULL) {
        full_pass_stop(p);
        uv_close((uv_handle_t *)&p->timer, on_closed);
    }
}
