/* SPDX-License-Identifier: Apache-2.0
 *
 * The full pass of the feed: it discovers every lane again, reads each from its beginning up to its
 * cursor, and pushes each available row on the way (which adds nothing if its hint is still there).
 * So a due row waits no longer than the interval between two full passes and the duration of one,
 * whatever put it behind the cursor (INTERFACES rule 13). Pure; BOOTTIME µs.
 *
 * A full pass reads at its own pace, beside the passes of the feed: index entries of dead rows that
 * a long transaction keeps from being cleaned up cost time at each walk, and young rows must not
 * wait for that. */
#ifndef CLAIMD_MODEL_FEED_FULL_H
#define CLAIMD_MODEL_FEED_FULL_H

#include "model/feed.h"

/* Begins a full pass: every lane will be read from its beginning. */
void feed_full_begin(struct feed *f);

/* Plans the next ranges, at most `max`, together about `rows` rows. Returns how many; 0 = the full
 * pass is complete. */
size_t feed_full_plan(struct feed *f, int rows, struct feed_range *ret_ranges, size_t max);

/* When to run full passes: at an interval, and soon after a request, but limited by their cost. */
struct feed_full_pace {
    int64_t every_us;  /* INTERFACES "full pass" */
    int64_t begun_us;  /* start of the full pass in progress, or of the last one */
    int64_t ended_us;  /* 0 = none has ended yet */
    int64_t took_us;   /* duration of the last one */
    int64_t wanted_us; /* when one was requested, since the last one began; 0 = not */
    int64_t again_us;  /* after a failure: not before this time; 0 = it was complete */
    int failures;      /* in a row */
};

void feed_full_want(struct feed_full_pace *p, int64_t now_us);
void feed_full_begun(struct feed_full_pace *p, int64_t now_us);
void feed_full_ended(struct feed_full_pace *p, int64_t now_us, bool is_complete);

/* Returns the time from the end of a full pass that took `took_us` to the beginning of the next
 * one. */
int64_t feed_full_distance_us(int64_t every_us, int64_t took_us);

/* Returns when the next one may begin: a requested one after a rest of twice the last one's
 * duration, others so that they take at most 5 % of the time. */
int64_t feed_full_next_us(const struct feed_full_pace *p);

#endif
