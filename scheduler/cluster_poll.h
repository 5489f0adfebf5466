/* SPDX-License-Identifier: Apache-2.0
 *
 * The roll call of the cluster, each second: which workers live and what they serve, which are
 * silent, which transactions have been writing for long. A standby calls the roll too, so that it
 * is up to date when it becomes the leader. */
#ifndef CLAIMD_SCHEDULER_ROLL_CALL_H
#define CLAIMD_SCHEDULER_ROLL_CALL_H

#include "model/feed_served.h"
#include "store/pg/pg.h"

#define ROLL_WORKERS_MAX 4096

struct roll_call;

/* The result of one roll call; the texts are borrowed until the callback returns. */
struct roll {
    int64_t pg_us;             /* PostgreSQL's time */
    struct feed_served served; /* the callback may take it over */
    /* Only for a leader: rows from this time on may have appeared behind the cursors; FEED_NEVER_US
     * = none. */
    int64_t rewind_us;
    bool wants_full_pass;    /* … or from an unknown time on */
    const char *const *dead; /* workers that are marked dead and not swept yet */
    size_t dead_count;
    /* workers whose heartbeats are stale, although this scheduler could have seen newer ones */
    const char *const *stale;
    size_t stale_count;
    bool is_clock_behind; /* a heartbeat lies in the future: PostgreSQL's clock has gone back */
    unsigned work;        /* bits of enum feed_tick_work: what there is to do */
    bool is_asked_for;    /* called because of roll_call_now() */
};

typedef void roll_call_cb(void *ctx, struct roll *roll);

struct roll_call_options {
    uv_loop_t *loop;
    struct pg *pg;    /* borrowed */
    int64_t every_us; /* one tick: 1 s, scaled */
    int64_t stale_us; /* age from which a heartbeat is stale */
    int64_t gap_us;   /* the look-behind: for commits later than this, the feed rewinds */
    int drift_ppm;
    roll_call_cb *on_roll;
    void *ctx;
};

enum status roll_call_open(const struct roll_call_options *options, struct roll_call **ret,
                           struct err *err) MUST_USE;
/* Accepts NULL; no reply may arrive afterwards. */
void roll_call_close(struct roll_call *r);

/* Reports that leading has begun or ended. A new leader calls the roll at once. */
void roll_call_lead(struct roll_call *r, bool is_leader);

/* Calls the roll once more if PostgreSQL is reachable: something has changed. */
void roll_call_now(struct roll_call *r);

/* Lists the live workers, for on_roll; ret_ids has room for ROLL_WORKERS_MAX. The texts are
 * borrowed until on_roll returns. */
size_t roll_call_live(const struct roll_call *r, const char **ret_ids);

/* Reports that PostgreSQL is reachable again. */
void roll_call_up(struct roll_call *r);

#endif
