/* SPDX-License-Identifier: Apache-2.0 */
#include "base/timer.h"
#include "sql/queries.h"
#include "store/jobs/internal.h"

#include <assert.h>

#define LOCKED_AGAIN_US (200 * US_PER_MS)
#define BACKOFF_FIRST_US (50 * US_PER_MS)
#define BACKOFF_MAX_US (2 * US_PER_S)
#define CLAIM_WAITING_IDS_MAX ((size_t)4000)

/* ---- ends ---- */

void store_settle_finish(struct job_store *s, struct finish *f, enum finish_verdict verdict)
{
    struct finish_reply reply = {
        .id = f->f.id, .fence = f->f.fence, .verdict = verdict, .kind = f->f.kind};
    s->unsettled--;
    s->unsettled_bytes -= f->bytes;
    s->counters.accepted += verdict == FINISH_ACCEPTED || verdict == FINISH_ALREADY;
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

/* A callback may ask again at once: the queue is taken over first. */
void store_answer_claims(struct job_store *s, struct claim_queue *q, enum claim_refusal rest)
{
    struct claim_queue taken = *q;
    *q = (struct claim_queue){.first = NULL};
    for (struct claim *c = claim_queue_pop(&taken); c != NULL; c = claim_queue_pop(&taken)) {
        claim_refuse_rest(c, rest);
        store_answer_claim(s, c);
    }
}

/* ---- waiting ---- */

static void on_timer(uv_timer_t *timer)
{
    (void)timer; /* it only turns the loop: flush() follows in this very turn */
}

void store_arm(struct job_store *s, int64_t at_us)
{
    int64_t ms = (at_us - clock_boot_us()) / US_PER_MS + 1;
    uint64_t delay_ms = ms > 0 ? (uint64_t)ms : 0;
    if (!uv_is_active((uv_handle_t *)&s->timer) || uv_timer_get_due_in(&s->timer) > delay_ms) {
        timer_start(&s->timer, on_timer, delay_ms, 0);
    }
}

void store_back_off(struct job_store *s, const struct err *why)
{
    s->trouble = *why;
    int64_t next_us = s->backoff_us == 0 ? BACKOFF_FIRST_US : s->backoff_us * 2;
    s->backoff_us = next_us < BACKOFF_MAX_US ? next_us : BACKOFF_MAX_US;
    s->blocked_until_us = clock_boot_us() + rand_jitter(&s->rand, s->backoff_us, 20);
    store_arm(s, s->blocked_until_us);
}

void store_keep_locked(struct job_store *s, struct finish *f)
{
    if (s->locked.first == NULL) {
        s->locked_until_us = clock_boot_us() + LOCKED_AGAIN_US;
        store_arm(s, s->locked_until_us);
    }
    finish_queue_push(&s->locked, f);
}

static void retry_locked(struct job_store *s, int64_t now_us)
{
    if (s->locked.first == NULL) {
        return;
    }
    if (now_us < s->locked_until_us) {
        store_arm(s, s->locked_until_us);
        return;
    }
    for (struct finish *f = finish_queue_pop(&s->locked); f != NULL;
         f = finish_queue_pop(&s->locked)) {
        finish_queue_push(&s->waiting, f);
    }
}

/* ---- requests ---- */

static void free_if_done(struct job_store *s)
{
    if (s->is_closed && s->handle_count == 0 && s->request_count == 0) {
        free(s);
    }
}

/* Of each pg_done_cb: false when there is nobody left to answer. */
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

/* ---- turns of the loop ---- */

static void flush(struct job_store *s)
{
    bool has_work = s->waiting.first != NULL || s->locked.first != NULL || s->aside.first != NULL ||
                    s->claims.first != NULL || s->lost.first != NULL;
    if (s->is_in_flight || !has_work) {
        return;
    }
    int64_t now_us = clock_boot_us();
    retry_locked(s, now_us);
    store_retry_aside(s, now_us);
    if (!pg_is_up(s->pg)) {
        store_answer_claims(s, &s->claims, CLAIM_NOT_TRIED);
    } else if (now_us < s->blocked_until_us) {
        store_arm(s, s->blocked_until_us);
        store_answer_claims(s, &s->claims, CLAIM_NOT_TRIED);
    } else if (s->lost.first != NULL) {
        store_read_back(s);
    } else {
        store_send_batch(s, now_us);
    }
}

static void on_prepare(uv_prepare_t *prepare)
{
    flush(prepare->data);
}

static void on_check(uv_check_t *check)
{
    flush(check->data);
}

/* ---- the surface ---- */

enum status job_store_open(const struct job_store_options *options, struct job_store **ret,
                           struct err *err)
{
    struct job_store *s = calloc(1, sizeof *s);
    if (s == NULL) {
        return err_fail(err, STATUS_NOMEM, "job store");
    }
    s->pg = options->pg;
    s->loop = options->loop;
    s->finish_max = BATCH_FINISHES_MAX;
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
    finish_queue_release(&s->locked);
    finish_queue_release(&s->aside);
    claim_queue_release(&s->claims);
    claim_queue_release(&s->lost);
    batch_release(&s->batch);
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
    if (s->claims.id_count + request->count > CLAIM_WAITING_IDS_MAX) {
        return err_fail(err, STATUS_LIMIT, "%zu ids wait for their claim", s->claims.id_count);
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
    claim_queue_push(&s->claims, c);
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
    finish_queue_push(&s->waiting, f);
    return STATUS_OK;
}

size_t job_store_waiting(const struct job_store *s)
{
    return s->unsettled;
}

/* ---- large args ---- */

struct args_request {
    struct job_store *store;
    args_cb *done;
    void *ctx;
};

static void on_args(void *ctx, enum status st, const struct pg_result *const *results,
                    const struct err *err)
{
    (void)err;
    struct args_request *a = ctx;
    if (store_request_ended(a->store)) {
        size_t len = 0;
        const char *args = NULL;
        if (st != STATUS_OK) {
            st = STATUS_UNAVAILABLE; /* a read: whatever it was, it may be asked again */
        } else if (pg_row_count(results[0]) == 0) {
            st = STATUS_NOT_FOUND;
        } else {
            args = pg_text(results[0], 0, 0, &len);
        }
        a->done(a->ctx, st, args, len);
    }
    free(a);
}

enum status job_store_args(struct job_store *s, int64_t id, int64_t fence, args_cb *done, void *ctx,
                           struct err *err)
{
    struct args_request *a = malloc(sizeof *a);
    if (a == NULL) {
        return err_fail(err, STATUS_NOMEM, "args of job %lld", (long long)id);
    }
    *a = (struct args_request){.store = s, .done = done, .ctx = ctx};
    struct params p = {.count = 0};
    params_i64(&p, id);
    params_i64(&p, fence);
    struct pg_request request = {.step_count = 1};
    enum status st = params_step(&p, &SQL_JOB_ARGS, &request.steps[0], err);
    if (st == STATUS_OK) {
        st = store_send(s, &request, on_args, a, err);
    }
    if (st != STATUS_OK) {
        free(a);
    }
    return st;
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
    return s->aside.first != NULL ? &s->aside_trouble : NULL;
}
