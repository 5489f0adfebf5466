/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/rescue_queue.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void rescue_queue_release(struct rescue_queue *c)
{
    free(c->items);
    free(c->doubts);
    free(c->workers);
    *c = (struct rescue_queue){0};
}

/* Makes room for one more; false if memory runs out or the bound is reached. */
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

static bool item_room(struct rescue_queue_item **list, size_t count, size_t *cap)
{
    void *grown = *list;
    bool is_there = room_for(&grown, count, cap, sizeof(*list)[0], RESCUE_QUEUE_ITEMS_MAX);
    *list = grown;
    return is_there;
}

/* ---- workers ---- */

bool rescue_queue_add_worker(struct rescue_queue *c, const char *id)
{
    for (size_t i = 0; i < c->worker_count; i++) {
        if (strcmp(c->workers[i].id, id) == 0) {
            return false;
        }
    }
    void *grown = c->workers;
    bool is_there = room_for(&grown, c->worker_count, &c->worker_cap, sizeof c->workers[0],
                             RESCUE_QUEUE_WORKERS_MAX);
    c->workers = grown;
    if (!is_there) {
        return false;
    }
    struct rescue_queue_worker *w = &c->workers[c->worker_count++];
    *w = (struct rescue_queue_worker){.stage = RESCUE_QUEUE_WAITING};
    (void)snprintf(w->id, sizeof w->id, "%s", id);
    return true;
}

static void stage_move(struct rescue_queue *c, enum rescue_queue_stage from,
                       enum rescue_queue_stage to)
{
    for (size_t i = 0; i < c->worker_count; i++) {
        if (c->workers[i].stage == from) {
            c->workers[i].stage = to;
        }
    }
}

size_t rescue_queue_take_swept(struct rescue_queue *c, struct rescue_queue_worker *ret, size_t max)
{
    size_t count = 0;
    size_t kept = 0;
    for (size_t i = 0; i < c->worker_count; i++) {
        if (c->workers[i].stage == RESCUE_QUEUE_WALKED && count < max) {
            ret[count++] = c->workers[i];
        } else {
            c->workers[kept++] = c->workers[i];
        }
    }
    c->worker_count = kept;
    return count;
}

/* ---- walks ---- */

void rescue_queue_walk_begin(struct rescue_queue *c)
{
    stage_move(c, RESCUE_QUEUE_WAITING, RESCUE_QUEUE_WALKING);
    stage_move(c, RESCUE_QUEUE_WALKED, RESCUE_QUEUE_WALKING);
    c->item_count = 0;
    c->doubt_old = c->doubt_count;
}

void rescue_queue_walk_fail(struct rescue_queue *c)
{
    stage_move(c, RESCUE_QUEUE_WALKING, RESCUE_QUEUE_WAITING);
    c->doubt_count = c->doubt_old;
}

void rescue_queue_walk_end(struct rescue_queue *c)
{
    stage_move(c, RESCUE_QUEUE_WALKING, RESCUE_QUEUE_WALKED);
    size_t count = c->doubt_count - c->doubt_old;
    if (c->doubt_old > 0 && count > 0) {
        memmove(c->doubts, c->doubts + c->doubt_old, count * sizeof c->doubts[0]);
    }
    c->doubt_count = count;
    c->doubt_old = 0;
}

void rescue_queue_add(struct rescue_queue *c, const struct rescue_queue_item *item)
{
    if (item_room(&c->items, c->item_count, &c->item_cap)) {
        c->items[c->item_count++] = *item;
    }
}

void rescue_queue_add_doubt(struct rescue_queue *c, const struct rescue_queue_item *found,
                            int64_t now_us, int64_t doubt_us)
{
    struct rescue_queue_item doubt = *found;
    doubt.at_us = now_us;
    for (size_t i = 0; i < c->doubt_old; i++) {
        if (c->doubts[i].id == found->id && c->doubts[i].fence == found->fence) {
            doubt.at_us = c->doubts[i].at_us;
        }
    }
    if (now_us - doubt.at_us >= doubt_us) {
        rescue_queue_add(c, found);
    }
    if (item_room(&c->doubts, c->doubt_count, &c->doubt_cap)) {
        c->doubts[c->doubt_count++] = doubt;
    }
}

/* ---- items ---- */

size_t rescue_queue_take(struct rescue_queue *c, int64_t now_us, struct rescue_queue_item *ret,
                         size_t max)
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

int64_t rescue_queue_next_us(const struct rescue_queue *c)
{
    int64_t us = INT64_MAX;
    for (size_t i = 0; i < c->item_count; i++) {
        us = c->items[i].at_us < us ? c->items[i].at_us : us;
    }
    return us;
}
