/* SPDX-License-Identifier: Apache-2.0 */
#include "chaos/verdict.h"

#include "base/cleanup.h"
#include "chaos/timeline.h"

#include <stdarg.h>
#include <stdio.h>
#include <uthash.h>

#define TOLD_MAX 20 /* violations to print */
#define TIMELINES_MAX 3
#define STATE_MAX 16
#define WINDOWS_MAX 32

/* One attempt of a job, as recorded by its handler. */
struct run {
    struct run *next;
    int64_t fence;
    int64_t start_ns;
    int64_t end_ns; /* 0 = never */
    int starts;
    bool has_effect;
    bool wants_again; /* its handler asked for a retry */
};

/* One inserted job. */
struct entry {
    int64_t n;
    int64_t job; /* 0 = unknown */
    char kind[STATE_MAX];
    char expect[STATE_MAX];
    bool is_acked;
    bool may_be_lost;
    bool is_cancelled;
    bool is_free; /* a change with an unknown outcome: it may end in any state */
    bool is_deleted;
    int rows; /* in the final table */
    char state[STATE_MAX];
    int64_t fence;
    int64_t attempt;
    int64_t max_attempts;
    struct run *runs;
    UT_hash_handle hh;
    UT_hash_handle by_job;
};

/* A time in which an acknowledged commit may be lost with its primary (G1). */
struct window {
    int64_t from_ns;
    int64_t to_ns;
};

struct books {
    struct window lost[WINDOWS_MAX];
    size_t lost_count;
    const struct folder *folder;
    struct verdict verdict;
    struct entry *entries; /* by n */
    struct entry *jobs;    /* by id */
    int timelines;
};

static int64_t number(const json_t *line, const char *name)
{
    return json_integer_value(json_object_get(line, name));
}

static const char *text(const json_t *line, const char *name)
{
    const char *value = json_string_value(json_object_get(line, name));
    return value != NULL ? value : "";
}

static void violation(struct books *b, const struct entry *e, const char *format, ...)
    PRINTF_LIKE(3, 4);
static void violation(struct books *b, const struct entry *e, const char *format, ...)
{
    char what[256];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(what, sizeof what, format, args);
    va_end(args);
    if (++b->verdict.violations > TOLD_MAX) {
        return;
    }
    (void)printf("violation: job %lld (n %lld, %s): %s\n", (long long)e->job, (long long)e->n,
                 e->kind, what);
    if (b->timelines++ < TIMELINES_MAX) {
        timeline_print(b->folder, e->job, e->n);
    }
}

/* ---- reading ---- */

static void read_nemesis(void *ctx, const json_t *line)
{
    struct books *b = ctx;
    const char *what = text(line, "x");
    if (strcmp(what, "cut_off") == 0 && b->lost_count < WINDOWS_MAX) {
        b->lost[b->lost_count++] = (struct window){number(line, "t"), INT64_MAX};
    } else if (strcmp(what, "failover_async") == 0 && strcmp(text(line, "ph"), "ok") == 0 &&
               b->lost_count > 0) {
        b->lost[b->lost_count - 1].to_ns = number(line, "t");
    }
}

static bool may_be_lost(const struct books *b, const json_t *line)
{
    int64_t t = number(line, "t");
    for (size_t i = 0; i < b->lost_count; i++) {
        if (t >= b->lost[i].from_ns && t <= b->lost[i].to_ns) {
            return true;
        }
    }
    return false;
}

static struct entry *entry_of(struct books *b, int64_t n)
{
    struct entry *e = NULL;
    HASH_FIND(hh, b->entries, &n, sizeof n, e);
    if (e == NULL && (e = calloc(1, sizeof *e)) != NULL) {
        e->n = n;
        HASH_ADD(hh, b->entries, n, sizeof e->n, e);
    }
    return e;
}

static struct entry *entry_of_job(struct books *b, int64_t job)
{
    struct entry *e = NULL;
    HASH_FIND(by_job, b->jobs, &job, sizeof job, e);
    return e;
}

/* From now on this id means this entry: an earlier job was lost with its primary (G1), and its id
 * was given out again. */
