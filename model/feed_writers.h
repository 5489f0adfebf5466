/* SPDX-License-Identifier: Apache-2.0
 *
 * Long writing transactions, whose rows may commit far behind the cursors. The module gets the ids
 * of those in progress each second, and says how far to rewind when one that was seen has ended. (A
 * snapshot would not do: its xmax is the last completed id + 1, so it lacks a writer if no later
 * transaction has completed.) Pure. Times are PostgreSQL's. */
#ifndef CLAIMD_MODEL_FEED_WRITERS_H
#define CLAIMD_MODEL_FEED_WRITERS_H

#include "base/err.h"

#include <stdint.h>

struct feed_writer {
    uint64_t xid;
    int64_t since_us; /* none of its rows is older; 0 = it began before the first list */
    bool is_seen;     /* it is in the list being read */
};

struct feed_writers {
    struct feed_writer *list;
    size_t count;
    size_t cap;
    int64_t last_us; /* time of the last list; 0 = none yet */
};

void feed_writers_release(struct feed_writers *w); /* all zeros is a valid empty list */
/* call it for a new leader, which starts from scratch */
void feed_writers_reset(struct feed_writers *w);

/* Takes a list of transactions, `text`: "xid,xid,…", read at `pg_us`. *ret_rewind_us: where cursors
 * must go back to, INT64_MAX = nowhere. If two lists are more than `gap_us` apart, everything
 * written in between may be behind the cursors. If PostgreSQL's clock stepped back, so may
 * everything written from then on. INVALID: not a list. */
enum status feed_writers_list(struct feed_writers *w, const char *text, int64_t pg_us,
                              int64_t gap_us, int64_t *ret_rewind_us, struct err *err) MUST_USE;

#endif
