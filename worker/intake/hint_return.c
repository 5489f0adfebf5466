/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/intake/hint_return.h"

#include "base/clock.h"
#include "base/timer.h"
#include "worker/intake/intake.h"
#include "worker/intake/kept_hint.h"

#define HINT_RETURN_MAX 5000
/* Delay before the hints of locked rows are pushed. It doubles while claims meet nothing but locked
 * rows. Then each further hint restarts the delay, so that the worker meets the whole run of locked
 * rows and gets to the jobs behind them; but only for WALL_MAX_US and up to WALL_MAX hints. */
#define DELAY_FIRST_MS 20
#define DELAY_MAX_MS 640
#define WALL_MAX_US (10 * US_PER_S)
#define WALL_MAX (HINT_RETURN_MAX / 2)

/* Two lists: one gathers hints while the other is being sent. */
struct hint_return {
    struct kept_hint gathering[HINT_RETURN_MAX];
    size_t gathered;
    struct kept_hint sending[HINT_RETURN_MAX];
    struct hint hints[HINT_RETURN_MAX]; /* the list `sending` in the form that hints_push() takes */
    size_t sent;
    bool is_busy;
    uint64_t delay_ms;
    int64_t since_us; /* when the first of the gathered hints was added */
    uv_timer_t timer;
};

static void send_next(struct intake *in);

/* A hint that can't be pushed is not lost: the scheduler reads PostgreSQL again (rule 13). */
static void on_pushed(void *ctx, enum status st, int64_t added)
{
    struct intake *in = ctx;
    (void)added;
    if (in->env.standing->stage == WORKER_CLOSING) {
        return;
    }
    if (st == STATUS_OK) {
        metric_add(in->env.metrics->put_back, in->hint_return->sent);
    } else {
        in->env.standing->has_lost_pop = true;
    }
    in->hint_return->is_busy = false;
    in->hint_return->sent = 0;
    send_next(in);
    in->env.due->end = true;
}

static void on_flushed(void *ctx)
{
    struct intake *in = ctx;
    struct hint_return *p = in->hint_return;
    if (in->env.standing->stage == WORKER_CLOSING) {
        return; /* the lock's last flush: everything that is needed here is closed by now */
    }
    for (size_t i = 0; i < p->sent; i++) {
        p->hints[i] = kept_hint_as_hint(&p->sending[i]);
    }
    if (hints_push(in->env.servers->hints, p->hints, p->sent, on_pushed, in, NULL) != STATUS_OK) {
        on_pushed(in, STATUS_UNAVAILABLE, 0);
    }
}

static void send_next(struct intake *in)
{
    struct hint_return *p = in->hint_return;
    if (p->is_busy || p->gathered == 0) {
        return;
    }
    memcpy(p->sending, p->gathering, p->gathered * sizeof p->gathering[0]);
    p->sent = p->gathered;
    p->gathered = 0;
    p->is_busy = true;
    if (redlock_async_flush(in->env.servers->lock, on_flushed, in, NULL) != 0) {
        on_flushed(in);
    }
}

static void on_due(uv_timer_t *timer)
{
    send_next(timer->data);
}

/* Claims have met nothing but locked rows so far, and there may be more of them. */
static bool is_wall(const struct hint_return *p)
{
    return p->delay_ms > DELAY_FIRST_MS && p->gathered < WALL_MAX &&
           clock_boot_us() - p->since_us < WALL_MAX_US;
}

void hint_return_add(struct intake *in, const struct hint *h)
{
    struct hint_return *p = in->hint_return;
    if (p->gathered == HINT_RETURN_MAX) {
        in->env.standing->has_lost_pop = true;
        return;
    }
    if (p->gathered == 0) {
        p->since_us = clock_boot_us();
    }
    kept_hint_set(&p->gathering[p->gathered++], h);
    if (p->is_busy) {
        return;
    }
    bool is_timed = uv_is_active((uv_handle_t *)&p->timer) != 0;
    if (!is_timed || (in->env.standing->stage == WORKER_RUNNING && is_wall(p))) {
        uint64_t delay_ms = in->env.standing->stage == WORKER_RUNNING ? p->delay_ms : 0;
        timer_start(&p->timer, on_due, delay_ms, 0);
    }
}

void hint_return_pace(struct intake *in, bool is_progress)
{
    uint64_t *delay_ms = &in->hint_return->delay_ms;
    uint64_t next_ms = is_progress ? DELAY_FIRST_MS : *delay_ms * 2;
    *delay_ms = next_ms < DELAY_MAX_MS ? next_ms : DELAY_MAX_MS;
}

enum status hint_return_open(struct intake *in, struct err *err)
{
    in->hint_return = calloc(1, sizeof *in->hint_return);
    if (in->hint_return == NULL) {
        return err_fail(err, STATUS_NOMEM, "no memory for the hints to put back");
    }
    in->hint_return->delay_ms = DELAY_FIRST_MS;
    enum status st =
        timer_open(in->env.servers->loop, &in->hint_return->timer, in, "put back", err);
    if (st != STATUS_OK) {
        free(TAKE(in->hint_return));
    }
    return st;
}

static void on_timer_closed(uv_handle_t *handle)
{
    struct intake *in = handle->data;
    free(TAKE(in->hint_return));
}

void hint_return_close(struct intake *in)
{
    if (in->hint_return != NULL && !uv_is_closing((uv_handle_t *)&in->hint_return->timer)) {
        uv_close((uv_handle_t *)&in->hint_return->timer, on_timer_closed);
    }
}

void hint_return_now(struct intake *in)
{
    if (in->hint_return->gathered > 0) {
        (void)uv_timer_stop(&in->hint_return->timer);
        send_next(in);
    }
}

bool hint_return_is_idle(const struct intake *in)
{
    return !in->hint_return->is_busy && in->hint_return->gathered == 0;
}
