/* SPDX-License-Identifier: Apache-2.0 */
#include "store/jobs/round.h"

#include "sql/queries.h"
#include "store/seeded.h"

#include <assert.h>

/* Columns of the statements, gathered from many structs; the largest batch fits. */
struct columns {
    int64_t ids[ROUND_CLAIMS_MAX];
    int64_t fences[ROUND_FINISHES_MAX];
    int64_t numbers[ROUND_FINISHES_MAX];
    const char *texts[ROUND_FINISHES_MAX];
    size_t lens[ROUND_FINISHES_MAX];
};

void round_release(struct round *r)
{
    for (size_t k = 0; k < FINISH_KIND_COUNT; k++) {
        for (size_t i = 0; i < r->lanes[k].count; i++) {
            finish_free(r->lanes[k].list[i]);
        }
        r->lanes[k].count = 0;
    }
    claim_queue_release(&r->claims);
    for (int i = 0; i < STEP_COUNT; i++) {
        params_release(&r->params[i]);
    }
}

void round_take_finishes(struct round *r, struct finish_queue *q, size_t max)
{
    assert(r->finish_count == 0 && max <= ROUND_FINISHES_MAX);
    r->finish_bytes = 0;
    r->has_suspect = q->first != NULL && q->first->is_suspect;
    size_t count_max = r->has_suspect ? 1 : max;
    const char *worker = q->first != NULL ? q->first->worker_id : NULL;
    while (q->first != NULL && r->finish_count < count_max &&
           q->first->is_suspect == r->has_suspect && strcmp(q->first->worker_id, worker) == 0 &&
           (r->finish_count == 0 || r->finish_bytes + q->first->bytes <= ROUND_FINISH_BYTES_MAX)) {
        struct finish *f = finish_queue_pop(q);
        struct round_lane *lane = &r->lanes[f->f.kind];
        f->is_settled = false;
        lane->list[lane->count] = f;
        lane->count++;
        r->finish_count++;
        r->finish_bytes += f->bytes;
    }
}

void round_take_claims(struct round *r, struct claim_queue *q)
{
    assert(r->claims.first == NULL);
    while (q->first != NULL && r->claims.id_count + q->first->count <= ROUND_CLAIMS_MAX &&
           (r->claims.first == NULL || claim_same_kinds(r->claims.first, q->first))) {
        claim_queue_push(&r->claims, claim_queue_pop(q));
    }
}

void round_return_finishes(struct round *r, struct finish_queue *q, bool is_unknown)
{
    for (size_t k = 0; k < FINISH_KIND_COUNT; k++) {
        struct round_lane *lane = &r->lanes[k];
        for (size_t i = lane->count; i > 0; i--) {
            struct finish *f = lane->list[i - 1];
            f->is_unknown = f->is_unknown || is_unknown;
            finish_queue_push_front(q, f);
        }
        lane->count = 0;
    }
    r->finish_count = 0;
}

void round_return_claims(struct round *r, struct claim_queue *q)
{
    struct claim_queue reversed = {.first = NULL};
    for (struct claim *c = claim_queue_pop(&r->claims); c != NULL;
         c = claim_queue_pop(&r->claims)) {
        claim_queue_push_front(&reversed, c);
    }
    for (struct claim *c = claim_queue_pop(&reversed); c != NULL; c = claim_queue_pop(&reversed)) {
        claim_queue_push_front(q, c);
    }
}

static int compare_fences(const void *left, const void *right)
{
    const struct finish *const *a = left;
    const struct finish *const *b = right;
    return ((*a)->f.fence > (*b)->f.fence) - ((*a)->f.fence < (*b)->f.fence);
}

static void put_texts(struct params *p, const struct round_lane *lane, struct columns *columns,
                      const char *(*text_of)(const struct job_finish *, size_t *ret_len))
{
    for (size_t i = 0; i < lane->count; i++) {
        columns->lens[i] = 0;
        columns->texts[i] = text_of(&lane->list[i]->f, &columns->lens[i]);
    }
    params_text_array(p, columns->texts, columns->lens, lane->count);
}

static const char *result_of(const struct job_finish *f, size_t *ret_len)
{
    *ret_len = f->result_len;
    return f->result;
}

static const char *outcome_of(const struct job_finish *f, size_t *ret_len)
{
    const char *outcome = f->outcome != NULL ? f->outcome : "failed";
    *ret_len = strlen(outcome);
    return outcome;
}

static const char *error_of(const struct job_finish *f, size_t *ret_len)
{
    *ret_len = f->error_len;
    return f->error;
}

static const char *log_tail_of(const struct job_finish *f, size_t *ret_len)
{
    *ret_len = f->log_tail_len;
    return f->log_tail;
}

