/* SPDX-License-Identifier: Apache-2.0
 *
 * Each second pushes the hints of jobs that have waited for their keys and may start by now. Their
 * hints were dropped when they were refused; the claim decides which of them start. */
#include "base/clock.h"
#include "base/log.h"
#include "model/hint.h"
#include "scheduler/feeder.h"
#include "scheduler/poll_service.h"
#include "store/feed_store.h"
#include "store/rescue_store.h"

#define JOBS_PER_ROLL 2000

/* A hint that is not pushed is found again by the next cluster poll. */
static void on_pushed(void *ctx, enum status st, int64_t added)
{
    (void)ctx;
    (void)st;
    (void)added;
}

static void push(const struct service_env *env, const struct pg_result *rows)
{
    struct hint list[JOBS_PER_ROLL];
    size_t count = 0;
    for (int i = 0; i < pg_row_count(rows) && count < ARRAY_COUNT(list); i++) {
        struct rescue_moved job;
        rescue_freed_row(rows, i, &job);
        list[count] = (struct hint){.id = job.id, .score = hint_score(job.priority, job.ready_us)};
        if (feeder_route(env->feeder, job.queue, job.kind, &list[count])) {
            count++;
        }
    }
    struct err err = {0};
    if (count > 0 && hints_push(env->hints, list, count, on_pushed, NULL, &err) != STATUS_OK) {
        log_debug("hints_left", LOG_TEXT("err", err.msg));
    }
}

static enum status send_next(struct pg *pg, pg_done_cb *done, void *ctx, struct err *err)
{
    return feed_store_next_rated(pg, JOBS_PER_ROLL, done, ctx, err);
}

static bool take(struct poll_service *p, const struct pg_result *const *results)
{
    push(p->env, results[0]);
    return false;
}

static void tell(struct complaint *complaint, const struct err *why)
{
    if (why == NULL) {
        log_recovered("rates_recovered", complaint);
    } else if (complaint_due(complaint, clock_boot_us())) {
        log_warn("rates_failed", LOG_TEXT("err", why->msg),
                 LOG_TEXT("action", "trying again each second"));
    }
}

static enum status on_lead(const struct service_env *env, void **ret_self, struct err *err)
{
    static const struct poll_kind rates = {
        .work = FEED_TICK_RATES, .send = send_next, .take = take, .tell = tell};
    return poll_service_start(&rates, sizeof(struct poll_service), env, ret_self, err);
}

const struct service rates_service = {.failed = "rates_failed",
                                      .start = on_lead,
                                      .polled = poll_service_polled,
                                      .stop = poll_service_stop};
