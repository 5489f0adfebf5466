/* SPDX-License-Identifier: Apache-2.0 */
#include "model/feed_served.h"

#include <stdlib.h>
#include <string.h>

void feed_served_release(struct feed_served *s)
{
    for (size_t i = 0; i < s->queue_count; i++) {
        free(s->queues[i].name);
    }
    for (size_t i = 0; i < s->kind_count; i++) {
        free(s->kinds[i].name);
    }
    free(s->queues);
    free(s->kinds);
    *s = (struct feed_served){0};
}

static bool is_name(const char *name, const char *text, size_t len)
{
    return strncmp(name, text, len) == 0 && name[len] == '\0';
}

static const struct feed_served_queue *queue_find(const struct feed_served *s, const char *queue)
{
    for (size_t i = 0; i < s->queue_count; i++) {
        if (strcmp(s->queues[i].name, queue) == 0) {
            return &s->queues[i];
        }
    }
    return NULL;
}

static const struct feed_served_kind *kind_find(const struct feed_served *s, size_t queue,
                                                const char *kind, size_t len)
{
    for (size_t i = 0; i < s->kind_count; i++) {
        if (s->kinds[i].queue == queue && is_name(s->kinds[i].name, kind, len)) {
            return &s->kinds[i];
        }
    }
    return NULL;
}

static enum status queue_get(struct feed_served *s, const char *text, size_t len, size_t *ret,
                             struct err *err)
{
    for (size_t i = 0; i < s->queue_count; i++) {
        if (is_name(s->queues[i].name, text, len)) {
            *ret = i;
            return STATUS_OK;
        }
    }
    if (s->queue_count == s->queue_cap) {
        size_t cap = s->queue_cap == 0 ? 8 : 2 * s->queue_cap;
        struct feed_served_queue *queues = realloc(s->queues, cap * sizeof queues[0]);
        if (queues == NULL) {
            return err_fail(err, STATUS_NOMEM, "no memory for %zu queues", cap);
        }
        s->queues = queues;
        s->queue_cap = cap;
    }
    char *name = strndup(text, len);
    if (name == NULL) {
        return err_fail(err, STATUS_NOMEM, "no memory for the name of a queue");
    }
    s->queues[s->queue_count] = (struct feed_served_queue){.name = name};
    *ret = s->queue_count++;
    return STATUS_OK;
}

static enum status kind_count(struct feed_served *s, size_t queue, const char *text, size_t len,
                              struct err *err)
{
    const struct feed_served_kind *known = kind_find(s, queue, text, len);
    if (known != NULL) {
        s->kinds[known - s->kinds].workers++;
        return STATUS_OK;
    }
    if (s->kind_count == s->kind_cap) {
        size_t cap = s->kind_cap == 0 ? 16 : 2 * s->kind_cap;
        struct feed_served_kind *kinds = realloc(s->kinds, cap * sizeof kinds[0]);
        if (kinds == NULL) {
            return err_fail(err, STATUS_NOMEM, "no memory for %zu kinds", cap);
        }
        s->kinds = kinds;
        s->kind_cap = cap;
    }
    char *name = strndup(text, len);
    if (name == NULL) {
        return err_fail(err, STATUS_NOMEM, "no memory for the name of a kind");
    }
    s->kinds[s->kind_count++] =
        (struct feed_served_kind){.queue = queue, .name = name, .workers = 1};
    return STATUS_OK;
}

/* Returns the next name of a list; NULL at its end. */
static const char *name_next(const char **at, size_t *ret_len)
{
    while (**at == ',') {
        (*at)++;
    }
    const char *name = *at;
    *ret_len = strcspn(name, ",");
    *at = name + *ret_len;
    return *ret_len > 0 ? name : NULL;
}

static enum status kinds_add(struct feed_served *s, size_t queue, const char *kinds,
                             struct err *err)
{
    size_t len = 0;
    for (const char *name = name_next(&kinds, &len); name != NULL; name = name_next(&kinds, &len)) {
        enum status st = kind_count(s, queue, name, len, err);
        if (st != STATUS_OK) {
            return st;
        }
    }
    return STATUS_OK;
}

