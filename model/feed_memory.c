/* SPDX-License-Identifier: Apache-2.0 */
#include "model/feed_memory.h"

#include <stdlib.h>
#include <string.h>

#define CAP_FIRST ((size_t)1024)

/* The key includes the time: a job that is retried at once has the same id again. */
static uint64_t mix(int64_t id, int64_t ready_us)
{
    uint64_t x = (uint64_t)id * UINT64_C(0x9E3779B97F4A7C15) ^ (uint64_t)ready_us;
    x ^= x >> 30;
    x *= UINT64_C(0xBF58476D1CE4E5B9);
    x ^= x >> 27;
    x *= UINT64_C(0x94D049BB133111EB);
    x ^= x >> 31;
    return x != 0 ? x : 1;
}

static size_t slot_of(const uint64_t *slots, size_t cap, uint64_t key)
{
    size_t at = (size_t)key & (cap - 1);
    while (slots[at] != 0 && slots[at] != key) {
        at = (at + 1) & (cap - 1);
    }
    return at;
}

static bool half_has(const struct feed_memory_half *h, uint64_t key)
{
    return h->cap > 0 && h->slots[slot_of(h->slots, h->cap, key)] == key;
}

static void half_clear(struct feed_memory_half *h)
{
    if (h->cap > CAP_FIRST) {
        free(h->slots);
        *h = (struct feed_memory_half){0};
    } else if (h->count > 0) {
        memset(h->slots, 0, h->cap * sizeof h->slots[0]);
        h->count = 0;
    }
}

static bool half_grow(struct feed_memory_half *h)
{
    size_t cap = h->cap == 0 ? CAP_FIRST : 2 * h->cap;
    uint64_t *slots = cap > FEED_MEMORY_MAX ? NULL : calloc(cap, sizeof slots[0]);
    if (slots == NULL) {
        return false;
    }
    for (size_t i = 0; i < h->cap; i++) {
        if (h->slots[i] != 0) {
            slots[slot_of(slots, cap, h->slots[i])] = h->slots[i];
        }
    }
    free(h->slots);
    h->slots = slots;
    h->cap = cap;
    return true;
}

static void begin_generation(struct feed_memory *m)
{
    struct feed_memory_half old = m->old;
    m->old = m->young;
    m->young = old;
    half_clear(&m->young);
}

void feed_memory_release(struct feed_memory *m)
{
    free(m->young.slots);
    free(m->old.slots);
    *m = (struct feed_memory){0};
}

void feed_memory_add(struct feed_memory *m, int64_t id, int64_t ready_us)
{
    uint64_t key = mix(id, ready_us);
    if (half_has(&m->young, key)) {
        return;
    }
    if (4 * (m->young.count + 1) > 3 * m->young.cap && !half_grow(&m->young)) {
        begin_generation(m);
        if (m->young.cap == 0 && !half_grow(&m->young)) {
            return;
        }
    }
    m->young.slots[slot_of(m->young.slots, m->young.cap, key)] = key;
    m->young.count++;
}

bool feed_memory_has(const struct feed_memory *m, int64_t id, int64_t ready_us)
{
    uint64_t key = mix(id, ready_us);
    return half_has(&m->young, key) || half_has(&m->old, key);
}

void feed_memory_age(struct feed_memory *m, int64_t now_us, int64_t age_us)
{
    if (now_us - m->began_us >= age_us) {
        begin_generation(m);
        m->began_us = now_us;
    }
}
