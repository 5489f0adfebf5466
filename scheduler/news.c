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
    cluster_poll_now(n->cluster_poll);
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

/* Notifies the workers only after the poll, which names also those whose first heartbeat came
 * before the change. */
void news_polled(struct news *n, const struct cluster_view *view)
{
    const char *ids[POLL_WORKERS_MAX];
    struct err err = {0};
    if (!view->is_asked_for) {
        return;
    }
    size_t count = cluster_poll_live(n->cluster_poll, ids);
    if (count > 0 && hints_tell_sleepers(n->hints, ids, count, &err) != STATUS_OK) {
        log_debug("news_left", LOG_TEXT("err", err.msg));
    }
}

void news_open(struct news *n, uv_loop_t *loop, struct cluster_poll *cluster_poll,
               struct hints *hints)
{
    *n = (struct news){.cluster_poll = cluster_poll, .hints = hints};
    (void)uv_timer_init(loop, &n->timer); /* can't fail */
    n->timer.data = n;
}

void news_close(struct news *n)
{
    uv_close((uv_handle_t *)&n->timer, NULL);
}
