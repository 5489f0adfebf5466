/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/caseload.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void caseload_release(struct caseload *c)
{
    free(c->items);
    free(c->doubts);
    free(c->workers);
    *c = (struct caseload){0};
}

/* Room for one more; false when there is no memory or the bound is reached. */
static bool room_for(void **list, size_t count, size_t *cap, size_t size, size_t max)
{
    if (count < *cap) {
        return true;
    }
    size_t wanted = *cap == 0 ? 64 : 2 * *cap;
    void *grown = wanted > max ? NULL : realloc(*list, wanted * size);
    if (grown == NULL) {
        return false;
    }
    *list = grown;
    *cap = wanted;
    return true;
}

static bool item_room(struct caseload_item **list, size_t count, size_t *cap)
{
    void *grown = *list;
    bool is_there = room_for(&grown, count, cap, sizeof(*list)[0], CASELOAD_ITEMS_MAX);
    *list = grown;
    return is_there;
}

/* ---- workers ---- */

bool caseload_add_worker(struct caseload *c, const char *id)
{
    for (size_t i = 0; i < c->worker_count; i++) {
        if (strcmp(c->workers[i].id, id) == 0) {
            return false;
        }
    }
    void *grown = c->workers;
    bool is_there = room_for(&grown, c->worker_count, &c->worker_cap, sizeof c->workers[0],
                             CASELOAD_WORKERS_MAX);
    c->workers = grown;
    if (!is_there) {
        return false;
    }
    struct caseload_worker *w = &c->workers[c->worker_count++];
    *w = (struct caseload_worker){.stage = CASELOAD_WAITING};
    (void)snprintf(w->id, sizeof w->id, "%s", id);
    return true;
}

static void stage_move(struct caseload *c, enum caseload_stage from, enum caseload_stage to)
{
    for (size_t i = 0; i < c->worker_count; i++) {
        if (c->workers[i].stage == from) {
            c->workers[i].stage = to;
        }
    }
}

size_t caseload_take_swept(struct caseload *c, struct caseload_worker *ret, size_t max)
{
    size_t count = 0;
    size_t kept = 0;
    for (size_t i = 0; i < c->worker_count; i++) {
        if (c->workers[i].stage == CASELOAD_WALKED && count < max) {
            ret[count++] = c->workers[i];
        } else {
            c->workers[kept++] = c->workers[i];
        }
    }
    c->worker_count = kept;
    return count;
}

/* ---- walks ---- */

void caseload_walk_begin(struct caseload *c)
{
    stage_move(c, CASELOAD_WAITING, CASELOAD_WALKING);
    stage_move(c, CASELOAD_WALKED, CASELOAD_WALKING);
    c->item_count = 0;
    c->doubt_old = c->doubt_count;
}

void caseload_walk_fail(struct caseload *c)
{
    stage_move(c, CASELOAD_WALKING, CASELOAD_WAITING);
    c->doubt_count = c->doubt_old;
}

void caseload_walk_end(struct caseload *c)
{
    stage_move(c, CASELOAD_WALKING, CASELOAD_WALKED);
    size_t count = c->doubt_count - c->doubt_old;
    if (c->doubt_old > 0 && count > 0) {
        memmove(c->doubts, c->doubts + c->doubt_old, count * sizeof c->doubts[0]);
    }
    c->doubt_count = count;
    c->doubt_old = 0;
}

void caseload_add(struct caseload *c, const struct caseload_item *item)
{
    if (item_room(&c->items, c->item_count, &c->item_cap)) {
        c->items[c->item_count++] = *item;
    }
}

void caseload_add_doubt(struct caseload *c, const struct caseload_item *found, int64_t now_us,
                        int64_t doubt_us)
{
    struct caseload_item doubt = *found;
    doubt.at_us = now_us;
    for (size_t i = 0; i < c->doubt_old; i++) {
        if (c->doubts[i].id == found->id && c->doubts[i].fence == found->fence) {
            doubt.at_us = c->doubts[i].at_us;
        }
    }
    if (now_us - doubt.at_us >= doubt_us) {
        caseload_add(c, found);
    }
    if (item_room(&c->doubts, c->doubt_count, &c->doubt_cap)) {
        c->doubts[c->doubt_count++] = doubt;
    }
}

/* ---- items ---- */

size_t caseload_take(struct caseload *c, int64_t now_us, struct caseload_item *ret, size_t max)
{
    size_t count = 0;
    size_t kept = 0;
    for (size_t i = 0; i < c->item_count; i++) {
        if (c->items[i].at_us <= now_us && count < max) {
            ret[count++] = c->items[i];
        } else {
            c->items[kept++] = c->items[i];
        }
    }
    c->item_count = kept;
    return count;
}

int64_t caseload_next_us(const struct caseload *c)
{
    int64_t us = INT64_MAX;
    for (size_t i = 0; i < c->item_count; i++) {
        us = c->items[i].at_us < us ? c->items[i].at_us : us;
    }
    return us;
}
