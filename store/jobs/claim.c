/* SPDX-License-Identifier: Apache-2.0 */
#include "store/jobs/claim.h"

#include <assert.h>
#include <stdio.h>

#define TEXT_BLOCK_BYTES ((size_t)16 << 10)

struct claim_text {
    struct claim_text *next;
    size_t len;
    size_t size;
    char bytes[];
};

static size_t kind_bytes(const struct claim_request *r)
{
    size_t bytes = 0;
    for (size_t i = 0; i < r->kind_count; i++) {
        bytes += strlen(r->kinds[i]) + 1;
    }
    return bytes;
}

static enum status check(const struct claim_request *r, struct err *err)
{
    assert(r->count <= CLAIM_IDS_MAX && r->ahead_from <= r->count && r->done != NULL);
    if (r->kind_count > CLAIM_KINDS_MAX) {
        return err_fail(err, STATUS_INVALID, "more than %d kinds", CLAIM_KINDS_MAX);
    }
    for (size_t i = 0; i < r->kind_count; i++) {
        enum status st = job_kind_check(r->kinds[i], err);
        if (st != STATUS_OK) {
            return st;
        }
    }
    return STATUS_OK;
}

static void *carve(char **at, size_t bytes)
{
    void *start = *at;
    *at += bytes;
    return start;
}

/* One allocation holds the request and room for its answer; the members are laid out by falling
 * alignment. */
enum status claim_new(const struct claim_request *r, struct claim **ret_claim, struct err *err)
{
    enum status st = check(r, err);
    if (st != STATUS_OK) {
        return st;
    }
    size_t n = r->count;
    size_t per_id =
        sizeof(struct claimed_job) + sizeof(struct refused_job) + sizeof(int64_t) + sizeof(bool);
    struct claim *c = calloc(1, sizeof *c + n * per_id + r->kind_count * sizeof(const char *) +
                                    kind_bytes(r) + 1);
    if (c == NULL) {
        return err_fail(err, STATUS_NOMEM, "no memory for a claim of %zu jobs", n);
    }
    char *at = (char *)(c + 1);
    c->jobs = carve(&at, n * sizeof *c->jobs);
    c->refused = carve(&at, n * sizeof *c->refused);
    c->ids = carve(&at, n * sizeof *c->ids);
    c->kinds = carve(&at, r->kind_count * sizeof *c->kinds);
    c->is_settled = carve(&at, n * sizeof *c->is_settled);
    if (n > 0) {
        memcpy(c->ids, r->ids, n * sizeof *c->ids);
    }
    for (size_t i = 0; i < r->kind_count; i++) {
        size_t size = strlen(r->kinds[i]) + 1;
        char *kind = carve(&at, size);
        memcpy(kind, r->kinds[i], size);
        c->kinds[i] = kind;
    }
    c->count = n;
    c->ahead_from = r->ahead_from;
    c->kind_count = r->kind_count;
    c->done = r->done;
    c->ctx = r->ctx;
    *ret_claim = c;
    return STATUS_OK;
}

void claim_free(struct claim *c)
{
    if (c == NULL) {
        return;
    }
    for (struct claim_text *t = c->texts; t != NULL;) {
        struct claim_text *next = t->next;
        free(t);
        t = next;
    }
    free(c);
}

bool claim_same_kinds(const struct claim *a, const struct claim *b)
{
    if (a->kind_count != b->kind_count) {
        return false;
    }
    for (size_t i = 0; i < a->kind_count; i++) {
        if (strcmp(a->kinds[i], b->kinds[i]) != 0) {
            return false;
        }
    }
    return true;
}

bool claim_is_settled(const struct claim *c)
{
    return c->job_count + c->refused_count == c->count;
}

void claim_learn(struct claim_outlook *o, const struct claim *c, int64_t now_us)
{
    for (size_t i = 0; i < c->job_count; i++) {
        if ((c->jobs[i].flags & JOB_FLAGS_LIMITED) == 0) {
            o->only_limits_until_us = 0;
            return;
        }
    }
    if (c->is_limited && c->job_count > 0) {
        o->limits_until_us = now_us + CLAIM_OUTLOOK_US;
        o->only_limits_until_us = o->limits_until_us;
    }
}

