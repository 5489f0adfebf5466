/* SPDX-License-Identifier: Apache-2.0
 *
 * The second read: finds out why a claim did not get these ids, and why a finish did not find these
 * runs. It decides by what the rows say now (GUARANTEES 2.3), then answers for the job store. */
#include "sql/queries.h"
#include "store/jobs/internal.h"

#include <assert.h>

#define NOBODY "00000000-0000-0000-0000-000000000000"
#define RECHECK_IDS_MAX (SEGMENT_CLAIMS_MAX + SEGMENT_FINISHES_MAX)

enum { STEP_JOBS, STEP_ANEW, STEP_FINISHED };

/* Columns of job_recheck; claim_refuse() reads the others when an id is put back. */
enum {
    COLUMN_ID,
    COLUMN_IS_RUNNING,
    COLUMN_FENCE,
    COLUMN_IS_DUE,
    COLUMN_KIND = 5,
    COLUMN_ATTEMPT = 8,
    COLUMN_MAX_ATTEMPTS,
    COLUMN_IS_MINE,
    COLUMN_IS_LIMITED,
    COLUMN_IS_QUEUE_FULL,
    COLUMN_IS_LOCKED
};

/* Columns of job_recheck_finished. */
enum { ENDED_FENCE, ENDED_STATE, ENDED_OUTCOME };

struct recheck {
    struct job_store *store;
    const struct kind_cache *kinds; /* borrowed from the store */
    struct finish_queue finishes;
    struct claim_queue claims;
    struct params params[STEP_FINISHED + 1];
    int64_t exhausted[SEGMENT_CLAIMS_MAX]; /* found available without an attempt left (lock.G5) */
    size_t exhausted_count;
};

/* The verdict on a finish that found no row. */
enum recheck_verdict { RECHECK_ALREADY, RECHECK_STALE, RECHECK_LOCKED };

/* A row's index, sorted by the value of one column. */
struct index_entry {
    int64_t key;
    int row;
};

struct recheck *recheck_new(struct job_store *s, const struct kind_cache *kinds)
{
    struct recheck *r = calloc(1, sizeof *r);
    if (r != NULL) {
        r->store = s;
        r->kinds = kinds;
    }
    return r;
}

static void recheck_free(struct recheck *r)
{
    finish_queue_release(&r->finishes);
    claim_queue_release(&r->claims);
    for (size_t i = 0; i < ARRAY_COUNT(r->params); i++) {
        params_release(&r->params[i]);
    }
    free(r);
}

void recheck_add_finish(struct recheck *r, struct finish *f)
{
    finish_queue_push(&r->finishes, f);
}

void recheck_add_claim(struct recheck *r, struct claim *c)
{
    claim_queue_push(&r->claims, c);
}

static enum status build_finished(struct recheck *r, struct pg_request *request, struct err *err)
{
    int64_t ids[SEGMENT_FINISHES_MAX];
    int64_t fences[SEGMENT_FINISHES_MAX];
    int64_t since_us = INT64_MAX;
    size_t count = 0;
    for (const struct finish *f = r->finishes.first; f != NULL; f = f->next) {
        ids[count] = f->f.id;
        fences[count] = f->f.fence;
        count++;
        int64_t start_us = f->f.attempted_at_unix_us != 0 ? f->f.attempted_at_unix_us : INT64_MIN;
        since_us = start_us < since_us ? start_us : since_us;
    }
    struct params *p = &r->params[STEP_FINISHED];
    params_i64_array(p, ids, count);
    params_i64_array(p, fences, count);
    params_time(p, since_us);
    params_uuid(p, r->finishes.first->worker_id);
    /* Plans again, since a plan for all days would lock each of them. */
    request->steps[STEP_ANEW].statement = &SQL_PLAN_ANEW;
    request->step_count = STEP_FINISHED + 1;
    return params_step(p, &SQL_JOB_RECHECK_FINISHED, &request->steps[STEP_FINISHED], err);
}

static enum status build(struct recheck *r, struct pg_request *request, struct err *err)
{
    int64_t ids[RECHECK_IDS_MAX];
    size_t count = 0;
    for (const struct finish *f = r->finishes.first; f != NULL; f = f->next) {
        ids[count] = f->f.id;
        count++;
    }
    for (const struct claim *c = r->claims.first; c != NULL; c = c->next) {
        for (size_t n = 0; n < c->count; n++) {
            if (!c->is_settled[n]) {
                ids[count] = c->ids[n];
                count++;
            }
        }
    }
    params_i64_array(&r->params[STEP_JOBS], ids, count);
    params_uuid(&r->params[STEP_JOBS],
                r->finishes.first != NULL ? r->finishes.first->worker_id : NOBODY);
    request->step_count = 1;
    enum status st =
        params_step(&r->params[STEP_JOBS], &SQL_JOB_RECHECK, &request->steps[STEP_JOBS], err);
    if (st != STATUS_OK) {
        return st;
    }
    /* Reads the history after the open jobs, so that a run that moves in between is found there. */
    if (r->finishes.first != NULL) {
        return build_finished(r, request, err);
    }
    return STATUS_OK;
}

