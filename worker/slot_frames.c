/* SPDX-License-Identifier: Apache-2.0
 *
 * What a runner says: its frames, checked as if an enemy had written them. */
#include "base/clock.h"
#include "worker/slot_internal.h"

#include <stdio.h>

int64_t slot_draw_nonce(struct slot *s)
{
    if (s->nonce_count == 0 && rand_bytes(s->nonces, sizeof s->nonces, NULL) == STATUS_OK) {
        s->nonce_count = SLOT_NONCES;
    }
    if (s->nonce_count == 0) {
        return -1;
    }
    s->nonce_count--;
    return s->nonces[s->nonce_count] & INT64_MAX;
}

static bool is_due_for_recycling(const struct slot *s)
{
    return s->child.jobs_done >= s->options.jobs_max ||
           clock_boot_us() - s->child.started_us >= s->options.age_us;
}

void slot_set_recycling(struct slot *s, int jobs_max, int64_t age_us)
{
    s->options.jobs_max = jobs_max;
    s->options.age_us = age_us;
}

static void become_free(struct slot *s)
{
    if (!slot_is_up(s)) {
        return;
    }
    if (s->child.is_outdated || is_due_for_recycling(s)) {
        slot_retire(s, false);
        return;
    }
    slot_step(s, ON_FREE);
    s->options.events->idle(s->options.ctx, s);
}

static enum status take_hello(struct slot *s, const char *body, size_t len, struct err *err)
{
    if (s->child.has_hello) {
        return err_fail(err, STATUS_INVALID, "a second hello");
    }
    s->child.has_hello = true;
    s->options.events->hello(s->options.ctx, s, body, len);
    become_free(s);
    return STATUS_OK;
}

static enum status take_result(struct slot *s, const char *body, size_t len, bool has_more,
                               struct err *err)
{
    struct result_frame result;
    enum status st = result_frame_get(body, len, &result, err);
    if (st != STATUS_OK) {
        return st;
    }
    const struct slot_job *job = &s->job;
    if (job->user != NULL && job->last_nonce != 0 && result.nonce == job->last_nonce) {
        s->child.is_spoilt =
            true; /* a second result of the run before: one of the two was forged */
        return STATUS_OK;
    }
    if (job->user == NULL || result.id != job->id || result.fence != job->fence ||
        result.nonce != job->nonce) {
        return err_fail(err, STATUS_INVALID, "a result for job %lld that is not running here",
                        (long long)result.id);
    }
    if (result.outcome == RUN_UNSERVED && slot_has_started(s)) {
        return err_fail(err, STATUS_INVALID, "job %lld was started and then called unserved",
                        (long long)result.id);
    }
    if (has_more) { /* a runner says nothing between its result and the next job */
        return err_fail(err, STATUS_INVALID, "more than the result of job %lld",
                        (long long)result.id);
    }
    s->child.jobs_done++;
    struct slot_run run = {.end = SLOT_RESULT, .result = &result};
    if (s->child.is_spoilt) {
        struct err why = {0};
        err_set(&why, STATUS_INVALID, 0, "a run before this one had forged its result");
        slot_break_off(s, &why);
    } else if (result.leaving ||
               job->was_asked_to_stop) { /* a late SIGTERM would hit the next job */
        slot_retire(s, result.leaving);
    }
    slot_report(s, &run);
    become_free(s);
    return STATUS_OK;
}

/* After a broken frame the rest of what the child wrote still tells who broke it: a runner sends
 * the result of a run before it starts the next. So where the run before had forged its result and
 * junk after it, its true one follows, with the nonce that only it knew. */
static void search_rest(struct slot *s)
{
    unsigned char nonce[sizeof s->job.last_nonce];
    for (size_t i = 0; i < sizeof nonce; i++) {
        nonce[i] = (unsigned char)((uint64_t)s->job.last_nonce >> (8 * i)); /* as in a frame */
    }
    if (s->job.last_nonce != 0 && memmem(buf_at(&s->in), s->in.len, nonce, sizeof nonce) != NULL) {
        s->child.is_spoilt = true;
    }
    if (s->in.len >= sizeof nonce) {
        buf_consume(&s->in, s->in.len - (sizeof nonce - 1));
    }
}

static enum status take_body(struct slot *s, enum frame_type type, const char *body, size_t len,
                             bool has_more, struct err *err)
{
    switch (type) {
    case FRAME_HELLO:
        return take_hello(s, body, len, err);
    case FRAME_RESULT:
        return take_result(s, body, len, has_more, err);
    case FRAME_JOB:
        break;
    }
    return err_fail(err, STATUS_INVALID, "frame type %d from a runner", (int)type);
}

/* NOT_FOUND: there is no whole one. */
static enum status take_frame(struct slot *s, struct err *err)
{
    enum frame_type type;
    const char *body = NULL;
    size_t len = 0;
    size_t size = 0;
    enum status st = frame_take(&s->in, &type, &body, &len, &size, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = take_body(s, type, body, len, s->in.len > size, err);
    if (st != STATUS_OK) {
        return st;
    }
    buf_consume(&s->in, size);
    return STATUS_OK;
}

void slot_take_frames(struct slot *s)
{
    while (!s->is_closing) {
        struct err err = {0};
        if (s->child.broken.status != STATUS_OK) {
            search_rest(s);
            return;
        }
        enum status st = take_frame(s, &err);
        if (st == STATUS_NOT_FOUND) {
            return;
        }
        if (st != STATUS_OK) {
            err_prefix(&err, "broken frame");
            slot_break_off(s, &err);
        }
    }
}
