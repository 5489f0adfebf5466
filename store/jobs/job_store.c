/* SPDX-License-Identifier: Apache-2.0 */
#include "store/jobs/job_store.h"

#include "base/bug.h"
#include "base/clock.h"
#include "base/rand.h"
#include "base/timer.h"
#include "sql/queries.h"
#include "store/jobs/gather.h"
#include "store/jobs/internal.h"
#include "store/jobs/recheck.h"
#include "store/jobs/suspects.h"

#include <assert.h>

#define LOCKED_AGAIN_US (200 * US_PER_MS)
#define BACKOFF_FIRST_US (50 * US_PER_MS)
#define BACKOFF_MAX_US (2 * US_PER_S)
#define CLAIM_WAITING_IDS_MAX ((size_t)4000)
#define CAREFUL_US (10 * US_PER_S) /* INTERFACES rule 4 */
#define KINDS_FRESH_US (10 * US_PER_S)

struct job_store {
    struct pg *pg;
    uv_loop_t *loop;
    char worker_id[JOB_WORKER_ID_SIZE];

    /* What is submitted in one turn of the loop leaves together at the turn's end. */
    uv_prepare_t prepare;
    uv_check_t check;
    uv_timer_t timer;
    int handle_count;
    int request_count; /* pg still holds a pointer to us */
    bool is_closed;

    struct finish_queue waiting;
    struct gather gather;
    struct finish_queue locked; /* until locked_until_us */
    int64_t locked_until_us;
    struct suspects suspects;
    size_t unsettled;
    size_t unsettled_bytes;
    struct claim_queue claims;
    struct claim_queue limited; /* what a claim has left out for a limit: claimed on its own */
    struct claim_outlook outlook;
    struct kind_cache kinds;

    /* At most one batch is in flight: the next one gathers meanwhile. */
    struct batch batch;
    bool is_in_flight;
    int64_t fence_checked_us;  /* the session whose fences are surely new: its pg_up_since_us() */
    int64_t fence_checking_us; /* the one of the batch in flight that sees to it */
    int64_t fence_known;       /* the highest that a claim of ours has drawn */
    struct claim_queue lost;   /* claims whose answer was lost: read back before anything else */
    int64_t lost_fence;        /* fence_known when they were sent */
    char lost_worker_id[JOB_WORKER_ID_SIZE];

    bool is_claims_turn;
    bool was_limited; /* the batch before: others have their turn */
    freed_cb *on_freed;
    void *ctx;
    int64_t careful_until_us;
    int64_t blocked_until_us;
    int64_t backoff_us;
    struct err trouble; /* why we back off */
    struct rand rand;
    struct job_store_counters counters;
};

/* ---- ends ---- */

void store_settle_finish(struct job_store *s, struct finish *f, enum finish_verdict verdict)
{
    struct finish_reply reply = {
        .id = f->f.id, .fence = f->f.fence, .verdict = verdict, .kind = f->f.kind};
    s->unsettled--;
    s->unsettled_bytes -= f->bytes;
    s->counters.refused += verdict == FINISH_REFUSED;
    s->counters.stale += verdict == FINISH_STALE;
    f->done(f->ctx, &reply);
    finish_free(f);
}

static void answer_claim(struct job_store *s, struct claim *c)
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
        answer_claim(s, c);
    }
}

static void refuse_waiting_claims(struct job_store *s)
{
    store_answer_claims(s, &s->claims, CLAIM_NOT_TRIED);
    store_answer_claims(s, &s->limited, CLAIM_NOT_TRIED);
}

static void claim_within_limits(struct job_store *s, struct claim *c)
{
    c->is_limited = true;
    claim_queue_push(&s->limited, c);
}

void store_claim_limited(struct job_store *s, struct claim *c)
{
    s->outlook.limits_until_us = clock_boot_us() + CLAIM_OUTLOOK_US;
    claim_within_limits(s, c);
}

/* ---- waiting ---- */

static void on_timer(uv_timer_t *timer)
{
    (void)timer; /* it only turns the loop: flush() follows in this very turn */
}

