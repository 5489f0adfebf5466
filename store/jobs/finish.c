/* SPDX-License-Identifier: Apache-2.0 */
#include "store/jobs/finish.h"

#include "base/bug.h"
#include "base/parse.h"

#include <assert.h>
#include <stdio.h>

/* Room for the reason of a refusal, so that refusing needs no memory. */
#define REASON_MAX 256

const struct finish_kind_facts finish_kinds[FINISH_KIND_COUNT] = {
    [FINISH_COMPLETED] = {.name = "completed", .recorded_as = "complete", .state = "completed"},
    [FINISH_RETRY] = {.name = "retry", .recorded_as = "fail", .is_attempt_kept = true},
    [FINISH_DISCARDED] = {.name = "discarded", .recorded_as = "fail", .state = "discarded"},
    [FINISH_CANCELLED] = {.name = "cancelled",
                          .recorded_as = "fail",
                          .state = "cancelled",
                          .is_wanted = true},
    [FINISH_SNOOZE] = {.name = "snoozed",
                       .recorded_as = "fail",
                       .outcome = "snoozed",
                       .is_attempt_kept = true,
                       .is_wanted = true},
    [FINISH_HAND_BACK] = {.name = "handed_back", .recorded_as = "hand-back"},
    [FINISH_DROPPED] = {.name = "completed", .recorded_as = "complete", .state = "completed"},
};

static const char *put_bytes(char **at, const char *bytes, size_t len)
{
    char *start = *at;
    if (bytes == NULL) {
        return NULL;
    }
    memcpy(start, bytes, len);
    start[len] = '\0';
    *at = start + len + 1;
    return start;
}

static const char *put_clean(char **at, const char *text, size_t len, size_t max, size_t *ret_len)
{
    char *start = *at;
    *ret_len = 0;
    if (text == NULL) {
        return NULL;
    }
    *ret_len = utf8_clean(text, len, start, max + 1);
    *at = start + *ret_len + 1;
    return start;
}

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* An invalid byte becomes three (U+FFFD), so a cleaned text may be longer than its source. */
static size_t clean_max(size_t len, size_t max)
{
    return least(len * 3, max);
}

static int64_t delay_in_range(int64_t us)
{
    int64_t least_us = us < 0 ? 0 : us;
    return least_us < JOB_DELAY_US_MAX ? least_us : JOB_DELAY_US_MAX;
}

enum status finish_new(const struct job_finish *from, finish_cb *done, void *ctx,
                       struct finish **ret_finish, struct err *err)
{
    const char *tail = from->log_tail;
    size_t tail_len = tail != NULL ? from->log_tail_len : 0;
    utf8_cut_head(&tail, &tail_len, JOB_LOG_TAIL_MAX); /* the end of a log says more */
    bool is_result_possible =
        from->result == NULL ||
        (from->result_len <= JOB_RESULT_MAX && utf8_is_clean(from->result, from->result_len));
    size_t result_len = from->result != NULL && is_result_possible ? from->result_len : 0;
    size_t error_max = clean_max(from->error != NULL ? from->error_len : 0, JOB_ERROR_MAX);
    size_t tail_max = clean_max(tail_len, JOB_LOG_TAIL_MAX);
    size_t outcome_len = from->outcome != NULL ? strlen(from->outcome) : 0;
    size_t size =
        sizeof(struct finish) + REASON_MAX + result_len + error_max + tail_max + outcome_len + 4;

    struct finish *f = malloc(size);
    if (f == NULL) {
        return err_fail(err, STATUS_NOMEM, "no memory for the finish of job %lld",
                        (long long)from->id);
    }
    *f = (struct finish){.f = *from, .done = done, .ctx = ctx, .bytes = size};
    f->f.delay_us = SEEDED_BUG(17) ? from->delay_us : delay_in_range(from->delay_us);
    size_t id_len = strlen(from->worker_id);
    assert(id_len < sizeof f->worker_id);
    memcpy(f->worker_id, from->worker_id, id_len + 1);
    f->f.worker_id = f->worker_id;
    if (from->kind == FINISH_COMPLETED && from->is_unkept && !from->overran) {
        f->f.kind = FINISH_DROPPED;
    }
    char *at = (char *)(f + 1) + REASON_MAX;
    f->f.result = is_result_possible ? put_bytes(&at, from->result, result_len) : NULL;
    f->f.result_len = result_len;
    f->f.outcome = put_bytes(&at, from->outcome, outcome_len);
    f->f.error = put_clean(&at, from->error, from->error_len, error_max, &f->f.error_len);
    f->f.log_tail = put_clean(&at, tail, tail_len, tail_max, &f->f.log_tail_len);
    assert((size_t)(at - (char *)f) <= size);
    if (!is_result_possible) {
        const char *why = from->result_len > JOB_RESULT_MAX ? "longer than 64 KiB" : "not UTF-8";
        enum status st = finish_refuse(f, why, err);
        assert(st == STATUS_OK);
    }
    *ret_finish = f;
    return STATUS_OK;
}

void finish_free(struct finish *f)
{
    free(f);
}

const char *finish_outcome(const struct job_finish *f)
{
    const char *fixed = finish_kinds[f->kind].outcome;
    if (fixed != NULL) {
        return fixed;
    }
    return f->outcome != NULL ? f->outcome : "failed";
}

enum status finish_refuse(struct finish *f, const char *why, struct err *err)
{
    bool has_texts = f->f.result != NULL || f->f.log_tail != NULL || !f->is_refused;
    if (!has_texts) {
        return err_fail(err, STATUS_NOT_FOUND, "job %lld has no text left", (long long)f->f.id);
    }
    if (f->is_refused) {
        f->f.log_tail = NULL;
        f->f.log_tail_len = 0;
    }
    char text[REASON_MAX];
    (void)snprintf(text, sizeof text, "result refused: %s", why);
    char *reason = (char *)(f + 1);
    f->f.error_len = utf8_clean(text, strlen(text), reason, REASON_MAX);
    f->f.error = reason;
    f->f.result = NULL;
    f->f.result_len = 0;
    f->f.delay_us = job_backoff_us(f->f.attempt, 500);
    if (f->f.kind == FINISH_COMPLETED || f->f.kind == FINISH_DROPPED) {
        f->f.kind = FINISH_DISCARDED;
        f->f.outcome = "failed";
    }
    f->is_refused = true;
    return STATUS_OK;
}

void finish_queue_move(struct finish_queue *to, struct finish_queue *from)
{
    while (from->first != NULL) {
        finish_queue_push(to, finish_queue_pop(from));
    }
}

void finish_queue_release(struct finish_queue *q)
{
    for (struct finish *f = finish_queue_pop(q); f != NULL; f = finish_queue_pop(q)) {
        finish_free(f);
    }
}
