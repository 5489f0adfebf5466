/* SPDX-License-Identifier: Apache-2.0
 *
 * Creates the history partitions of the days to come, drops old ones, and vacuums `job`. It uses a
 * connection of its own, because these statements may take long. */
#include "base/clock.h"
#include "base/log.h"
#include "base/minmax.h"
#include "base/timer.h"
#include "model/vacuum_pace.h"
#include "scheduler/feeder.h"
#include "scheduler/services.h"
#include "store/feed_store.h"
#include "store/history_store.h"

#define DAYS_AHEAD 14
#define PARTITIONS_EVERY_US (3600 * US_PER_S)
/* Interval of the checks for dead rows if no jobs are fed that would make one due sooner. */
#define VACUUM_EVERY_US (5 * US_PER_S)
/* A failed index is tried again after this fraction of the interval between two checks of the days,
 * because each try reads a whole day. */
#define INDEX_AGAIN_PART 60

/* Pause between two steps of a sweep, as a multiple of the duration of the last one. */
#define SWEEP_REST_FACTOR 9

enum task { TASK_NONE, TASK_PARTITIONS, TASK_VACUUM, TASK_INDEX, TASK_SWEEP, TASKS };

struct history {
    int keep_days;
    int64_t partitions_every_us; /* between two checks of the days */
    int64_t vacuum_every_us;     /* between two checks of the dead rows */
    struct pg *pg;
    const struct feeder *feeder; /* borrowed */
    uv_timer_t timer;
    enum task task; /* in progress */
    int64_t partitions_at_us;
    int64_t vacuum_at_us;
    int64_t index_at_us;
    int64_t sweep_at_us;
    int64_t begun_us;
    struct vacuum_pace vacuum;
    /* when PostgreSQL's clock was last checked, BOOTTIME; 0 = not by this leader */
    int64_t looked_us;
    bool is_held;                /* nothing is deleted because that clock has jumped */
    struct history_day removing; /* empty name: none */
    struct history_index indexing;
    struct history_sweep sweeping; /* empty day: none */
    struct complaint complaints[TASKS];
    bool is_stopping;
};

static void next(struct history *h);

static void on_timer(uv_timer_t *timer)
{
    next(timer->data);
}

static void task_end(struct history *h)
{
    h->task = TASK_NONE;
    next(h);
}

static void task_done(struct history *h)
{
    log_recovered("history_recovered", &h->complaints[h->task]);
    task_end(h);
}

static void task_fail(struct history *h, const struct err *err)
{
    int64_t now_us = clock_boot_us();
    if (!h->is_stopping && complaint_due(&h->complaints[h->task], now_us)) {
        log_error("history_failed", LOG_TEXT("err", err->msg));
    }
    if (h->task == TASK_PARTITIONS) {
        h->partitions_at_us = now_us + h->vacuum_every_us; /* soon, but not at once */
    }
    if (h->task == TASK_INDEX) {
        h->index_at_us = now_us + h->partitions_every_us / INDEX_AGAIN_PART;
    }
    if (h->task == TASK_SWEEP) {
        h->sweep_at_us = now_us + h->vacuum_every_us;
    }
    task_end(h);
}

/* ---- partitions ---- */

static void remove_next(struct history *h);

static void on_removed(void *ctx, enum status st, const struct pg_result *const *results,
                       const struct err *err)
{
    struct history *h = ctx;
    (void)results;
    if (st != STATUS_OK) {
        task_fail(h, err);
        return;
    }
    if (h->removing.step == HISTORY_DETACHED) {
        log_info("swept", LOG_TEXT("day", h->removing.name));
    }
    remove_next(h);
}

static void on_folded(void *ctx, enum status st, const struct pg_result *const *results,
                      const struct err *err)
{
    struct history *h = ctx;
    (void)results;
    if (st != STATUS_OK) {
        task_fail(h, err);
        return;
    }
    task_done(h);
}

static void on_forgotten(void *ctx, enum status st, const struct pg_result *const *results,
                         const struct err *err)
{
    struct history *h = ctx;
    struct err failed = {0};
    (void)results;
    if (st != STATUS_OK) {
        task_fail(h, err);
    } else if (history_store_fold(h->pg, h->keep_days, on_folded, h, &failed) != STATUS_OK) {
        task_fail(h, &failed);
    }
}

static int64_t look(const struct history *h, const struct history_clock *clock,
                    struct sweep_clock *ret)
{
    int64_t passed_us = h->looked_us == 0 ? SWEEP_NEVER_US : clock_boot_us() - h->looked_us;
    *ret = clock->last;
    return sweep_clock_look(ret, clock->now_us, passed_us);
}

