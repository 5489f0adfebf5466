/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/turn.h"

#include "worker/intake/claim.h"
#include "worker/worker.h"

static void act(struct worker *w)
{
    if (w->standing.stage == WORKER_CLOSING) {
        return;
    }
    const struct due due = w->due;
    w->due = (struct due){.listen = false};
    if (due.registered) {
        worker_on_registered(w);
    }
    if (due.limits_of_runs) {
        run_limit_all(w, w->standing.beat_confirmed_us);
    }
    if (due.limits) {
        limits_update(w);
    }
    if (due.listen) {
        listen_update(w);
    }
    if (due.ready) {
        claim_place_long(w);
    }
    if (due.ready || due.dispatch) {
        dispatch_jobs(w);
    }
    if (due.beat) {
        beat_request(&w->membership);
    }
    if (due.room) {
        fetch_poke(w);
    }
    if (due.end) {
        drain_check(w);
    }
}

static bool is_any_due(const struct due *due)
{
    return due->registered || due->beat || due->limits_of_runs || due->limits || due->listen ||
           due->ready || due->dispatch || due->room || due->end;
}

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
    if (w->standing.stage != WORKER_CLOSING && is_any_due(&w->due)) {
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
    return STATUS_OK;
}

void turn_close(struct worker *w)
{
    uv_close((uv_handle_t *)&w->turn.before_poll, NULL);
    uv_close((uv_handle_t *)&w->turn.after_poll, NULL);
    uv_close((uv_handle_t *)&w->turn.again, NULL);
}
