/* SPDX-License-Identifier: Apache-2.0 */
#include "model/feed_writers.h"

#include "base/bug.h"
#include "base/clock.h"
#include "base/parse.h"

#include <stdlib.h>
#include <string.h>

/* A row's time is taken just before its transaction gets an id. */
#define MARGIN_US (US_PER_S / 2)

void feed_writers_release(struct feed_writers *w)
{
    free(w->list);
    *w = (struct feed_writers){0};
}

void feed_writers_reset(struct feed_writers *w)
{
    w->count = 0;
    w->last_us = 0;
}

static struct feed_writer *find(struct feed_writers *w, uint64_t xid)
{
    for (size_t i = 0; i < w->count; i++) {
        if (w->list[i].xid == xid) {
            return &w->list[i];
        }
    }
    return NULL;
}

static enum status see(struct feed_writers *w, uint64_t xid, int64_t since_us, struct err *err)
{
    struct feed_writer *known = find(w, xid);
    if (known != NULL) {
        known->is_seen = true;
        return STATUS_OK;
    }
    if (w->count == w->cap) {
        size_t cap = w->cap == 0 ? 64 : 2 * w->cap;
        struct feed_writer *list = realloc(w->list, cap * sizeof list[0]);
        if (list == NULL) {
            return err_fail(err, STATUS_NOMEM, "no memory for %zu transactions", cap);
        }
        w->list = list;
        w->cap = cap;
    }
    w->list[w->count++] = (struct feed_writer){.xid = xid, .since_us = since_us, .is_seen = true};
    return STATUS_OK;
}

static enum status see_all(struct feed_writers *w, const char *at, int64_t since_us,
                           struct err *err)
{
    while (*at != '\0') {
        size_t len = strcspn(at, ",");
        int64_t xid = 0;
        enum status st = parse_i64(at, len, 1, INT64_MAX, &xid, err);
        if (st != STATUS_OK) {
            return st;
        }
        st = see(w, (uint64_t)xid, since_us, err);
        if (st != STATUS_OK) {
            return st;
        }
        at += len + (at[len] == ',');
    }
    return STATUS_OK;
}

/* Forgets transactions that have ended. One that was in a single list lasted for less than two
 * intervals between lists, which the look-behind covers. */
static int64_t forget_ended(struct feed_writers *w, int64_t short_since_us)
{
    int64_t rewind_us = INT64_MAX;
    size_t kept = 0;
    for (size_t i = 0; i < w->count; i++) {
        struct feed_writer *x = &w->list[i];
        if (x->is_seen) {
            w->list[kept++] = *x;
        } else if (x->since_us < short_since_us && x->since_us < rewind_us) {
            rewind_us = x->since_us;
        }
    }
    w->count = kept;
    return rewind_us;
}

enum status feed_writers_list(struct feed_writers *w, const char *text, int64_t pg_us,
                              int64_t gap_us, int64_t *ret_rewind_us, struct err *err)
{
    int64_t last_us = w->last_us;
    for (size_t i = 0; i < w->count; i++) {
        w->list[i].is_seen = false;
    }
    enum status st = see_all(w, text, last_us == 0 ? 0 : last_us - MARGIN_US, err);
    if (st != STATUS_OK) {
        return st;
    }
    bool is_clock_back =
        pg_us < last_us && !SEEDED_BUG(18); /* what is written from now on has older times */
    for (size_t i = 0; is_clock_back && i < w->count; i++) {
        struct feed_writer *x = &w->list[i];
        x->since_us = x->since_us < pg_us - gap_us ? x->since_us : pg_us - gap_us;
    }
    int64_t rewind_us = forget_ended(w, pg_us - gap_us - MARGIN_US);
    if (is_clock_back && pg_us - gap_us < rewind_us) {
        rewind_us = pg_us - gap_us;
    }
    if (last_us > 0 && !SEEDED_BUG(19) && pg_us - last_us > gap_us &&
        last_us - MARGIN_US < rewind_us) {
        rewind_us = last_us - MARGIN_US;
    }
    w->last_us = pg_us;
    *ret_rewind_us = rewind_us;
    return STATUS_OK;
}