static void note_look(struct history *h, const struct sweep_clock *now, int64_t jump_us)
{
    h->looked_us = clock_boot_us();
    if (jump_us > 0 || (now->hold_us > 0 && !h->is_held)) {
        log_error("history_held", LOG_I64("jump_s", jump_us / US_PER_S),
                  LOG_I64("hold_s", now->hold_us / US_PER_S),
                  LOG_TEXT("action", "nothing is deleted until then; if PostgreSQL's clock is "
                                     "right: claimctl db trust-clock"));
    } else if (now->hold_us == 0 && h->is_held) {
        log_info("history_released", LOG_TEXT("action", "old history is deleted again"));
    }
    h->is_held = now->hold_us > 0;
}

/* The check of the clock is stored; now delete what it allows. */
static void on_looked(void *ctx, enum status st, const struct pg_result *const *results,
                      const struct err *err)
{
    struct history *h = ctx;
    struct err failed = {0};
    if (st != STATUS_OK) {
        task_fail(h, err);
        return;
    }
    if (pg_row_count(results[0]) == 0) { /* another leader stored one in between */
        h->partitions_at_us = clock_boot_us() + h->vacuum_every_us;
        task_done(h);
        return;
    }
    if (h->is_held) {
        task_done(h);
        return;
    }
    st = h->removing.name[0] != '\0'
             ? history_store_remove(h->pg, &h->removing, on_removed, h, &failed)
             : history_store_forget(h->pg, h->keep_days, on_forgotten, h, &failed);
    if (st != STATUS_OK) {
        task_fail(h, &failed);
    }
}

static void on_old(void *ctx, enum status st, const struct pg_result *const *results,
                   const struct err *err)
{
    struct history *h = ctx;
    if (st != STATUS_OK) {
        task_fail(h, err);
        return;
    }
    struct history_clock clock;
    struct sweep_clock now;
    struct err failed = {0};
    history_clock_row(results[0], &clock);
    int64_t jump_us = look(h, &clock, &now);
    h->removing.name[0] = '\0';
    if (pg_row_count(results[1]) > 0) {
        history_day_row(results[1], 0, &h->removing);
    }
    if (history_store_looked(h->pg, &clock, &now, on_looked, h, &failed) != STATUS_OK) {
        task_fail(h, &failed);
        return;
    }
    note_look(h, &now, jump_us);
}

/* Takes one step of removing one day at a time, until no old day is left. */
static void remove_next(struct history *h)
{
    struct err err = {0};
    if (history_store_old(h->pg, h->keep_days, on_old, h, &err) != STATUS_OK) {
        task_fail(h, &err);
    }
}

static void on_ensured(void *ctx, enum status st, const struct pg_result *const *results,
                       const struct err *err)
{
    struct history *h = ctx;
    (void)results;
    if (st != STATUS_OK) {
        task_fail(h, err);
        return;
    }
    remove_next(h);
}

/* ---- vacuum ---- */

/* Returns zeros if there are no statistics yet. */
static struct vacuum_rows vacuum_rows_of(const struct pg_result *rows)
{
    if (pg_row_count(rows) == 0) {
        return (struct vacuum_rows){.dead = 0};
    }
    return (struct vacuum_rows){.dead = pg_i64(rows, 0, 0), .live = pg_i64(rows, 0, 1)};
}

static void on_left(void *ctx, enum status st, const struct pg_result *const *results,
                    const struct err *err)
{
    struct history *h = ctx;
    if (st != STATUS_OK) {
        task_fail(h, err);
        return;
    }
    const struct vacuum_rows rows = vacuum_rows_of(results[0]);
    vacuum_pace_left(&h->vacuum, &rows);
    log_debug("vacuumed", LOG_I64("ms", (h->vacuum.ended_us - h->begun_us) / US_PER_MS),
              LOG_I64("left", rows.dead));
    task_done(h);
}

static void on_vacuumed(void *ctx, enum status st, const struct pg_result *const *results,
                        const struct err *err)
{
    struct history *h = ctx;
    struct err failed = {0};
    (void)results;
    vacuum_pace_ended(&h->vacuum, h->begun_us, clock_boot_us());
    if (st != STATUS_OK) {
        task_fail(h, err);
    } else if (history_store_dead_rows(h->pg, on_left, h, &failed) != STATUS_OK) {
        task_fail(h, &failed);
    }
}

static void on_dead_rows(void *ctx, enum status st, const struct pg_result *const *results,
                         const struct err *err)
{
    struct history *h = ctx;
    if (st != STATUS_OK) {
        task_fail(h, err);
        return;
    }
    const struct vacuum_rows rows = vacuum_rows_of(results[0]);
    h->begun_us = clock_boot_us();
    if (!vacuum_pace_is_due(&h->vacuum, &rows, h->begun_us)) {
        task_done(h);
        return;
    }
    struct err failed = {0};
    if (history_store_vacuum(h->pg, on_vacuumed, h, &failed) != STATUS_OK) {
        task_fail(h, &failed);
    }
}

