/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/limits.h"

#include "model/hint.h"
#include "worker/worker.h"

/* Into the queue's own set: whoever doesn't serve the kind passes it on. */
static void add_hint(void *worker, const struct freed_job *job)
{
    hint_return_add(worker, job->id, hint_score(job->priority, job->ready_at_unix_us), job->queue,
                    NULL);
}

void limits_freed(void *worker, const struct freed_job *job)
{
    struct worker *w = worker;
    if (w->stage != WORKER_CLOSING) {
        add_hint(w, job);
        hint_return_now(w);
    }
}

void limits_refused(struct worker *w, int64_t id)
{
    struct limits *l = &w->limits;
    if (l->refused_count < LIMITS_REFUSED_MAX) { /* else: of a key that is asked for, most likely */
        l->refused[l->refused_count++] = id;
    }
}

static void on_next(void *ctx, enum status st)
{
    struct worker *w = ctx;
    if (st != STATUS_OK) {
        w->beat.has_lost_pop = true; /* a full pass finds it */
    }
    w->limits.is_asking = false;
    limits_ask(w);
}

static void on_flushed(void *ctx)
{
    struct worker *w = ctx;
    struct limits *l = &w->limits;
    if (w->stage == WORKER_CLOSING) {
        return; /* the lock's last flush: nothing that this needs is open any more */
    }
    size_t count = l->refused_count;
    l->refused_count = 0;
    if (job_store_next(w->store, l->refused, count, add_hint, on_next, w, NULL) != STATUS_OK) {
        on_next(w, STATUS_UNAVAILABLE);
    }
}

void limits_ask(struct worker *w)
{
    struct limits *l = &w->limits;
    if (l->is_asking || l->refused_count == 0) {
        return;
    }
    l->is_asking = true;
    if (redlock_async_flush(w->lock, on_flushed, w, NULL) != 0) {
        on_flushed(w);
    }
}
