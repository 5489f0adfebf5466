/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl/commands/jobs/matches.h"

#include <stdio.h>
#include <string.h>

void matches_init(struct matches *m)
{
    *m = (struct matches){.ids = BUF_INIT(MATCHES_MAX * sizeof(int64_t)),
                          .places = BUF_INIT(MATCHES_MAX * sizeof(uint16_t)),
                          .queues = BUF_INIT(MATCH_QUEUES_MAX * sizeof(struct match_queue))};
}

void matches_release(struct matches *m)
{
    buf_release(&m->ids);
    buf_release(&m->places);
    buf_release(&m->queues);
}

int64_t matches_count(const struct matches *m)
{
    return (int64_t)(m->ids.len / sizeof(int64_t));
}

static size_t queue_count(const struct matches *m)
{
    return m->queues.len / sizeof(struct match_queue);
}

static struct match_queue *queue_at(const struct matches *m, size_t place)
{
    return (struct match_queue *)(void *)buf_at(&m->queues) + place;
}

/* Jobs of one queue are often next to each other. */
static enum status place_of(struct matches *m, const char *queue, size_t *ret, struct err *err)
{
    struct match_queue new = {0};
    size_t count = queue_count(m);
    size_t place = m->last < count && strcmp(queue_at(m, m->last)->name, queue) == 0 ? m->last : 0;
    while (place < count && strcmp(queue_at(m, place)->name, queue) != 0) {
        place++;
    }
    m->last = place;
    *ret = place;
    if (place < count || count == MATCH_QUEUES_MAX) {
        return STATUS_OK;
    }
    (void)snprintf(new.name, sizeof new.name, "%s", queue);
    return buf_append(&m->queues, &new, sizeof new, err);
}

enum status matches_add(struct matches *m, int64_t id, const char *queue, struct err *err)
{
    size_t place = 0;
    enum status st = place_of(m, queue, &place, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = buf_append(&m->ids, &id, sizeof id, err);
    if (st != STATUS_OK) {
        return st;
    }
    uint16_t stored = (uint16_t)place;
    return buf_append(&m->places, &stored, sizeof stored, err);
}

static size_t from_end(const struct matches *m, int64_t index)
{
    return (size_t)(matches_count(m) - 1 - index);
}

int64_t matches_id(const struct matches *m, int64_t index)
{
    int64_t id = 0;
    memcpy(&id, buf_at(&m->ids) + from_end(m, index) * sizeof id, sizeof id);
    return id;
}

static struct match_queue *queue_of(const struct matches *m, int64_t index)
{
    uint16_t place = 0;
    memcpy(&place, buf_at(&m->places) + from_end(m, index) * sizeof place, sizeof place);
    return place < queue_count(m) ? queue_at(m, place) : NULL;
}

const struct err *matches_full(const struct matches *m, int64_t index)
{
    const struct match_queue *queue = queue_of(m, index);
    return queue == NULL || queue->full.status == STATUS_OK ? NULL : &queue->full;
}

void matches_note_full(struct matches *m, int64_t index, const struct err *why)
{
    struct match_queue *queue = queue_of(m, index);
    if (queue != NULL) {
        queue->full = *why;
    }
}
