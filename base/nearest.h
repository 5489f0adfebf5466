/* SPDX-License-Identifier: Apache-2.0
 *
 * Which known word did somebody mean? */
#ifndef CLAIMD_BASE_NEAREST_H
#define CLAIMD_BASE_NEAREST_H

#include <stddef.h>

struct nearest {
    const char *wanted;
    const char *found; /* the best so far; NULL = none is near enough */
    size_t distance;
};

/* Looks at one candidate. Near enough: `wanted` begins it, or a third of its letters (of short
 * words one or two) are inserted, left out, changed or swapped. Words up to 79 bytes. */
void nearest_try(struct nearest *n, const char *candidate);

/* "; did you mean 'priority'?" for the end of a refusal; "" if none was near enough. */
#define NEAREST_HINT_MAX 96
const char *nearest_hint(const struct nearest *n, char storage[NEAREST_HINT_MAX]);

/* How many letters are inserted, left out, changed or swapped with the next one. SIZE_MAX: a word
 * is too long. */
size_t nearest_distance(const char *a, const char *b);

#endif
