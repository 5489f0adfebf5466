/* SPDX-License-Identifier: Apache-2.0
 *
 * The cluster poll, each second: which workers live and what they serve, which are
 * silent, which transactions have been writing for long. A standby polls too, so that it
 * is up to date when it becomes the leader. */
#ifndef CLAIMD_SCHEDULER_CLUSTER_POLL_H
#define CLAIMD_SCHEDULER_CLUSTER_POLL_H

#include "model/feed_served.h"
#include "store/pg/pg.h"

#define POLL_WORKERS_MAX 4096

struct cluster_poll;

/* The result of one cluster poll; the texts are borrowed until the callback returns. */
struct cluster_view {
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
    bool is_asked_for;    /* called because of cluster_poll_now() */
};

typedef void cluster_poll_cb(void *ctx, struct cluster_view *view);

struct cluster_poll_options {
    uv_loop_t *loop;
    struct pg *pg;    /* borrowed */
    int64_t every_us; /* one tick: 1 s, scaled */
    int64_t stale_us; /* age from which a heartbeat is stale */
    int64_t gap_us;   /* the look-behind: for commits later than this, the feed rewinds */
    int drift_ppm;
    cluster_poll_cb *on_polled;
    void *ctx;
};

enum status cluster_poll_open(const struct cluster_poll_options *options, struct cluster_poll **ret,
                              struct err *err) MUST_USE;
/* Accepts NULL; no reply may arrive afterwards. */
void cluster_poll_close(struct cluster_poll *p);

/* Reports that leading has begun or ended. A new leader polls at once. */
void cluster_poll_lead(struct cluster_poll *p, bool is_leader);

/* Polls once more if PostgreSQL is reachable: something has changed. */
void cluster_poll_now(struct cluster_poll *p);

/* Lists the live workers, for on_polled; ret_ids has room for POLL_WORKERS_MAX. The texts are
 * borrowed until on_polled returns. */
size_t cluster_poll_live(const struct cluster_poll *p, const char **ret_ids);

/* Reports that PostgreSQL is reachable again. */
void cluster_poll_up(struct cluster_poll *p);

#endif
