/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/intake/sift.h"

#include "worker/intake/intake.h"

#include <assert.h>

static_assert(QUESTION_HINTS_MAX >= HINTS_POP_MAX, "a question takes the hints of a pop");

size_t sift_want(const struct intake *in, size_t want)
{
    if (want == 0 || !in->sift.is_on) {
        return want;
    }
    return question_is_idle(&in->questions[QUESTION_EXISTS]) ? HINTS_POP_MAX : 0;
}

bool sift_popped(struct intake *in, const struct hint *list, size_t count)
{
    struct question *q = &in->questions[QUESTION_EXISTS];
    if (!in->sift.is_on || !question_is_idle(q)) {
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        question_add(q, &list[i]);
    }
    question_ask(q);
    return true;
}

void sift_take(struct intake *in, const struct question *q)
{
    size_t room = room_left(in);
    struct hint list[QUESTION_HINTS_MAX];
    size_t count = 0;
    for (size_t i = 0; i < q->asked_count; i++) {
        const struct hint h = kept_hint_as_hint(&q->asked[i]);
        if (!q->is_named[i]) {
            metric_add(in->env.metrics->refused[REFUSED_GONE], 1);
        } else if (count < room) {
            list[count++] = h;
        } else {
            hint_return_add(in, &h);
        }
    }
    in->sift.is_on = count < room;
    in->sift.gone = 0;
    fetch_take(in, list, count);
}