/* ---- indexes of past days ---- */

static void on_indexed(void *ctx, enum status st, const struct pg_result *const *results,
                       const struct err *err)
{
    struct history *h = ctx;
    (void)results;
    if (st != STATUS_OK) {
        task_fail(h, err);
        return;
    }
    if (!h->indexing.is_broken) {
        log_info("indexed", LOG_TEXT("day", h->indexing.day),
                 LOG_TEXT("column", h->indexing.column),
                 LOG_I64("ms", (clock_boot_us() - h->begun_us) / US_PER_MS));
    }
    task_done(h);
}

/* Keeps the time of the next check as it is while an index is missing, so that the next one is
 * built at once. */
static void on_unindexed(void *ctx, enum status st, const struct pg_result *const *results,
                         const struct err *err)
{
    struct history *h = ctx;
    if (st != STATUS_OK) {
        task_fail(h, err);
        return;
    }
    h->begun_us = clock_boot_us();
    if (pg_row_count(results[0]) == 0) {
        h->index_at_us = h->begun_us + h->partitions_every_us;
        task_done(h);
        return;
    }
    struct err failed = {0};
    history_index_row(results[0], 0, &h->indexing);
    if (history_store_index(h->pg, &h->indexing, on_indexed, h, &failed) != STATUS_OK) {
        task_fail(h, &failed);
    }
}

/* ---- jobs of past days whose retention rules are shorter than that of the day ---- */

static void sweep_again(struct history *h)
{
    int64_t now_us = clock_boot_us();
    h->sweep_at_us = now_us + SWEEP_REST_FACTOR * (now_us - h->begun_us);
    task_done(h);
}

static void on_swept(void *ctx, enum status st, const struct pg_result *const *results,
                     const struct err *err)
{
    struct history *h = ctx;
    (void)results;
    if (st != STATUS_OK) {
        task_fail(h, err);
        return;
    }
    log_info("pruned", LOG_TEXT("day", h->sweeping.day), LOG_I64("jobs", h->sweeping.deleted),
             LOG_I64("left", h->sweeping.left_over));
    if (h->sweeping.left_over == 0) {
        h->partitions_at_us = 0; /* the empty day can be dropped */
    }
    h->sweeping.day[0] = '\0';
    sweep_again(h);
}

static void on_day_vacuumed(void *ctx, enum status st, const struct pg_result *const *results,
                            const struct err *err)
{
    struct history *h = ctx;
    struct err failed = {0};
    (void)results;
    if (st != STATUS_OK) {
        task_fail(h, err);
    } else if (history_store_swept(h->pg, &h->sweeping, on_swept, h, &failed) != STATUS_OK) {
        task_fail(h, &failed);
    }
}

static void on_sweep(void *ctx, enum status st, const struct pg_result *const *results,
                     const struct err *err)
{
    struct history *h = ctx;
    if (st != STATUS_OK) {
        h->sweeping.day[0] = '\0'; /* the day may have been dropped: start from the beginning */
        task_fail(h, err);
        return;
    }
    history_sweep_note(results[0], &h->sweeping);
    sweep_again(h);
}

static void on_to_sweep(void *ctx, enum status st, const struct pg_result *const *results,
                        const struct err *err)
{
    struct history *h = ctx;
    if (st != STATUS_OK) {
        task_fail(h, err);
        return;
    }
    struct history_clock clock;
    struct sweep_clock now;
    history_clock_row(results[0], &clock);
    if (look(h, &clock, &now) > 0) {
        h->partitions_at_us = 0; /* that task stores the result of the clock check */
    }
    if (pg_row_count(results[1]) == 0 || now.hold_us > 0) {
        h->sweep_at_us = clock_boot_us() + h->partitions_every_us;
        task_done(h);
        return;
    }
    history_sweep_row(results[1], 0, &h->sweeping);
    sweep_again(h);
}

/* Takes the next step: find a day, delete from a few of its pages, and at its end vacuum it and
 * record that it is done. */
static enum status sweep_next(struct history *h, struct err *err)
{
    h->begun_us = clock_boot_us();
    if (h->sweeping.day[0] == '\0') {
        return history_store_to_sweep(h->pg, h->keep_days, on_to_sweep, h, err);
    }
    if (h->sweeping.page >= 0) {
        return history_store_sweep(h->pg, &h->sweeping, h->keep_days, on_sweep, h, err);
    }
    if (h->sweeping.deleted > 0 && h->sweeping.left_over > 0) {
        return history_store_vacuum_day(h->pg, &h->sweeping, on_day_vacuumed, h, err);
    }
    return history_store_swept(h->pg, &h->sweeping, on_swept, h, err);
}

