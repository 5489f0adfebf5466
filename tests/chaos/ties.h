/* SPDX-License-Identifier: Apache-2.0
 *
 * The part of the load whose jobs depend on each other: exclusive keys, a queue with places, unique
 * keys, batches with a follow-up, jobs after jobs; and acts on them by claimd's own functions:
 * edits, cancels, retries of dead ones. Its random choices have a stream of their own. */
#ifndef CLAIMD_TESTS_CHAOS_TIES_H
#define CLAIMD_TESTS_CHAOS_TIES_H

#include "base/rand.h"
#include "chaos/world.h"

#define TIES_QUEUE "chaos_few" /* how many of its jobs run at a time: */
#define TIES_PLACES 3
#define TIES_KEY "several" /* likewise for this key; other keys have one place */
#define TIES_KEY_PLACES 2
/* Places of each key of this pattern, which jobs have as their second key. */
#define TIES_PATTERN "customer:*"
#define TIES_CUSTOMERS 2
#define TIES_CUSTOMER_PLACES 3
#define TIES_RECENT_MAX 48

struct ties {
    const struct world *world;
    struct journal *acked;
    struct session *sql;
    const char *ledger;
    struct rand rand;
    int64_t next_n;
    int64_t next_v; /* version of args; an edit has a newer one than all before it */
    int64_t recent[TIES_RECENT_MAX];
    size_t recent_count;
};

/* Sets limits, and creates the functions that some statements need. */
enum status ties_prepare(struct session *sql, struct err *err) MUST_USE;

/* The arguments are borrowed for as long as `t` is used. */
void ties_init(struct ties *t, const struct world *w, struct journal *acked, struct session *sql,
               const char *ledger);
/* Does one more thing now and then. `may_put`: also inserts new jobs. */
void ties_tick(struct ties *t, bool may_put);

#endif
