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
static void end_exhausted(struct job_store *s, const struct look *l)
{
    const struct claim *c = l->claims.first;
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
    params_i64_array(&p, l->exhausted, l->exhausted_count);
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

static void settle_looked_up(void *owner, struct finish *f, enum look_verdict verdict)
{
    struct job_store *s = owner;
    switch (verdict) {
    case LOOK_ALREADY:
        store_settle_finish(s, f, FINISH_ALREADY);
        break;
    case LOOK_STALE:
        store_settle_finish(s, f, FINISH_STALE);
        break;
    case LOOK_LOCKED:
        store_keep_locked(s, f);
        break;
    }
}

/* Repeating a finish is harmless: it ends in another look. */
static void give_up_look(struct job_store *s, struct look *l)
{
    for (struct finish *f = finish_queue_pop(&l->finishes); f != NULL;
         f = finish_queue_pop(&l->finishes)) {
        store_keep_locked(s, f);
    }
    store_answer_claims(s, &l->claims, CLAIM_NOT_TRIED);
    look_free(l);
}

static void on_looked(void *ctx, enum status st, const struct pg_result *const *results,
                      const struct err *err)
{
    (void)err;
    struct look *l = ctx;
    struct job_store *s = l->owner;
    if (!store_request_ended(s)) {
        look_free(l);
        return;
    }
    if (st != STATUS_OK ||
        look_settle(l, &s->kinds, results, settle_looked_up, NULL) != STATUS_OK) {
        give_up_look(s, l);
        return;
    }
    if (l->exhausted_count > 0) {
        end_exhausted(s, l);
    }
    store_answer_claims(s, &l->claims, CLAIM_GONE);
    look_free(l);
}

void store_look(struct job_store *s, struct look *l)
{
    if (l == NULL || look_is_empty(l)) {
        look_free(l);
        return;
    }
    struct pg_request request = {.step_count = 0};
    enum status st = look_build(l, &request, NULL);
    if (st == STATUS_OK) {
        st = store_send(s, &request, on_looked, l, NULL);
    }
    if (st != STATUS_OK) {
        give_up_look(s, l);
    }
}

/* Claims whose ids are all settled are answered, the others looked at first. */
void store_pass_on_claims(struct job_store *s, struct claim_queue *from, struct look *l)
{
    struct claim_queue taken = *from;
    *from = (struct claim_queue){.first = NULL};
    for (struct claim *c = claim_queue_pop(&taken); c != NULL; c = claim_queue_pop(&taken)) {
        if (claim_is_settled(c)) {
            store_answer_claim(s, c);
        } else if (l != NULL) {
            claim_queue_push(&l->claims, c);
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
    size_t count = round_places(s->lost.first, s->round.places, ROUND_CLAIMS_MAX);
    round_settle_claims(s->round.places, count, &s->kinds, results[0], &s->fence_known);
    struct look *l = look_new(s);
    store_pass_on_claims(s, &s->lost, l);
    store_look(s, l);
}

/* The old backend is gone by now (pg.h), so what these rows say stays true (ARCHITECTURE §4.11). */
void store_read_back(struct job_store *s)
{
    size_t count = round_places(s->lost.first, s->round.places, ROUND_CLAIMS_MAX);
    int64_t ids[ROUND_CLAIMS_MAX];
    for (size_t i = 0; i < count; i++) {
        ids[i] = s->round.places[i].id;
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