/* ---- one task at a time ---- */

static void next(struct history *h)
{
    int64_t now_us = clock_boot_us();
    struct err err = {0};
    if (h->is_stopping || h->task != TASK_NONE || !pg_is_up(h->pg)) {
        return;
    }
    if (h->partitions_at_us <= now_us) {
        h->partitions_at_us = now_us + h->partitions_every_us;
        h->task = TASK_PARTITIONS;
        if (history_store_ensure(h->pg, DAYS_AHEAD, on_ensured, h, &err) != STATUS_OK) {
            task_fail(h, &err);
        }
        return;
    }
    if (h->vacuum_at_us <= now_us) {
        h->vacuum_at_us = now_us + h->vacuum_every_us;
        vacuum_pace_looked(&h->vacuum, feeder_counters(h->feeder)->fed);
        h->task = TASK_VACUUM;
        if (history_store_dead_rows(h->pg, on_dead_rows, h, &err) != STATUS_OK) {
            task_fail(h, &err);
        }
        return;
    }
    if (h->index_at_us <= now_us) {
        h->task = TASK_INDEX;
        if (history_store_unindexed(h->pg, on_unindexed, h, &err) != STATUS_OK) {
            task_fail(h, &err);
        }
        return;
    }
    if (h->sweep_at_us <= now_us) {
        h->task = TASK_SWEEP;
        if (sweep_next(h, &err) != STATUS_OK) {
            task_fail(h, &err);
        }
        return;
    }
    int64_t at_us = min_i64(min_i64(h->partitions_at_us, h->vacuum_at_us),
                            min_i64(h->index_at_us, h->sweep_at_us));
    timer_start(&h->timer, on_timer, (uint64_t)((at_us - now_us) / US_PER_MS) + 1, 0);
}

static void on_up(void *ctx)
{
    struct history *h = ctx;
    next(h);
}

/* ---- leading ---- */

static enum status on_lead(const struct service_env *env, void **ret_self, struct err *err)
{
    struct history *h = calloc(1, sizeof *h);
    if (h == NULL) {
        return err_fail(err, STATUS_NOMEM, "no memory for the history");
    }
    h->feeder = env->feeder;
    h->keep_days = env->config->scheduler.history_days;
    h->partitions_every_us = config_scaled(env->config, PARTITIONS_EVERY_US);
    h->vacuum_every_us = config_scaled(env->config, VACUUM_EVERY_US);
    struct pg_options pg = {.loop = env->loop,
                            .conninfo = env->conninfo,
                            .application_name = "claimd-scheduler history",
                            .timeout_us = env->config->postgres.timeout_us,
                            .on_up = on_up,
                            .ctx = h};
    enum status st = pg_open(&pg, &h->pg, err);
    if (st != STATUS_OK) {
        free(h);
        return st;
    }
    (void)uv_timer_init(env->loop, &h->timer);
    h->timer.data = h;
    *ret_self = h;
    return STATUS_OK;
}

static void on_polled(void *ctx, const struct cluster_view *view)
{
    struct history *h = ctx;
    bool is_released = h->is_held && (view->work & FEED_TICK_HOLD) == 0;
    if (is_released) { /* an operator has confirmed the clock */
        h->sweep_at_us = 0;
    }
    if (is_released || (view->work & FEED_TICK_NO_DAY) != 0) {
        h->partitions_at_us = 0;
        next(h);
    }
    uint64_t fed = feeder_counters(h->feeder)->fed;
    if (vacuum_pace_is_worth_a_look(&h->vacuum, fed, clock_boot_us())) {
        h->vacuum_at_us = 0;
        next(h);
    }
}

static void on_reload(void *ctx, const struct config *config)
{
    struct history *h = ctx;
    if (h->keep_days != config->scheduler.history_days) {
        h->keep_days = config->scheduler.history_days;
        h->partitions_at_us = 0;
        h->sweep_at_us = 0;
        h->sweeping.day[0] = '\0';
        next(h);
    }
}

static void on_closed(uv_handle_t *timer)
{
    free(timer->data);
}

static void on_stop(void *ctx)
{
    struct history *h = ctx;
    h->is_stopping = true;
    pg_close(h->pg);
    uv_close((uv_handle_t *)&h->timer, on_closed);
}

const struct service history_service = {.failed = "history_failed",
                                        .start = on_lead,
                                        .polled = on_polled,
                                        .reload = on_reload,
                                        .stop = on_stop};
