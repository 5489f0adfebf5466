/* SPDX-License-Identifier: Apache-2.0
 *
 * Lists of spans of time: [from, to), by their beginnings once spans_sort() was called. */
#ifndef CHECK_SPANS_H
#define CHECK_SPANS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct span {
    int64_t from;
    int64_t to;
};

/* Zero value = none. */
struct spans {
    struct span *list;
    size_t count;
    size_t room;
};

void spans_add(struct spans *s, int64_t from, int64_t to); /* nothing if it is empty */
void spans_sort(struct spans *s);                          /* and joins those that touch */
void spans_free(struct spans *s);

/* Of a sorted list: those that overlap `within` are added to `to`. */
void spans_add_within(struct spans *to, const struct spans *s, struct span within);

/* The longest span of `open` that lies in `within` and in none of `shut`; both are sorted. */
struct span spans_longest(const struct spans *open, const struct spans *shut, struct span within);

#endif
