/* SPDX-License-Identifier: Apache-2.0
 *
 * Feeds due jobs to the hints while this scheduler leads: one look at a time (count what the hints
 * hold, read, push), as model/feed plans it. A look that fails anywhere changes nothing and is
 * repeated: twice adds nothing. */
#ifndef CLAIMD_SCHEDULER_FEEDER_H
#define CLAIMD_SCHEDULER_FEEDER_H

#include "hints/hints.h"
#include "metrics/metrics.h"
#include "model/feed.h"
#include "model/feed_served.h"
#include "store/pg.h"

struct feeder;

struct feeder_options {
    uv_loop_t *loop;
    struct pg *pg; /* borrowed, as is hints */
    struct hints *hints;
    struct feed_limits limits;
    int64_t every_us;            /* "each second" */
    struct metric *pass_seconds; /* may be NULL */
};

enum status feeder_open(const struct feeder_options *options, struct feeder **ret,
                        struct err *err) MUST_USE;
void feeder_close(struct feeder *f); /* accepts NULL; replies under way must not come any more */

/* Leading begins with a first tick: `pg_us` is PostgreSQL's time. False: a look of the last time is
 * still under way, try again. Ends at once. */
bool feeder_start(struct feeder *f, int64_t pg_us);
void feeder_stop(struct feeder *f);
bool feeder_is_started(const struct feeder *f);
struct feed *feeder_feed(struct feeder *f); /* lanes, to rewind them */

/* From the next pass on. */
void feeder_set_limits(struct feeder *f, int look_ahead, int page_rows);

/* Something may be there: a NOTIFY, a rewind. */
void feeder_wake(struct feeder *f);
/* A new session, a new hint node: what was counted or asked for is forgotten, all lanes rewind. */
void feeder_reset(struct feeder *f);

/* Takes the table; queues that are routed differently now are rewound. */
void feeder_serve(struct feeder *f, struct feed_served *served);
const struct feed_served *feeder_served(const struct feeder *f);

/* Each second: notices sets that ran dry, saves marks now and then. */
void feeder_tick(struct feeder *f);

/* The set that a job's hint belongs to; false: nobody serves its kind. */
bool feeder_route(const struct feeder *f, const char *queue, const char *kind,
                  struct hint *ret_hint);

struct feeder_counters {
    uint64_t passes;
    uint64_t fed; /* pushed, repetitions included */
    uint64_t added;
    int64_t ended_us; /* when a pass ended well */
};
const struct feeder_counters *feeder_counters(const struct feeder *f);

#endif
