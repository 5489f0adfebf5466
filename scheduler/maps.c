/* SPDX-License-Identifier: Apache-2.0
 *
 * Works on maps each second: records and counts the rows that have ended, in rounds until none is
 * left, and makes the next jobs due. One statement takes and writes each end, so none is counted
 * twice, and two leaders at once are harmless. */
#include "base/clock.h"
#include "base/log.h"
#include "scheduler/poll_service.h"
#include "store/feed_store.h"
#include "store/map_store.h"

static bool take(struct poll_service *p, const struct pg_result *const *results)
{
    (void)p;
    return map_store_moved(results) >= MAP_ENDS_PER_ROUND;
}

static void tell(struct complaint *complaint, const struct err *why)
{
    if (why == NULL) {
        log_recovered("maps_recovered", complaint);
    } else if (complaint_due(complaint, clock_boot_us())) {
        log_warn("maps_failed", LOG_TEXT("err", why->msg),
                 LOG_TEXT("action", "trying again each second"));
    }
}

static enum status on_lead(const struct service_env *env, void **ret_self, struct err *err)
{
    static const struct poll_kind maps = {
        .work = FEED_TICK_MAPS, .send = map_store_move, .take = take, .tell = tell};
    return poll_service_start(&maps, sizeof(struct poll_service), env, ret_self, err);
}

const struct service maps_service = {.failed = "maps_failed",
                                     .start = on_lead,
                                     .polled = poll_service_polled,
                                     .stop = poll_service_stop};
