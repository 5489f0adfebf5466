/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/drain.h"

#include "base/clock.h"
#include "base/notify.h"
#include "worker/worker.h"

#define GIVE_UP_US (10 * US_PER_S) /* after the deadline, for results that are not committed */
#define NOW_US (2 * US_PER_S)      /* the same after a second signal */

static void on_row_stopped(void *ctx, enum status st, const struct err *err)
{
    struct worker *w = ctx;
    (void)st; /* if it failed, the heartbeat becomes stale, which has the same effect later */
    (void)err;
    worker_close(w);
}

static void say_stopped(struct worker *w)
{
    if (w->drain.is_saying_goodbye) {
        return;
    }
    w->drain.is_saying_goodbye = true;
    w->drain.give_up_at_us = clock_boot_us() + NOW_US; /* PostgreSQL may never come back */
    notify_stopping();
    /* No more hints; the scheduler rewinds for lost ones. */
    hints_popper_close(TAKE(w->servers.popper));
    hints_forget_sleeper(w->servers.hints, w->standing.worker_id);
    run_stats_save_last(&w->jobs);
    if (!w->standing.is_registered || worker_store_stopped(w->servers.pg, w->standing.worker_id,
                                                           on_row_stopped, w, NULL) != STATUS_OK) {
        worker_close(w);
    }
}

void drain_check(struct worker *w)
{
    if (w->standing.stage != WORKER_DRAINING) {
        return;
    }
    bool is_empty = active_total(&w->active) == 0 && intake_is_idle(&w->intake);
    bool is_late = clock_boot_us() >= w->drain.give_up_at_us;
    if (is_empty && w->drain.is_saying_goodbye && is_late) {
        worker_close(w);
    } else if (is_empty) {
        say_stopped(w);
    } else if (is_late) {
        log_error(
            "drain_incomplete", LOG_I64("jobs", active_total(&w->active)),
            LOG_TEXT("action", "the scheduler rescues them when this worker's heartbeat is stale"));
        w->exit_code = 1;
        worker_close(w);
    }
}

void drain_begin(struct worker *w, int64_t within_us)
{
    int64_t now = clock_boot_us();
    int64_t guard = w->servers.config->lock.guard_us < within_us / 2
                        ? w->servers.config->lock.guard_us
                        : within_us / 2;
    w->standing.stage = WORKER_DRAINING;
    w->standing.stop_at_us = now + within_us - guard;
    w->standing.kill_at_us = now + within_us;
    w->drain.give_up_at_us = now + within_us + (within_us == 0 ? NOW_US : GIVE_UP_US);
    log_info("draining", LOG_I64("running", w->active.count[ACTIVE_RUNNING]),
             LOG_I64("within_ms", within_us / US_PER_MS));
    telemetry_publish(w->telemetry);
    w->due.listen = true;
    w->due.end = true;
}
