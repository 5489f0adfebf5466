/* SPDX-License-Identifier: Apache-2.0
 *
 * Counts what the hints hold, before a pass of the feed: of each group that wants it, over all sets
 * that its hints may lie in. */
#ifndef CLAIMD_SCHEDULER_FEED_COUNT_H
#define CLAIMD_SCHEDULER_FEED_COUNT_H

#include "hints/hints.h"
#include "model/feed.h"
#include "model/feed_served.h"

struct feed_count;

enum feed_count_end {
    FEED_COUNT_NONE, /* there is nothing to count */
    FEED_COUNT_DONE,
    FEED_COUNT_FAILED
};

typedef void feed_count_cb(void *ctx, enum feed_count_end end);

struct feed_count_options {
    struct hints *hints; /* borrowed, as the next two */
    struct feed *feed;
    const struct feed_served *served;
    int64_t dry_every_us; /* see feed_group_counted() */
    feed_count_cb *done;
    void *ctx;
};

enum status feed_count_open(const struct feed_count_options *options, struct feed_count **ret,
                            struct err *err) MUST_USE;
void feed_count_close(struct feed_count *c); /* accepts NULL; no reply may be under way */

/* DONE: it was begun, and `done` comes once, never from inside. Otherwise nothing comes. */
enum feed_count_end feed_count_begin(struct feed_count *all);

/* The last time there were fewer hints in some group than at its count before. */
bool feed_count_was_less(const struct feed_count *all);

#endif
