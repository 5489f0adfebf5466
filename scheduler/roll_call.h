/* SPDX-License-Identifier: Apache-2.0
 *
 * The roll call of the cluster, each second: who works and what they serve, who is silent, which
 * transactions write for long. Tells the feeder where to go back to, and the rescuer who may be
 * dead. A standby calls the roll too, so that it knows all this when it becomes the leader. */
#ifndef CLAIMD_SCHEDULER_ROLL_CALL_H
#define CLAIMD_SCHEDULER_ROLL_CALL_H

#include "scheduler/feeder.h"
#include "scheduler/rescuer.h"

struct roll_call;

struct roll_call_options {
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

enum status roll_call_open(const struct roll_call_options *options, struct roll_call **ret,
                           struct err *err) MUST_USE;
/* Accepts NULL; replies under way must not come any more. */
void roll_call_close(struct roll_call *r);

void roll_call_lead(struct roll_call *r, bool is_leader);

void roll_call_set_full_pass(struct roll_call *r, int64_t full_pass_us);

/* PostgreSQL is there again. */
void roll_call_on_up(struct roll_call *r);

#endif
