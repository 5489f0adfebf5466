/* SPDX-License-Identifier: Apache-2.0 */
#include "store/jobs/batch.h"

#include "sql/queries.h"
#include "store/jobs/columns.h"
#include "store/seeded.h"

#include <assert.h>

void batch_release(struct batch *b)
{
    for (size_t k = 0; k < FINISH_KIND_COUNT; k++) {
        for (size_t i = 0; i < b->finishes[k].count; i++) {
            finish_free(b->finishes[k].items[i]);
        }
        b->finishes[k].count = 0;
    }
    claim_queue_release(&b->claims);
    for (int i = 0; i < STEP_COUNT; i++) {
        params_release(&b->params[i]);
    }
}

void batch_take_finishes(struct batch *b, struct finish_queue *q, size_t max)
{
    assert(b->finish_count == 0 && max <= BATCH_FINISHES_MAX);
    b->finish_bytes = 0;
    b->has_suspect = q->first != NULL && q->first->is_suspect;
    size_t count_max = b->has_suspect ? 1 : max;
    const char *worker = q->first != NULL ? q->first->worker_id : NULL;
    while (q->first != NULL && b->finish_count < count_max &&
           q->first->is_suspect == b->has_suspect && strcmp(q->first->worker_id, worker) == 0 &&
           (b->finish_count == 0 || b->finish_bytes + q->first->bytes <= BATCH_FINISH_BYTES_MAX)) {
        struct finish *f = finish_queue_pop(q);
        struct finish_list *list = &b->finishes[f->f.kind];
        f->is_settled = false;
        list->items[list->count] = f;
        list->count++;
        b->finish_count++;
        b->finish_bytes += f->bytes;
    }
}

void batch_take_claims(struct batch *b, struct claim_queue *q)
{
    assert(b->claims.first == NULL);
    size_t id_count = 0;
    while (q->first != NULL && id_count + q->first->count <= BATCH_CLAIMS_MAX &&
           (b->claims.first == NULL || claim_same_kinds(b->claims.first, q->first))) {
        id_count += q->first->count;
        claim_queue_push(&b->claims, claim_queue_pop(q));
    }
}

void batch_return_finishes(struct batch *b, struct finish_queue *q, bool is_unknown)
{
    for (size_t k = 0; k < FINISH_KIND_COUNT; k++) {
        struct finish_list *list = &b->finishes[k];
        for (size_t i = list->count; i > 0; i--) {
            struct finish *f = list->items[i - 1];
            f->is_unknown = f->is_unknown || is_unknown;
            finish_queue_push_front(q, f);
        }
        list->count = 0;
    }
    b->finish_count = 0;
}

