/* SPDX-License-Identifier: Apache-2.0
 *
 * Feeds due jobs to the hints while this scheduler leads: one pass at a time (count what the hints
 * hold, read, push), as model/feed plans it, and beside it the full passes. A pass that fails
 * anywhere changes nothing and is repeated, ever more slowly: twice adds nothing. */
#ifndef CLAIMD_SCHEDULER_FEEDER_H
#define CLAIMD_SCHEDULER_FEEDER_H

#include "hints/hints.h"
#include "metrics/metrics.h"
#include "model/feed.h"
#include "model/feed_served.h"
#include "scheduler/full_pass.h"
#include "scheduler/services.h"
#include "store/pg/pg.h"

struct feeder;

struct feeder_options {
    uv_loop_t *loop;
    struct pg *pg; /* borrowed, as is hints */
    struct hints *hints;
    const char *conninfo; /* borrowed: of the full passes' own connection … */
    int64_t timeout_us;   /* … which may take so long to be made */
    struct feed_limits limits;
    int64_t every_us; /* "each second" */
    int64_t full_pass_us;
    struct metric *pass_seconds; /* may be NULL */
};

enum status feeder_open(const struct feeder_options *options, struct feeder **ret,
                        struct err *err) MUST_USE;
void feeder_close(struct feeder *f); /* accepts NULL; replies under way must not come any more */

/* Leads: begins to feed with the first roll, or once a read of the last time is over. A roll says
 * where rows may have come behind the cursors; sets that ran dry are noticed then, too. */
extern const struct service feeder_service;

/* Something may be there: a NOTIFY. */
void feeder_wake(struct feeder *f);
/* Rows may have appeared behind the cursors at an unknown time. */
void feeder_full_pass(struct feeder *f);
/* A hint node went: what was counted or fed is forgotten, and a full pass is made. */
void feeder_reset(struct feeder *f);
/* A new session, a hint node that is up: as above, and passes that failed are tried at once. */
void feeder_up(struct feeder *f);

/* Takes the table; where queues are routed differently now, a full pass is made. */
void feeder_serve(struct feeder *f, struct feed_served *served);

/* The set that a job's hint belongs to; false: nobody serves its kind. */
bool feeder_route(const struct feeder *f, const char *queue, const char *kind,
                  struct hint *ret_hint);

struct feeder_counters {
    uint64_t passes;
    uint64_t fed; /* pushed, repetitions included */
    uint64_t added;
    int64_t tried_us; /* BOOTTIME when the last pass was begun, whatever came of it … */
    int64_t ended_us; /* … and when one ended well */
};
const struct feeder_counters *feeder_counters(const struct feeder *f);
const struct full_pass_counters *feeder_full_passes(const struct feeder *f);
size_t feeder_lane_count(const struct feeder *f);

/* All lanes that are known, those that laps find included. */
struct feeder_lanes {
    int64_t lanes;
    const char *lap_queue; /* the queue with the longest laps; "" = none is walked in laps */
    int64_t lap_us;        /* … and how long one takes, the present one if that is longer */
};
struct feeder_lanes feeder_lanes(const struct feeder *f);

#endif
