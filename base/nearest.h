/* SPDX-License-Identifier: Apache-2.0
 *
 * Suggests the known word that a user may have meant. */
#ifndef CLAIMD_BASE_NEAREST_H
#define CLAIMD_BASE_NEAREST_H

#include <stddef.h>

struct nearest {
    const char *wanted;
    const char *found; /* the best so far; NULL = none is near enough */
    size_t distance;
};

/* Considers one candidate. It is near enough if `wanted` is a prefix of it, or if at most a third
 * of its letters (one or two in short words) are inserted, omitted, changed or swapped. Words may
 * have up to 79 bytes. */
void nearest_try(struct nearest *n, const char *candidate);

/* Returns "; did you mean 'priority'?" to append to an error message, or "" if no word was near
 * enough. */
#define NEAREST_HINT_MAX 96
const char *nearest_hint(const struct nearest *n, char storage[NEAREST_HINT_MAX]);

/* Returns how many letters are inserted, omitted, changed or swapped with their neighbour; SIZE_MAX
 * if a word is too long. */
size_t nearest_distance(const char *a, const char *b);

#endif
