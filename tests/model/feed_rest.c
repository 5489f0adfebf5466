/* SPDX-License-Identifier: Apache-2.0 */
#include "feed_rest.h"

#include "model/feed_pace.h"

#define TICKS_MAX 64
#define PASSES_MAX 16 /* at one point in time */
#define PAGES_MAX 16
#define EVERY_US (2 * TICK_US) /* "each second" */
#define GRACE_US (2 * TICK_US)

struct rest {
    struct world *w;
    struct feed_pace pace;
    struct feed_full_pace full_pace;
    /* BOOTTIME since which the row is due without a hint; 0 = it is not. */
    int64_t waits_us[ROWS_MAX];
};

static void pass(struct rest *r, enum pass_kind kind)
{
    struct world *w = r->w;
    world_pass(w, kind);
    int rows = __builtin_popcount(w->ahead.hints);
    if (w->ahead.stage != READ_IDLE) {
        world_pass_end(w, PUSH_DONE);
    }
    struct feed_pass passed = {.begun_us = w->boot_us,
                               .now_us = w->boot_us,
                               .rows = rows,
                               .has_more = feed_has_more(&w->feed),
                               .is_full = feed_is_full(&w->feed)};
    feed_pace_passed(&r->pace, &passed, EVERY_US);
}

static void passes(struct rest *r)
{
    struct world *w = r->w;
    bool is_due = feed_next_due_us(&w->feed) <= w->believed_us;
    for (int i = 0; r->pace.next_us <= w->boot_us || is_due; i++) {
        if (i == PASSES_MAX) {
            w->violation = "the feed goes round without an end";
            return;
        }
        pass(r, i == 0 ? PASS_EVERYWHERE : PASS_KNOWN_LANES);
        is_due = false;
    }
}

/* Runs a full pass, with a pass of the feed between any two of its steps. */
static void full_pass(struct rest *r)
{
    struct world *w = r->w;
    feed_full_begun(&r->full_pace, w->boot_us);
    world_full_begin(w);
    for (int i = 0; w->full.stage != READ_IDLE; i++) {
        if (i == PAGES_MAX) {
            w->violation = "the full pass has no end";
            return;
        }
        pass(r, PASS_KNOWN_LANES);
        world_full_read(w);
        pass(r, PASS_KNOWN_LANES);
        world_full_end(w, PUSH_DONE);
    }
    feed_full_ended(&r->full_pace, w->boot_us, true);
}

/* Finishes what was in flight at the last fault. */
static void finish_reads(struct rest *r)
{
    struct world *w = r->w;
    if (w->ahead.stage != READ_IDLE) {
        world_pass_end(w, PUSH_DONE);
    }
    world_full_finish(w);
}

static void work(struct world *w)
{
    for (size_t i = 0; i < w->rules->rows; i++) {
        if (w->rows[i].is_hinted) {
            w->rows[i].is_hinted = false;
            if (world_is_due(w, i)) {
                world_row_set(w, i, ROW_NONE, 0);
            }
        }
    }
}

static bool is_over(struct rest *r)
{
    struct world *w = r->w;
    bool is_waiting = false;
    int64_t bound_us = REST_FULL_PASS_US + GRACE_US;
    for (size_t i = 0; i < w->rules->rows; i++) {
        is_waiting = is_waiting || w->rows[i].phase == ROW_AVAILABLE;
        if (!world_is_due(w, i)) {
            r->waits_us[i] = 0;
        } else if (r->waits_us[i] == 0) {
            r->waits_us[i] = w->boot_us;
        } else if (w->boot_us - r->waits_us[i] > bound_us) {
            w->violation = "a row that is due is not fed";
        }
    }
    return !is_waiting || w->violation != NULL;
}

void rest_run(struct world *w)
{
    struct rest r = {.w = w};
    r.pace.next_us = w->boot_us + EVERY_US;
    r.full_pace = (struct feed_full_pace){.every_us = REST_FULL_PASS_US, .ended_us = w->boot_us};
    finish_reads(&r);
    for (int i = 1; !is_over(&r); i++) {
        if (i == TICKS_MAX) {
            w->violation = "a row is never due";
            return;
        }
        w->boot_us += TICK_US;
        w->pg_us += TICK_US;
        w->believed_us += TICK_US;
        if (w->boot_us % EVERY_US == 0) {
            world_tick(w);
        }
        passes(&r);
        if (!w->rules->has_no_full_pass && feed_full_next_us(&r.full_pace) <= w->boot_us) {
            full_pass(&r);
        }
        work(w);
    }
}
