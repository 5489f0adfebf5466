/* SPDX-License-Identifier: Apache-2.0
 *
 * Feeds due jobs to the hints while this scheduler leads: one pass at a time (count the hints,
 * read, push), as model/feed plans it, and beside it the full passes. A pass that fails anywhere
 * changes nothing and is repeated with growing delay: pushing twice adds nothing. */
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
    struct pg *pg; /* borrowed, like hints */
    struct hints *hints;
    const char *conninfo; /* borrowed: for the full passes' own connection */
    int64_t timeout_us;   /* for connecting it */
    struct feed_limits limits;
    int64_t every_us; /* one tick: 1 s, scaled */
    int64_t full_pass_us;
    struct metric *pass_seconds; /* may be NULL */
};

enum status feeder_open(const struct feeder_options *options, struct feeder **ret,
                        struct err *err) MUST_USE;
void feeder_close(struct feeder *f); /* accepts NULL; no reply may arrive afterwards */

/* Begins to feed with the first cluster poll after leading has begun, or once a read from the
 * previous term has ended. A poll reports where rows may have appeared behind the cursors; it also
 * triggers the check for sets that ran dry. */
extern const struct service feeder_service;

/* Reports a NOTIFY: there may be new rows. */
void feeder_wake(struct feeder *f);
/* Requests a full pass: rows may have appeared behind the cursors at an unknown time. */
void feeder_full_pass(struct feeder *f);
/* Forgets what was counted and fed, and requests a full pass: a hint node was lost. */
void feeder_reset(struct feeder *f);
/* Does the same as feeder_reset(), and tries failed passes again at once: a new session began or a
 * hint node is up. */
void feeder_up(struct feeder *f);

/* Takes over the table of served kinds; if queues are now routed differently, requests a full
 * pass. */
void feeder_serve(struct feeder *f, struct feed_served *served);

/* Finds the set that a job's hint belongs to; false: no worker serves its kind. */
bool feeder_route(const struct feeder *f, const char *queue, const char *kind,
                  struct hint *ret_hint);

struct feeder_counters {
    uint64_t passes;
    uint64_t fed; /* hints pushed, including repeated ones */
    uint64_t added;
    int64_t tried_us; /* BOOTTIME when the last pass began, whatever its result */
    int64_t ended_us; /* BOOTTIME when the last successful pass ended */
};
const struct feeder_counters *feeder_counters(const struct feeder *f);
const struct full_pass_counters *feeder_full_passes(const struct feeder *f);
size_t feeder_lane_count(const struct feeder *f);

/* All known lanes, including those that laps find. */
struct feeder_lanes {
    int64_t lanes;
    const char *lap_queue; /* the queue with the longest laps; "" = none is walked in laps */
    int64_t lap_us; /* duration of its longest lap, counting the current one if it is longer */
};
struct feeder_lanes feeder_lanes(const struct feeder *f);

#endif
