/* SPDX-License-Identifier: Apache-2.0
 *
 * Lists of time spans [from, to), sorted by their beginnings once spans_sort() was called. */
#ifndef CHECK_SPANS_H
#define CHECK_SPANS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct span {
    int64_t from;
    int64_t to;
};

/* The zero value is an empty list. */
struct spans {
    struct span *list;
    size_t count;
    size_t room;
};

void spans_add(struct spans *s, int64_t from, int64_t to); /* ignores an empty span */
void spans_sort(struct spans *s);                          /* also joins spans that touch */
void spans_free(struct spans *s);

/* Adds the spans of a sorted list that overlap `within` to `to`. */
void spans_add_within(struct spans *to, const struct spans *s, struct span within);

/* Returns the longest part of `open` that is in `within` and in none of `shut`; both are sorted. */
struct span spans_longest(const struct spans *open, const struct spans *shut, struct span within);

#endif
