/* SPDX-License-Identifier: Apache-2.0
 *
 * Looks at the cluster each second: who works and what they serve, who is silent, which
 * transactions write for long. Tells the feeder where to go back to, and
 * the rescuer who may be dead. A standby watches too, so that it knows all this when it becomes the
 * leader. */
#ifndef CLAIMD_SCHEDULER_WATCH_H
#define CLAIMD_SCHEDULER_WATCH_H

#include "scheduler/feeder.h"
#include "scheduler/rescuer.h"

struct watch;

struct watch_options {
    uv_loop_t *loop;
    struct pg *pg; /* borrowed, as the next two */
    struct feeder *feeder;
    struct rescuer *rescuer;
    int64_t every_us; /* "each second" */
    int64_t full_pass_us;
    int64_t stale_us; /* of beats */
    int64_t gap_us;   /* the look-behind: commits that are later are found by going back */
    int drift_ppm;
};

enum status watch_open(const struct watch_options *options, struct watch **ret,
                       struct err *err) MUST_USE;
void watch_close(struct watch *w); /* accepts NULL; replies under way must not come any more */

void watch_lead(struct watch *w, bool is_leader);

void watch_set_full_pass(struct watch *w, int64_t full_pass_us);

/* PostgreSQL is there again. */
void watch_on_up(struct watch *w);

#endif
