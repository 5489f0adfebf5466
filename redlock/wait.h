/* SPDX-License-Identifier: Apache-2.0
 *
 * What wait.c (the life of a waiter, its tries) and wait_line.c (who waits for the same keys, and
 * what wakes them) share. */
#ifndef CLAIMD_REDLOCK_WAIT_H
#define CLAIMD_REDLOCK_WAIT_H

#include "redlock/core.h"
#include "redlock/retry.h"
#include "redlock/wake.h"

#define LINE_BUCKETS 64

/* Who waits for the same keys, the first at the head. */
struct wait_line {
    struct wait_line *next; /* in its bucket */
    size_t bucket;
    struct redlock_wait *first;
    struct redlock_wait *last;
    enum redlock_result result; /* of the last try; HELD_BY_OTHER before any */

    struct wake_subscription *
        *subscriptions; /* one per key, those that were refused; NULL = none yet */
    size_t subscription_count;
    bool is_asleep;      /* the last try was refused by one other owner */
    bool is_pausing;     /* the last try was split or the like */
    bool was_covered;    /* when that try began, on each of the keys refused to it */
    bool is_woken;       /* the next try is because of a release */
    unsigned few_in_row; /* tries for releases that less than a quorum told of, for nothing */
};

struct redlock_wait {
    struct redlock_async *lock;
    struct redlock_wait *prev; /* all that are not over */
    struct redlock_wait *next; /* … or those to be reported */
    struct wait_line *line;    /* NULL = it stands in none: it doesn't wait, or is over */
    struct redlock_wait *prev_in_line;
    struct redlock_wait *next_in_line;
    struct redlock_async_request request; /* its keys and their bytes lie behind this */
    struct redlock_wait_options options;
    enum redlock_result result;
    struct redlock_batch *batch; /* of the last try, referred to; NULL = none */
    int tries;
    unsigned failures; /* for the pauses */
    int64_t at_us;     /* of the next try; INT64_MAX = none planned */
    bool is_trying;
    bool is_over;
    bool wants_holder_ttl; /* its owner does */
    bool is_reported;      /* a try is still under way; freed when that ends */
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
/* The next one tries if it was the first. Nothing happens if it stands in none. */
void line_leave(struct redlock_wait *w);
/* What is heard from now on counts for this try. */
void line_starts_try(struct redlock_wait *w);
/* Was it refused by somebody who has it, not by several of whom none may get it? */
bool line_may_sleep(const struct redlock_wait *w);
/* Another holds it: plans the next try for when he lets go, or his time is over. */
void line_fall_asleep(struct redlock_wait *w, int64_t now_us);
/* The next try is planned; may come sooner. */
void line_pauses(struct redlock_wait *w);

#endif
