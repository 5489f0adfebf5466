/* SPDX-License-Identifier: Apache-2.0
 *
 * Creates the history partitions of today and tomorrow within a second if they are missing, after a
 * step of PostgreSQL's clock or because a partition was dropped by hand. Without them no job can
 * end, so this does not wait for the statements of scheduler/history.c, which creates the
 * partitions of later days. */
#include "base/clock.h"
#include "base/log.h"
#include "scheduler/services.h"
#include "store/feed_store.h"
#include "store/history_store.h"

struct days {
    struct pg *pg; /* borrowed */
    struct complaint complaint;
    bool is_asking;
    bool is_stopped;
};

static void on_made(void *ctx, enum status st, const struct pg_result *const *results,
                    const struct err *err)
{
    struct days *d = ctx;
    (void)results;
    d->is_asking = false;
    if (d->is_stopped) {
        free(d);
    } else if (st == STATUS_OK) {
        log_recovered("days_recovered", &d->complaint);
    } else if (complaint_due(&d->complaint, clock_boot_us())) {
        log_error("days_failed", LOG_TEXT("err", err->msg),
                  LOG_TEXT("action", "no job can end; trying again each second"));
    }
}

static void on_roll(void *self, const struct roll *roll)
{
    struct days *d = self;
    if ((roll->work & FEED_TICK_NO_DAY) != 0 && !d->is_asking && pg_is_up(d->pg)) {
        d->is_asking = history_store_ensure_now(d->pg, on_made, d, NULL) == STATUS_OK;
    }
}

static enum status on_lead(const struct service_env *env, void **ret_self, struct err *err)
{
    struct days *d = calloc(1, sizeof *d);
    if (d == NULL) {
        return err_fail(err, STATUS_NOMEM, "no memory for the days of the history");
    }
    d->pg = env->pg;
    *ret_self = d;
    return STATUS_OK;
}

/* The reply in flight still arrives, if only to report that the connection is gone. */
static void on_stop(void *self)
{
    struct days *d = self;
    d->is_stopped = true;
    if (!d->is_asking) {
        free(d);
    }
}

const struct service days_service = {
    .failed = "days_failed", .start = on_lead, .roll = on_roll, .stop = on_stop};