static int compare_entries(const void *left, const void *right)
{
    const struct index_entry *a = left;
    const struct index_entry *b = right;
    return (a->key > b->key) - (a->key < b->key);
}

static struct index_entry *index_rows(const struct pg_result *rows, int column)
{
    size_t count = (size_t)pg_row_count(rows);
    struct index_entry *entries = calloc(count + 1, sizeof *entries);
    if (entries != NULL) {
        for (size_t i = 0; i < count; i++) {
            entries[i] = (struct index_entry){.key = pg_i64(rows, (int)i, column), .row = (int)i};
        }
        qsort(entries, count, sizeof *entries, compare_entries);
    }
    return entries;
}

/* Returns -1 if there is no such row. */
static int row_of(const struct index_entry *entries, const struct pg_result *rows, int64_t key)
{
    assert(entries != NULL);
    struct index_entry wanted = {.key = key};
    const struct index_entry *found =
        bsearch(&wanted, entries, (size_t)pg_row_count(rows), sizeof *entries, compare_entries);
    return found != NULL ? found->row : -1;
}

/* Judges a finish whose run is not in the history. If the row is available and still has our fence,
 * it was our own commit if its reply was lost, otherwise a rescue. */
static enum recheck_verdict judge_open(struct finish *f, const struct pg_result *jobs, int row)
{
    /* Nothing of a dropped job is left. If it was not us but a later run that completed it, then
     * nothing of ours was accepted, and the two cases can't be told apart (decision 17). */
    if (row < 0 && f->is_unknown && f->f.kind == FINISH_DROPPED) {
        return RECHECK_ALREADY;
    }
    if (row < 0 || pg_i64(jobs, row, COLUMN_FENCE) != f->f.fence ||
        !pg_bool(jobs, row, COLUMN_IS_MINE)) {
        return RECHECK_STALE;
    }
    if (pg_bool(jobs, row, COLUMN_IS_RUNNING)) {
        f->is_unknown = false; /* what was sent before was not committed */
        return RECHECK_LOCKED;
    }
    return f->is_unknown && finish_kinds[f->f.kind].state == NULL ? RECHECK_ALREADY : RECHECK_STALE;
}

/* Judges a finish. If the history has our fence and the same end, we ended the run ourselves, or
 * the handler's transaction did. A retry or a snooze is found by its attempt, wherever the job is
 * by now. Any other end is that of a rescue or a cancel. */
static enum recheck_verdict judge_finish(struct finish *f, const struct pg_result *jobs, int row,
                                         const struct pg_result *ended, int end)
{
    bool is_recorded = finish_kinds[f->f.kind].is_attempt_kept;
    int column = is_recorded ? ENDED_OUTCOME : ENDED_STATE;
    if (end < 0 || pg_is_null(ended, end, column)) {
        return judge_open(f, jobs, row);
    }
    /* NULL for a hand-back, which is not recorded. */
    const char *wanted = is_recorded ? finish_outcome(&f->f) : finish_kinds[f->f.kind].state;
    size_t len = 0;
    bool is_so = wanted != NULL && strcmp(pg_text(ended, end, column, &len), wanted) == 0;
    return is_so && (f->is_unknown || !is_recorded) ? RECHECK_ALREADY : RECHECK_STALE;
}

static bool is_asked_for(const struct claim *c, const struct pg_result *jobs, int row)
{
    size_t len = 0;
    const char *kind = pg_text(jobs, row, COLUMN_KIND, &len);
    for (size_t i = 0; i < c->kind_count; i++) {
        if (strcmp(c->kinds[i], kind) == 0) {
            return true;
        }
    }
    return false;
}

/* True if the claim asked for its kind, and its attempts are used up. */
static bool is_exhausted(const struct claim *c, const struct kind_cache *kinds,
                         const struct pg_result *jobs, int row)
{
    size_t len = 0;
    const struct kind_defaults *defaults =
        kind_cache_find(kinds, pg_text(jobs, row, COLUMN_KIND, &len));
    if (!is_asked_for(c, jobs, row) || defaults == NULL) {
        return false;
    }
    int64_t limit = pg_is_null(jobs, row, COLUMN_MAX_ATTEMPTS)
                        ? defaults->settings.max_attempts
                        : pg_i64(jobs, row, COLUMN_MAX_ATTEMPTS);
    return pg_i64(jobs, row, COLUMN_ATTEMPT) >= limit;
}

/* Tells why a claim with limits refused the job. */
static enum claim_refusal why_limited(const struct pg_result *jobs, int row)
{
    if (pg_bool(jobs, row, COLUMN_IS_LOCKED)) {
        return CLAIM_PUT_BACK;
    }
    return pg_bool(jobs, row, COLUMN_IS_QUEUE_FULL) ? CLAIM_QUEUE_FULL : CLAIM_LIMITED;
}

