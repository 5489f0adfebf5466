/* SPDX-License-Identifier: Apache-2.0
 *
 * Stores the status report of this scheduler in PostgreSQL every 2 s, for observers (claimctl
 * doctor): whether it leads, whether it feeds, how many lock nodes have a vote, how PostgreSQL's
 * clock behaves. Nothing else depends on it. The reply also reveals if the cluster has other lock
 * nodes by now, which ends the process (lock.N8). */
#ifndef CLAIMD_SCHEDULER_REPORT_H
#define CLAIMD_SCHEDULER_REPORT_H

#include "config/config.h"
#include "scheduler/feeder.h"
#include "scheduler/lead.h"
#include "store/pg/pg.h"

#include <uv.h>

struct report;

struct report_options {
    uv_loop_t *loop;
    struct pg *pg; /* borrowed, like all below */
    const struct lead *lead;
    const struct feeder *feeder;
    const struct config *config;
    const char *fingerprint;
    const struct err *last_error;      /* from PostgreSQL */
    void (*on_other_nodes)(void *ctx); /* the reason has been logged */
    void *ctx;
};

enum status report_open(const struct report_options *options, struct report **ret,
                        struct err *err) MUST_USE;
/* Reports at once: leading has begun or ended. Accepts NULL. */
void report_now(struct report *r);
/* Deletes the row if PostgreSQL is reachable. Call it before pg_close() and lead_close(). Accepts
 * NULL. */
void report_close(struct report *r);

/* Bounds of a clock's offset from BOOTTIME: it was read at some point between our request and the
 * answer. Pure. */
struct report_clock {
    int64_t low_us;
    int64_t high_us;
    bool is_known;
};
/* Takes one reading. Returns by how much the clock jumped since the last one, 0 for less than a
 * second: slewing and drift are no jumps. */
int64_t report_clock_step(struct report_clock *c, int64_t clock_us, int64_t asked_us,
                          int64_t answered_us);

#endif
