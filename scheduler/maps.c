/* SPDX-License-Identifier: Apache-2.0
 *
 * Works on maps each second: records and counts the rows that have ended, in rounds until none is
 * left, and makes the next jobs due. One statement takes and writes each end, so none is counted
 * twice, and two leaders at once are harmless. */
#include "base/clock.h"
#include "base/log.h"
#include "scheduler/services.h"
#include "store/feed_store.h"
#include "store/map_store.h"

struct maps {
    struct pg *pg; /* the scheduler's own connection */
    struct complaint complaint;
    bool is_asking;
    bool is_stopped;
};

static void ask(struct maps *m);

static void on_moved(void *ctx, enum status st, const struct pg_result *const *results,
                     const struct err *err)
{
    struct maps *m = ctx;
    m->is_asking = false;
    if (m->is_stopped) {
        free(m);
        return;
    }
    if (st != STATUS_OK) {
        if (complaint_due(&m->complaint, clock_boot_us())) {
            log_warn("maps_failed", LOG_TEXT("err", err->msg),
                     LOG_TEXT("action", "trying again each second"));
        }
        return;
    }
    log_recovered("maps_recovered", &m->complaint);
    if (map_store_moved(results) >= MAP_ENDS_PER_ROUND) {
        ask(m);
    }
}

static void ask(struct maps *m)
{
    if (!m->is_asking && pg_is_up(m->pg)) {
        m->is_asking = map_store_move(m->pg, on_moved, m, NULL) == STATUS_OK;
    }
}

static void on_roll(void *self, const struct roll *roll)
{
    if ((roll->work & FEED_TICK_MAPS) != 0) {
        ask(self);
    }
}

static enum status on_lead(const struct service_env *env, void **ret_self, struct err *err)
{
    struct maps *m = calloc(1, sizeof *m);
    if (m == NULL) {
        return err_fail(err, STATUS_NOMEM, "no memory for the maps");
    }
    m->pg = env->pg;
    *ret_self = m;
    return STATUS_OK;
}

/* A request in flight is still answered, with an error if the connection is lost: on_moved() then
 * frees `m`. */
static void on_stop(void *self)
{
    struct maps *m = self;
    m->is_stopped = true;
    if (!m->is_asking) {
        free(m);
    }
}

const struct service maps_service = {
    .failed = "maps_failed", .start = on_lead, .roll = on_roll, .stop = on_stop};
