/* SPDX-License-Identifier: Apache-2.0 */
#include "base/nearest.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define WORD_MAX 79

static size_t smallest(size_t a, size_t b, size_t c)
{
    size_t least = a < b ? a : b;
    return least < c ? least : c;
}

/* Computes the edits from a to b (optimal string alignment); only the last three rows are kept. */
size_t nearest_distance(const char *a, const char *b)
{
    size_t a_len = strlen(a);
    size_t b_len = strlen(b);
    if (a_len > WORD_MAX || b_len > WORD_MAX) {
        return SIZE_MAX;
    }
    size_t rows[3][WORD_MAX + 1];
    for (size_t k = 0; k <= b_len; k++) {
        rows[0][k] = k;
    }
    for (size_t i = 1; i <= a_len; i++) {
        size_t *now = rows[i % 3];
        const size_t *before = rows[(i + 2) % 3];
        const size_t *second = rows[(i + 1) % 3];
        now[0] = i;
        for (size_t k = 1; k <= b_len; k++) {
            size_t change = before[k - 1] + (a[i - 1] != b[k - 1]);
            now[k] = smallest(before[k] + 1, now[k - 1] + 1, change);
            bool is_swap = i > 1 && k > 1 && a[i - 1] == b[k - 2] && a[i - 2] == b[k - 1];
            now[k] = is_swap ? smallest(now[k], second[k - 2] + 1, now[k]) : now[k];
        }
    }
    return rows[a_len % 3][b_len];
}

void nearest_try(struct nearest *n, const char *candidate)
{
    size_t wanted_len = strlen(n->wanted);
    size_t len = strlen(candidate);
    size_t allowed = len < 6 ? 1 + (len > 3) : len / 3;
    bool is_start = wanted_len >= 2 && strncmp(candidate, n->wanted, wanted_len) == 0;
    size_t edits = is_start ? 1 : nearest_distance(n->wanted, candidate);
    if (edits <= allowed && (n->found == NULL || edits < n->distance)) {
        n->found = candidate;
        n->distance = edits;
    }
}

const char *nearest_hint(const struct nearest *n, char storage[NEAREST_HINT_MAX])
{
    int len = n->found == NULL
                  ? 0
                  : snprintf(storage, NEAREST_HINT_MAX, "; did you mean '%s'?", n->found);
    return len > 0 && len < NEAREST_HINT_MAX ? storage : "";
}
