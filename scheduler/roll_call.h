/* SPDX-License-Identifier: Apache-2.0
 *
 * The roll call of the cluster, each second: who works and what they serve, who is silent, which
 * transactions write for long. A standby calls the roll too, so that it knows all this when it
 * becomes the leader. */
#ifndef CLAIMD_SCHEDULER_ROLL_CALL_H
#define CLAIMD_SCHEDULER_ROLL_CALL_H

#include "model/feed_served.h"
#include "store/pg/pg.h"

#define ROLL_WORKERS_MAX 4096

struct roll_call;

/* What came of one; the texts are borrowed until the callback returns. */
struct roll {
    int64_t pg_us;             /* PostgreSQL's time */
    struct feed_served served; /* may be taken */
    /* Of a leader: rows from then on may have come behind the cursors; FEED_NEVER_US = none. */
    int64_t rewind_us;
    bool wants_full_pass;    /* … from nobody knows when */
    const char *const *dead; /* workers that are marked dead and not swept yet */
    size_t dead_count;
    const char *const *stale; /* their beats are, and this scheduler could have seen newer ones */
    size_t stale_count;
    bool is_clock_behind; /* … of some beat: PostgreSQL's clock has gone back */
    unsigned work;        /* what there is: of enum feed_tick_work */
    bool is_asked_for;    /* called after a roll_call_now() */
};

typedef void roll_call_cb(void *ctx, struct roll *roll);

struct roll_call_options {
    uv_loop_t *loop;
    struct pg *pg;    /* borrowed */
    int64_t every_us; /* "each second" */
    int64_t stale_us; /* of beats */
    int64_t gap_us;   /* the look-behind: commits that are later are found by going back */
    int drift_ppm;
    roll_call_cb *on_roll;
    void *ctx;
};

enum status roll_call_open(const struct roll_call_options *options, struct roll_call **ret,
                           struct err *err) MUST_USE;
/* Accepts NULL; replies under way must not come any more. */
void roll_call_close(struct roll_call *r);

/* A new leader calls the roll at once. */
void roll_call_lead(struct roll_call *r, bool is_leader);

/* Something has changed: calls the roll once more, if PostgreSQL is there. */
void roll_call_now(struct roll_call *r);

/* The workers that live, for on_roll; ret_ids has ROLL_WORKERS_MAX places. The texts are borrowed
 * until it returns. */
size_t roll_call_live(const struct roll_call *r, const char **ret_ids);

/* PostgreSQL is there again. */
void roll_call_up(struct roll_call *r);

#endif
