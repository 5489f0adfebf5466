/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads the frames of a runner, and checks them as untrusted input. */
#include "protocol/result_ring.h"
#include "worker/slots/slot_internal.h"

#include <stdio.h>

/* A runner that waits for room in the ring nudges repeatedly, but its socket is full long before
 * this number is reached. */
#define VAIN_NUDGES_MAX 10000
#define FRAME_TYPES (FRAME_NUDGE + 1)

void slot_set_recycling(struct slot *s, int jobs_max, int64_t age_us)
{
    s->options.jobs_max = jobs_max;
    s->options.age_us = age_us;
}

void slot_go_on(struct slot *s)
{
    if (!slot_is_up(s)) {
        return;
    }
    if (slot_is_spent(s)) {
        slot_take_back(s);
    }
    if (s->jobs.count > 0 || s->is_writing) {
        return;
    }
    if (slot_is_spent(s)) {
        slot_retire(s, false);
        return;
    }
    slot_step(s, ON_FREE);
}

static enum status take_hello(struct slot *s, const char *body, size_t len, struct err *err)
{
    if (s->child.hellos == RUNNER_HELLOS_MAX) {
        return err_fail(err, STATUS_INVALID, "more than %d hellos", RUNNER_HELLOS_MAX);
    }
    if (*(volatile char *)s->page->loading != '\0') {
        return err_fail(err, STATUS_INVALID, "a hello while a plugin was loaded");
    }
    s->child.hellos++;
    s->options.events->hello(s->options.ctx, s, body, len);
    if (s->child.hellos > 1) {
        return STATUS_OK;
    }
    slot_go_on(s);
    if (s->child.state == CHILD_IDLE) {
        s->options.events->room(s->options.jobs, s);
    }
    return STATUS_OK;
}

/* `leaving`: jobs that are answered by now have left something behind in the runner. */
static enum status take_nudge(struct slot *s, const char *body, size_t len, struct err *err)
{
    bool leaving = false;
    enum status st = nudge_frame_get(body, len, &leaving, err);
    if (st != STATUS_OK) {
        return st;
    }
    slot_take_results(s);
    bool is_vain = s->child.jobs_done == s->child.nudged_done;
    s->child.vain_nudges = is_vain ? s->child.vain_nudges + 1 : 0;
    s->child.nudged_done = s->child.jobs_done;
    if (s->child.vain_nudges > VAIN_NUDGES_MAX) {
        return err_fail(err, STATUS_INVALID, "%d nudges without a result", VAIN_NUDGES_MAX);
    }
    if (leaving && slot_is_up(s)) {
        slot_retire(s, true);
    }
    return STATUS_OK;
}

static enum status take_result(struct slot *s, const char *body, size_t len, struct err *err)
{
    struct result_frame result;
    bool has_more = body + len < buf_at(&s->results) + s->results.len;
    enum status st = result_frame_get(body, len, &result, err);
    if (st != STATUS_OK) {
        return st;
    }
    const struct slot_job *job = slot_first(s);
    if (job != NULL && s->jobs.last_nonce != 0 && result.nonce == s->jobs.last_nonce) {
        s->child.is_spoilt = true; /* a second result of the last run: one was forged */
        return STATUS_OK;
    }
    if (job == NULL || result.id != job->id || result.fence != job->fence ||
        result.nonce != job->nonce) {
        return err_fail(err, STATUS_INVALID, "a result for job %lld that is not running here",
                        (long long)result.id);
    }
    bool is_unserved = result.outcome == RESULT_UNSERVED;
    if (slot_place(s, job) != (is_unserved ? PLACE_UNSERVED : PLACE_BEGUN)) {
        return err_fail(err, STATUS_INVALID,
                        is_unserved ? "job %lld was reported as unserved, but was started"
                                    : "a result for job %lld that was not started",
                        (long long)result.id);
    }
    /* A runner puts nothing between its last result and that of the next job. */
    if (has_more && s->jobs.count == 1) {
        return err_fail(err, STATUS_INVALID, "bytes after the result of job %lld",
                        (long long)result.id);
    }
    s->child.jobs_done++;
    struct slot_run run = {.end = is_unserved ? RUN_END_NOT_STARTED : RUN_END_SAID,
                           .result = &result};
    if (s->child.is_spoilt) {
        struct err why = {0};
        err_set(&why, STATUS_INVALID, 0, "an earlier run forged a result");
        slot_break_off(s, &why);
    } else if (result.leaving || (s->jobs.was_asked_to_stop &&
                                  s->jobs.count == 1)) { /* a late SIGTERM would hit the next job */
        slot_retire(s, result.leaving);
    }
    slot_report(s, &run);
    slot_go_on(s);
    return STATUS_OK;
}

