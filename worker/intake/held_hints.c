/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/intake/held_hints.h"

#include "base/timer.h"
#include "worker/intake/intake.h"

/* Long enough for a new holder to claim the job, or for the previous one to release its lock, so
 * that hints do not circulate in a tight loop. */
#define DELAY_MS 100

static void on_due(uv_timer_t *timer);

static void ask_later(struct intake *in)
{
    if (!uv_is_active((uv_handle_t *)&in->held_hints.timer)) {
        timer_start(&in->held_hints.timer, on_due, DELAY_MS, 0);
    }
}

void held_hints_add(struct intake *in, const struct hint *hint)
{
    struct held_hints *h = &in->held_hints;
    if (in->env.standing->stage != WORKER_RUNNING) {
        hint_return_add(in, hint); /* another worker may ask */
        return;
    }
    if (h->gathered == HELD_HINTS_MAX) {
        return;
    }
    kept_hint_set(&h->gathering[h->gathered++], hint);
    ask_later(in);
}

static void on_waiting(void *ctx, const struct freed_job *job)
{
    struct intake *in = ctx;
    for (size_t i = 0; i < in->held_hints.asked_count; i++) {
        const struct hint h = kept_hint_as_hint(&in->held_hints.asked[i]);
        if (h.id == job->id) {
            hint_return_add(in, &h);
            return;
        }
    }
}

static void on_answered(void *ctx, enum status st)
{
    struct intake *in = ctx;
    if (st != STATUS_OK) {
        in->env.standing->has_lost_pop = true; /* a full pass finds the jobs that wait */
    }
    in->held_hints.asked_count = 0;
    if (in->held_hints.gathered > 0) {
        ask_later(in);
    }
    in->env.due->end = true;
}

static void on_due(uv_timer_t *timer)
{
    struct intake *in = timer->data;
    struct held_hints *h = &in->held_hints;
    int64_t ids[HELD_HINTS_MAX];
    if (h->asked_count > 0) {
        return;
    }
    memcpy(h->asked, h->gathering, h->gathered * sizeof h->gathering[0]);
    h->asked_count = h->gathered;
    h->gathered = 0;
    for (size_t i = 0; i < h->asked_count; i++) {
        ids[i] = h->asked[i].id;
    }
    if (job_store_ask(in->env.servers->store, QUESTION_DUE, ids, h->asked_count, on_waiting,
                      on_answered, in, NULL) != STATUS_OK) {
        on_answered(in, STATUS_UNAVAILABLE);
    }
}

bool held_hints_is_idle(const struct intake *in)
{
    return in->held_hints.asked_count == 0 && in->held_hints.gathered == 0;
}

enum status held_hints_open(struct intake *in, struct err *err)
{
    return timer_open(in->env.servers->loop, &in->held_hints.timer, in, "held hints", err);
}

void held_hints_close(struct intake *in)
{
    uv_close((uv_handle_t *)&in->held_hints.timer, NULL);
}
