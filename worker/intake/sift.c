/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/intake/sift.h"

#include "worker/intake/intake.h"

size_t sift_want(const struct intake *in, size_t want)
{
    const struct sift *s = &in->sift;
    if (want == 0 || !s->is_on) {
        return want;
    }
    return s->asked_count > 0 ? 0 : HINTS_POP_MAX;
}

static void on_open(void *ctx, const struct freed_job *job)
{
    struct intake *in = ctx;
    struct sift *s = &in->sift;
    for (size_t i = 0; i < s->asked_count; i++) {
        s->is_open[i] = s->is_open[i] || s->asked[i].id == job->id;
    }
}

static void take_open(struct intake *in, size_t room)
{
    struct sift *s = &in->sift;
    struct hint list[HINTS_POP_MAX];
    size_t count = 0;
    for (size_t i = 0; i < s->asked_count; i++) {
        const struct hint h = kept_hint_as_hint(&s->asked[i]);
        if (!s->is_open[i]) {
            metric_add(in->env.metrics->refused[REFUSED_GONE], 1);
        } else if (count < room) {
            list[count++] = h;
        } else {
            hint_return_add(in, &h);
        }
    }
    s->is_on = count < room;
    s->gone = 0;
    fetch_take(in, list, count);
}

static void on_answered(void *ctx, enum status st)
{
    struct intake *in = ctx;
    struct sift *s = &in->sift;
    if (st == STATUS_OK) {
        take_open(in, room_left(in));
    } else {
        for (size_t i = 0; i < s->asked_count; i++) {
            const struct hint h = kept_hint_as_hint(&s->asked[i]);
            hint_return_add(in, &h);
        }
    }
    s->asked_count = 0;
    in->env.due->room = true;
    in->env.due->end = true;
}

bool sift_popped(struct intake *in, const struct hint *list, size_t count)
{
    struct sift *s = &in->sift;
    int64_t ids[HINTS_POP_MAX];
    if (!s->is_on || s->asked_count > 0 || count == 0 || count > HINTS_POP_MAX) {
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        kept_hint_set(&s->asked[i], &list[i]);
        ids[i] = list[i].id;
        s->is_open[i] = false;
    }
    if (job_store_ask(in->env.servers->store, QUESTION_EXISTS, ids, count, on_open, on_answered, in,
                      NULL) != STATUS_OK) {
        return false;
    }
    s->asked_count = count;
    return true;
}

bool sift_is_idle(const struct intake *in)
{
    return in->sift.asked_count == 0;
}
