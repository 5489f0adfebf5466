/* SPDX-License-Identifier: Apache-2.0
 *
 * The part of the load whose jobs have to do with each other: exclusive keys, a queue with places,
 * unique keys, batches with a follow-up, jobs after jobs; and what is done to them by claimd's own
 * functions: edits, cancels, retries of dead ones. Its random choices are a stream of their own. */
#ifndef CLAIMD_TESTS_CHAOS_TIES_H
#define CLAIMD_TESTS_CHAOS_TIES_H

#include "base/rand.h"
#include "chaos/world.h"

#define TIES_QUEUE "chaos_few" /* so many of it run at a time: */
#define TIES_PLACES 3
#define TIES_KEY "several" /* and of this key; other keys have one place */
#define TIES_KEY_PLACES 2
/* So many of each key of this pattern, of which jobs have one as the second key. */
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
    int64_t next_v; /* of args; an edit has a newer one than all before it */
    int64_t recent[TIES_RECENT_MAX];
    size_t recent_count;
};

/* Limits, and the statements that need a function. */
enum status ties_prepare(struct session *sql, struct err *err) MUST_USE;

/* All are borrowed for as long as it is used. */
void ties_init(struct ties *t, const struct world *w, struct journal *acked, struct session *sql,
               const char *ledger);
/* Now and then one thing more. `may_put`: also new jobs. */
void ties_tick(struct ties *t, bool may_put);

#endif
