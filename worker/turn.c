/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/turn.h"

#include "base/clock.h"
#include "base/timer.h"
#include "worker/worker.h"

#define TICK_MS 100
#define TICK_MIN_MS 20

static void act(struct worker *w)
{
    if (w->standing.stage == WORKER_CLOSING) {
        return;
    }
    let_go_ended(&w->intake);
    const struct due due = w->due;
    w->due = (struct due){.listen = false};
    if (due.registered) {
        worker_on_registered(w);
    }
    if (due.limits_of_runs) {
        run_limit_all(&w->jobs, w->standing.heartbeat_confirmed_us);
    }
    if (due.cancels) {
        cancel_act(&w->jobs);
    }
    if (due.listen) {
        listen_update(&w->intake);
    }
    if (due.ready) {
        claim_place_long(&w->intake);
    }
    run_end_leaving(&w->jobs);
    if (due.ready || due.dispatch) {
        dispatch_jobs(&w->jobs);
    }
    if (due.heartbeat) {
        heartbeat_request(&w->membership);
    }
    if (due.news) {
        heartbeat_soon(&w->membership);
    }
    if (due.room) {
        room_poke(&w->intake);
    }
    if (due.end) {
        drain_check(w);
    }
}

static bool is_any_due(const struct worker *w)
{
    const struct due *due = &w->due;
    return due->registered || due->heartbeat || due->news || due->limits_of_runs || due->cancels ||
           due->listen || due->ready || due->dispatch || due->room || due->end ||
           w->active.leaving != NULL || w->active.ended != NULL;
}

/* ---- the tick ---- */

static void on_tick(uv_timer_t *timer)
{
    struct worker *w = timer->data;
    int64_t now = clock_boot_us();
    jobs_tick(&w->jobs, now);
    if (now >= w->intake.room.pause_until_us) {
        w->due.room = true;
    }
    kinds_tick(&w->membership, now);
    orphans_tick(&w->slots, now);
    worker_check_started(w, now);
    ready_check(w);
    w->due.end = true; /* a deadline of the drain may have passed */
}

static enum status open_tick(struct worker *w, struct err *err)
{
    int64_t tick_ms = (int64_t)(TICK_MS * w->servers.config->time_scale);
    uint64_t period = (uint64_t)(tick_ms < TICK_MIN_MS ? TICK_MIN_MS : tick_ms);
    enum status st = timer_open(w->servers.loop, &w->turn.tick, w, "tick", err);
    if (st != STATUS_OK) {
        return st;
    }
    timer_start(&w->turn.tick, on_tick, period, period);
    return STATUS_OK;
}

/* ---- turns ---- */

static void on_after_poll(uv_check_t *check)
{
    act(check->data);
}

static void on_again(uv_idle_t *again)
{
    (void)uv_idle_stop(again);
}

static void on_before_poll(uv_prepare_t *prepare)
{
    struct worker *w = prepare->data;
    act(w);
    spare_look(w);
    if (w->standing.stage != WORKER_CLOSING && is_any_due(w)) {
        (void)uv_idle_start(&w->turn.again,
                            on_again); /* the loop does not wait: this turn is short */
    }
}

enum status turn_open(struct worker *w, struct err *err)
{
    struct turn *t = &w->turn;
    t->before_poll.data = w;
    t->after_poll.data = w;
    int failed = uv_prepare_init(w->servers.loop, &t->before_poll);
    failed = failed != 0 ? failed : uv_check_init(w->servers.loop, &t->after_poll);
    failed = failed != 0 ? failed : uv_idle_init(w->servers.loop, &t->again);
    failed = failed != 0 ? failed : uv_prepare_start(&t->before_poll, on_before_poll);
    failed = failed != 0 ? failed : uv_check_start(&t->after_poll, on_after_poll);
    if (failed != 0) {
        return err_fail(err, STATUS_INTERNAL, "turns of the loop: %s", uv_strerror(failed));
    }
    uv_unref((uv_handle_t *)&t->before_poll);
    uv_unref((uv_handle_t *)&t->after_poll);
    return open_tick(w, err);
}

void turn_close(struct worker *w)
{
    uv_close((uv_handle_t *)&w->turn.before_poll, NULL);
    uv_close((uv_handle_t *)&w->turn.after_poll, NULL);
    uv_close((uv_handle_t *)&w->turn.again, NULL);
    uv_close((uv_handle_t *)&w->turn.tick, NULL);
}
