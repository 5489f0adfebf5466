/* SPDX-License-Identifier: Apache-2.0 */
#include "store/jobs/segment.h"

#include "sql/queries.h"
#include "store/jobs/columns.h"
#include "store/seeded.h"

#include <assert.h>

void segment_release(struct segment *segment)
{
    for (size_t k = 0; k < FINISH_KIND_COUNT; k++) {
        for (size_t i = 0; i < segment->finishes[k].count; i++) {
            finish_free(segment->finishes[k].items[i]);
        }
        segment->finishes[k].count = 0;
    }
    claim_queue_release(&segment->claims);
    for (int i = 0; i < SEGMENT_STEPS_MAX; i++) {
        params_release(&segment->params[i]);
    }
}

void segment_take_finishes(struct segment *segment, struct finish_queue *q, size_t max)
{
    assert(segment->finish_count == 0 && max <= SEGMENT_FINISHES_MAX);
    segment->finish_bytes = 0;
    segment->has_suspect = q->first != NULL && q->first->is_suspect;
    size_t count_max = segment->has_suspect ? 1 : max;
    const char *worker = q->first != NULL ? q->first->worker_id : NULL;
    while (q->first != NULL && segment->finish_count < count_max &&
           q->first->is_suspect == segment->has_suspect &&
           strcmp(q->first->worker_id, worker) == 0 &&
           (segment->finish_count == 0 ||
            segment->finish_bytes + q->first->bytes <= SEGMENT_FINISH_BYTES_MAX)) {
        struct finish *f = finish_queue_pop(q);
        struct finish_list *list = &segment->finishes[f->f.kind];
        f->is_settled = false;
        list->items[list->count] = f;
        list->count++;
        segment->finish_count++;
        segment->finish_bytes += f->bytes;
    }
}

void segment_take_claims(struct segment *segment, struct claim_queue *q)
{
    assert(segment->claims.first == NULL);
    size_t id_count = 0;
    while (q->first != NULL && id_count + q->first->count <= SEGMENT_CLAIMS_MAX &&
           (segment->claims.first == NULL || claim_same_kinds(segment->claims.first, q->first))) {
        id_count += q->first->count;
        claim_queue_push(&segment->claims, claim_queue_pop(q));
    }
}

void segment_return_finishes(struct segment *segment, struct finish_queue *q, bool is_unknown)
{
    for (size_t k = 0; k < FINISH_KIND_COUNT; k++) {
        struct finish_list *list = &segment->finishes[k];
        for (size_t i = list->count; i > 0; i--) {
            struct finish *f = list->items[i - 1];
            f->is_unknown = f->is_unknown || is_unknown;
            finish_queue_push_front(q, f);
        }
        list->count = 0;
    }
    segment->finish_count = 0;
}

