/* SPDX-License-Identifier: Apache-2.0
 *
 * Counts the hints before a pass of the feed: for each group that wants a count, over all sets in
 * which its hints may lie. */
#ifndef CLAIMD_SCHEDULER_FEED_COUNT_H
#define CLAIMD_SCHEDULER_FEED_COUNT_H

#include "hints/hints.h"
#include "model/feed.h"
#include "model/feed_served.h"

struct feed_count;

enum feed_count_end {
    FEED_COUNT_NONE, /* nothing to count */
    FEED_COUNT_DONE,
    FEED_COUNT_FAILED
};

typedef void feed_count_cb(void *ctx, enum feed_count_end end);

struct feed_count_options {
    struct hints *hints; /* borrowed, like the next two */
    struct feed *feed;
    const struct feed_served *served;
    int64_t dry_every_us; /* see feed_group_counted() */
    feed_count_cb *done;
    void *ctx;
};

enum status feed_count_open(const struct feed_count_options *options, struct feed_count **ret,
                            struct err *err) MUST_USE;
void feed_count_close(struct feed_count *c); /* accepts NULL; no reply may be in flight */

/* Begins to count. DONE: counting has begun, and `done` is called once, never from inside this
 * call. Otherwise `done` is not called. */
enum feed_count_end feed_count_begin(struct feed_count *all);

/* True if the last count found fewer hints in some group than the count before it. */
bool feed_count_was_less(const struct feed_count *all);

#endif
