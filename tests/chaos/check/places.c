/* SPDX-License-Identifier: Apache-2.0
 *
 * K7: no more jobs with an exclusive key, or of a limited queue, run than the limit allows (S18).
 * Uses the rows' own history: a run counts from the change that claims it to the one that ends it.
 * A claim that takes a place waits for the commit that frees it, so the changes are numbered in
 * that order. */
#include "check.h"

#include <uthash.h>

#define K7 "K7"

struct place {
    const char *what; /* "key …" or "queue …" */
    int most;
    int running;
    UT_hash_handle hh;
};

static int limit_of(const struct run *r, const char *kind, const char *name, int otherwise)
{
    const json_t *all = json_object_get(json_object_get(r->about, "limits"), kind);
    const json_t *most = json_object_get(all, name);
    return json_is_integer(most) ? (int)json_integer_value(most) : otherwise;
}

static struct place *place_of(struct place **all, const char *kind, const char *name, int most)
{
    char text[600];
    struct place *p = NULL;
    int len = snprintf(text, sizeof text, "%s %s", kind, name);
    const char *what = intern(text, (size_t)len < sizeof text ? (size_t)len : sizeof text - 1);
    HASH_FIND_PTR(*all, &what, p);
    if (p == NULL && (p = calloc(1, sizeof *p)) != NULL) {
        p->what = what;
        p->most = most;
        HASH_ADD_PTR(*all, what, p);
    }
    if (p == NULL) {
        abort();
    }
    return p;
}

static void count(struct run *r, struct place *p, const struct row *row, int step)
{
    p->running += step;
    if (step > 0 && p->running > p->most) {
        violation(r, K7, "S18", row->job, "claimed as number %d of %s that run, %d may", p->running,
                  p->what, p->most);
    }
}

static void take_key(struct run *r, struct place **all, const struct row *row, const char *key,
                     int step)
{
    if (step != 0 && key[0] != '\0') {
        count(r, place_of(all, "key", key, limit_of(r, "keys", key, 1)), row, step);
    }
}

static void take(struct run *r, struct place **all, const struct row *row)
{
    const char *running = intern("running", 7);
    int step = (row->new_state == running) - (row->old_state == running);
    int queue_most = limit_of(r, "queues", row->queue, 0);
    if (step != 0 && queue_most > 0) {
        count(r, place_of(all, "queue", row->queue, queue_most), row, step);
    }
    take_key(r, all, row, row->exclusive_key, step);
    take_key(r, all, row, row->second_key, step);
}

void check_places(struct run *r)
{
    struct place *all = NULL;
    struct place *p = NULL;
    struct place *next = NULL;
    const struct row **rows = run_rows_in_order(r);
    for (size_t i = 0; i < r->row_count; i++) {
        take(r, &all, rows[i]);
    }
    HASH_ITER(hh, all, p, next)
    {
        HASH_DEL(all, p);
        free(p);
    }
    free(rows);
}