static void judge_id(struct recheck *r, struct claim *c, size_t n, const struct pg_result *jobs,
                     int row)
{
    enum claim_refusal why = CLAIM_PUT_BACK;
    if (row < 0 || pg_bool(jobs, row, COLUMN_IS_RUNNING)) {
        why = CLAIM_GONE;
    } else if (!pg_bool(jobs, row, COLUMN_IS_DUE)) {
        why = CLAIM_LATER;
    } else if (is_exhausted(c, r->kinds, jobs, row)) {
        why = CLAIM_GONE;
        r->exhausted[r->exhausted_count] = c->ids[n];
        r->exhausted_count++;
    } else if (pg_bool(jobs, row, COLUMN_IS_LIMITED) && is_asked_for(c, jobs, row)) {
        if (!c->is_limited) {
            return; /* left out because of its limit */
        }
        why = why_limited(jobs, row);
    }
    claim_refuse(c, n, why, jobs, row);
}

static void settle_finish(struct job_store *s, struct finish *f, enum recheck_verdict verdict)
{
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

/* Settles each finish and every id of the claims except those that were left out because of a
 * limit. NOMEM: nothing was done. */
static enum status settle(struct recheck *r, const struct pg_result *const *results,
                          struct err *err)
{
    bool has_finishes = r->finishes.first != NULL;
    const struct pg_result *jobs = results[STEP_JOBS];
    autofree struct index_entry *by_id = index_rows(jobs, COLUMN_ID);
    autofree struct index_entry *by_fence =
        has_finishes ? index_rows(results[STEP_FINISHED], ENDED_FENCE) : NULL;
    if (by_id == NULL || (has_finishes && by_fence == NULL)) {
        return err_fail(err, STATUS_NOMEM, "no memory for the index of rechecked jobs");
    }
    for (struct claim *c = r->claims.first; c != NULL; c = c->next) {
        for (size_t n = 0; n < c->count; n++) {
            if (!c->is_settled[n]) {
                judge_id(r, c, n, jobs, row_of(by_id, jobs, c->ids[n]));
            }
        }
    }
    for (struct finish *f = finish_queue_pop(&r->finishes); f != NULL;
         f = finish_queue_pop(&r->finishes)) {
        int end = row_of(by_fence, results[STEP_FINISHED], f->f.fence);
        int row = row_of(by_id, jobs, f->f.id);
        settle_finish(r->store, f, judge_finish(f, jobs, row, results[STEP_FINISHED], end));
    }
    return STATUS_OK;
}

static void on_exhausted(void *ctx, enum status st, const struct pg_result *const *results,
                         const struct err *err)
{
    (void)st;
    (void)results;
    (void)err;
    store_request_ended(ctx);
}

/* Discards jobs without an attempt left, which otherwise would be fed forever. */
static void end_exhausted(const struct recheck *r)
{
    const struct claim *c = r->claims.first;
    const char *names[CLAIM_KINDS_MAX];
    int64_t limits[CLAIM_KINDS_MAX];
    size_t count = 0;
    for (size_t i = 0; i < c->kind_count; i++) {
        const struct kind_defaults *kind = kind_cache_find(r->kinds, c->kinds[i]);
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
    enum status st = store_send_one(r->store, &SQL_JOB_EXHAUST, &p, on_exhausted, r->store, NULL);
    (void)st; /* if it failed, their next claim tries again */
    params_release(&p);
}

static void pass_on_limited(struct recheck *r)
{
    struct claim_queue taken = r->claims;
    r->claims = (struct claim_queue){.first = NULL};
    for (struct claim *c = claim_queue_pop(&taken); c != NULL; c = claim_queue_pop(&taken)) {
        if (claim_is_settled(c)) {
            claim_queue_push(&r->claims, c);
        } else {
            store_claim_limited(r->store, c);
        }
    }
}

/* Keeps the finishes and refuses the claims. Repeating a finish is harmless: it ends in another
 * recheck. */
static void give_up(struct recheck *r)
{
    for (struct finish *f = finish_queue_pop(&r->finishes); f != NULL;
         f = finish_queue_pop(&r->finishes)) {
        store_keep_locked(r->store, f);
    }
    store_answer_claims(r->store, &r->claims, CLAIM_NOT_TRIED);
    recheck_free(r);
}

static void on_rechecked(void *ctx, enum status st, const struct pg_result *const *results,
                         const struct err *err)
{
    (void)err;
    struct recheck *r = ctx;
    struct job_store *s = r->store;
    if (!store_request_ended(s)) {
        recheck_free(r);
        return;
    }
    if (st != STATUS_OK || settle(r, results, NULL) != STATUS_OK) {
        give_up(r);
        return;
    }
    if (r->exhausted_count > 0) {
        end_exhausted(r);
    }
    pass_on_limited(r);
    store_answer_claims(s, &r->claims, CLAIM_GONE);
    recheck_free(r);
}

void recheck_send(struct recheck *r)
{
    if (r == NULL) {
        return;
    }
    if (r->finishes.first == NULL && r->claims.first == NULL) {
        recheck_free(r);
        return;
    }
    struct pg_request request = {.step_count = 0};
    if (build(r, &request, NULL) != STATUS_OK ||
        store_send(r->store, &request, on_rechecked, r, NULL) != STATUS_OK) {
        give_up(r);
    }
}
