/* SPDX-License-Identifier: Apache-2.0
 *
 * Creates the history partitions of today and tomorrow within a second if they are missing, after a
 * step of PostgreSQL's clock or because a partition was dropped by hand. Without them no job can
 * end, so this does not wait for the statements of scheduler/history.c, which creates the
 * partitions of later days. */
#include "base/clock.h"
#include "base/log.h"
#include "scheduler/poll_service.h"
#include "store/feed_store.h"
#include "store/history_store.h"

static bool take(struct poll_service *p, const struct pg_result *const *results)
{
    (void)p;
    (void)results;
    return false;
}

static void tell(struct complaint *complaint, const struct err *why)
{
    if (why == NULL) {
        log_recovered("days_recovered", complaint);
    } else if (complaint_due(complaint, clock_boot_us())) {
        log_error("days_failed", LOG_TEXT("err", why->msg),
                  LOG_TEXT("action", "no job can end; trying again each second"));
    }
}

static enum status on_lead(const struct service_env *env, void **ret_self, struct err *err)
{
    static const struct poll_kind days = {
        .work = FEED_TICK_NO_DAY, .send = history_store_ensure_now, .take = take, .tell = tell};
    return poll_service_start(&days, sizeof(struct poll_service), env, ret_self, err);
}

const struct service days_service = {.failed = "days_failed",
                                     .start = on_lead,
                                     .polled = poll_service_polled,
                                     .stop = poll_service_stop};