static void name_job(struct books *b, struct entry *e)
{
    struct entry *lost = entry_of_job(b, e->job);
    if (lost != NULL) {
        HASH_DELETE(by_job, b->jobs, lost);
    }
    HASH_ADD(by_job, b->jobs, job, sizeof e->job, e);
}

static void read_enqueue(struct books *b, const json_t *line)
{
    struct entry *e = entry_of(b, number(line, "n"));
    if (e == NULL) {
        return;
    }
    (void)snprintf(e->kind, sizeof e->kind, "%s", text(line, "kind"));
    (void)snprintf(e->expect, sizeof e->expect, "%s", text(line, "expect"));
    e->is_acked = strcmp(text(line, "ph"), "ok") == 0;
    b->verdict.acked += e->is_acked ? 1 : 0;
    b->verdict.unknown += e->is_acked ? 0 : 1;
    e->may_be_lost = may_be_lost(b, line);
    if (e->is_acked) {
        e->job = number(line, "job");
        name_job(b, e);
    }
}

static void read_acked(void *ctx, const json_t *line)
{
    struct books *b = ctx;
    const char *op = text(line, "op");
    if (strcmp(op, "enqueue") == 0) {
        read_enqueue(b, line);
        return;
    }
    struct entry *e = entry_of_job(b, number(line, "job"));
    const char *ph = text(line, "ph");
    if (e == NULL || strcmp(ph, "fail") == 0 || strcmp(op, "edit") == 0) {
        return;
    }
    bool is_sure = strcmp(ph, "ok") == 0 && !may_be_lost(b, line);
    e->is_free = e->is_free || !is_sure;
    e->is_cancelled = e->is_cancelled || (is_sure && strcmp(op, "cancel") == 0);
    e->is_deleted = e->is_deleted || strcmp(op, "delete") == 0;
}

static void read_final(void *ctx, const json_t *line)
{
    struct books *b = ctx;
    struct entry *e = NULL;
    int64_t n = number(line, "n");
    HASH_FIND(hh, b->entries, &n, sizeof n, e);
    if (e == NULL) {
        struct entry stranger = {.n = n, .job = number(line, "job")};
        violation(b, &stranger, "is in the table, and nobody put it in (inv.S15)");
        return;
    }
    if (e->job == 0) {
        e->job = number(line, "job");
        name_job(b, e);
    }
    b->verdict.found_unknown += e->is_acked ? 0 : 1;
    e->rows++;
    (void)snprintf(e->state, sizeof e->state, "%s", text(line, "state"));
    e->fence = number(line, "fence");
    e->attempt = number(line, "attempt");
    e->max_attempts = number(line, "max_attempts");
}

static struct run *run_of(struct entry *e, int64_t fence)
{
    for (struct run *r = e->runs; r != NULL; r = r->next) {
        if (r->fence == fence) {
            return r;
        }
    }
    struct run *r = calloc(1, sizeof *r);
    if (r != NULL) {
        r->fence = fence;
        r->next = e->runs;
        e->runs = r;
    }
    return r;
}

static void read_ledger(void *ctx, const json_t *line)
{
    struct books *b = ctx;
    struct entry *e = NULL;
    int64_t n = number(line, "n");
    HASH_FIND(hh, b->entries, &n, sizeof n, e);
    struct run *r = e != NULL ? run_of(e, number(line, "fence")) : NULL;
    if (r == NULL) {
        return;
    }
    const char *op = text(line, "op");
    if (strcmp(op, "start") == 0) {
        r->starts++;
        r->start_ns = number(line, "t");
        b->verdict.starts++;
    } else if (strcmp(op, "effect") == 0) {
        r->has_effect = true;
    } else if (strcmp(op, "end") == 0) {
        const char *as = text(line, "as");
        r->end_ns = number(line, "t");
        r->wants_again =
            strcmp(as, "stopped") == 0 || strcmp(as, "retry") == 0 || strcmp(as, "far") == 0;
    }
}

/* ---- judging ---- */

static bool is_terminal(const char *state)
{
    return strcmp(state, "completed") == 0 || strcmp(state, "discarded") == 0 ||
           strcmp(state, "cancelled") == 0;
}

