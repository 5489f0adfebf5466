/* SPDX-License-Identifier: Apache-2.0
 *
 * K11: times in which no job of a queue, kind or key may start, even if a worker is idle: it is
 * paused, its places are taken, or its bucket has no token. Uses the rows' own history, as K7 does;
 * `limits` of run.json has the places, `rates` the jobs per second. */
#include "idle.h"

#include <stdlib.h>
#include <uthash.h>

struct refusal {
    const char *what; /* "queue …", "key …" or "kind …" */
    int most;         /* how many may run; 0 = any number */
    int running;
    double rate; /* 0 = none; a bucket holds at most `room` tokens */
    double room;
    double tokens; /* at the time `filled` */
    int64_t filled;
    int64_t full_since; /* NEVER = there is a place; likewise the next */
    int64_t paused_since;
    bool is_of_two;
    struct spans shut;
    UT_hash_handle hh;
};

static double number_in(const struct run *r, const char *list, const char *kind, const char *name)
{
    const json_t *all = json_object_get(json_object_get(r->about, list), kind);
    return json_number_value(json_object_get(all, name));
}

static const char *what_of(const char *kind, const char *name)
{
    char text[600];
    int len = snprintf(text, sizeof text, "%s %s", kind, name);
    return intern(text, (size_t)len < sizeof text ? (size_t)len : sizeof text - 1);
}

static struct refusal *find(const struct refusals *all, const char *kind, const char *name)
{
    struct refusal *f = NULL;
    const char *what = what_of(kind, name);
    HASH_FIND_PTR(all->by_what, &what, f);
    return f;
}

static struct refusal *find_or_add(struct refusals *all, const char *kind, const char *name)
{
    struct refusal *f = find(all, kind, name);
    if (f != NULL) {
        return f;
    }
    f = calloc(1, sizeof *f);
    if (f == NULL) {
        abort();
    }
    f->what = what_of(kind, name);
    f->full_since = NEVER;
    f->paused_since = NEVER;
    HASH_ADD_PTR(all->by_what, what, f);
    return f;
}

/* ---- places and buckets ---- */

static void count(struct refusal *f, int64_t t, int step)
{
    f->running += step;
    bool is_full = f->most > 0 && f->running >= f->most;
    if (is_full && f->full_since == NEVER) {
        f->full_since = t;
    } else if (!is_full && f->full_since != NEVER) {
        spans_add(&f->shut, f->full_since, t);
        f->full_since = NEVER;
    }
}

/* Ignores unused tokens that jobs give back, which excuses too much rather than too little. */
static void take_token(struct refusal *f, int64_t t)
{
    double tokens = f->tokens + f->rate * (double)(t - f->filled) / (double)NS_PER_S;
    f->tokens = (tokens < f->room ? tokens : f->room) - 1;
    f->filled = t;
    if (f->tokens < 1) {
        spans_add(&f->shut, t, t + (int64_t)((1 - f->tokens) / f->rate * (double)NS_PER_S) + 1);
    }
}

/* The resources of which a claim needs a place. Unlike a queue, a key has one place by default. */
static const struct {
    const char *kind;
    const char *list;
    int most;
    double room; /* capacity of a bucket, in seconds of its rate */
} resources[] = {{"queue", "queues", 0, 1}, {"key", "keys", 1, 2}};

static void take(const struct run *r, struct refusals *all, const struct row *row, size_t which,
                 const char *name)
{
    const char *running = intern("running", 7);
    int step = (row->new_state == running) - (row->old_state == running);
    int most = (int)number_in(r, "limits", resources[which].list, name);
    double rate = number_in(r, "rates", resources[which].list, name);
    most = most > 0 ? most : resources[which].most;
    if (step == 0 || name[0] == '\0' || (most == 0 && rate <= 0)) {
        return;
    }
    struct refusal *f = find_or_add(all, resources[which].kind, name);
    f->most = most;
    if (rate > 0 && f->rate <= 0) { /* one token exists from the beginning */
        f->rate = rate;
        f->room = 1 + resources[which].room * rate;
        f->tokens = 1;
        f->filled = r->first;
    }
    count(f, row->committed, step);
    if (step > 0 && rate > 0) {
        take_token(f, row->committed);
    }
}

/* A job with two keys may find each of them free at times, but never both at once; and places may
 * be reserved for such a job. So every wait for a key that was ever one of two is excused. */
static void take_two(const struct run *r, struct refusals *all, const struct row *row)
{
    const char *const keys[] = {row->exclusive_key, row->second_key};
    for (size_t i = 0; row->second_key[0] != '\0' && i < ARRAY_COUNT(keys); i++) {
        struct refusal *f = find_or_add(all, "key", keys[i]);
        if (!f->is_of_two) {
            f->is_of_two = true;
            spans_add(&f->shut, r->first, NEVER);
        }
    }
}

/* ---- pauses ---- */

static void take_pause(struct refusals *all, const struct event *e, const char *kind,
                       const char *name)
{
    if (name[0] == '\0' || e->phase == PH_FAIL) {
        return;
    }
    struct refusal *f = find_or_add(all, kind, name);
    if (e->op == OP_PAUSE && f->paused_since == NEVER) {
        f->paused_since = e->t;
    } else if (e->op == OP_RESUME && e->phase == PH_OK && f->paused_since != NEVER) {
        spans_add(&f->shut, f->paused_since, e->t);
        f->paused_since = NEVER;
    }
}

/* ---- all refusals ---- */

void refusals_find(struct refusals *all, const struct run *r)
{
    struct refusal *f = NULL;
    struct refusal *next = NULL;
    const struct row **rows = run_rows_in_order(r);
    for (size_t i = 0; i < r->row_count; i++) {
        take(r, all, rows[i], 0, rows[i]->queue);
        take(r, all, rows[i], 1, rows[i]->exclusive_key);
        take(r, all, rows[i], 1, rows[i]->second_key);
        take_two(r, all, rows[i]);
    }
    for (size_t i = 0; i < r->jobs[0].event_count; i++) {
        const struct event *e = &r->jobs[0].events[i];
        if (e->op == OP_PAUSE || e->op == OP_RESUME) {
            take_pause(all, e, "queue", e->queue);
            take_pause(all, e, "kind", e->kind);
        }
    }
    HASH_ITER(hh, all->by_what, f, next)
    {
        spans_add(&f->shut, f->full_since, NEVER);
        spans_add(&f->shut, f->paused_since, NEVER);
        spans_sort(&f->shut);
    }
    free(rows);
}

void refusals_free(struct refusals *all)
{
    struct refusal *f = NULL;
    struct refusal *next = NULL;
    HASH_ITER(hh, all->by_what, f, next)
    {
        HASH_DEL(all->by_what, f);
        spans_free(&f->shut);
        free(f);
    }
}

void refusals_add(const struct refusals *all, const char *queue, const char *kind, const char *key,
                  struct span within, struct spans *to)
{
    const char *const names[][2] = {{"queue", queue}, {"kind", kind}, {"key", key}};
    for (size_t i = 0; i < ARRAY_COUNT(names); i++) {
        const struct refusal *f = find(all, names[i][0], names[i][1]);
        if (f != NULL) {
            spans_add_within(to, &f->shut, within);
        }
    }
}
