/* SPDX-License-Identifier: Apache-2.0
 *
 * Each second pushes the hints of jobs that may start by now, of keys with a rate and of jobs that
 * need two keys. The hints of refused jobs were dropped; the claim decides which of them start. */
#include "base/clock.h"
#include "base/log.h"
#include "model/hint.h"
#include "scheduler/feeder.h"
#include "scheduler/services.h"
#include "store/feed_store.h"
#include "store/rescue_store.h"

#define JOBS_PER_ROLL 2000

struct rates {
    const struct service_env *env;
    struct complaint complaint;
    bool is_asking;
    bool is_stopped;
};

/* A hint that is not pushed is found again by the next roll call. */
static void on_pushed(void *ctx, enum status st, int64_t added)
{
    (void)ctx;
    (void)st;
    (void)added;
}

static void push(const struct rates *r, const struct pg_result *rows)
{
    struct hint list[JOBS_PER_ROLL];
    size_t count = 0;
    for (int i = 0; i < pg_row_count(rows) && count < ARRAY_COUNT(list); i++) {
        struct rescue_moved job;
        rescue_freed_row(rows, i, &job);
        list[count] = (struct hint){.id = job.id, .score = hint_score(job.priority, job.ready_us)};
        if (feeder_route(r->env->feeder, job.queue, job.kind, &list[count])) {
            count++;
        }
    }
    struct err err = {0};
    if (count > 0 && hints_push(r->env->hints, list, count, on_pushed, NULL, &err) != STATUS_OK) {
        log_debug("hints_left", LOG_TEXT("err", err.msg));
    }
}

static void on_rows(void *ctx, enum status st, const struct pg_result *const *results,
                    const struct err *err)
{
    struct rates *r = ctx;
    r->is_asking = false;
    if (r->is_stopped) {
        free(r);
        return;
    }
    if (st == STATUS_OK) {
        log_recovered("rates_recovered", &r->complaint);
        push(r, results[0]);
    } else if (complaint_due(&r->complaint, clock_boot_us())) {
        log_warn("rates_failed", LOG_TEXT("err", err->msg),
                 LOG_TEXT("action", "trying again each second"));
    }
}

static void on_roll(void *self, const struct roll *roll)
{
    struct rates *r = self;
    bool is_wanted = (roll->work & FEED_TICK_RATES) != 0;
    if (is_wanted && !r->is_asking && pg_is_up(r->env->pg)) {
        r->is_asking =
            feed_store_next_rated(r->env->pg, JOBS_PER_ROLL, on_rows, r, NULL) == STATUS_OK;
    }
}

static enum status on_lead(const struct service_env *env, void **ret_self, struct err *err)
{
    struct rates *r = calloc(1, sizeof *r);
    if (r == NULL) {
        return err_fail(err, STATUS_NOMEM, "no memory for the rates of keys");
    }
    r->env = env;
    *ret_self = r;
    return STATUS_OK;
}

/* The reply in flight still arrives, if only to report that the connection is gone. */
static void on_stop(void *self)
{
    struct rates *r = self;
    r->is_stopped = true;
    if (!r->is_asking) {
        free(r);
    }
}

const struct service rates_service = {
    .failed = "rates_failed", .start = on_lead, .roll = on_roll, .stop = on_stop};