static void judge_end(struct books *b, const struct entry *e)
{
    bool is_as_told = strcmp(e->expect, "any") == 0 || strcmp(e->expect, e->state) == 0;
    if (e->rows == 0) {
        if (e->is_acked && !e->is_deleted && !e->may_be_lost) {
            violation(b, e, "was acknowledged, and is not in the table (inv.S15)");
        }
        return;
    }
    if (e->rows > 1) {
        violation(b, e, "is in the table %d times (inv.S2)", e->rows);
    }
    if (!is_terminal(e->state)) {
        violation(b, e, "is still %s (inv.L1)", e->state);
    } else if (e->is_cancelled ? strcmp(e->state, "cancelled") != 0 : !is_as_told && !e->is_free) {
        violation(b, e, "ended %s instead of %s", e->state,
                  e->is_cancelled ? "cancelled" : e->expect);
    }
    if (e->max_attempts > 0 && e->attempt > e->max_attempts) {
        violation(b, e, "attempt %lld of %lld (inv.S7)", (long long)e->attempt,
                  (long long)e->max_attempts);
    }
}

static void judge_overlaps(struct books *b, const struct entry *e)
{
    for (const struct run *r = e->runs; r != NULL; r = r->next) {
        for (const struct run *o = r->next; o != NULL; o = o->next) {
            bool is_known = r->end_ns > 0 && o->end_ns > 0;
            if (is_known && r->start_ns < o->end_ns && o->start_ns < r->end_ns) {
                b->verdict.overlaps++;
            }
        }
    }
}

static void judge_runs(struct books *b, const struct entry *e)
{
    int last_starts = 0; /* without runs after which it may start again */
    bool has_effect = false;
    for (const struct run *r = e->runs; r != NULL; r = r->next) {
        last_starts += r->wants_again ? 0 : r->starts;
        has_effect = has_effect || (r->has_effect && r->fence == e->fence);
        if (r->starts > 1) {
            violation(b, e, "fence %lld was started %d times (inv.S19)", (long long)r->fence,
                      r->starts);
        }
    }
    if (strcmp(e->kind + 1, "_once") == 0 && last_starts > 1 && b->lost_count == 0) {
        violation(b, e, "is at_most_once, and started %d times (inv.S10)", last_starts);
    }
    if (strcmp(e->state, "completed") == 0 && !has_effect) {
        violation(b, e, "is completed by fence %lld, which had no effect (inv.S16)",
                  (long long)e->fence);
    }
    judge_overlaps(b, e);
}

static void judge_all(struct books *b)
{
    for (struct entry *e = b->entries; e != NULL; e = e->hh.next) {
        judge_end(b, e);
        judge_runs(b, e);
        b->verdict.completed += strcmp(e->state, "completed") == 0 ? 1 : 0;
        b->verdict.discarded += strcmp(e->state, "discarded") == 0 ? 1 : 0;
        b->verdict.cancelled += strcmp(e->state, "cancelled") == 0 ? 1 : 0;
    }
}

static void books_close(struct books *b)
{
    struct entry *e = NULL;
    struct entry *next = NULL;
    HASH_CLEAR(by_job, b->jobs);
    HASH_ITER(hh, b->entries, e, next)
    {
        HASH_DEL(b->entries, e);
        while (e->runs != NULL) {
            struct run *r = e->runs;
            e->runs = r->next;
            free(r);
        }
        free(e);
    }
}

enum status verdict_judge(const struct folder *f, struct verdict *ret, struct err *err)
{
    static const struct {
        const char *name;
        folder_line_fn *each;
    } files[] = {{"nemesis.jsonl", read_nemesis},
                 {"acked.jsonl", read_acked},
                 {"final.jsonl", read_final},
                 {"ledger/effects.jsonl", read_ledger}};
    struct books b = {.folder = f};
    enum status st = STATUS_OK;
    for (size_t i = 0; i < ARRAY_COUNT(files) && st == STATUS_OK; i++) {
        st = folder_read(f, files[i].name, files[i].each, &b, err);
    }
    if (st == STATUS_OK) {
        judge_all(&b);
        if (b.verdict.violations > TOLD_MAX) {
            (void)printf("… and %lld more\n", (long long)(b.verdict.violations - TOLD_MAX));
        }
        *ret = b.verdict;
    }
    books_close(&b);
    return st;
}
