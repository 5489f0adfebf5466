/* SPDX-License-Identifier: Apache-2.0
 *
 * One look at the queue: reads the ranges that were planned, pushes what is available and served,
 * and only then tells the feed how far each was read. One that fails anywhere changes nothing and
 * is repeated: pushing twice adds nothing. At most one is under way. Lanes that are found on the
 * way are added to the feed. */
#ifndef CLAIMD_SCHEDULER_LOOK_H
#define CLAIMD_SCHEDULER_LOOK_H

#include "hints/hints.h"
#include "model/feed.h"
#include "model/feed_served.h"
#include "store/pg/pg.h"

struct look;

enum look_end {
    LOOK_DONE,
    LOOK_CUT_OFF, /* PostgreSQL cut it off: too many entries to walk */
    LOOK_FAILED
};

struct look_result {
    enum look_end end;
    const char *why;      /* of one that did not end well; borrowed */
    size_t pushed;        /* hints, repetitions included */
    int64_t added;        /* of them, those that were not there */
    size_t lanes;         /* found in gaps, known ones included */
    struct feed_gap rest; /* where finding lanes goes on, if `lanes` is FEED_LOOK_LANES_MAX */
};

typedef void look_done_cb(void *ctx, const struct look_result *result);

struct look_options {
    struct hints *hints; /* borrowed, as the next two */
    struct feed *feed;
    const struct feed_served *served;
    bool remembers; /* what it pushes is left out by the look-behind */
    look_done_cb *done;
    void *ctx;
};

enum status look_open(const struct look_options *options, struct look **ret,
                      struct err *err) MUST_USE;
void look_close(struct look *l); /* accepts NULL; none may be under way */

/* What to look at next: FEED_RANGES_MAX and FEED_GAPS_MAX places, to be filled before it begins. */
struct feed_range *look_ranges(struct look *l);
struct feed_gap *look_gaps(struct look *l);

/* `done` comes once, never from inside. When it can't be sent the ranges have failed, and nothing
 * comes. timeout_us: 0 = the connection's. */
enum status look_begin(struct look *l, struct pg *pg, size_t range_count, size_t gap_count,
                       int64_t timeout_us, struct err *err) MUST_USE;

/* PostgreSQL's time by the last look; before the first one by look_set_clock(). */
int64_t look_pg_us(const struct look *l);
void look_set_clock(struct look *l, int64_t pg_us);

/* The set that a job's hint belongs to; false: nobody serves its kind. */
bool look_route(const struct feed_served *served, const char *queue, const char *kind,
                struct hint *ret_hint);

#endif