/* After a broken frame, the rest of the child's bytes still shows which run broke it: a runner
 * sends the result of a run before it starts the next one. So if the previous run had forged its
 * result, with junk after it, its true result follows, with the nonce that only that run knew. */
static void search_rest(struct slot *s)
{
    unsigned char nonce[sizeof s->jobs.last_nonce];
    for (size_t i = 0; i < sizeof nonce; i++) {
        nonce[i] = (unsigned char)((uint64_t)s->jobs.last_nonce >> (8 * i)); /* as in a frame */
    }
    struct buf *rest = &s->results;
    if (s->jobs.last_nonce != 0 && memmem(buf_at(rest), rest->len, nonce, sizeof nonce) != NULL) {
        s->child.is_spoilt = true;
    }
    if (rest->len >= sizeof nonce) {
        buf_consume(rest, rest->len - (sizeof nonce - 1));
    }
    buf_reset(&s->in);
}

static void break_off(struct slot *s, struct err *why)
{
    err_prefix(why, "broken frame");
    slot_break_off(s, why);
}

typedef enum status take_fn(struct slot *s, const char *body, size_t len, struct err *err);

/* What a runner may send, and what it may put into the ring. */
static take_fn *const sent[FRAME_TYPES] = {[FRAME_HELLO] = take_hello, [FRAME_NUDGE] = take_nudge};
static take_fn *const results[FRAME_TYPES] = {[FRAME_RESULT] = take_result};

/* NOT_FOUND: there is no complete frame. */
static enum status take_frame(struct slot *s, struct buf *in, take_fn *const *takes,
                              struct err *err)
{
    enum frame_type type;
    const char *body = NULL;
    size_t len = 0;
    size_t size = 0;
    enum status st = frame_take(in, &type, &body, &len, &size, err);
    if (st != STATUS_OK) {
        return st;
    }
    if (takes[type] == NULL) {
        return err_fail(err, STATUS_INVALID, "frame type %d from a runner%s", (int)type,
                        takes == results ? ", among results" : "");
    }
    st = takes[type](s, body, len, err);
    if (st == STATUS_OK && in->len >= size) { /* otherwise the child was found broken meanwhile */
        buf_consume(in, size);
    }
    return st;
}

static bool is_broken(const struct slot *s)
{
    return s->child.broken.status != STATUS_OK;
}

void slot_take_results(struct slot *s)
{
    struct err err = {0};
    size_t had = s->jobs.count;
    int64_t overdue_nonce = slot_look_before(s);
    enum status st = result_ring_take(s->page, &s->ring_taken, &s->results, &err);
    while (st == STATUS_OK && !s->is_closing && !is_broken(s)) {
        st = take_frame(s, &s->results, results, &err);
    }
    if (s->is_closing) {
        return;
    }
    if (!is_broken(s) && st != STATUS_NOT_FOUND) {
        break_off(s, &err);
    }
    if (is_broken(s)) {
        search_rest(s);
    } else {
        slot_look_after(s, overdue_nonce);
    }
    if (s->jobs.count < had && slot_is_up(s)) {
        s->options.events->room(s->options.jobs, s);
    }
}

void slot_take_frames(struct slot *s)
{
    while (!s->is_closing) {
        struct err err = {0};
        if (is_broken(s)) {
            slot_take_results(s);
            return;
        }
        enum status st = take_frame(s, &s->in, sent, &err);
        if (st == STATUS_NOT_FOUND) {
            return;
        }
        if (st != STATUS_OK) {
            break_off(s, &err);
        }
    }
}
