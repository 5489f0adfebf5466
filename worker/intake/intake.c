/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/intake/intake.h"

#include "base/probe.h"
#include "base/recorder.h"

static const struct question_rule questions[QUESTION_COUNT] = {
    /* hints that were popped while claims met only jobs that are gone */
    [QUESTION_EXISTS] = {.when = QUESTION_AT_ONCE, .take_named = sift_take, .goes_back = true},
    /* Hints of jobs whose lock is held, by another worker or by this one. The holder takes care of
     * the job, so such a hint is dropped. But the run may have ended before its lock was released,
     * and its job may be due again, after its backoff or a retry. */
    [QUESTION_DUE] = {.when = QUESTION_LATER},
    /* Hints of jobs that were refused because of a limit and whose leases are being released. Until
     * the release is acknowledged, another worker that pops the hint finds the job held. */
    [QUESTION_NEXT] = {.when = QUESTION_RELEASED, .take_other = limits_return_next},
};

enum status intake_open(struct intake *in, const struct intake_env *env, struct err *err)
{
    in->env = *env;
    room_configure(in);
    for (size_t i = 0; i < QUESTION_COUNT; i++) {
        enum status st =
            question_open(&in->questions[i], in, (enum job_question)i, &questions[i], err);
        if (st != STATUS_OK) {
            return st;
        }
    }
    enum status st = limits_open(in, err);
    if (st != STATUS_OK) {
        return st;
    }
    return hint_return_open(in, err);
}

void intake_close(struct intake *in)
{
    hint_return_close(in);
    limits_close(in);
    for (size_t i = 0; i < QUESTION_COUNT; i++) {
        question_close(&in->questions[i]);
    }
}

/* QUESTION_NEXT is not waited for: without an answer, a full pass finds the jobs. */
bool intake_is_idle(const struct intake *in)
{
    return question_is_idle(&in->questions[QUESTION_EXISTS]) &&
           question_is_idle(&in->questions[QUESTION_DUE]) && hint_return_is_idle(in);
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
