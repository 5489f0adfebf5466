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
    return s->jobs_done >= s->options.jobs_max ||
           clock_boot_us() - s->started_us >= s->options.age_us;
}

void slot_set_recycling(struct slot *s, int jobs_max, int64_t age_us)
{
    s->options.jobs_max = jobs_max;
    s->options.age_us = age_us;
}

static void become_idle(struct slot *s)
{
    if (s->is_dying || s->has_exited) {
        return;
    }
    if (s->is_outdated || is_due_for_recycling(s)) {
        slot_retire(s, false);
        return;
    }
    s->state = SLOT_IDLE;
    s->options.events->idle(s->options.ctx, s);
}

static enum status take_hello(struct slot *s, const char *body, size_t len, struct err *err)
{
    if (s->state != SLOT_STARTING || s->has_hello) {
        return err_fail(err, STATUS_INVALID, "a second hello");
    }
    s->has_hello = true;
    (void)uv_timer_stop(&s->timer);
    s->options.events->hello(s->options.ctx, s, body, len);
    become_idle(s);
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
    if (s->state == SLOT_BUSY && s->last_nonce != 0 && result.nonce == s->last_nonce) {
        s->is_spoilt = true; /* a second result of the run before: one of the two was forged */
        return STATUS_OK;
    }
    if (s->state != SLOT_BUSY || result.id != s->job_id || result.fence != s->job_fence ||
        result.nonce != s->job_nonce) {
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
    s->jobs_done++;
    s->has_worked = true;
    s->state = SLOT_STARTING; /* not offered yet: `ended` comes first */
    struct slot_run run = {.end = SLOT_RESULT, .result = &result};
    if (s->is_spoilt) {
        (void)snprintf(s->broken, sizeof s->broken, "a run before this one had forged its result");
        slot_kill_child(s);
    } else if (result.leaving || s->was_asked_to_stop) { /* a late SIGTERM would hit the next job */
        slot_retire(s, result.leaving);
    }
    slot_report(s, &run);
    become_idle(s);
    return STATUS_OK;
}

static void break_off(struct slot *s, const struct err *why)
{
    (void)snprintf(s->broken, sizeof s->broken, "broken frame: %.200s", why->msg);
    slot_kill_child(s);
}

/* After a broken frame the rest of what the child wrote still tells who broke it: a runner sends
 * the result of a run before it starts the next. So where the run before had forged its result and
 * junk after it, its true one follows, with the nonce that only it knew. */
static void search_rest(struct slot *s)
{
    unsigned char nonce[sizeof s->last_nonce];
    for (size_t i = 0; i < sizeof nonce; i++) {
        nonce[i] = (unsigned char)((uint64_t)s->last_nonce >> (8 * i)); /* as in a frame */
    }
    if (s->last_nonce != 0 && memmem(buf_at(&s->in), s->in.len, nonce, sizeof nonce) != NULL) {
        s->is_spoilt = true;
    }
    if (s->in.len >= sizeof nonce) {
        buf_consume(&s->in, s->in.len - (sizeof nonce - 1));
    }
}

void slot_take_frames(struct slot *s)
{
    while (!s->is_closing) {
        if (s->broken[0] != '\0') {
            search_rest(s);
            return;
        }
        struct err err = {0};
        enum frame_type type;
        const char *body = NULL;
        size_t len = 0;
        size_t size = 0;
        enum status st = frame_take(&s->in, &type, &body, &len, &size, &err);
        if (st == STATUS_NOT_FOUND) {
            return;
        }
        if (st == STATUS_OK && type == FRAME_HELLO) {
            st = take_hello(s, body, len, &err);
        } else if (st == STATUS_OK && type == FRAME_RESULT) {
            st = take_result(s, body, len, s->in.len > size, &err);
        } else if (st == STATUS_OK) {
            st = err_fail(&err, STATUS_INVALID, "frame type %d from a runner", (int)type);
        }
        if (st != STATUS_OK) {
            break_off(s, &err);
        } else {
            buf_consume(&s->in, size);
        }
    }
}