/* Turns the loop at that time. */
static void arm(struct job_store *s, int64_t at_us)
{
    int64_t ms = (at_us - clock_boot_us()) / US_PER_MS + 1;
    uint64_t delay_ms = ms > 0 ? (uint64_t)ms : 0;
    if (!uv_is_active((uv_handle_t *)&s->timer) || uv_timer_get_due_in(&s->timer) > delay_ms) {
        timer_start(&s->timer, on_timer, delay_ms, 0);
    }
}

/* No batch for a while, longer each time. */
static void back_off(struct job_store *s, const struct err *why)
{
    s->trouble = *why;
    int64_t next_us = s->backoff_us == 0 ? BACKOFF_FIRST_US : s->backoff_us * 2;
    s->backoff_us = next_us < BACKOFF_MAX_US ? next_us : BACKOFF_MAX_US;
    s->blocked_until_us = clock_boot_us() + rand_jitter(&s->rand, s->backoff_us, 20);
    arm(s, s->blocked_until_us);
}

void store_keep_locked(struct job_store *s, struct finish *f)
{
    if (s->locked.first == NULL) {
        s->locked_until_us = clock_boot_us() + LOCKED_AGAIN_US;
        arm(s, s->locked_until_us);
    }
    finish_queue_push(&s->locked, f);
}