static const char *keep_text(struct claim *c, const char *text, size_t len)
{
    struct claim_text *t = c->texts;
    if (t == NULL || t->size - t->len < len + 1) {
        size_t size = len + 1 > TEXT_BLOCK_BYTES ? len + 1 : TEXT_BLOCK_BYTES;
        t = malloc(sizeof *t + size);
        if (t == NULL) {
            return NULL;
        }
        *t = (struct claim_text){.next = c->texts, .size = size};
        c->texts = t;
    }
    char *kept = t->bytes + t->len;
    memcpy(kept, text, len);
    kept[len] = '\0';
    t->len += len + 1;
    return kept;
}

static const char *keep_column(struct claim *c, const struct pg_result *rows, int row, int column)
{
    size_t len = 0;
    const char *text = pg_text(rows, row, column, &len);
    return keep_text(c, text, len);
}

static void settle(struct claim *c, size_t n)
{
    assert(n < c->count && !c->is_settled[n]);
    c->is_settled[n] = true;
}

/* Columns of job_claim and job_adopt. */
enum {
    COLUMN_ID,
    COLUMN_FENCE,
    COLUMN_ATTEMPT,
    COLUMN_CRASHES,
    COLUMN_KIND,
    COLUMN_QUEUE,
    COLUMN_PRIORITY,
    COLUMN_READY_AT,
    COLUMN_ATTEMPTED_AT,
    COLUMN_MAX_ATTEMPTS,
    COLUMN_TIMEOUT,
    COLUMN_BACKOFF,
    COLUMN_GENERATION,
    COLUMN_CREATED_AT,
    COLUMN_TAGS,
    COLUMN_METADATA,
    COLUMN_ARGS,
    COLUMN_FLAGS,
    COLUMN_GRACE,
    COLUMN_KEY_ROW, /* only in claims with limits, like the next two */
    COLUMN_PLACE,
    COLUMN_SECOND_ROW
};

enum status claim_put_job(struct claim *c, size_t n, const struct pg_result *rows, int row,
                          const struct kind_cache *kinds, struct err *err)
{
    struct claimed_job job = {
        .id = pg_i64(rows, row, COLUMN_ID),
        .fence = pg_i64(rows, row, COLUMN_FENCE),
        .worker_id = c->worker_id,
        .attempt = (int)pg_i64(rows, row, COLUMN_ATTEMPT),
        .crashes = (int)pg_i64(rows, row, COLUMN_CRASHES),
        .priority = (int)pg_i64(rows, row, COLUMN_PRIORITY),
        .ready_at_unix_us = pg_time_us(rows, row, COLUMN_READY_AT),
        .attempted_at_unix_us = pg_time_us(rows, row, COLUMN_ATTEMPTED_AT),
        .flags = (int)pg_i64(rows, row, COLUMN_FLAGS),
        .generation = (int)pg_i64(rows, row, COLUMN_GENERATION),
        .created_at_unix_us = pg_time_us(rows, row, COLUMN_CREATED_AT),
        .kind = keep_column(c, rows, row, COLUMN_KIND),
        .queue = keep_column(c, rows, row, COLUMN_QUEUE),
    };
    if (c->is_limited) {
        job.key_row = pg_tid(rows, row, COLUMN_KEY_ROW);
        job.place = pg_tid(rows, row, COLUMN_PLACE);
        job.second_row = pg_tid(rows, row, COLUMN_SECOND_ROW);
    }
    bool has_args = !pg_is_null(rows, row, COLUMN_ARGS);
    if (has_args) {
        size_t len = 0;
        const char *args = pg_text(rows, row, COLUMN_ARGS, &len);
        job.args = keep_text(c, args, len);
        job.args_len = len;
    }
    bool has_tags = !pg_is_null(rows, row, COLUMN_TAGS);
    bool has_metadata = !pg_is_null(rows, row, COLUMN_METADATA);
    job.tags = has_tags ? keep_column(c, rows, row, COLUMN_TAGS) : NULL;
    job.metadata = has_metadata ? keep_column(c, rows, row, COLUMN_METADATA) : NULL;
    if (job.kind == NULL || job.queue == NULL || (has_args && job.args == NULL) ||
        (has_tags && job.tags == NULL) || (has_metadata && job.metadata == NULL)) {
        return err_fail(err, STATUS_NOMEM, "no memory for claimed job %lld", (long long)job.id);
    }
    const struct kind_defaults *kind = kind_cache_find(kinds, job.kind);
    assert(kind != NULL); /* only kinds in the cache are claimed */
    job.settings = kind->settings;
    if (!pg_is_null(rows, row, COLUMN_MAX_ATTEMPTS)) {
        job.settings.max_attempts = (int)pg_i64(rows, row, COLUMN_MAX_ATTEMPTS);
    }
    if (!pg_is_null(rows, row, COLUMN_TIMEOUT)) {
        job.settings.timeout_us = pg_i64(rows, row, COLUMN_TIMEOUT);
    }
    if (!pg_is_null(rows, row, COLUMN_GRACE)) {
        job.settings.grace_us = pg_i64(rows, row, COLUMN_GRACE);
    }
    if (!pg_is_null(rows, row, COLUMN_BACKOFF)) {
        size_t len = 0;
        (void)snprintf(job.settings.backoff, sizeof job.settings.backoff, "%s",
                       pg_text(rows, row, COLUMN_BACKOFF, &len));
    }
    settle(c, n);
    c->jobs[c->job_count] = job;
    c->job_count++;
    return STATUS_OK;
}

