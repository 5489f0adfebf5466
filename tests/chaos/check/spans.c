/* SPDX-License-Identifier: Apache-2.0 */
#include "spans.h"

#include <stdlib.h>

void spans_add(struct spans *s, int64_t from, int64_t to)
{
    if (from >= to) {
        return;
    }
    if (s->count == s->room) {
        s->room = s->room == 0 ? 16 : 2 * s->room;
        s->list = realloc(s->list, s->room * sizeof s->list[0]);
        if (s->list == NULL) {
            abort();
        }
    }
    s->list[s->count++] = (struct span){.from = from, .to = to};
}

static int compare(const void *left, const void *right)
{
    const struct span *a = left;
    const struct span *b = right;
    return (a->from > b->from) - (a->from < b->from);
}

void spans_sort(struct spans *s)
{
    size_t n = 0;
    if (s->count > 1) {
        qsort(s->list, s->count, sizeof s->list[0], compare);
    }
    for (size_t i = 1; i < s->count; i++) {
        if (s->list[i].from > s->list[n].to) {
            s->list[++n] = s->list[i];
        } else if (s->list[i].to > s->list[n].to) {
            s->list[n].to = s->list[i].to;
        }
    }
    s->count = s->count == 0 ? 0 : n + 1;
}

void spans_free(struct spans *s)
{
    free(s->list);
    *s = (struct spans){.list = NULL};
}

/* Returns the first span that ends after t. Sorted and joined spans are also sorted by their
 * ends. */
static size_t first_after(const struct spans *s, int64_t t)
{
    size_t low = 0;
    size_t high = s->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (s->list[middle].to <= t) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

void spans_add_within(struct spans *to, const struct spans *s, struct span within)
{
    for (size_t i = first_after(s, within.from); i < s->count && s->list[i].from < within.to; i++) {
        spans_add(to, s->list[i].from, s->list[i].to);
    }
}

static void keep_longer(struct span *best, int64_t from, int64_t to)
{
    if (to - from > best->to - best->from) {
        *best = (struct span){.from = from, .to = to};
    }
}

struct span spans_longest(const struct spans *open, const struct spans *shut, struct span within)
{
    struct span best = {.from = within.from, .to = within.from};
    for (size_t i = first_after(open, within.from); i < open->count; i++) {
        const struct span *o = &open->list[i];
        int64_t from = o->from > within.from ? o->from : within.from;
        int64_t end = o->to < within.to ? o->to : within.to;
        for (size_t k = first_after(shut, from); from < end && k < shut->count; k++) {
            if (shut->list[k].from >= end) {
                break;
            }
            keep_longer(&best, from, shut->list[k].from);
            from = shut->list[k].to;
        }
        keep_longer(&best, from, end);
        if (o->from >= within.to) {
            break;
        }
    }
    return best;
}
