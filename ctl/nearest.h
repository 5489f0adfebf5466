/* SPDX-License-Identifier: Apache-2.0
 *
 * Which known word did somebody mean? */
#ifndef CLAIMD_CTL_NEAREST_H
#define CLAIMD_CTL_NEAREST_H

#include <stddef.h>

struct nearest {
    const char *wanted;
    const char *found; /* the best so far; NULL = none is near enough */
    size_t distance;
};

/* Looks at one candidate. Near enough: `wanted` begins it, or a third of its letters (of short
 * words one or two) are inserted, left out, changed or swapped. Words up to 63 bytes. */
void nearest_try(struct nearest *n, const char *candidate);

#endif