/* Columns of job_recheck. */
enum { RECHECK_QUEUE = 4, RECHECK_KIND, RECHECK_PRIORITY, RECHECK_READY_AT };

void claim_refuse(struct claim *c, size_t n, enum claim_refusal why, const struct pg_result *rows,
                  int row)
{
    struct refused_job job = {.id = c->ids[n], .why = why};
    if (why == CLAIM_PUT_BACK || why == CLAIM_QUEUE_FULL) {
        assert(rows != NULL);
        job.queue = keep_column(c, rows, row, RECHECK_QUEUE);
        job.kind = keep_column(c, rows, row, RECHECK_KIND);
        job.priority = (int)pg_i64(rows, row, RECHECK_PRIORITY);
        job.ready_at_unix_us = pg_time_us(rows, row, RECHECK_READY_AT);
        if (job.queue == NULL || job.kind == NULL) {
            job = (struct refused_job){.id = c->ids[n], .why = CLAIM_NOT_TRIED};
        }
    }
    settle(c, n);
    c->refused[c->refused_count] = job;
    c->refused_count++;
}

void claim_refuse_rest(struct claim *c, enum claim_refusal why)
{
    for (size_t n = 0; n < c->count; n++) {
        if (!c->is_settled[n]) {
            claim_refuse(c, n, why, NULL, 0);
        }
    }
}

void claim_answer(struct claim *c)
{
    assert(claim_is_settled(c));
    c->done(c->ctx, c->jobs, c->job_count, c->refused, c->refused_count);
    claim_free(c);
}

size_t claim_queue_ids(const struct claim_queue *q)
{
    size_t count = 0;
    for (const struct claim *c = q->first; c != NULL; c = c->next) {
        count += c->count;
    }
    return count;
}

void claim_queue_release(struct claim_queue *q)
{
    for (struct claim *c = claim_queue_pop(q); c != NULL; c = claim_queue_pop(q)) {
        claim_free(c);
    }
}

static int compare_places(const void *left, const void *right)
{
    const struct claim_place *a = left;
    const struct claim_place *b = right;
    return (a->id > b->id) - (a->id < b->id);
}

void claim_places_sort(struct claim_place *places, size_t count)
{
    if (count > 1) {
        qsort(places, count, sizeof *places, compare_places);
    }
}

const struct claim_place *claim_places_find(const struct claim_place *places, size_t count,
                                            int64_t id)
{
    size_t low = 0;
    size_t high = count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (places[middle].id < id) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    for (; low < count && places[low].id == id; low++) {
        if (!places[low].claim->is_settled[places[low].n]) {
            return &places[low];
        }
    }
    return NULL;
}
