/* SPDX-License-Identifier: Apache-2.0 */
#include "base/bug.h"
#include "store/jobs/internal.h"

#define CAREFUL_US (10 * US_PER_S) /* INTERFACES rule 4 */
#define KINDS_FRESH_US (10 * US_PER_S)

static void pass_on_finishes(struct job_store *s, struct look *l)
{
    struct finish_queue settled = {.first = NULL};
    for (size_t k = 0; k < FINISH_KIND_COUNT; k++) {
        struct round_lane *lane = &s->round.lanes[k];
        for (size_t i = 0; i < lane->count; i++) {
            struct finish *f = lane->list[i];
            if (f->is_settled) {
                finish_queue_push(&settled, f);
            } else if (l != NULL) {
                finish_queue_push(&l->finishes, f);
            } else {
                store_keep_locked(s, f);
            }
        }
        lane->count = 0;
    }
    s->round.finish_count = 0;
    for (struct finish *f = finish_queue_pop(&settled); f != NULL; f = finish_queue_pop(&settled)) {
        store_settle_finish(s, f, f->is_refused ? FINISH_REFUSED : FINISH_ACCEPTED);
    }
}

static void round_committed(struct job_store *s)
{
    struct look *l = look_new(s);
    pass_on_finishes(s, l);
    store_pass_on_claims(s, &s->round.claims, l);
    store_look(s, l);
}

static void round_failed(struct job_store *s, enum status st, const struct err *err)
{
    struct round *r = &s->round;
    if (st == STATUS_UNKNOWN) {
        s->counters.unknown_outcomes++;
        round_return_finishes(r, &s->waiting, true);
        round_return_claims(r, &s->lost);
        return;
    }
    bool is_locked = strcmp(err->code, "55P03") == 0;
    s->counters.refused_rounds++;
    bool is_retried = false;
    if (is_locked && !r->is_careful) {
        s->counters.locked_repeats++;
        s->careful_until_us = clock_boot_us() + CAREFUL_US;
        is_retried = true;
    } else if (!is_locked && !(SEEDED_BUG(17) && strncmp(err->code, "23", 2) == 0)) {
        is_retried = store_blame(s, err);
    }
    round_return_finishes(r, &s->waiting, false);
    if (is_retried) {
        round_return_claims(r, &s->claims);
        return;
    }
    store_back_off(s, err);
    store_answer_claims(s, &r->claims, CLAIM_NOT_TRIED);
}

static void on_round(void *ctx, enum status st, const struct pg_result *const *results,
                     const struct err *err)
{
    struct job_store *s = ctx;
    if (!store_request_ended(s)) {
        return;
    }
    s->is_in_flight = false;
    if (st != STATUS_OK) {
        round_failed(s, st, err);
        return;
    }
    s->backoff_us = 0;
    s->trouble.status = STATUS_OK;
    s->counters.commits += s->round.finish_count > 0 || s->round.claims.first != NULL;
    s->finish_rounds += s->round.finish_count > 0;
    if (s->finish_max < ROUND_FINISHES_MAX && s->round.finish_count > 0) {
        size_t doubled = s->finish_max * 2;
        s->finish_max = doubled < ROUND_FINISHES_MAX ? doubled : ROUND_FINISHES_MAX;
    }
    if (s->round.guards_fence) {
        s->guarded_us = s->guarding_us;
    }
    round_settle(&s->round, &s->kinds, results, clock_boot_us(), &s->fence_known);
    round_committed(s);
}

/* While data are being searched for, claims go in rounds of their own. */
static void fill_round(struct job_store *s, int64_t now_us)
{
    struct round *r = &s->round;
    bool has_claims = s->claims.first != NULL;
    bool knows_kinds = has_claims && kind_cache_knows(&s->kinds, s->claims.first->kinds,
                                                      s->claims.first->kind_count);
    bool is_searching = s->finish_max < ROUND_FINISHES_MAX;
    bool is_claims_only = is_searching && s->is_claims_turn && has_claims;
    r->has_suspect = false;
    r->guards_fence = has_claims && s->guarded_us != pg_up_since_us(s->pg);
    r->is_careful = now_us < s->careful_until_us;
    r->reads_kinds = has_claims && (!knows_kinds || now_us - s->kinds.loaded_us > KINDS_FRESH_US);
    if (r->guards_fence) {
        s->guarding_us = pg_up_since_us(s->pg);
        return;
    }
    if (!is_claims_only) {
        round_take_finishes(r, &s->waiting, s->finish_max);
    }
    if (knows_kinds && !r->has_suspect && (!is_searching || r->finish_count == 0)) {
        round_take_claims(r, &s->claims);
    }
    s->is_claims_turn = !is_claims_only;
}

void store_send_round(struct job_store *s, int64_t now_us)
{
    struct round *r = &s->round;
    fill_round(s, now_us);
    if (r->finish_count == 0 && r->claims.first == NULL && !r->reads_kinds && !r->guards_fence) {
        return;
    }
    struct pg_request request = {.step_count = 0};
    struct err err = {.status = STATUS_OK};
    enum status st = round_build(r, &s->kinds, s->worker_id, &request, &err);
    if (st == STATUS_OK && request.step_count == 0) {
        round_committed(s); /* only jobs ahead, only at_most_once kinds: nothing to ask for */
        return;
    }
    if (st == STATUS_OK) {
        st = store_send(s, &request, on_round, s, &err);
    }
    s->is_in_flight = st == STATUS_OK;
    if (st != STATUS_OK) {
        round_return_finishes(r, &s->waiting, false);
        store_back_off(s, &err);
        store_answer_claims(s, &r->claims, CLAIM_NOT_TRIED);
        return;
    }
    for (struct claim *c = r->claims.first; c != NULL; c = c->next) {
        memcpy(c->worker_id, s->worker_id, sizeof c->worker_id);
    }
    if (r->claims.first != NULL) {
        s->lost_fence = s->fence_known;
        memcpy(s->lost_worker_id, s->worker_id, sizeof s->worker_id);
    }
}
