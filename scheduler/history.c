/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/history.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/timer.h"
#include "store/history_store.h"

/* Vacuum is worth its walk over the indexes from so many dead rows on, and where they are a fifth
 * of the table: dead entries slow the feed's walks, a claim only needs its page. */
#define DEAD_ROWS_MIN 20000
#define DEAD_SHARE 5
/* Between two vacuums, times the length of the last: the horizon may be pinned. */
#define REST_FACTOR 4

enum task { TASK_NONE, TASK_DAYS, TASK_VACUUM, TASKS };

struct history {
    struct history_options options;
    struct pg *pg;
    uv_timer_t timer;
    enum task task; /* under way */
    int64_t days_at_us;
    int64_t vacuum_at_us;
    int64_t begun_us;
    struct history_day removing;
    struct complaint complaints[TASKS];
    bool is_stopping;
};

static void next(struct history *d);

static void on_timer(uv_timer_t *timer)
{
    next(timer->data);
}

static void task_end(struct history *d)
{
    d->task = TASK_NONE;
    next(d);
}

static void task_done(struct history *d)
{
    log_recovered("history_recovered", &d->complaints[d->task]);
    task_end(d);
}

static void task_fail(struct history *d, const struct err *err)
{
    int64_t now_us = clock_boot_us();
    if (!d->is_stopping && complaint_due(&d->complaints[d->task], now_us)) {
        log_error("history_failed", LOG_TEXT("err", err->msg));
    }
    if (d->task == TASK_DAYS) {
        d->days_at_us = now_us + d->options.vacuum_every_us; /* soon, but not at once */
    }
    task_end(d);
}

/* ---- days ---- */

static void history_look(struct history *d);

static void on_removed(void *ctx, enum status st, const struct pg_result *const *results,
                       const struct err *err)
{
    struct history *d = ctx;
    (void)results;
    if (st != STATUS_OK) {
        task_fail(d, err);
        return;
    }
    if (d->removing.step == HISTORY_DETACHED) {
        log_info("swept", LOG_TEXT("day", d->removing.name));
    }
    history_look(d);
}

static void on_forgotten(void *ctx, enum status st, const struct pg_result *const *results,
                         const struct err *err)
{
    struct history *d = ctx;
    (void)results;
    if (st != STATUS_OK) {
        task_fail(d, err);
        return;
    }
    task_done(d);
}

static void on_old(void *ctx, enum status st, const struct pg_result *const *results,
                   const struct err *err)
{
    struct history *d = ctx;
    if (st != STATUS_OK) {
        task_fail(d, err);
        return;
    }
    struct err failed = {0};
    if (pg_row_count(results[0]) == 0) {
        if (history_store_forget(d->pg, d->options.keep_days, on_forgotten, d, &failed) !=
            STATUS_OK) {
            task_fail(d, &failed);
        }
        return;
    }
    history_day_row(results[0], 0, &d->removing);
    if (history_store_remove(d->pg, &d->removing, on_removed, d, &failed) != STATUS_OK) {
        task_fail(d, &failed);
    }
}

/* One step of one day at a time, until none is left. */
static void history_look(struct history *d)
{
    struct err err = {0};
    if (history_store_old(d->pg, d->options.keep_days, on_old, d, &err) != STATUS_OK) {
        task_fail(d, &err);
    }
}

static void on_ensured(void *ctx, enum status st, const struct pg_result *const *results,
                       const struct err *err)
{
    struct history *d = ctx;
    (void)results;
    if (st != STATUS_OK) {
        task_fail(d, err);
        return;
    }
    history_look(d);
}

/* ---- vacuum ---- */

static void on_vacuumed(void *ctx, enum status st, const struct pg_result *const *results,
                        const struct err *err)
{
    struct history *d = ctx;
    (void)results;
    int64_t now_us = clock_boot_us();
    int64_t took_us = now_us - d->begun_us;
    int64_t rest_us = REST_FACTOR * took_us;
    d->vacuum_at_us =
        now_us + (rest_us > d->options.vacuum_every_us ? rest_us : d->options.vacuum_every_us);
    if (st != STATUS_OK) {
        task_fail(d, err);
        return;
    }
    log_debug("vacuumed", LOG_I64("ms", took_us / US_PER_MS));
    task_done(d);
}

static void on_dead_rows(void *ctx, enum status st, const struct pg_result *const *results,
                         const struct err *err)
{
    struct history *d = ctx;
    if (st != STATUS_OK) {
        task_fail(d, err);
        return;
    }
    bool is_known = pg_row_count(results[0]) > 0;
    int64_t dead = is_known ? pg_i64(results[0], 0, 0) : 0;
    int64_t live = is_known ? pg_i64(results[0], 0, 1) : 0;
    if (dead < DEAD_ROWS_MIN || dead * DEAD_SHARE < live) {
        task_done(d);
        return;
    }
    struct err failed = {0};
    d->begun_us = clock_boot_us();
    if (history_store_vacuum(d->pg, on_vacuumed, d, &failed) != STATUS_OK) {
        task_fail(d, &failed);
    }
}

/* ---- one task at a time ---- */

static void next(struct history *d)
{
    int64_t now_us = clock_boot_us();
    struct err err = {0};
    if (d->is_stopping || d->task != TASK_NONE || !pg_is_up(d->pg)) {
        return;
    }
    if (d->days_at_us <= now_us) {
        d->days_at_us = now_us + d->options.days_every_us;
        d->task = TASK_DAYS;
        if (history_store_ensure(d->pg, DAYS_AHEAD, on_ensured, d, &err) != STATUS_OK) {
            task_fail(d, &err);
        }
        return;
    }
    if (d->vacuum_at_us <= now_us) {
        d->vacuum_at_us = now_us + d->options.vacuum_every_us;
        d->task = TASK_VACUUM;
        if (history_store_dead_rows(d->pg, on_dead_rows, d, &err) != STATUS_OK) {
            task_fail(d, &err);
        }
        return;
    }
    int64_t at_us = d->days_at_us < d->vacuum_at_us ? d->days_at_us : d->vacuum_at_us;
    timer_start(&d->timer, on_timer, (uint64_t)((at_us - now_us) / US_PER_MS) + 1, 0);
}

static void on_up(void *ctx)
{
    struct history *d = ctx;
    next(d);
}

enum status history_start(const struct history_options *options, struct history **ret,
                          struct err *err)
{
    struct history *d = calloc(1, sizeof *d);
    if (d == NULL) {
        return err_fail(err, STATUS_NOMEM, "no memory for the days");
    }
    d->options = *options;
    struct pg_options pg = {.loop = options->loop,
                            .conninfo = options->conninfo,
                            .application_name = "claimd-scheduler days",
                            .timeout_us = options->timeout_us,
                            .on_up = on_up,
                            .ctx = d};
    enum status st = pg_open(&pg, &d->pg, err);
    if (st != STATUS_OK) {
        free(d);
        return st;
    }
    (void)uv_timer_init(options->loop, &d->timer);
    d->timer.data = d;
    *ret = d;
    return STATUS_OK;
}

static void on_closed(uv_handle_t *timer)
{
    free(timer->data);
}

void history_set_keep(struct history *d, int keep_days)
{
    if (d->options.keep_days != keep_days) {
        d->options.keep_days = keep_days;
        d->days_at_us = 0;
        next(d);
    }
}

void history_stop(struct history *d)
{
    if (d == NULL) {
        return;
    }
    d->is_stopping = true;
    pg_close(d->pg);
    uv_close((uv_handle_t *)&d->timer, on_closed);
}
