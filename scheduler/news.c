/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/news.h"

#include "base/log.h"
#include "base/timer.h"

#define EVERY_MS 50

static void on_timer(uv_timer_t *timer);

static void call(struct news *n)
{
    n->is_more = false;
    timer_start(&n->timer, on_timer, EVERY_MS, 0);
    roll_call_now(n->roll_call);
}

static void on_timer(uv_timer_t *timer)
{
    struct news *n = timer->data;
    if (n->is_more) {
        call(n);
    }
}

void news_take(struct news *n)
{
    n->is_more = true;
    if (!uv_is_active((uv_handle_t *)&n->timer)) {
        call(n);
    }
}

/* Notifies the workers only after the roll, which names also those whose first heartbeat came
 * before the change. */
void news_roll(struct news *n, const struct roll *roll)
{
    const char *ids[ROLL_WORKERS_MAX];
    struct err err = {0};
    if (!roll->is_asked_for) {
        return;
    }
    size_t count = roll_call_live(n->roll_call, ids);
    if (count > 0 && hints_tell_sleepers(n->hints, ids, count, &err) != STATUS_OK) {
        log_debug("news_left", LOG_TEXT("err", err.msg));
    }
}

void news_open(struct news *n, uv_loop_t *loop, struct roll_call *roll_call, struct hints *hints)
{
    *n = (struct news){.roll_call = roll_call, .hints = hints};
    (void)uv_timer_init(loop, &n->timer); /* can't fail */
    n->timer.data = n;
}

void news_close(struct news *n)
{
    uv_close((uv_handle_t *)&n->timer, NULL);
}
