/* SPDX-License-Identifier: Apache-2.0
 *
 * The sets to which a popper listens, with a reference count: a blocked pop still needs the sets
 * with which it was sent when the popper already listens to others. Private to hints/. */
#ifndef CLAIMD_HINTS_SETS_H
#define CLAIMD_HINTS_SETS_H

#include "base/buf.h"
#include "hints/hints.h"
#include "model/hint.h"
#include "redis/redis.h"

struct hints_sets {
    int references;
    char sleeper[HINTS_SLEEPER_SIZE]; /* the popper's name when the sets were made */
    char wake_key[HINT_KEY_MAX];      /* its key, on which the blocked pop waits */
    size_t wake_key_len;
    size_t count;
    struct hints_set *names;
    char *key_bytes;
    struct redis_arg *all_keys; /* the key of our own set, followed by: */
    struct redis_arg *keys;     /* all keys twice in a row, so that any rotation is one slice */
    struct buf shares;          /* ARGV[3] of hints_pop_script; empty = no queue has a weight */
};

/* Makes sets with one reference. LIMIT above HINTS_SETS_MAX, NOMEM. */
enum status hints_sets_new(const char *prefix, const char *sleeper, const struct hints_set *list,
                           size_t count, struct hints_sets **ret_sets, struct err *err) MUST_USE;
struct hints_sets *hints_sets_share(struct hints_sets *sets);
void hints_sets_drop(struct hints_sets *sets); /* accepts NULL */

/* Returns the set with this key, or NULL. */
const struct hints_set *hints_sets_find(const struct hints_sets *sets, const char *key, size_t len);

/* True if each set of `part` is in `whole`. A set may count as missing if `whole` has it in another
 * order. */
bool hints_sets_are_within(const struct hints_sets *part, const struct hints_sets *whole);

/* ---- pop_script.c ---- */

/* KEYS: the popper's own set (hints/wake.h), then sets of hints. ARGV[1]: the maximum number of
 * ids. Takes the ids with the lowest scores of all sets of hints together, and up to 10 members of
 * its own set.
 *
 * If any queue has a weight, ARGV[3] gives "weight:sets" for each queue, in the order of KEYS: in
 * "9:2,1:2" the first two sets of hints belong to the first queue. The wanted number is divided by
 * weight among the queues that have content, and the lowest scores of each queue are taken. ARGV[2]
 * is a number in [0, 2^32) that decides which queue gets the remainder of an uneven division; over
 * many calls these numbers must be evenly spread.
 *
 * Returns a list of runs {index of the set in KEYS, score of the run's first id, {members}},
 * ordered by that score; a run belongs to one set and one priority. Members come without their
 * scores: formatting those would cost more than everything else. */
extern const struct redis_script hints_pop_script;

#endif
