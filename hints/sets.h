/* SPDX-License-Identifier: Apache-2.0
 *
 * The sets that a popper listens to, with a reference count: a blocked pop still needs the sets
 * that it was sent for when the popper already listens to others. Private to hints/. */
#ifndef CLAIMD_HINTS_SETS_H
#define CLAIMD_HINTS_SETS_H

#include "base/buf.h"
#include "hints/hints.h"
#include "model/hint.h"
#include "redis/redis.h"

struct hints_sets {
    int references;
    char sleeper[HINTS_SLEEPER_SIZE]; /* the popper's name when they were made … */
    char wake_key[HINT_KEY_MAX];      /* … and its key, which the pop that blocks on them has */
    size_t wake_key_len;
    size_t count;
    struct hints_set *names;
    char *key_bytes;
    struct redis_arg *all_keys; /* our own one, then: */
    struct redis_arg *keys;     /* twice in a row: any rotation is one slice */
    struct buf shares;          /* ARGV[3] of hints_pop_script; empty: no queue has a weight */
};

/* With one reference. LIMIT above HINTS_SETS_MAX, NOMEM. */
enum status hints_sets_new(const char *prefix, const char *sleeper, const struct hints_set *list,
                           size_t count, struct hints_sets **ret_sets, struct err *err) MUST_USE;
struct hints_sets *hints_sets_share(struct hints_sets *sets);
void hints_sets_drop(struct hints_sets *sets); /* accepts NULL */

/* The set with this key, or NULL. */
const struct hints_set *hints_sets_find(const struct hints_sets *sets, const char *key, size_t len);

/* Each set of `part` is in `whole`. Sets that come in another order there may count as missing. */
bool hints_sets_are_within(const struct hints_sets *part, const struct hints_sets *whole);

/* ---- pop_script.c ---- */

/* KEYS: the popper's own set (hints/wake.h), then sets of hints; ARGV[1]: how many ids at most.
 * Takes the ids with the lowest scores of all sets of hints together, and what is in its own.
 *
 * If any queue has a weight, ARGV[3] says "weight:sets" for each queue, in the order of KEYS: in
 * "9:2,1:2" the first two sets of hints are of the first queue. What is wanted is divided by weight
 * among the queues that have content, and the lowest scores of each queue are taken. ARGV[2] is a
 * number in [0, 2^32) that decides which queue gets what does not divide evenly; over many calls
 * these numbers must be evenly spread.
 *
 * Returns a list of runs {place of the set in KEYS, score of the run's first, {members}}, ordered
 * by that score; a run is of one set and one priority. Members come without their scores:
 * formatting those would cost more than all the rest. */
extern const struct redis_script hints_pop_script;

#endif
