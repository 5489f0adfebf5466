/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/report.h"

#include "base/build.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/rand.h"
#include "base/timer.h"
#include "daemon/daemon.h"
#include "store/scheduler_store.h"

#define EVERY_US (2 * US_PER_S)
#define STALE_REPORTS 4 /* as for workers: four heartbeats */
#define STEP_MIN_US US_PER_S

struct report {
    struct report_options options;
    char id[RAND_UUID_SIZE];
    char host[256];
    uv_timer_t timer;
    int64_t every_us;
    struct scheduler_saying saying;
    bool is_saying;
    bool is_late; /* a report was due while another was in flight */
    bool is_closed;
    int64_t asked_us;
    int64_t leader_us; /* BOOTTIME when leading began; 0 = a standby */
    struct report_clock clock;
    int64_t step_us;
    int64_t stepped_us; /* BOOTTIME; 0 = never */
    struct complaint complaint;
};

int64_t report_clock_step(struct report_clock *c, int64_t clock_us, int64_t asked_us,
                          int64_t answered_us)
{
    struct report_clock now = {
        .low_us = clock_us - answered_us, .high_us = clock_us - asked_us, .is_known = true};
    int64_t step_us = 0;
    if (c->is_known && now.low_us > c->high_us) {
        step_us = now.low_us - c->high_us;
    } else if (c->is_known && now.high_us < c->low_us) {
        step_us = now.high_us - c->low_us;
    }
    *c = now;
    return step_us >= STEP_MIN_US || step_us <= -STEP_MIN_US ? step_us : 0;
}

static void on_timer_closed(uv_handle_t *timer)
{
    free(timer->data);
}

static void on_reported(void *ctx, enum status st, int64_t pg_us, const struct err *err)
{
    struct report *r = ctx;
    r->is_saying = false;
    if (r->is_closed) {
        return;
    }
    if (st == STATUS_CONFLICT) {
        log_error("lock_nodes_changed", LOG_TEXT("err", err->msg));
        r->options.on_other_nodes(r->options.ctx);
        return;
    }
    if (st != STATUS_OK) {
        if (complaint_due(&r->complaint, clock_boot_us())) {
            log_warn("report_failed", LOG_TEXT("err", err->msg),
                     LOG_TEXT("action", "doctor sees an old row; trying again"));
        }
        return;
    }
    if (r->is_late) {
        report_now(r);
    }
    log_recovered("report_recovered", &r->complaint);
    int64_t now_us = clock_boot_us();
    int64_t step_us = report_clock_step(&r->clock, pg_us, r->asked_us, now_us);
    if (step_us != 0) {
        r->step_us = step_us;
        r->stepped_us = now_us;
        log_warn("clock_stepped", LOG_TEXT("server", "postgres"),
                 LOG_I64("step_ms", step_us / US_PER_MS),
                 LOG_TEXT("action", "configure NTP on its host to slew the clock"));
    }
}

static int64_t age_us(int64_t then_us, int64_t now_us)
{
    return then_us > 0 ? now_us - then_us : SCHEDULER_NEVER;
}

static void say(struct report *r)
{
    const struct report_options *o = &r->options;
    int64_t now_us = clock_boot_us();
    bool is_leader = lead_is_leader(o->lead);
    if (!is_leader) {
        r->leader_us = 0;
    } else if (r->leader_us == 0) {
        r->leader_us = now_us;
    }
    if (r->is_saying || !pg_is_up(o->pg)) {
        r->is_late = r->is_saying;
        return;
    }
    r->is_late = false;
    int64_t passed_us = is_leader ? feeder_counters(o->feeder)->ended_us : 0;
    const struct full_pass_counters *full = feeder_full_passes(o->feeder);
    const struct feeder_lanes lanes = feeder_lanes(o->feeder);
    const struct scheduler_report report = {
        .scheduler_id = r->id,
        .stale_us = STALE_REPORTS * r->every_us,
        .host = r->host,
        .version = CLAIMD_BUILD,
        .pid = (int)getpid(),
        .fingerprint = o->fingerprint,
        .leads_us = age_us(r->leader_us, now_us),
        .passed_us = age_us(passed_us, now_us),
        .full_age_us = age_us(is_leader ? full->began_us : 0, now_us),
        .full_took_us = is_leader ? full->took_us : 0,
        .lanes = is_leader ? lanes.lanes : 0,
        .lap_queue = is_leader ? lanes.lap_queue : "",
        .lap_us = is_leader ? lanes.lap_us : 0,
        .lock_nodes = (int)o->config->lock.node_count,
        .lock_nodes_voting = (int)redlock_async_voting(lead_lock(o->lead)),
        .clock_step_us = r->step_us,
        .stepped_us = age_us(r->stepped_us, now_us),
        .last_error = o->last_error->msg};
    r->asked_us = now_us;
    r->is_saying = scheduler_store_report(o->pg, &report, &r->saying, NULL) == STATUS_OK;
}

static void on_timer(uv_timer_t *timer)
{
    say(timer->data);
}

void report_now(struct report *r)
{
    if (r != NULL) {
        timer_start(&r->timer, on_timer, 1, uv_timer_get_repeat(&r->timer));
    }
}

enum status report_open(const struct report_options *options, struct report **ret, struct err *err)
{
    struct report *r = calloc(1, sizeof *r);
    if (r == NULL) {
        return err_fail(err, STATUS_NOMEM, "no memory for the report");
    }
    r->options = *options;
    r->every_us = config_scaled(options->config, EVERY_US);
    r->saying = (struct scheduler_saying){
        .fingerprint = options->fingerprint, .done = on_reported, .ctx = r};
    enum status st = rand_uuid(r->id, err);
    if (st != STATUS_OK) {
        free(r);
        return st;
    }
    daemon_host(options->config, r->host, sizeof r->host);
    (void)uv_timer_init(options->loop, &r->timer);
    r->timer.data = r;
    uint64_t every_ms = (uint64_t)(r->every_us / US_PER_MS);
    timer_start(&r->timer, on_timer, 1, every_ms < 1 ? 1 : every_ms);
    *ret = r;
    return STATUS_OK;
}

/* pg_close() ends the request in flight before the timer's memory is freed. */
void report_close(struct report *r)
{
    if (r == NULL) {
        return;
    }
    r->is_closed = true;
    if (pg_is_up(r->options.pg)) {
        scheduler_store_gone(r->options.pg, r->id);
    }
    uv_close((uv_handle_t *)&r->timer, on_timer_closed);
}
