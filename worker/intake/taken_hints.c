/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/intake/taken_hints.h"

#include "base/timer.h"
#include "worker/worker.h"

/* Long enough for a new holder to claim the job, or for the previous one to release its lock, so
 * that hints do not circulate in a tight loop. */
#define DELAY_MS 100

static void on_due(uv_timer_t *timer);

static void ask_later(struct worker *w)
{
    if (!uv_is_active((uv_handle_t *)&w->taken_hints.timer)) {
        timer_start(&w->taken_hints.timer, on_due, DELAY_MS, 0);
    }
}

void taken_hints_add(struct worker *w, const struct hint *hint)
{
    struct taken_hints *h = &w->taken_hints;
    if (w->standing.stage != WORKER_RUNNING) {
        hint_return_add(w, hint); /* another worker may ask */
        return;
    }
    if (h->gathered == TAKEN_HINTS_MAX) {
        return;
    }
    kept_hint_set(&h->gathering[h->gathered++], hint);
    ask_later(w);
}

static void on_waiting(void *worker, const struct freed_job *job)
{
    struct worker *w = worker;
    for (size_t i = 0; i < w->taken_hints.asked_count; i++) {
        const struct hint h = kept_hint_as_hint(&w->taken_hints.asked[i]);
        if (h.id == job->id) {
            hint_return_add(w, &h);
            return;
        }
    }
}

static void on_answered(void *ctx, enum status st)
{
    struct worker *w = ctx;
    if (st != STATUS_OK) {
        w->standing.has_lost_pop = true; /* a full pass finds the jobs that wait */
    }
    w->taken_hints.asked_count = 0;
    if (w->taken_hints.gathered > 0) {
        ask_later(w);
    }
    w->due.end = true;
}

static void on_due(uv_timer_t *timer)
{
    struct worker *w = timer->data;
    struct taken_hints *h = &w->taken_hints;
    int64_t ids[TAKEN_HINTS_MAX];
    if (h->asked_count > 0) {
        return;
    }
    memcpy(h->asked, h->gathering, h->gathered * sizeof h->gathering[0]);
    h->asked_count = h->gathered;
    h->gathered = 0;
    for (size_t i = 0; i < h->asked_count; i++) {
        ids[i] = h->asked[i].id;
    }
    if (job_store_due(w->servers.store, ids, h->asked_count, on_waiting, on_answered, w, NULL) !=
        STATUS_OK) {
        on_answered(w, STATUS_UNAVAILABLE);
    }
}

bool taken_hints_is_idle(const struct worker *w)
{
    return w->taken_hints.asked_count == 0 && w->taken_hints.gathered == 0;
}

enum status taken_hints_open(struct worker *w, struct err *err)
{
    return timer_open(w->servers.loop, &w->taken_hints.timer, w, "taken hints", err);
}

void taken_hints_close(struct worker *w)
{
    uv_close((uv_handle_t *)&w->taken_hints.timer, NULL);
}
