/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/intake/intake.h"

#include "base/probe.h"
#include "base/recorder.h"

enum status intake_open(struct intake *in, const struct intake_env *env, struct err *err)
{
    in->env = *env;
    room_configure(in);
    enum status st = limits_open(in, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = held_hints_open(in, err);
    if (st != STATUS_OK) {
        return st;
    }
    return hint_return_open(in, err);
}

void intake_close(struct intake *in)
{
    hint_return_close(in);
    limits_close(in);
    held_hints_close(in);
}

bool intake_is_idle(const struct intake *in)
{
    return held_hints_is_idle(in) && sift_is_idle(in) && hint_return_is_idle(in);
}

size_t intake_want(void *intake)
{
    struct intake *in = intake;
    return sift_want(in, room_left(in));
}

void intake_popped(void *intake, const struct hint *list, size_t count)
{
    struct intake *in = intake;
    probe("W1");
    for (size_t i = 0; i < count; i++) {
        record("pop", "ok", RECORD_I64("job", list[i].id));
    }
    if (!sift_popped(in, list, count)) {
        fetch_take(in, list, count);
    }
}

void intake_lost_pop(void *intake)
{
    struct intake *in = intake;
    in->env.standing->has_lost_pop = true;
}

void intake_news(void *intake)
{
    struct intake *in = intake;
    in->env.due->news = true;
}
