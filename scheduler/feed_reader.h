/* SPDX-License-Identifier: Apache-2.0
 *
 * One read of the feed: asks PostgreSQL for the planned ranges, pushes the rows that are available
 * and served, and only then reports to the feed how far each range was read. A read that fails
 * anywhere changes nothing and is repeated: pushing twice adds nothing. At most one is in flight.
 * Lanes found by a read are added to the feed. A pass of the feed is one read, a full pass is
 * many. */
#ifndef CLAIMD_SCHEDULER_FEED_READER_H
#define CLAIMD_SCHEDULER_FEED_READER_H

#include "hints/hints.h"
#include "model/feed.h"
#include "model/feed_served.h"
#include "store/pg/pg.h"

struct feed_reader;

enum feed_read_end {
    FEED_READ_DONE,
    FEED_READ_CUT_OFF, /* PostgreSQL cancelled it: too many index entries to walk */
    FEED_READ_FAILED
};

struct feed_read_result {
    enum feed_read_end end;
    const char *why;      /* why it did not succeed; borrowed */
    size_t pushed;        /* hints pushed, including repeated ones */
    int64_t added;        /* hints that were not in Redis before */
    size_t lanes;         /* lanes found in gaps, including known ones */
    struct feed_gap rest; /* where to continue the search if `lanes` is FEED_READ_LANES_MAX */
};

typedef void feed_read_cb(void *ctx, const struct feed_read_result *result);

struct feed_reader_options {
    struct hints *hints; /* borrowed, like the next two */
    struct feed *feed;
    const struct feed_served *served;
    bool remembers; /* the look-behind leaves out what it pushes */
    feed_read_cb *done;
    void *ctx;
};

enum status feed_reader_open(const struct feed_reader_options *options, struct feed_reader **ret,
                             struct err *err) MUST_USE;
void feed_reader_close(struct feed_reader *r); /* accepts NULL; no read may be in flight */

/* Returns the arrays that describe the next read, with room for FEED_RANGES_MAX ranges and
 * FEED_GAPS_MAX gaps. The caller fills them before feed_reader_begin(). */
struct feed_range *feed_reader_ranges(struct feed_reader *r);
struct feed_gap *feed_reader_gaps(struct feed_reader *r);

/* Begins a read. `done` is called once, never from inside this call. If the statement can't be
 * sent, the ranges have failed and `done` is not called. timeout_us: 0 = the connection's. */
enum status feed_reader_begin(struct feed_reader *r, struct pg *pg, size_t range_count,
                              size_t gap_count, int64_t timeout_us, struct err *err) MUST_USE;

/* Returns PostgreSQL's time according to the last read; before the first read, according to
 * feed_reader_set_clock(). */
int64_t feed_reader_pg_us(const struct feed_reader *r);
void feed_reader_set_clock(struct feed_reader *r, int64_t pg_us);

/* Finds the set that a job's hint belongs to; false: no worker serves its kind. */
bool feed_reader_route(const struct feed_served *served, const char *queue, const char *kind,
                       struct hint *ret_hint);

#endif
