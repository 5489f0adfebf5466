/* SPDX-License-Identifier: Apache-2.0
 *
 * Sets of kinds as plugins announce them: those that one runner serves, and those that all runners
 * of a worker serve. Pure; each set owns its texts. */
#ifndef CLAIMD_WORKER_MEMBERSHIP_KIND_SET_H
#define CLAIMD_WORKER_MEMBERSHIP_KIND_SET_H

#include "store/worker_store.h"

#define KIND_SET_MAX 256

/* The zero value is an empty set that was never filled. May be moved by assignment. */
struct kind_set {
    struct worker_kind *list;
    const char **names;
    size_t count;
    char *block; /* owns all memory; not NULL once the set was filled */
};

/* Copies the kinds in this order, at most KIND_SET_MAX of them. NOMEM: *ret is untouched. */
enum status kind_set_fill(struct kind_set *ret, const struct worker_kind *const *kinds,
                          size_t count, struct err *err) MUST_USE;
void kind_set_release(struct kind_set *set);

/* Returns NULL if there is no such kind. */
const struct worker_kind *kind_set_find(const struct kind_set *set, const char *name);

/* True if both have the same kinds with the same plugins, versions and settings, in any order. */
bool kind_set_equal(const struct kind_set *a, const struct kind_set *b);
bool kind_equal(const struct worker_kind *a, const struct worker_kind *b);

/* Fills *ret with the kinds that all `count` sets contain (at least one set), as the first set has
 * them. NOMEM. */
enum status kind_set_common(struct kind_set *ret, const struct kind_set *const *sets, size_t count,
                            struct err *err) MUST_USE;

/* True if `set` contains every kind of `other`, with the same plugin, version and settings. */
bool kind_set_covers(const struct kind_set *set, const struct kind_set *other);

#endif