void segment_return_claims(struct segment *segment, struct claim_queue *q)
{
    struct claim_queue reversed = {.first = NULL};
    for (struct claim *c = claim_queue_pop(&segment->claims); c != NULL;
         c = claim_queue_pop(&segment->claims)) {
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

/* ---- the table of statements ---- */

#define STEP_COLUMNS_MAX 5

struct making;
struct settling;

/* Adds the parameters of a step; false: there is nothing to do, and nothing was added. */
typedef bool put_fn(const struct making *m, const struct segment_step *step, struct params *p);
typedef void settle_fn(struct segment *segment, const struct segment_step *step,
                       const struct settling *s, const struct pg_result *rows);

struct segment_step {
    const struct pg_statement *statement;
    /* the variant that skips locked rows; NULL = `statement` skips them, too */
    const struct pg_statement *careful;
    put_fn *put;
    settle_fn *settle;                     /* settles what its rows name; NULL = nothing */
    enum finish_kind kind;                 /* which finishes it writes, if it writes any */
    columns_fn *columns[STEP_COLUMNS_MAX]; /* parameters between their fences and the worker */
    bool is_ahead;    /* claims only the jobs that are claimed ahead of a runner */
    bool tells_freed; /* its rows are jobs that may be claimed now */
};

/* ---- parameters ---- */

/* The sources of the parameters. */
struct making {
    struct segment *segment;
    struct kind_cache *kinds;
    const char *worker;
    struct columns *columns;
};

static bool put_fence(const struct making *m, const struct segment_step *step, struct params *p)
{
    (void)step;
    (void)p;
    return m->segment->checks_fence;
}

static bool leaves_record(const struct job_finish *f)
{
    return f->overran || (f->keeps_log && f->log_tail_len > 0);
}

/* The list is sorted, so the records are in the same order as the completions. */
static bool put_records(const struct making *m, const struct segment_step *step, struct params *p)
{
    const struct finish_list *list = &m->segment->finishes[step->kind];
    struct columns *columns = m->columns;
    size_t count = 0;
    for (size_t i = 0; i < list->count; i++) {
        const struct job_finish *f = &list->items[i]->f;
        if (leaves_record(f)) {
            columns->ids[count] = f->id;
            columns->fences[count] = f->fence;
            columns->texts[count] = f->log_tail;
            columns->lens[count] = f->log_tail_len;
            columns->numbers[count] = f->overran;
            count++;
        }
    }
    if (count == 0) {
        return false;
    }
    params_i64_array(p, columns->ids, count);
    params_i64_array(p, columns->fences, count);
    params_text_array(p, columns->texts, columns->lens, count);
    params_i64_array(p, columns->numbers, count);
    params_uuid(p, list->items[0]->worker_id);
    return true;
}

/* All statements that end runs begin with the ids and rising fences, and end with the worker. */
static bool put_finishes(const struct making *m, const struct segment_step *step, struct params *p)
{
    const struct finish_list *list = &m->segment->finishes[step->kind];
    if (list->count == 0) {
        return false;
    }
    for (size_t i = 0; i < list->count; i++) {
        m->columns->ids[i] = list->items[i]->f.id;
        m->columns->fences[i] = list->items[i]->f.fence;
    }
    params_i64_array(p, m->columns->ids, list->count);
    params_i64_array(p, m->columns->fences, list->count);
    for (size_t i = 0; i < STEP_COLUMNS_MAX && step->columns[i] != NULL; i++) {
        step->columns[i](p, list, m->columns);
    }
    params_uuid(p, list->items[0]->worker_id);
    return true;
}

static bool put_ids(struct params *p, const int64_t *ids, size_t count)
{
    if (count == 0) {
        return false;
    }
    params_i64_array(p, ids, count);
    return true;
}

/* Finds cancels that were requested before this commit and that the worker does not know of yet. */
static bool put_asked(const struct making *m, const struct segment_step *step, struct params *p)
{
    size_t count = 0;
    (void)step;
    for (size_t k = 0; k < FINISH_KIND_COUNT; k++) {
        const struct finish_list *list = &m->segment->finishes[k];
        for (size_t i = 0; finish_kinds[k].state == NULL && i < list->count; i++) {
            m->columns->ids[count++] = list->items[i]->f.id;
        }
    }
    return put_ids(p, m->columns->ids, count);
}

static size_t add_live(const struct finish_list *list, int64_t *ids, size_t count)
{
    for (size_t i = 0; i < list->count; i++) {
        if (list->items[i]->f.has_live) {
            ids[count++] = list->items[i]->f.id;
        }
    }
    return count;
}

static bool put_forgotten(const struct making *m, const struct segment_step *step, struct params *p)
{
    (void)step;
    size_t count = add_live(&m->segment->finishes[FINISH_COMPLETED], m->columns->ids, 0);
    count = add_live(&m->segment->finishes[FINISH_DROPPED], m->columns->ids, count);
    return put_ids(p, m->columns->ids, count);
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

/* The statement itself finds out which runs have ended; those that still run keep what they
 * hold. */
static bool put_freed(const struct making *m, const struct segment_step *step, struct params *p)
{
    struct columns *columns = m->columns;
    size_t count = 0;
    (void)step;
    for (size_t k = 0; k < FINISH_KIND_COUNT; k++) {
        for (size_t i = 0; i < m->segment->finishes[k].count; i++) {
            const struct job_finish *f = &m->segment->finishes[k].items[i]->f;
            bool has_key = (f->flags & JOB_FLAG_KEY) != 0;
            bool has_place = (f->flags & JOB_FLAG_PLACE) != 0;
            count = add_held(columns, count, f, has_key ? f->key_row : PG_TID_NULL,
                             has_place ? f->place : PG_TID_NULL);
            /* If the position of the first key isn't known, the statement looks for both keys at
             * once. */
            bool has_second = has_key && f->key_row != 0 && f->second_row != 0;
            count =
                add_held(columns, count, f, has_second ? f->second_row : PG_TID_NULL, PG_TID_NULL);
        }
    }
    if (count == 0) {
        return false;
    }
    params_i64_array(p, columns->ids, count);
    params_i64_array(p, columns->fences, count);
    params_tid_array(p, columns->key_rows, count);
    params_tid_array(p, columns->places, count);
    return true;
}

static bool put_kinds(const struct making *m, const struct segment_step *step, struct params *p)
{
    (void)step;
    if (!m->segment->reads_kinds) {
        return false;
    }
    size_t count = kind_cache_ask(m->kinds, m->columns->texts);
    params_text_array(p, m->columns->texts, NULL, count);
    return true;
}

static size_t ids_to_claim(const struct segment *segment, bool is_ahead, int64_t *ret_ids)
{
    size_t count = 0;
    for (const struct claim *c = segment->claims.first; c != NULL; c = c->next) {
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

/* Returns the first claim if it is limited as asked; the claims of a segment are all limited, or
 * none is. */
static const struct claim *first_claim(const struct segment *segment, bool is_limited)
{
    const struct claim *c = segment->claims.first;
    return c != NULL && c->is_limited == is_limited ? c : NULL;
}

static bool put_claim(const struct making *m, const struct segment_step *step, struct params *p)
{
    struct columns *columns = m->columns;
    const struct claim *first = first_claim(m->segment, false);
    size_t id_count = first != NULL ? ids_to_claim(m->segment, step->is_ahead, columns->ids) : 0;
    size_t kind_count = 0;
    for (size_t i = 0; id_count > 0 && i < first->kind_count; i++) {
        const struct kind_defaults *kind = kind_cache_find(m->kinds, first->kinds[i]);
        assert(kind != NULL);
        if (step->is_ahead && kind->settings.at_most_once) {
            continue;
        }
        columns->texts[kind_count] = kind->name;
        columns->numbers[kind_count] = kind->settings.max_attempts;
        kind_count++;
    }
    if (kind_count == 0) {
        return false;
    }
    params_i64_array(p, columns->ids, id_count);
    params_uuid(p, m->worker);
    params_text_array(p, columns->texts, NULL, kind_count);
    params_i64_array(p, columns->numbers, kind_count);
    params_i32(p, step->is_ahead ? 1 : 0);
    return true;
}

static int compare_ids(const void *left, const void *right)
{
    const int64_t *a = left;
    const int64_t *b = right;
    return (*a > *b) - (*a < *b);
}

static bool put_claim_limited(const struct making *m, const struct segment_step *step,
                              struct params *p)
{
    const struct claim *first = first_claim(m->segment, true);
    int64_t *ids = m->columns->ids;
    (void)step;
    if (first == NULL) {
        return false;
    }
    size_t count = ids_to_claim(m->segment, false, ids);
    count += ids_to_claim(m->segment, true, ids + count);
    params_i64_array(p, ids, count);
    params_uuid(p, m->worker);
    params_text_array(p, first->kinds, NULL, first->kind_count);
    count = ids_to_claim(m->segment, true, ids);
    if (count > 1) {
        qsort(ids, count, sizeof ids[0], compare_ids);
    }
    params_i64_array(p, ids, count);
    return true;
}

/* ---- replies ---- */

struct settling {
    size_t place_count;
    struct kind_cache *kinds;
    int64_t now_us;
    int64_t *ret_fence;
};

size_t segment_places(struct claim *first, struct claim_place *ret_places, size_t max)
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

static void settle_finishes(struct segment *segment, const struct segment_step *step,
                            const struct settling *s, const struct pg_result *rows)
{
    struct finish_list *list = &segment->finishes[step->kind];
    (void)s;
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

void segment_settle_claims(const struct claim_place *places, size_t count,
                           const struct kind_cache *kinds, const struct pg_result *rows,
                           int64_t *ret_fence)
{
    enum status st = STATUS_OK;
    for (int row = 0; row < pg_row_count(rows) && st == STATUS_OK; row++) {
        const struct claim_place *at = claim_places_find(places, count, pg_i64(rows, row, 0));
        if (at == NULL) {
            continue; /* the row was read back, but no request wants it any more */
        }
        int64_t fence = pg_i64(rows, row, 1);
        *ret_fence = fence > *ret_fence ? fence : *ret_fence;
        st = claim_put_job(at->claim, at->n, rows, row, kinds, NULL);
    }
}

static void settle_claim(struct segment *segment, const struct segment_step *step,
                         const struct settling *s, const struct pg_result *rows)
{
    (void)step;
    segment_settle_claims(segment->places, s->place_count, s->kinds, rows, s->ret_fence);
}

static void settle_kinds(struct segment *segment, const struct segment_step *step,
                         const struct settling *s, const struct pg_result *rows)
{
    (void)segment;
    (void)step;
    kind_cache_load(s->kinds, rows, s->now_us);
}

/* ---- the table ---- */

/* In the order of sending; steps with nothing to do are left out. */
static const struct segment_step steps[] = {
    {.statement = &SQL_FENCE_CHECK, .put = put_fence},
    /* Writes rows of job_attempt for those completions that leave one. */
    {.statement = &SQL_JOB_RECORD_DONE, .put = put_records, .kind = FINISH_COMPLETED},
    {.statement = &SQL_JOB_COMPLETE,
     .careful = &SQL_JOB_COMPLETE_SKIP,
     .put = put_finishes,
     .kind = FINISH_COMPLETED,
     .columns = {columns_results},
     .settle = settle_finishes},
    {.statement = &SQL_JOB_RETRY,
     .put = put_finishes,
     .kind = FINISH_RETRY,
     .columns = {columns_delays, columns_crashed, columns_outcomes, columns_errors, columns_logs},
     .settle = settle_finishes},
    {.statement = &SQL_JOB_DISCARD,
     .put = put_finishes,
     .kind = FINISH_DISCARDED,
     .columns = {columns_crashed, columns_outcomes, columns_errors, columns_logs},
     .settle = settle_finishes},
    {.statement = &SQL_JOB_DISCARD,
     .put = put_finishes,
     .kind = FINISH_CANCELLED,
     .columns = {columns_crashed, columns_outcomes, columns_errors, columns_logs},
     .settle = settle_finishes},
    {.statement = &SQL_JOB_SNOOZE,
     .put = put_finishes,
     .kind = FINISH_SNOOZE,
     .columns = {columns_delays, columns_errors},
     .settle = settle_finishes},
    {.statement = &SQL_JOB_HAND_BACK,
     .put = put_finishes,
     .kind = FINISH_HAND_BACK,
     .columns = {columns_crashed},
     .settle = settle_finishes},
    {.statement = &SQL_JOB_DROP,
     .careful = &SQL_JOB_DROP_SKIP,
     .put = put_finishes,
     .kind = FINISH_DROPPED,
     .settle = settle_finishes},
    /* Jobs that stay open and were asked to be cancelled meanwhile. */
    {.statement = &SQL_JOB_CANCEL_ASKED, .put = put_asked},
    /* Rows of job_live whose jobs have ended. */
    {.statement = &SQL_JOB_LIVE_FORGET, .put = put_forgotten},
    /* Keys and places that jobs with flags have held. */
    {.statement = &SQL_JOB_FREE_ENDED, .put = put_freed, .tells_freed = true},
    {.statement = &SQL_JOB_KINDS, .put = put_kinds, .settle = settle_kinds},
    {.statement = &SQL_JOB_CLAIM,
     .careful = &SQL_JOB_CLAIM_SKIP,
     .put = put_claim,
     .settle = settle_claim},
    {.statement = &SQL_JOB_CLAIM,
     .careful = &SQL_JOB_CLAIM_SKIP,
     .put = put_claim,
     .is_ahead = true,
     .settle = settle_claim},
    /* Only ever sent together with KINDS. */
    {.statement = &SQL_JOB_CLAIM_LIMITED, .put = put_claim_limited, .settle = settle_claim},
};
static_assert(ARRAY_COUNT(steps) == SEGMENT_STEPS_MAX, "a place for each");

static void sort_finishes(struct segment *segment)
{
    for (size_t k = 0; k < FINISH_KIND_COUNT; k++) {
        struct finish_list *list = &segment->finishes[k];
        if (list->count > 0) {
            qsort(list->items, list->count, sizeof list->items[0], compare_fences);
        }
    }
}

static const struct pg_statement *statement_of(const struct segment *segment,
                                               const struct segment_step *step)
{
    bool is_careful = segment->is_careful && step->careful != NULL;
    return seeded_statement(is_careful ? step->careful : step->statement);
}

enum status segment_build(struct segment *segment, struct kind_cache *kinds, const char *worker,
                          struct pg_request *request, struct err *err)
{
    static_assert(KIND_CACHE_MAX <= SEGMENT_FINISHES_MAX, "columns hold all kinds");
    autofree struct columns *columns = malloc(sizeof *columns);
    if (columns == NULL) {
        return err_fail(err, STATUS_NOMEM, "no memory for the columns of a segment");
    }
    const struct making making = {
        .segment = segment, .kinds = kinds, .worker = worker, .columns = columns};
    segment->step_count = 0;
    sort_finishes(segment);
    for (size_t i = 0; i < ARRAY_COUNT(steps); i++) {
        int n = segment->step_count;
        params_reset(&segment->params[n]);
        if (!steps[i].put(&making, &steps[i], &segment->params[n])) {
            continue;
        }
        segment->steps[n] = &steps[i];
        segment->step_count++;
        request->step_count = segment->step_count;
        enum status st = params_step(&segment->params[n], statement_of(segment, &steps[i]),
                                     &request->steps[n], err);
        if (st != STATUS_OK) {
            return st;
        }
    }
    return STATUS_OK;
}

void segment_settle(struct segment *segment, struct kind_cache *kinds,
                    const struct pg_result *const *results, int64_t now_us, int64_t *ret_fence)
{
    const struct settling settling = {
        .place_count = segment_places(segment->claims.first, segment->places, SEGMENT_CLAIMS_MAX),
        .kinds = kinds,
        .now_us = now_us,
        .ret_fence = ret_fence};
    for (int i = 0; i < segment->step_count; i++) {
        if (segment->steps[i]->settle != NULL) {
            segment->steps[i]->settle(segment, segment->steps[i], &settling, results[i]);
        }
    }
}

void segment_tell_freed(const struct segment *segment, const struct pg_result *const *results,
                        freed_cb *on_freed, void *ctx)
{
    for (int i = 0; i < segment->step_count; i++) {
        if (segment->steps[i]->tells_freed) {
            segment_tell_freed_rows(results[i], on_freed, ctx);
        }
    }
}
