/* SPDX-License-Identifier: Apache-2.0
 *
 * What wait.c (the life of a waiter, its tries) and wait_line.c (waiters for the same keys, and
 * what wakes them) share. */
#ifndef CLAIMD_REDLOCK_WAIT_H
#define CLAIMD_REDLOCK_WAIT_H

#include "redlock/core.h"
#include "redlock/retry.h"
#include "redlock/wake.h"

#define LINE_BUCKETS 64

/* Waiters for the same keys, the first one at the head. */
struct wait_line {
    struct wait_line *next; /* in its bucket */
    size_t bucket;
    struct redlock_wait *first;
    struct redlock_wait *last;
    enum redlock_result result; /* of the last try; HELD_BY_OTHER before any */

    /* One per key, for the refused ones; NULL = none yet. */
    struct wake_subscription **subscriptions;
    size_t subscription_count;
    bool is_asleep;      /* the last try was refused by one other owner */
    bool is_pausing;     /* the last try was split or the like */
    bool was_covered;    /* when that try began, for each key refused to it */
    bool is_woken;       /* a release causes the next try */
    unsigned few_in_row; /* vain tries in a row after a release reported by less than a quorum */
};

struct redlock_wait {
    struct redlock_async *lock;
    struct redlock_wait *prev; /* all that are not over */
    struct redlock_wait *next; /* … or those to be reported */
    struct wait_line *line;    /* NULL = it is in no line: it doesn't wait, or is over */
    struct redlock_wait *prev_in_line;
    struct redlock_wait *next_in_line;
    struct redlock_async_request request; /* its keys and their bytes lie behind this */
    struct redlock_wait_options options;
    enum redlock_result result;
    struct redlock_batch *batch; /* of the last try, referenced; NULL = none */
    int tries;
    unsigned failures; /* for the pauses */
    int64_t at_us;     /* of the next try; INT64_MAX = none planned */
    bool is_trying;
    bool is_over;
    bool wants_holder_ttl; /* the caller does */
    bool is_reported;      /* but a try is still under way; freed when that ends */
};

struct waits {
    struct redlock_wait *all; /* the latest first */
    struct redlock_wait *over;
    struct redlock_wait **over_end;
    struct wait_line *lines[LINE_BUCKETS];
    bool is_any_due; /* at_us is now */
};

/* ---- wait.c ---- */
void wait_plan(struct redlock_wait *w, int64_t at_us);
void wait_be_due(struct redlock_wait *w); /* tries in this turn of the loop */
struct retry_terms wait_retry_terms(const struct redlock_wait *w);

/* ---- wait_line.c ---- */
bool line_join(struct redlock_wait *w); /* false = no memory */
/* If it was the first, the next one tries. Does nothing if it is in no line. */
void line_leave(struct redlock_wait *w);
/* Releases heard of from now on count for this try. */
void line_starts_try(struct redlock_wait *w);
/* Was it refused because of one owner per key, not because of several, none of whom may get it? */
bool line_may_sleep(const struct redlock_wait *w);
/* Another owner has it: plans the next try for its release, or for the end of its lease. */
void line_fall_asleep(struct redlock_wait *w, int64_t now_us);
/* The next try is planned; a release may bring it forward. */
void line_pauses(struct redlock_wait *w);

#endif
