/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/spare.h"

#include "base/recorder.h"
#include "worker/worker.h"

/* A truncated list would look like a shorter one, so `inv` begins it and `info` ends it. */
static void record_served(const struct worker *w)
{
    record("serves", "inv", RECORD_I64("generation", w->membership.kinds.generation));
    for (size_t i = 0; i < w->servers.config->worker.queue_count; i++) {
        record("serves", "ok", RECORD_TEXT("queue", w->servers.config->worker.queues[i]));
    }
    for (size_t i = 0; i < w->membership.kinds.served.count; i++) {
        record("serves", "ok", RECORD_TEXT("kind", w->membership.kinds.served.names[i]));
    }
    record("serves", "info", RECORD_I64("generation", w->membership.kinds.generation));
}

void spare_look(struct worker *w)
{
    struct spare *s = &w->spare;
    size_t slots = room_spare(&w->intake);
    if (recorder_is_on() && s->recorded_generation != w->membership.kinds.generation) {
        s->recorded_generation = w->membership.kinds.generation;
        record_served(w);
    }
    if (slots != s->slots) {
        record("spare", "ok", RECORD_I64("n", slots));
    }
    s->slots = slots;
    s->least = slots < s->least ? slots : s->least;
}

int spare_take_least(struct worker *w)
{
    int least = (int)w->spare.least;
    w->spare.least = w->spare.slots;
    return least;
}