static void retry_locked(struct job_store *s, int64_t now_us)
{
    if (s->locked.first == NULL) {
        return;
    }
    if (now_us < s->locked_until_us) {
        arm(s, s->locked_until_us);
        return;
    }
    finish_queue_move(&s->waiting, &s->locked);
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

/* ---- batches ---- */

static void pass_on_finishes(struct job_store *s, struct recheck *r)
{
    struct finish_queue settled = {.first = NULL};
    for (size_t k = 0; k < FINISH_LIST_COUNT; k++) {
        struct finish_list *list = &s->batch.finishes[k];
        for (size_t i = 0; i < list->count; i++) {
            struct finish *f = list->items[i];
            if (f->is_settled) {
                finish_queue_push(&settled, f);
            } else if (r != NULL) {
                recheck_add_finish(r, f);
            } else {
                store_keep_locked(s, f);
            }
        }
        list->count = 0;
    }
    s->batch.finish_count = 0;
    for (struct finish *f = finish_queue_pop(&settled); f != NULL; f = finish_queue_pop(&settled)) {
        store_settle_finish(s, f, f->is_refused ? FINISH_REFUSED : FINISH_ACCEPTED);
    }
}

/* Claims whose ids are all settled are answered, the others checked again first: at once, or when
 * a claim within limits has left them out as well. */
static void pass_on_claims(struct job_store *s, struct claim_queue *from, struct recheck *r)
{
    struct claim_queue taken = *from;
    *from = (struct claim_queue){.first = NULL};
    for (struct claim *c = claim_queue_pop(&taken); c != NULL; c = claim_queue_pop(&taken)) {
        claim_learn(&s->outlook, c, clock_boot_us());
        if (claim_is_settled(c)) {
            answer_claim(s, c);
        } else if (!c->is_limited && clock_boot_us() < s->outlook.limits_until_us) {
            claim_within_limits(s, c);
        } else if (r != NULL) {
            recheck_add_claim(r, c);
        } else {
            claim_refuse_rest(c, CLAIM_NOT_TRIED);
            answer_claim(s, c);
        }
    }
}

static void batch_committed(struct job_store *s)
{
    struct recheck *r = recheck_new(s, &s->kinds);
    pass_on_finishes(s, r);
    pass_on_claims(s, &s->batch.claims, r);
    recheck_send(r);
}

static void batch_failed(struct job_store *s, enum status st, const struct err *err)
{
    struct batch *b = &s->batch;
    if (st == STATUS_UNKNOWN) {
        s->counters.unknown_outcomes++;
        batch_return_finishes(b, &s->waiting, true);
        batch_return_claims(b, &s->lost);
        return;
    }
    bool is_locked = strcmp(err->code, "55P03") == 0;
    s->counters.refused_batches++;
    bool is_retried = false;
    if (is_locked && !b->is_careful) {
        s->counters.locked_repeats++;
        s->careful_until_us = clock_boot_us() + CAREFUL_US;
        is_retried = true;
    } else if (!is_locked && !(SEEDED_BUG(17) && strncmp(err->code, "23", 2) == 0)) {
        is_retried = suspects_blame(&s->suspects, b, err, &s->waiting, clock_boot_us());
    }
    batch_return_finishes(b, &s->waiting, false);
    if (is_retried) {
        batch_return_claims(b, b->claims.first != NULL && b->claims.first->is_limited ? &s->limited
                                                                                      : &s->claims);
        return;
    }
    back_off(s, err);
    store_answer_claims(s, &b->claims, CLAIM_NOT_TRIED);
}

static void on_batch(void *ctx, enum status st, const struct pg_result *const *results,
                     const struct err *err)
{
    struct job_store *s = ctx;
    if (!store_request_ended(s)) {
        return;
    }
    s->is_in_flight = false;
    if (st != STATUS_OK) {
        batch_failed(s, st, err);
        return;
    }
    s->backoff_us = 0;
    s->trouble.status = STATUS_OK;
    s->counters.commits += s->batch.finish_count > 0 || s->batch.claims.first != NULL;
    if (s->batch.finish_count > 0) {
        suspects_committed(&s->suspects);
    }
    if (s->batch.checks_fence) {
        s->fence_checked_us = s->fence_checking_us;
    }
    batch_settle(&s->batch, &s->kinds, results, clock_boot_us(), &s->fence_known);
    batch_committed(s);
    if (s->on_freed != NULL) {
        batch_tell_freed(&s->batch, results, s->on_freed, s->ctx); /* after their releases */
    }
}

/* While data are being searched for, claims go in batches of their own. */
static void fill_batch(struct job_store *s, int64_t now_us)
{
    struct batch *b = &s->batch;
    bool is_limited = s->limited.first != NULL &&
                      !(s->was_limited && (s->claims.first != NULL || s->waiting.first != NULL));
    struct claim_queue *claims = is_limited ? &s->limited : &s->claims;
    bool has_claims = claims->first != NULL;
    bool knows_kinds =
        has_claims && kind_cache_knows(&s->kinds, claims->first->kinds, claims->first->kind_count);
    bool is_searching = suspects_is_searching(&s->suspects);
    bool is_claims_only = is_searching && s->is_claims_turn && has_claims;
    s->was_limited = is_limited;
    b->has_suspect = false;
    b->checks_fence = has_claims && s->fence_checked_us != pg_up_since_us(s->pg);
    b->is_careful = now_us < s->careful_until_us;
    b->reads_kinds = has_claims && (!knows_kinds || now_us - s->kinds.loaded_us > KINDS_FRESH_US);
    if (b->checks_fence) {
        s->fence_checking_us = pg_up_since_us(s->pg);
        return;
    }
    if (!is_claims_only && !is_limited) {
        batch_take_finishes(b, &s->waiting, s->suspects.finish_max);
    }
    if (knows_kinds && !b->has_suspect && (!is_searching || b->finish_count == 0)) {
        batch_take_claims(b, claims);
    }
    s->is_claims_turn = !is_claims_only;
}

/* Sends what waits, and answers what can't be sent. */
static void send_batch(struct job_store *s, int64_t now_us)
{
    struct batch *b = &s->batch;
    fill_batch(s, now_us);
    if (b->finish_count == 0 && b->claims.first == NULL && !b->reads_kinds && !b->checks_fence) {
        return;
    }
    struct pg_request request = {.step_count = 0};
    struct err err = {.status = STATUS_OK};
    enum status st = batch_build(b, &s->kinds, s->worker_id, &request, &err);
    if (st == STATUS_OK && request.step_count == 0) {
        batch_committed(s); /* only jobs ahead, only at_most_once kinds: nothing to ask for */
        return;
    }
    if (st == STATUS_OK) {
        st = store_send(s, &request, on_batch, s, &err);
    }
    s->is_in_flight = st == STATUS_OK;
    if (st != STATUS_OK) {
        batch_return_finishes(b, &s->waiting, false);
        back_off(s, &err);
        store_answer_claims(s, &b->claims, CLAIM_NOT_TRIED);
        return;
    }
    for (struct claim *c = b->claims.first; c != NULL; c = c->next) {
        memcpy(c->worker_id, s->worker_id, sizeof c->worker_id);
    }
    if (b->claims.first != NULL) {
        s->lost_fence = s->fence_known;
        memcpy(s->lost_worker_id, s->worker_id, sizeof s->worker_id);
    }
}

/* ---- claims whose answer was lost ---- */

static void on_adopted(void *ctx, enum status st, const struct pg_result *const *results,
                       const struct err *err)
{
    struct job_store *s = ctx;
    if (!store_request_ended(s)) {
        return;
    }
    s->is_in_flight = false;
    if (st != STATUS_OK) {
        back_off(s, err);
        return;
    }
    size_t count = batch_places(s->lost.first, s->batch.places, BATCH_CLAIMS_MAX);
    batch_settle_claims(s->batch.places, count, &s->kinds, results[0], &s->fence_known);
    struct recheck *r = recheck_new(s, &s->kinds);
    pass_on_claims(s, &s->lost, r);
    recheck_send(r);
}

/* Reads back the claims in `lost`. The old backend is gone by now (pg.h), so what these rows say
 * stays true (ARCHITECTURE §4.11). */
static void read_back(struct job_store *s)
{
    size_t count = batch_places(s->lost.first, s->batch.places, BATCH_CLAIMS_MAX);
    int64_t ids[BATCH_CLAIMS_MAX];
    for (size_t i = 0; i < count; i++) {
        ids[i] = s->batch.places[i].id;
    }
    struct params p = {.count = 0};
    params_i64_array(&p, ids, count);
    params_uuid(&p, s->lost_worker_id);
    params_i64(&p, s->lost_fence);
    struct err err = {.status = STATUS_OK};
    enum status st = store_send_one(s, &SQL_JOB_ADOPT, &p, on_adopted, s, &err);
    params_release(&p);
    s->is_in_flight = st == STATUS_OK;
    if (st != STATUS_OK) {
        back_off(s, &err);
    }
}

/* ---- turns of the loop ---- */

static bool has_work(const struct job_store *s)
{
    return s->waiting.first != NULL || s->locked.first != NULL || s->suspects.aside.first != NULL ||
           s->claims.first != NULL || s->limited.first != NULL || s->lost.first != NULL;
}

bool job_store_is_idle(const struct job_store *s)
{
    return !s->is_in_flight && !has_work(s);
}

static void flush(struct job_store *s)
{
    if (s->is_in_flight || (!has_work(s) && s->gather.finishes.first == NULL)) {
        return;
    }
    int64_t now_us = clock_boot_us();
    retry_locked(s, now_us);
    suspects_retry(&s->suspects, &s->waiting, now_us);
    int64_t gathered_us = gather_pass_on(&s->gather, &s->waiting, now_us);
    if (gathered_us != INT64_MAX) {
        arm(s, gathered_us);
    }
    if (s->suspects.aside.first != NULL) {
        arm(s, s->suspects.aside_until_us);
    }
    if (!pg_is_up(s->pg)) {
        refuse_waiting_claims(s);
    } else if (now_us < s->blocked_until_us) {
        arm(s, s->blocked_until_us);
        refuse_waiting_claims(s);
    } else if (s->lost.first != NULL) {
        read_back(s);
    } else {
        send_batch(s, now_us);
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
    finish_queue_release(&s->gather.finishes);
    finish_queue_release(&s->locked);
    suspects_release(&s->suspects);
    claim_queue_release(&s->claims);
    claim_queue_release(&s->limited);
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
    finish_queue_push(finish->may_gather ? &s->gather.finishes : &s->waiting, f);
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