enum status feed_served_add(struct feed_served *s, const char *queues, const char *kinds,
                            struct err *err)
{
    size_t len = 0;
    for (const char *name = name_next(&queues, &len); name != NULL;
         name = name_next(&queues, &len)) {
        size_t queue = 0;
        enum status st = queue_get(s, name, len, &queue, err);
        if (st != STATUS_OK) {
            return st;
        }
        s->queues[queue].workers++;
        st = kinds_add(s, queue, kinds, err);
        if (st != STATUS_OK) {
            return st;
        }
    }
    return STATUS_OK;
}

enum status feed_served_pause(struct feed_served *s, const char *queue, struct err *err)
{
    size_t at = 0;
    enum status st = queue_get(s, queue, strlen(queue), &at, err);
    if (st != STATUS_OK) {
        return st;
    }
    s->queues[at].is_paused = true;
    return STATUS_OK;
}

bool feed_served_has_queue(const struct feed_served *s, const char *queue)
{
    const struct feed_served_queue *q = queue_find(s, queue);
    return q != NULL && q->workers > 0 && !q->is_paused;
}

const char *feed_served_next(const struct feed_served *s, const char *after)
{
    const char *next = NULL;
    for (size_t i = 0; i < s->queue_count; i++) {
        const struct feed_served_queue *q = &s->queues[i];
        if (q->workers > 0 && !q->is_paused && strcmp(q->name, after) > 0 &&
            (next == NULL || strcmp(q->name, next) < 0)) {
            next = q->name;
        }
    }
    return next;
}

enum status feed_served_kinds(const struct feed_served *s, const char *queue, struct buf *out,
                              struct err *err)
{
    const struct feed_served_queue *q = queue_find(s, queue);
    for (size_t i = 0; q != NULL && i < s->kind_count; i++) {
        if (&s->queues[s->kinds[i].queue] != q) {
            continue;
        }
        enum status st = buf_printf(out, err, "%s,", s->kinds[i].name);
        if (st != STATUS_OK) {
            return st;
        }
    }
    return STATUS_OK;
}

enum feed_route feed_served_route(const struct feed_served *s, const char *queue, const char *kind)
{
    const struct feed_served_queue *q = queue_find(s, queue);
    if (q == NULL || q->is_paused) {
        return FEED_ROUTE_NONE;
    }
    const struct feed_served_kind *k = kind_find(s, (size_t)(q - s->queues), kind, strlen(kind));
    if (k == NULL) {
        return FEED_ROUTE_NONE;
    }
    return k->workers == q->workers ? FEED_ROUTE_QUEUE : FEED_ROUTE_KIND;
}

void feed_served_partial(const struct feed_served *s, const char *queue, feed_served_cb *each,
                         void *ctx)
{
    const struct feed_served_queue *q = queue_find(s, queue);
    for (size_t i = 0; q != NULL && i < s->kind_count; i++) {
        const struct feed_served_kind *k = &s->kinds[i];
        if (&s->queues[k->queue] == q && k->workers < q->workers) {
            each(ctx, k->name);
        }
    }
}

/* FNV-1a over the name and its NUL. */
static uint64_t hash_name(uint64_t hash, const char *name)
{
    do {
        hash = (hash ^ (unsigned char)*name) * UINT64_C(0x100000001B3);
    } while (*name++ != '\0');
    return hash;
}

uint64_t feed_served_routes(const struct feed_served *s)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < s->kind_count; i++) {
        const struct feed_served_kind *k = &s->kinds[i];
        const struct feed_served_queue *q = &s->queues[k->queue];
        uint64_t hash = hash_name(hash_name(UINT64_C(0xCBF29CE484222325), q->name), k->name);
        uint64_t route = k->workers == q->workers ? FEED_ROUTE_QUEUE : FEED_ROUTE_KIND;
        sum += q->is_paused ? 0 : hash * (2 * route + 1);
    }
    return sum;
}

/* True if `b` routes each kind in the same way as `a`. */
static bool is_covered(const struct feed_served *a, const struct feed_served *b, const char *queue)
{
    for (size_t i = 0; i < a->kind_count; i++) {
        const char *kind = a->kinds[i].name;
        if (strcmp(a->queues[a->kinds[i].queue].name, queue) == 0 &&
            feed_served_route(a, queue, kind) != feed_served_route(b, queue, kind)) {
            return false;
        }
    }
    return true;
}

bool feed_served_differs(const struct feed_served *a, const struct feed_served *b,
                         const char *queue)
{
    return !is_covered(a, b, queue) || !is_covered(b, a, queue);
}
