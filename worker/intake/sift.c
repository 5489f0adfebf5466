/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/intake/sift.h"

#include "worker/worker.h"

/* A worker that meets only a few such hints, as after a cancel, continues to lock them: sifting
 * would ask PostgreSQL twice for the jobs that exist. */
#define GONE_MANY 50

void sift_claimed(struct worker *w, size_t claimed, size_t gone, size_t refused)
{
    struct sift *s = &w->sift;
    s->gone = claimed == 0 && gone == refused ? s->gone + gone : 0;
    s->is_on = s->is_on || s->gone >= GONE_MANY;
}

size_t sift_want(const struct worker *w, size_t want)
{
    const struct sift *s = &w->sift;
    if (want == 0 || !s->is_on) {
        return want;
    }
    return s->asked_count > 0 ? 0 : HINTS_POP_MAX;
}

static void on_open(void *worker, const struct freed_job *job)
{
    struct worker *w = worker;
    struct sift *s = &w->sift;
    for (size_t i = 0; i < s->asked_count; i++) {
        s->is_open[i] = s->is_open[i] || s->asked[i].id == job->id;
    }
}

static void take_open(struct worker *w, size_t room)
{
    struct sift *s = &w->sift;
    struct hint list[HINTS_POP_MAX];
    size_t count = 0;
    for (size_t i = 0; i < s->asked_count; i++) {
        const struct hint h = kept_hint_as_hint(&s->asked[i]);
        if (!s->is_open[i]) {
            metric_add(w->metrics.refused[REFUSED_GONE], 1);
        } else if (count < room) {
            list[count++] = h;
        } else {
            hint_return_add(w, &h);
        }
    }
    s->is_on = count < room;
    s->gone = 0;
    fetch_take(w, list, count);
}

static void on_answered(void *ctx, enum status st)
{
    struct worker *w = ctx;
    struct sift *s = &w->sift;
    if (st == STATUS_OK) {
        take_open(w, fetch_room(w));
    } else {
        for (size_t i = 0; i < s->asked_count; i++) {
            const struct hint h = kept_hint_as_hint(&s->asked[i]);
            hint_return_add(w, &h);
        }
    }
    s->asked_count = 0;
    w->due.room = true;
    w->due.end = true;
}

bool sift_popped(struct worker *w, const struct hint *list, size_t count)
{
    struct sift *s = &w->sift;
    int64_t ids[HINTS_POP_MAX];
    if (!s->is_on || s->asked_count > 0 || count == 0 || count > HINTS_POP_MAX) {
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        kept_hint_set(&s->asked[i], &list[i]);
        ids[i] = list[i].id;
        s->is_open[i] = false;
    }
    if (job_store_find(w->servers.store, ids, count, on_open, on_answered, w, NULL) != STATUS_OK) {
        return false;
    }
    s->asked_count = count;
    return true;
}

bool sift_is_idle(const struct worker *w)
{
    return w->sift.asked_count == 0;
}
