/* SPDX-License-Identifier: Apache-2.0 */
#include "sql/queries.h"
#include "store/jobs/internal.h"

static void on_exhausted(void *ctx, enum status st, const struct pg_result *const *results,
                         const struct err *err)
{
    (void)st;
    (void)results;
    (void)err;
    store_request_ended(ctx);
}

/* Jobs that nobody may claim any more would be fed for ever. */
static void end_exhausted(struct job_store *s, const struct recheck *r)
{
    const struct claim *c = r->claims.first;
    const char *names[CLAIM_KINDS_MAX];
    int64_t limits[CLAIM_KINDS_MAX];
    size_t count = 0;
    for (size_t i = 0; i < c->kind_count; i++) {
        const struct kind_defaults *kind = kind_cache_find(&s->kinds, c->kinds[i]);
        if (kind != NULL) {
            names[count] = kind->name;
            limits[count] = kind->settings.max_attempts;
            count++;
        }
    }
    struct params p = {.count = 0};
    params_i64_array(&p, r->exhausted, r->exhausted_count);
    params_text_array(&p, names, NULL, count);
    params_i64_array(&p, limits, count);
    struct pg_request request = {.step_count = 1};
    struct err err = {.status = STATUS_OK};
    enum status st = params_step(&p, &SQL_JOB_EXHAUST, &request.steps[0], &err);
    if (st == STATUS_OK) {
        st = store_send(s, &request, on_exhausted, s, &err);
    }
    (void)st; /* their next claim tries again */
    params_release(&p);
}

static void settle_rechecked(void *owner, struct finish *f, enum recheck_verdict verdict)
{
    struct job_store *s = owner;
    switch (verdict) {
    case RECHECK_ALREADY:
        store_settle_finish(s, f, FINISH_ALREADY);
        break;
    case RECHECK_STALE:
        store_settle_finish(s, f, FINISH_STALE);
        break;
    case RECHECK_LOCKED:
        store_keep_locked(s, f);
        break;
    }
}

/* Repeating a finish is harmless: it ends in another recheck. */
static void give_up_recheck(struct job_store *s, struct recheck *r)
{
    for (struct finish *f = finish_queue_pop(&r->finishes); f != NULL;
         f = finish_queue_pop(&r->finishes)) {
        store_keep_locked(s, f);
    }
    store_answer_claims(s, &r->claims, CLAIM_NOT_TRIED);
    recheck_free(r);
}

static void on_rechecked(void *ctx, enum status st, const struct pg_result *const *results,
                         const struct err *err)
{
    (void)err;
    struct recheck *r = ctx;
    struct job_store *s = r->owner;
    if (!store_request_ended(s)) {
        recheck_free(r);
        return;
    }
    if (st != STATUS_OK ||
        recheck_settle(r, &s->kinds, results, settle_rechecked, NULL) != STATUS_OK) {
        give_up_recheck(s, r);
        return;
    }
    if (r->exhausted_count > 0) {
        end_exhausted(s, r);
    }
    store_answer_claims(s, &r->claims, CLAIM_GONE);
    recheck_free(r);
}

void store_recheck(struct job_store *s, struct recheck *r)
{
    if (r == NULL || recheck_is_empty(r)) {
        recheck_free(r);
        return;
    }
    struct pg_request request = {.step_count = 0};
    enum status st = recheck_build(r, &request, NULL);
    if (st == STATUS_OK) {
        st = store_send(s, &request, on_rechecked, r, NULL);
    }
    if (st != STATUS_OK) {
        give_up_recheck(s, r);
    }
}

/* Claims whose ids are all settled are answered, the others looked at first. */
void store_pass_on_claims(struct job_store *s, struct claim_queue *from, struct recheck *r)
{
    struct claim_queue taken = *from;
    *from = (struct claim_queue){.first = NULL};
    for (struct claim *c = claim_queue_pop(&taken); c != NULL; c = claim_queue_pop(&taken)) {
        if (claim_is_settled(c)) {
            store_answer_claim(s, c);
        } else if (r != NULL) {
            claim_queue_push(&r->claims, c);
        } else {
            claim_refuse_rest(c, CLAIM_NOT_TRIED);
            store_answer_claim(s, c);
        }
    }
}

static void on_adopted(void *ctx, enum status st, const struct pg_result *const *results,
                       const struct err *err)
{
    struct job_store *s = ctx;
    if (!store_request_ended(s)) {
        return;
    }
    s->is_in_flight = false;
    if (st != STATUS_OK) {
        store_back_off(s, err);
        return;
    }
    size_t count = batch_places(s->lost.first, s->batch.places, BATCH_CLAIMS_MAX);
    batch_settle_claims(s->batch.places, count, &s->kinds, results[0], &s->fence_known);
    struct recheck *r = recheck_new(s);
    store_pass_on_claims(s, &s->lost, r);
    store_recheck(s, r);
}

/* The old backend is gone by now (pg.h), so what these rows say stays true (ARCHITECTURE §4.11). */
void store_read_back(struct job_store *s)
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
    struct pg_request request = {.step_count = 1};
    struct err err = {.status = STATUS_OK};
    enum status st = params_step(&p, &SQL_JOB_ADOPT, &request.steps[0], &err);
    if (st == STATUS_OK) {
        st = store_send(s, &request, on_adopted, s, &err);
    }
    params_release(&p);
    s->is_in_flight = st == STATUS_OK;
    if (st != STATUS_OK) {
        store_back_off(s, &err);
    }
}
