/* SPDX-License-Identifier: Apache-2.0 */
#include "base/bug.h"
#include "store/jobs/internal.h"

#define CAREFUL_US (10 * US_PER_S) /* INTERFACES rule 4 */
#define KINDS_FRESH_US (10 * US_PER_S)

static void pass_on_finishes(struct job_store *s, struct recheck *r)
{
    struct finish_queue settled = {.first = NULL};
    for (size_t k = 0; k < FINISH_KIND_COUNT; k++) {
        struct finish_list *list = &s->batch.finishes[k];
        for (size_t i = 0; i < list->count; i++) {
            struct finish *f = list->items[i];
            if (f->is_settled) {
                finish_queue_push(&settled, f);
            } else if (r != NULL) {
                finish_queue_push(&r->finishes, f);
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

static void batch_committed(struct job_store *s)
{
    struct recheck *r = recheck_new(s);
    pass_on_finishes(s, r);
    store_pass_on_claims(s, &s->batch.claims, r);
    store_recheck(s, r);
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
        is_retried = store_blame(s, err);
    }
    batch_return_finishes(b, &s->waiting, false);
    if (is_retried) {
        batch_return_claims(b, &s->claims);
        return;
    }
    store_back_off(s, err);
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
    s->finish_batches += s->batch.finish_count > 0;
    if (s->finish_max < BATCH_FINISHES_MAX && s->batch.finish_count > 0) {
        size_t doubled = s->finish_max * 2;
        s->finish_max = doubled < BATCH_FINISHES_MAX ? doubled : BATCH_FINISHES_MAX;
    }
    if (s->batch.guards_fence) {
        s->guarded_us = s->guarding_us;
    }
    batch_settle(&s->batch, &s->kinds, results, clock_boot_us(), &s->fence_known);
    batch_committed(s);
}

/* While data are being searched for, claims go in batches of their own. */
static void fill_batch(struct job_store *s, int64_t now_us)
{
    struct batch *b = &s->batch;
    bool has_claims = s->claims.first != NULL;
    bool knows_kinds = has_claims && kind_cache_knows(&s->kinds, s->claims.first->kinds,
                                                      s->claims.first->kind_count);
    bool is_searching = s->finish_max < BATCH_FINISHES_MAX;
    bool is_claims_only = is_searching && s->is_claims_turn && has_claims;
    b->has_suspect = false;
    b->guards_fence = has_claims && s->guarded_us != pg_up_since_us(s->pg);
    b->is_careful = now_us < s->careful_until_us;
    b->reads_kinds = has_claims && (!knows_kinds || now_us - s->kinds.loaded_us > KINDS_FRESH_US);
    if (b->guards_fence) {
        s->guarding_us = pg_up_since_us(s->pg);
        return;
    }
    if (!is_claims_only) {
        batch_take_finishes(b, &s->waiting, s->finish_max);
    }
    if (knows_kinds && !b->has_suspect && (!is_searching || b->finish_count == 0)) {
        batch_take_claims(b, &s->claims);
    }
    s->is_claims_turn = !is_claims_only;
}

void store_send_batch(struct job_store *s, int64_t now_us)
{
    struct batch *b = &s->batch;
    fill_batch(s, now_us);
    if (b->finish_count == 0 && b->claims.first == NULL && !b->reads_kinds && !b->guards_fence) {
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
        store_back_off(s, &err);
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
