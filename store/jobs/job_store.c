/* SPDX-License-Identifier: Apache-2.0 */
#include "store/jobs/job_store.h"

#include "base/clock.h"
#include "store/jobs/internal.h"

#include <assert.h>

#define CLAIM_WAITING_IDS_MAX ((size_t)4000)

/* ---- answers ---- */

void store_settle_finish(struct job_store *s, struct finish *f, enum finish_verdict verdict)
{
    struct finish_reply reply = {
        .id = f->f.id, .fence = f->f.fence, .verdict = verdict, .kind = f->f.kind};
    if (reply.kind == FINISH_DROPPED) {
        reply.kind = FINISH_COMPLETED;
    }
    s->unsettled--;
    s->unsettled_bytes -= f->bytes;
    s->counters.refused += verdict == FINISH_REFUSED;
    s->counters.stale += verdict == FINISH_STALE;
    f->done(f->ctx, &reply);
    finish_free(f);
}

void store_answer_claim(struct job_store *s, struct claim *c)
{
    s->counters.claimed += c->job_count;
    claim_answer(c);
}

/* Takes the queue over first, since a callback may submit a new claim at once. */
void store_answer_claims(struct job_store *s, struct claim_queue *q, enum claim_refusal rest)
{
    struct claim_queue taken = *q;
    *q = (struct claim_queue){.first = NULL};
    for (struct claim *c = claim_queue_pop(&taken); c != NULL; c = claim_queue_pop(&taken)) {
        claim_refuse_rest(c, rest);
        store_answer_claim(s, c);
    }
}

/* ---- requests ---- */

static void free_if_done(struct job_store *s)
{
    if (s->is_closed && s->handle_count == 0 && s->request_count == 0) {
        free(s);
    }
}

bool store_request_ended(struct job_store *s)
{
    s->request_count--;
    if (s->is_closed) {
        free_if_done(s);
        return false;
    }
    return true;
}

enum status store_send(struct job_store *s, struct pg_request *request, pg_done_cb *done, void *ctx,
                       struct err *err)
{
    request->done = done;
    request->ctx = ctx;
    enum status st = pg_send(s->pg, request, err);
    s->request_count += st == STATUS_OK;
    return st;
}

enum status store_send_one(struct job_store *s, const struct pg_statement *statement,
                           const struct params *p, pg_done_cb *done, void *ctx, struct err *err)
{
    struct pg_request request = {.step_count = 1};
    enum status st = params_step(p, statement, &request.steps[0], err);
    if (st != STATUS_OK) {
        return st;
    }
    return store_send(s, &request, done, ctx, err);
}

/* ---- interface ---- */

static void on_prepare(uv_prepare_t *prepare)
{
    store_flush(prepare->data);
}

static void on_check(uv_check_t *check)
{
    store_flush(check->data);
}

enum status job_store_open(const struct job_store_options *options, struct job_store **ret,
                           struct err *err)
{
    struct job_store *s = calloc(1, sizeof *s);
    if (s == NULL) {
        return err_fail(err, STATUS_NOMEM, "no memory for the job store");
    }
    s->pg = options->pg;
    s->loop = options->loop;
    s->on_freed = options->on_freed;
    s->ctx = options->ctx;
    suspects_init(&s->suspects);
    rand_seed_from_system(&s->rand);
    job_store_set_worker(s, options->worker_id);
    int failed = uv_prepare_init(s->loop, &s->prepare);
    failed |= uv_check_init(s->loop, &s->check);
    failed |= uv_timer_init(s->loop, &s->timer);
    s->prepare.data = s;
    s->check.data = s;
    s->timer.data = s;
    failed |= uv_prepare_start(&s->prepare, on_prepare);
    failed |= uv_check_start(&s->check, on_check);
    assert(failed == 0); /* libuv's init and start of these kinds never fail */
    uv_unref((uv_handle_t *)&s->prepare);
    uv_unref((uv_handle_t *)&s->check);
    s->handle_count = 3;
    *ret = s;
    return STATUS_OK;
}

static void on_handle_closed(uv_handle_t *handle)
{
    struct job_store *s = handle->data;
    s->handle_count--;
    free_if_done(s);
}

void job_store_close(struct job_store *s)
{
    if (s == NULL) {
        return;
    }
    s->is_closed = true;
    finish_queue_release(&s->waiting);
    finish_queue_release(&s->group_commit.finishes);
    finish_queue_release(&s->locked);
    suspects_release(&s->suspects);
    claim_queue_release(&s->claims);
    claim_queue_release(&s->limited);
    claim_queue_release(&s->lost);
    args_queue_release(&s->args);
    segment_release(&s->segment);
    kind_cache_release(&s->kinds);
    uv_close((uv_handle_t *)&s->prepare, on_handle_closed);
    uv_close((uv_handle_t *)&s->check, on_handle_closed);
    uv_close((uv_handle_t *)&s->timer, on_handle_closed);
}

void job_store_set_worker(struct job_store *s, const char *worker_id)
{
    size_t len = strlen(worker_id);
    assert(len < sizeof s->worker_id);
    memcpy(s->worker_id, worker_id, len + 1);
}

void job_store_on_up(struct job_store *s)
{
    s->blocked_until_us = 0;
    s->backoff_us = 0;
}

enum status job_store_claim(struct job_store *s, const struct claim_request *request,
                            struct err *err)
{
    if (request->count == 0) {
        return err_fail(err, STATUS_INVALID, "no ids to claim");
    }
    size_t waiting = claim_queue_ids(&s->claims) + claim_queue_ids(&s->limited);
    if (waiting + request->count > CLAIM_WAITING_IDS_MAX) {
        return err_fail(err, STATUS_LIMIT, "%zu ids wait for their claim", waiting);
    }
    struct claim *c = NULL;
    enum status st = claim_new(request, &c, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = kind_cache_want(&s->kinds, c->kinds, c->kind_count, err);
    if (st != STATUS_OK) {
        claim_free(c);
        return st;
    }
    c->is_limited = clock_boot_us() < s->outlook.only_limits_until_us;
    claim_queue_push(c->is_limited ? &s->limited : &s->claims, c);
    return STATUS_OK;
}

enum status job_store_finish(struct job_store *s, const struct job_finish *finish, finish_cb *done,
                             void *ctx, struct err *err)
{
    struct finish *f = NULL;
    if (s->unsettled >= FINISH_WAITING_MAX || s->unsettled_bytes >= FINISH_WAITING_BYTES_MAX) {
        return err_fail(err, STATUS_LIMIT, "%zu finishes wait", s->unsettled);
    }
    enum status st = finish_new(finish, done, ctx, &f, err);
    if (st != STATUS_OK) {
        return st;
    }
    s->unsettled++;
    s->unsettled_bytes += f->bytes;
    finish_queue_push(finish->may_group ? &s->group_commit.finishes : &s->waiting, f);
    return STATUS_OK;
}

size_t job_store_waiting(const struct job_store *s)
{
    return s->unsettled;
}

const struct job_store_counters *job_store_counters(const struct job_store *s)
{
    return &s->counters;
}

const struct err *job_store_trouble(const struct job_store *s)
{
    if (s->trouble.status != STATUS_OK) {
        return &s->trouble;
    }
    return s->suspects.aside.first != NULL ? &s->suspects.aside_trouble : NULL;
}
