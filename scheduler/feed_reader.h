/* SPDX-License-Identifier: Apache-2.0
 *
 * One read of the feed: asks PostgreSQL for the ranges that were planned, pushes what is available
 * and served, and only then tells the feed how far each was read. One that fails anywhere changes
 * nothing and is repeated: pushing twice adds nothing. At most one is under way. Lanes that are
 * found on the way are added to the feed. A pass of the feed is one read, a full pass many. */
#ifndef CLAIMD_SCHEDULER_FEED_READER_H
#define CLAIMD_SCHEDULER_FEED_READER_H

#include "hints/hints.h"
#include "model/feed.h"
#include "model/feed_served.h"
#include "store/pg/pg.h"

struct feed_reader;

enum feed_read_end {
    FEED_READ_DONE,
    FEED_READ_CUT_OFF, /* PostgreSQL cut it off: too many entries to walk */
    FEED_READ_FAILED
};

struct feed_read_result {
    enum feed_read_end end;
    const char *why;      /* of one that did not end well; borrowed */
    size_t pushed;        /* hints, repetitions included */
    int64_t added;        /* of them, those that were not there */
    size_t lanes;         /* found in gaps, known ones included */
    struct feed_gap rest; /* where finding lanes goes on, if `lanes` is FEED_READ_LANES_MAX */
};

typedef void feed_read_cb(void *ctx, const struct feed_read_result *result);

struct feed_reader_options {
    struct hints *hints; /* borrowed, as the next two */
    struct feed *feed;
    const struct feed_served *served;
    bool remembers; /* what it pushes is left out by the look-behind */
    feed_read_cb *done;
    void *ctx;
};

enum status feed_reader_open(const struct feed_reader_options *options, struct feed_reader **ret,
                             struct err *err) MUST_USE;
void feed_reader_close(struct feed_reader *r); /* accepts NULL; none may be under way */

/* What to read next: FEED_RANGES_MAX and FEED_GAPS_MAX places, to be filled before it begins. */
struct feed_range *feed_reader_ranges(struct feed_reader *r);
struct feed_gap *feed_reader_gaps(struct feed_reader *r);

/* `done` comes once, never from inside. When it can't be sent the ranges have failed, and nothing
 * comes. timeout_us: 0 = the connection's. */
enum status feed_reader_begin(struct feed_reader *r, struct pg *pg, size_t range_count,
                              size_t gap_count, int64_t timeout_us, struct err *err) MUST_USE;

/* PostgreSQL's time by the last read; before the first one by feed_reader_set_clock(). */
int64_t feed_reader_pg_us(const struct feed_reader *r);
void feed_reader_set_clock(struct feed_reader *r, int64_t pg_us);

/* The set that a job's hint belongs to; false: nobody serves its kind. */
bool feed_reader_route(const struct feed_served *served, const char *queue, const char *kind,
                       struct hint *ret_hint);

#endif