static void put_failures(struct params *p, const struct round_lane *lane, struct columns *columns)
{
    for (size_t i = 0; i < lane->count; i++) {
        columns->numbers[i] = lane->list[i]->f.crashed ? 1 : 0;
    }
    params_i64_array(p, columns->numbers, lane->count);
    put_texts(p, lane, columns, outcome_of);
    put_texts(p, lane, columns, error_of);
    put_texts(p, lane, columns, log_tail_of);
}

/* Statement of one lane; its parameters begin with ids and rising fences, the last is the
 * worker. */
static void put_lane(struct params *p, const struct round_lane *lane, enum finish_kind kind,
                     struct columns *columns)
{
    for (size_t i = 0; i < lane->count; i++) {
        columns->ids[i] = lane->list[i]->f.id;
        columns->fences[i] = lane->list[i]->f.fence;
    }
    params_i64_array(p, columns->ids, lane->count);
    params_i64_array(p, columns->fences, lane->count);
    switch (kind) {
    case FINISH_COMPLETED:
        put_texts(p, lane, columns, result_of);
        break;
    case FINISH_RETRY:
        for (size_t i = 0; i < lane->count; i++) {
            columns->numbers[i] = lane->list[i]->f.delay_us;
        }
        params_i64_array(p, columns->numbers, lane->count);
        put_failures(p, lane, columns);
        break;
    case FINISH_DISCARDED:
        put_failures(p, lane, columns);
        break;
    case FINISH_HAND_BACK:
        break;
    }
    params_uuid(p, lane->list[0]->worker_id);
}

static enum round_step step_of(enum finish_kind kind)
{
    static const enum round_step steps[FINISH_KIND_COUNT] = {
        [FINISH_COMPLETED] = STEP_COMPLETE,
        [FINISH_RETRY] = STEP_RETRY,
        [FINISH_DISCARDED] = STEP_DISCARD,
        [FINISH_HAND_BACK] = STEP_HAND_BACK,
    };
    return steps[kind];
}

static const struct pg_statement *statement_of(enum round_step step, bool is_careful)
{
    switch (step) {
    case STEP_GUARD:
        return &SQL_FENCE_GUARD;
    case STEP_COMPLETE:
        return seeded_statement(is_careful ? &SQL_JOB_COMPLETE_SKIP : &SQL_JOB_COMPLETE);
    case STEP_RETRY:
        return seeded_statement(&SQL_JOB_RETRY);
    case STEP_DISCARD:
        return &SQL_JOB_DISCARD;
    case STEP_HAND_BACK:
        return &SQL_JOB_HAND_BACK;
    case STEP_KINDS:
        return &SQL_JOB_KINDS;
    case STEP_CLAIM:
    case STEP_CLAIM_AHEAD:
        return is_careful ? &SQL_JOB_CLAIM_SKIP : &SQL_JOB_CLAIM;
    case STEP_COUNT:
        break;
    }
    assert(false);
    return NULL;
}

/* Parameters of the next step. */
static struct params *next_params(struct round *r)
{
    struct params *p = &r->params[r->step_count];
    params_reset(p);
    return p;
}

static enum status add_step(struct round *r, enum round_step step, struct pg_request *request,
                            struct err *err)
{
    int n = r->step_count;
    r->steps[n] = step;
    r->step_count++;
    request->step_count = r->step_count;
    return params_step(&r->params[n], statement_of(step, r->is_careful), &request->steps[n], err);
}

static size_t ids_to_claim(const struct round *r, bool is_ahead, int64_t *ret_ids)
{
    size_t count = 0;
    for (const struct claim *c = r->claims.first; c != NULL; c = c->next) {
        size_t from = is_ahead ? c->ahead_from : 0;
        size_t to = is_ahead ? c->count : c->ahead_from;
        for (size_t i = from; i < to; i++) {
            ret_ids[count] = c->ids[i];
            count++;
        }
    }
    return count;
}

static enum status build_claim(struct round *r, bool is_ahead, const struct kind_cache *kinds,
                               const char *worker, struct columns *columns,
                               struct pg_request *request, struct err *err)
{
    size_t id_count = ids_to_claim(r, is_ahead, columns->ids);
    const struct claim *first = r->claims.first;
    size_t kind_count = 0;
    for (size_t i = 0; id_count > 0 && i < first->kind_count; i++) {
        const struct kind_defaults *kind = kind_cache_find(kinds, first->kinds[i]);
        assert(kind != NULL);
        if (is_ahead && kind->settings.at_most_once) {
            continue;
        }
        columns->texts[kind_count] = kind->name;
        columns->numbers[kind_count] = kind->settings.max_attempts;
        kind_count++;
    }
    if (kind_count == 0) {
        return STATUS_OK;
    }
    struct params *p = next_params(r);
    params_i64_array(p, columns->ids, id_count);
    params_uuid(p, worker);
    params_text_array(p, columns->texts, NULL, kind_count);
    params_i64_array(p, columns->numbers, kind_count);
    params_i32(p, is_ahead ? 1 : 0);
    return add_step(r, is_ahead ? STEP_CLAIM_AHEAD : STEP_CLAIM, request, err);
}

