/* SPDX-License-Identifier: Apache-2.0
 *
 * Sets of kinds as plugins announce them: what one runner serves, and what all of a worker's
 * runners do. Pure; each set owns its texts. */
#ifndef CLAIMD_WORKER_KIND_SET_H
#define CLAIMD_WORKER_KIND_SET_H

#include "store/worker_store.h"

#define KIND_SET_MAX 256

/* Zero value = empty, and nobody has filled it. May be moved by assignment. */
struct kind_set {
    struct worker_kind *list;
    const char **names;
    size_t count;
    char *block; /* owns all of it; not NULL once it was filled */
};

/* Copies, in this order; those beyond KIND_SET_MAX are left out. NOMEM: *ret is untouched. */
enum status kind_set_fill(struct kind_set *ret, const struct worker_kind *const *kinds,
                          size_t count, struct err *err) MUST_USE;
void kind_set_release(struct kind_set *set);

/* NULL when it isn't there. */
const struct worker_kind *kind_set_find(const struct kind_set *set, const char *name);

/* The same kinds of the same plugins, versions and numbers, in whatever order. */
bool kind_set_equal(const struct kind_set *a, const struct kind_set *b);
bool kind_equal(const struct worker_kind *a, const struct worker_kind *b);

/* What all of them have, as the first one has it. At least one. NOMEM. */
enum status kind_set_common(struct kind_set *ret, const struct kind_set *const *sets, size_t count,
                            struct err *err) MUST_USE;

/* Has `set` all that `other` has, no older and no different? */
bool kind_set_covers(const struct kind_set *set, const struct kind_set *other);

#endif
