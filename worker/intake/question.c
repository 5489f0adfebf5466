/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/intake/question.h"

#include "base/timer.h"
#include "worker/intake/intake.h"

#define LATER_MS 100

/* ---- the answer ---- */

static void on_each(void *ctx, const struct freed_job *job)
{
    struct question *q = ctx;
    if (q->rule->take_other != NULL) {
        q->rule->take_other(q->intake, job);
        return;
    }
    for (size_t i = 0; i < q->asked_count; i++) {
        q->is_named[i] = q->is_named[i] || q->asked[i].id == job->id;
    }
}

static void put_back(struct intake *in, const struct question *q, bool is_all)
{
    for (size_t i = 0; i < q->asked_count; i++) {
        if (is_all || q->is_named[i]) {
            const struct hint h = kept_hint_as_hint(&q->asked[i]);
            hint_return_add(in, &h);
        }
    }
}

static void on_answered(void *ctx, enum status st)
{
    struct question *q = ctx;
    struct intake *in = q->intake;
    if (st != STATUS_OK && !q->rule->goes_back) {
        in->env.standing->has_lost_pop = true;
    } else if (st == STATUS_OK && q->rule->take_named != NULL) {
        q->rule->take_named(in, q);
    } else {
        put_back(in, q, st != STATUS_OK);
    }
    q->asked_count = 0;
    q->is_asking = false;
    question_ask(q);
    in->env.due->room = true;
    in->env.due->end = true;
}

/* ---- asking ---- */

static void ask_now(struct question *q)
{
    struct servers *servers = q->intake->env.servers;
    int64_t ids[QUESTION_HINTS_MAX];
    memcpy(q->asked, q->gathering, q->gathered * sizeof q->gathering[0]);
    q->asked_count = q->gathered;
    q->gathered = 0;
    for (size_t i = 0; i < q->asked_count; i++) {
        ids[i] = q->asked[i].id;
        q->is_named[i] = false;
    }
    if (job_store_ask(servers->store, q->asks, ids, q->asked_count, on_each, on_answered, q,
                      NULL) != STATUS_OK) {
        on_answered(q, STATUS_UNAVAILABLE);
    }
}

static void on_later(uv_timer_t *timer)
{
    ask_now(timer->data);
}

static void on_flushed(void *ctx)
{
    struct question *q = ctx;
    if (q->intake->env.standing->stage != WORKER_CLOSING) { /* not the lock's last flush */
        ask_now(q);
    }
}

void question_ask(struct question *q)
{
    if (q->is_asking || q->gathered == 0) {
        return;
    }
    q->is_asking = true;
    switch (q->rule->when) {
    case QUESTION_AT_ONCE:
        ask_now(q);
        break;
    case QUESTION_LATER:
        timer_start(&q->timer, on_later, LATER_MS, 0);
        break;
    case QUESTION_RELEASED:
        if (redlock_async_flush(q->intake->env.servers->lock, on_flushed, q, NULL) != 0) {
            on_flushed(q);
        }
        break;
    }
}

void question_add(struct question *q, const struct hint *hint)
{
    if (q->gathered < QUESTION_HINTS_MAX) {
        kept_hint_set(&q->gathering[q->gathered++], hint);
    }
}

bool question_is_idle(const struct question *q)
{
    return !q->is_asking && q->gathered == 0;
}

enum status question_open(struct question *q, struct intake *in, enum job_question asks,
                          const struct question_rule *rule, struct err *err)
{
    q->intake = in;
    q->asks = asks;
    q->rule = rule;
    return timer_open(in->env.servers->loop, &q->timer, q, "question", err);
}

void question_close(struct question *q)
{
    uv_close((uv_handle_t *)&q->timer, NULL);
}