void batch_return_claims(struct batch *b, struct claim_queue *q)
{
    struct claim_queue reversed = {.first = NULL};
    for (struct claim *c = claim_queue_pop(&b->claims); c != NULL;
         c = claim_queue_pop(&b->claims)) {
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

static enum batch_step step_of(size_t kind)
{
    static const enum batch_step steps[FINISH_KIND_COUNT] = {
        [FINISH_COMPLETED] = STEP_COMPLETE, [FINISH_RETRY] = STEP_RETRY,
        [FINISH_DISCARDED] = STEP_DISCARD,  [FINISH_CANCELLED] = STEP_CANCEL,
        [FINISH_SNOOZE] = STEP_SNOOZE,      [FINISH_HAND_BACK] = STEP_HAND_BACK,
        [FINISH_DROPPED] = STEP_DROP,
    };
    return steps[kind];
}

static const struct pg_statement *statement_of(enum batch_step step, bool is_careful)
{
    switch (step) {
    case STEP_FENCE:
        return &SQL_FENCE_CHECK;
    case STEP_COMPLETE:
        return seeded_statement(is_careful ? &SQL_JOB_COMPLETE_SKIP : &SQL_JOB_COMPLETE);
    case STEP_RETRY:
        return seeded_statement(&SQL_JOB_RETRY);
    case STEP_DISCARD:
    case STEP_CANCEL:
        return &SQL_JOB_DISCARD;
    case STEP_SNOOZE:
        return &SQL_JOB_SNOOZE;
    case STEP_HAND_BACK:
        return &SQL_JOB_HAND_BACK;
    case STEP_DROP:
        return is_careful ? &SQL_JOB_DROP_SKIP : &SQL_JOB_DROP;
    case STEP_RECORD:
        return &SQL_JOB_RECORD_DONE;
    case STEP_ASKED:
        return &SQL_JOB_CANCEL_ASKED;
    case STEP_FORGET:
        return &SQL_JOB_LIVE_FORGET;
    case STEP_FREE:
        return &SQL_JOB_FREE_ENDED;
    case STEP_KINDS:
        return &SQL_JOB_KINDS;
    case STEP_CLAIM:
    case STEP_CLAIM_AHEAD:
        return is_careful ? &SQL_JOB_CLAIM_SKIP : &SQL_JOB_CLAIM;
    case STEP_CLAIM_LIMITED:
        return &SQL_JOB_CLAIM_LIMITED;
    case STEP_COUNT:
        break;
    }
    assert(false);
    return NULL;
}

/* Parameters of the next step. */
static struct params *next_params(struct batch *b)
{
    struct params *p = &b->params[b->step_count];
    params_reset(p);
    return p;
}

static enum status add_step(struct batch *b, enum batch_step step, struct pg_request *request,
                            struct err *err)
{
    int n = b->step_count;
    b->steps[n] = step;
    b->step_count++;
    request->step_count = b->step_count;
    return params_step(&b->params[n], statement_of(step, b->is_careful), &request->steps[n], err);
}

/* Of a sorted list, as its completions. */
static enum status build_records(struct batch *b, struct columns *columns,
                                 struct pg_request *request, struct err *err)
{
    const struct finish_list *list = &b->finishes[FINISH_COMPLETED];
    size_t count = 0;
    for (size_t i = 0; i < list->count; i++) {
        const struct job_finish *f = &list->items[i]->f;
        if (f->overran || (f->keeps_log && !f->is_unkept && f->log_tail_len > 0)) {
            columns->ids[count] = f->id;
            columns->fences[count] = f->fence;
            columns->texts[count] = f->log_tail;
            columns->lens[count] = f->log_tail_len;
            columns->numbers[count] = f->overran;
            count++;
        }
    }
    if (count == 0) {
        return STATUS_OK;
    }
    struct params *p = next_params(b);
    params_i64_array(p, columns->ids, count);
    params_i64_array(p, columns->fences, count);
    params_text_array(p, columns->texts, columns->lens, count);
    params_i64_array(p, columns->numbers, count);
    params_uuid(p, list->items[0]->worker_id);
    return add_step(b, STEP_RECORD, request, err);
}

static size_t add_ids(const struct finish_list *list, int64_t *ids, size_t count)
{
    for (size_t i = 0; i < list->count; i++) {
        ids[count] = list->items[i]->f.id;
        count++;
    }
    return count;
}

/* A cancel that was asked for before these commits, and that their worker hasn't heard of. */
static enum status build_asked(struct batch *b, struct columns *columns, struct pg_request *request,
                               struct err *err)
{
    size_t count = add_ids(&b->finishes[FINISH_RETRY], columns->ids, 0);
    count = add_ids(&b->finishes[FINISH_SNOOZE], columns->ids, count);
    count = add_ids(&b->finishes[FINISH_HAND_BACK], columns->ids, count);
    if (count == 0) {
        return STATUS_OK;
    }
    params_i64_array(next_params(b), columns->ids, count);
    return add_step(b, STEP_ASKED, request, err);
}

static size_t add_live(const struct finish_list *list, int64_t *ids, size_t count)
{
    for (size_t i = 0; i < list->count; i++) {
        if (list->items[i]->f.has_live) {
            ids[count] = list->items[i]->f.id;
            count++;
        }
    }
    return count;
}

static enum status build_forget(struct batch *b, struct columns *columns,
                                struct pg_request *request, struct err *err)
{
    size_t count = add_live(&b->finishes[FINISH_COMPLETED], columns->ids, 0);
    count = add_live(&b->finishes[FINISH_DROPPED], columns->ids, count);
    if (count == 0) {
        return STATUS_OK;
    }
    params_i64_array(next_params(b), columns->ids, count);
    return add_step(b, STEP_FORGET, request, err);
}

static size_t add_held(struct columns *columns, size_t count, const struct job_finish *f,
                       int64_t key_row, int64_t place)
{
    if (key_row == PG_TID_NULL && place == PG_TID_NULL) {
        return count;
    }
    columns->ids[count] = f->id;
    columns->fences[count] = f->fence;
    columns->key_rows[count] = key_row;
    columns->places[count] = place;
    return count + 1;
}

/* Whether they ended is seen there: what still runs keeps what it has. */
static enum status build_free(struct batch *b, struct columns *columns, struct pg_request *request,
                              struct err *err)
{
    size_t count = 0;
    for (size_t k = 0; k < FINISH_KIND_COUNT; k++) {
        for (size_t i = 0; i < b->finishes[k].count; i++) {
            const struct job_finish *f = &b->finishes[k].items[i]->f;
            bool has_key = (f->flags & JOB_FLAG_KEY) != 0;
            bool has_place = (f->flags & JOB_FLAG_PLACE) != 0;
            count = add_held(columns, count, f, has_key ? f->key_row : PG_TID_NULL,
                             has_place ? f->place : PG_TID_NULL);
            /* Where the first isn't known, both are looked for at once. */
            bool has_second = has_key && f->key_row != 0 && f->second_row != 0;
            count =
                add_held(columns, count, f, has_second ? f->second_row : PG_TID_NULL, PG_TID_NULL);
        }
    }
    if (count == 0) {
        return STATUS_OK;
    }
    struct params *p = next_params(b);
    params_i64_array(p, columns->ids, count);
    params_i64_array(p, columns->fences, count);
    params_tid_array(p, columns->key_rows, count);
    params_tid_array(p, columns->places, count);
    return add_step(b, STEP_FREE, request, err);
}

static size_t ids_to_claim(const struct batch *b, bool is_ahead, int64_t *ret_ids)
{
    size_t count = 0;
    for (const struct claim *c = b->claims.first; c != NULL; c = c->next) {
        size_t from = is_ahead ? c->ahead_from : 0;
        size_t to = is_ahead ? c->count : c->ahead_from;
        for (size_t i = from; i < to; i++) {
            if (!c->is_settled[i]) {
                ret_ids[count] = c->ids[i];
                count++;
            }
        }
    }
    return count;
}

static enum status build_claim(struct batch *b, bool is_ahead, const struct kind_cache *kinds,
                               const char *worker, struct columns *columns,
                               struct pg_request *request, struct err *err)
{
    size_t id_count = ids_to_claim(b, is_ahead, columns->ids);
    const struct claim *first = b->claims.first;
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
    struct params *p = next_params(b);
    params_i64_array(p, columns->ids, id_count);
    params_uuid(p, worker);
    params_text_array(p, columns->texts, NULL, kind_count);
    params_i64_array(p, columns->numbers, kind_count);
    params_i32(p, is_ahead ? 1 : 0);
    return add_step(b, is_ahead ? STEP_CLAIM_AHEAD : STEP_CLAIM, request, err);
}

static int compare_ids(const void *left, const void *right)
{
    const int64_t *a = left;
    const int64_t *b = right;
    return (*a > *b) - (*a < *b);
}

static enum status build_claim_limited(struct batch *b, const char *worker, struct columns *columns,
                                       struct pg_request *request, struct err *err)
{
    const struct claim *first = b->claims.first;
    struct params *p = next_params(b);
    size_t count = ids_to_claim(b, false, columns->ids);
    count += ids_to_claim(b, true, columns->ids + count);
    params_i64_array(p, columns->ids, count);
    params_uuid(p, worker);
    params_text_array(p, first->kinds, NULL, first->kind_count);
    count = ids_to_claim(b, true, columns->ids);
    if (count > 1) {
        qsort(columns->ids, count, sizeof columns->ids[0], compare_ids);
    }
    params_i64_array(p, columns->ids, count);
    return add_step(b, STEP_CLAIM_LIMITED, request, err);
}

enum status batch_build(struct batch *b, struct kind_cache *kinds, const char *worker,
                        struct pg_request *request, struct err *err)
{
    static_assert(KIND_CACHE_MAX <= BATCH_FINISHES_MAX, "columns hold all kinds");
    autofree struct columns *columns = malloc(sizeof *columns);
    if (columns == NULL) {
        return err_fail(err, STATUS_NOMEM, "columns of a batch");
    }
    b->step_count = 0;
    enum status st = STATUS_OK;
    if (b->checks_fence) {
        (void)next_params(b);
        st = add_step(b, STEP_FENCE, request, err);
    }
    if (st != STATUS_OK) {
        return st;
    }
    for (size_t k = FINISH_COMPLETED; k < FINISH_KIND_COUNT; k++) {
        struct finish_list *list = &b->finishes[k];
        if (list->count == 0) {
            continue;
        }
        qsort(list->items, list->count, sizeof list->items[0], compare_fences);
        st = k == FINISH_COMPLETED ? build_records(b, columns, request, err) : STATUS_OK;
        if (st != STATUS_OK) {
            return st;
        }
        columns_put_finishes(next_params(b), list, k, columns);
        st = add_step(b, step_of(k), request, err);
        if (st != STATUS_OK) {
            return st;
        }
    }
    st = build_asked(b, columns, request, err);
    if (st == STATUS_OK) {
        st = build_forget(b, columns, request, err);
    }
    if (st == STATUS_OK) {
        st = build_free(b, columns, request, err);
    }
    if (st == STATUS_OK && b->reads_kinds) {
        size_t count = kind_cache_ask(kinds, columns->texts);
        params_text_array(next_params(b), columns->texts, NULL, count);
        st = add_step(b, STEP_KINDS, request, err);
    }
    if (st != STATUS_OK) {
        return st;
    }
    if (b->claims.first != NULL && b->claims.first->is_limited) {
        return build_claim_limited(b, worker, columns, request, err);
    }
    st = build_claim(b, false, kinds, worker, columns, request, err);
    if (st != STATUS_OK) {
        return st;
    }
    return build_claim(b, true, kinds, worker, columns, request, err);
}

size_t batch_places(struct claim *first, struct claim_place *ret_places, size_t max)
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

static void settle_finishes(struct finish_list *list, const struct pg_result *rows)
{
    for (int row = 0; row < pg_row_count(rows); row++) {
        int64_t fence = pg_i64(rows, row, 0);
        size_t low = 0;
        size_t high = list->count;
        while (low < high) {
            size_t middle = low + (high - low) / 2;
            if (list->items[middle]->f.fence < fence) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        for (; low < list->count && list->items[low]->f.fence == fence; low++) {
            list->items[low]->is_settled = true;
        }
    }
}

void batch_settle_claims(const struct claim_place *places, size_t count,
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

static void settle_step(struct batch *b, int n, size_t place_count, struct kind_cache *kinds,
                        const struct pg_result *rows, int64_t now_us, int64_t *ret_fence)
{
    switch (b->steps[n]) {
    case STEP_FENCE:
    case STEP_RECORD:
    case STEP_ASKED:
    case STEP_FORGET:
    case STEP_FREE:
        break;
    case STEP_COMPLETE:
        settle_finishes(&b->finishes[FINISH_COMPLETED], rows);
        break;
    case STEP_RETRY:
        settle_finishes(&b->finishes[FINISH_RETRY], rows);
        break;
    case STEP_DISCARD:
        settle_finishes(&b->finishes[FINISH_DISCARDED], rows);
        break;
    case STEP_CANCEL:
        settle_finishes(&b->finishes[FINISH_CANCELLED], rows);
        break;
    case STEP_SNOOZE:
        settle_finishes(&b->finishes[FINISH_SNOOZE], rows);
        break;
    case STEP_HAND_BACK:
        settle_finishes(&b->finishes[FINISH_HAND_BACK], rows);
        break;
    case STEP_DROP:
        settle_finishes(&b->finishes[FINISH_DROPPED], rows);
        break;
    case STEP_KINDS:
        kind_cache_load(kinds, rows, now_us);
        break;
    case STEP_CLAIM:
    case STEP_CLAIM_AHEAD:
    case STEP_CLAIM_LIMITED:
        batch_settle_claims(b->places, place_count, kinds, rows, ret_fence);
        break;
    case STEP_COUNT:
        assert(false);
    }
}

void batch_settle(struct batch *b, struct kind_cache *kinds, const struct pg_result *const *results,
                  int64_t now_us, int64_t *ret_fence)
{
    size_t place_count = batch_places(b->claims.first, b->places, BATCH_CLAIMS_MAX);
    for (int i = 0; i < b->step_count; i++) {
        settle_step(b, i, place_count, kinds, results[i], now_us, ret_fence);
    }
}