enum status round_build(struct round *r, struct kind_cache *kinds, const char *worker,
                        struct pg_request *request, struct err *err)
{
    static_assert(KIND_CACHE_MAX <= ROUND_FINISHES_MAX, "columns hold all kinds");
    autofree struct columns *columns = malloc(sizeof *columns);
    if (columns == NULL) {
        return err_fail(err, STATUS_NOMEM, "columns of a round");
    }
    r->step_count = 0;
    enum status st = STATUS_OK;
    if (r->guards_fence) {
        (void)next_params(r);
        st = add_step(r, STEP_GUARD, request, err);
    }
    for (enum finish_kind k = FINISH_COMPLETED; k < FINISH_KIND_COUNT && st == STATUS_OK; k++) {
        struct round_lane *lane = &r->lanes[k];
        if (lane->count > 0) {
            qsort(lane->list, lane->count, sizeof lane->list[0], compare_fences);
            put_lane(next_params(r), lane, k, columns);
            st = add_step(r, step_of(k), request, err);
        }
    }
    if (st == STATUS_OK && r->reads_kinds) {
        size_t count = kind_cache_ask(kinds, columns->texts);
        params_text_array(next_params(r), columns->texts, NULL, count);
        st = add_step(r, STEP_KINDS, request, err);
    }
    if (st == STATUS_OK) {
        st = build_claim(r, false, kinds, worker, columns, request, err);
    }
    if (st == STATUS_OK) {
        st = build_claim(r, true, kinds, worker, columns, request, err);
    }
    return st;
}

size_t round_places(struct claim *first, struct claim_place *ret_places, size_t max)
{
    size_t count = 0;
    for (struct claim *c = first; c != NULL; c = c->next) {
        for (size_t n = 0; n < c->count; n++) {
            if (!c->is_settled[n]) {
                assert(count < max);
                ret_places[count] = (struct claim_place){.id = c->ids[n], .claim = c, .n = n};
                count++;
            }
        }
    }
    claim_places_sort(ret_places, count);
    return count;
}

static void settle_finishes(struct round_lane *lane, const struct pg_result *rows)
{
    for (int row = 0; row < pg_row_count(rows); row++) {
        int64_t fence = pg_i64(rows, row, 0);
        size_t low = 0;
        size_t high = lane->count;
        while (low < high) {
            size_t middle = low + (high - low) / 2;
            if (lane->list[middle]->f.fence < fence) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        for (; low < lane->count && lane->list[low]->f.fence == fence; low++) {
            lane->list[low]->is_settled = true;
        }
    }
}

void round_settle_claims(const struct claim_place *places, size_t count,
                         const struct kind_cache *kinds, const struct pg_result *rows,
                         int64_t *ret_fence)
{
    enum status st = STATUS_OK;
    for (int row = 0; row < pg_row_count(rows) && st == STATUS_OK; row++) {
        const struct claim_place *at = claim_places_find(places, count, pg_i64(rows, row, 0));
        if (at == NULL) {
            continue; /* read back, but asked for by nobody any more */
        }
        int64_t fence = pg_i64(rows, row, 1);
        *ret_fence = fence > *ret_fence ? fence : *ret_fence;
        st = claim_put_job(at->claim, at->n, rows, row, kinds, NULL);
    }
}

static void settle_step(struct round *r, int n, size_t place_count, struct kind_cache *kinds,
                        const struct pg_result *rows, int64_t now_us, int64_t *ret_fence)
{
    switch (r->steps[n]) {
    case STEP_GUARD:
        break;
    case STEP_COMPLETE:
        settle_finishes(&r->lanes[FINISH_COMPLETED], rows);
        break;
    case STEP_RETRY:
        settle_finishes(&r->lanes[FINISH_RETRY], rows);
        break;
    case STEP_DISCARD:
        settle_finishes(&r->lanes[FINISH_DISCARDED], rows);
        break;
    case STEP_HAND_BACK:
        settle_finishes(&r->lanes[FINISH_HAND_BACK], rows);
        break;
    case STEP_KINDS:
        kind_cache_load(kinds, rows, now_us);
        break;
    case STEP_CLAIM:
    case STEP_CLAIM_AHEAD:
        round_settle_claims(r->places, place_count, kinds, rows, ret_fence);
        break;
    case STEP_COUNT:
        assert(false);
    }
}

void round_settle(struct round *r, struct kind_cache *kinds, const struct pg_result *const *results,
                  int64_t now_us, int64_t *ret_fence)
{
    size_t place_count = round_places(r->claims.first, r->places, ROUND_CLAIMS_MAX);
    for (int i = 0; i < r->step_count; i++) {
        settle_step(r, i, place_count, kinds, results[i], now_us, ret_fence);
    }
}
