/* SPDX-License-Identifier: Apache-2.0
 *
 * Decides what to read of the queue, without reading it: lanes, their cursors, how much room the
 * hints have, what to read again. Pure: time and rows come in, ranges to read go out.
 *
 * A lane is (queue, priority, share). A queue with more lanes than there is room for is walked in
 * laps instead (model/feed_laps.c). A lane's cursor moves forward. Rows that appear behind it are
 * found in three ways:
 * - Rows commit out of order, so young rows behind the cursor are read once more (FEED_BEHIND),
 *   except those that were already fed.
 * - If the time of such rows is known, the cursor is moved back to it (feed_rewind).
 * - The full pass (model/feed_full.h) reads every lane from its beginning up to its cursor. It is
 *   the safety net, so it relies on no memory: no position is kept from one full pass to the next,
 *   and none is stored (docs/decisions/0011).
 *
 * Positions and `pg_us` are row times (PostgreSQL's clock, µs since 1970); `now_us` is BOOTTIME. */
#ifndef CLAIMD_MODEL_FEED_H
#define CLAIMD_MODEL_FEED_H

#include "model/feed_memory.h"
#include "model/feed_served.h"
#include "model/job.h"

#define FEED_LANES_MAX 32768
#define FEED_RANGES_MAX 512 /* ranges read in one pass */
#define FEED_NEVER_US INT64_MAX
#define FEED_SHARES 16384 /* a tenant has 1 or more (claimd.share_of()); 0 = no tenant */

/* A time before every row: the schema allows no time before the year 1. */
#define FEED_BEGIN_US INT64_C(-62135596800000000)
#define FEED_BEGIN ((struct feed_pos){.us = FEED_BEGIN_US, .id = INT64_MIN})

struct feed_pos { /* a position in the order of the feed index */
    int64_t us;
    int64_t id;
};

static inline bool feed_pos_before(struct feed_pos a, struct feed_pos b)
{
    return a.us < b.us || (a.us == b.us && a.id < b.id);
}

/* A lap over the tenants of one (queue, priority): it reads some rows of each tenant. */
struct feed_lap {
    int share;        /* the last share that was read; −1 = none in this lap */
    int shares;       /* shares read in this lap */
    int busy;         /* those of them that had rows to feed */
    int last_shares;  /* `shares` of the last complete lap; −1 = there was none */
    int last_busy;    /* `busy` of the last complete lap */
    int page;         /* shares per read */
    bool is_skipping; /* the next share takes too long to walk: skip it */
    bool is_deep;     /* this lap also reads jobs that wait for their key */
    bool wants_deep;  /* … and so will the next one */
    uint64_t fed;     /* `fed` of its group when the lap began */
    int64_t begun_us; /* row time */
    int64_t next_us;  /* row time: the next lap does not begin before this */
    int64_t took_us;  /* duration of the last lap */
};

struct feed_lane {
    char queue[JOB_NAME_MAX + 1];
    int priority;
    int share;
    size_t group;
    struct feed_pos cursor;  /* all rows up to here were read since the last rewind */
    struct feed_pos behind;  /* where the look-behind continues */
    int64_t behind_since_us; /* row time when its present walk began; 0 = begin a new walk */
    int64_t rewind_us;    /* a rewind requested while a page was being read; FEED_NEVER_US = none */
    int64_t next_due_us;  /* row time of the first row that is not due yet */
    int64_t ahead_us;     /* BOOTTIME of the last read ahead */
    int64_t seen_us;      /* BOOTTIME when a row of it was last seen */
    int64_t rank;         /* rank of its next row, in the order of the tenants (feed_ranks.c) */
    int64_t full_rank;    /* … and in that of the full pass in progress */
    struct feed_pos high; /* the furthest cursor so far: rows up to here have got their ranks */
    struct feed_pos full; /* how far the full pass in progress has read */
    bool is_full_read;    /* … and whether it has nothing left to read here */
    bool is_full_open;    /* a read was in flight when that pass began, and still is */
    bool has_more;        /* the last page was full, or the cursor moved back */
    bool is_young;        /* late commits may still add rows beside those that were read */
    bool is_served;       /* a worker serves its queue; otherwise it is not read */
    bool is_lap;          /* stands for all lanes of its group: share is FEED_SHARES */
    struct feed_lap lap;  /* … and the state of their lap */
    bool is_used;         /* false: a free place in the table */
    int reading;          /* number of ranges of the pass in progress */
};

/* The hints of one (queue, priority); `look_ahead` bounds them. */
struct feed_group {
    char queue[JOB_NAME_MAX + 1];
    int priority;
    int64_t held;    /* estimate of the hints in Redis: the last count plus what was added since */
    bool is_counted; /* false: must be counted before feeding */
    int64_t fed_low_us; /* earliest row time fed since the last repair; FEED_NEVER_US = none */
    int64_t dry_us;     /* BOOTTIME of that repair */
    int busy;           /* lanes with more rows, which share the room of the pass being planned */
    int idle;           /* lanes that seem empty, which share it too */
    size_t lanes;       /* 0 = a free place in the table */
    size_t tenants;    /* lanes with a share; if there are any, all lanes of the group have ranks */
    int64_t now_rank;  /* the rank being served: that of the first hint a moment ago */
    int64_t next_rank; /* the rank that will follow it */
    int64_t next_us;   /* row time when next_rank was that of the first hint */
    int64_t last_rank; /* later than all ranks given so far */
    uint64_t fed;      /* number of hints pushed that were new */
    uint64_t listed;   /* the call of feed_counts_wanted() that has listed it */
};

struct feed_limits {
    int64_t look_ahead;
    int64_t look_behind_us;
    int page_rows;         /* per pass, for all lanes together */
    int behind_rows;       /* rows of the look-behind, per pass */
    int64_t read_every_us; /* lanes without more rows are read again after this time */
    int64_t aging_us; /* a row rises by one priority each time it has waited this long; 0 = never */
};

enum feed_part { FEED_AHEAD, FEED_BEHIND, FEED_FULL, FEED_LAP };

struct feed_range {
    size_t lane;
    enum feed_part part;
    struct feed_pos after; /* FEED_LAP: `us` is a share */
    struct feed_pos to;    /* us = FEED_NEVER_US: up to now */
    int rows_max;          /* FEED_LAP: shares … */
    int each_max;          /* … and the maximum of rows of each */
    int64_t rank;          /* rank of the lane, restored if the read fails */
};

/* A gap between known lanes of a served queue, in which an unknown one may be; the rows of known
 * lanes are not walked to find others. */
#define FEED_GAPS_MAX 512

enum feed_gap_form {
    FEED_GAP_SHARES,     /* in (queue, priority): lo < share < hi */
    FEED_GAP_PRIORITIES, /* in queue: lo < priority < hi */
    FEED_GAP_REST        /* in queue: all after (priority, share lo) */
};

struct feed_gap {
    enum feed_gap_form form;
    char queue[JOB_NAME_MAX + 1];
    int priority;
    int lo;
    int hi;
};

struct feed {
    struct feed_limits limits;
    struct feed_lane *lanes;
    size_t lane_count; /* places used so far, including free ones */
    size_t lane_cap;
    size_t *order; /* indexes of the lanes, ordered by (queue, priority, share) */
    size_t order_count;
    size_t gap_from; /* the gap that is probed first, of queues with many lanes */
    size_t few_from; /* … and of queues with few */
    size_t laps;     /* number of lanes that are walked in laps */
    bool is_crowded; /* a lane was found for which there was no room */
    size_t tenants;  /* number of lanes with a share */
    struct feed_group *groups;
    size_t group_count; /* places used so far, as above */
    size_t group_cap;
    size_t groups_used;
    size_t plan_from;  /* the lane that goes first in the next pass */
    size_t count_from; /* the lane whose group is counted first */
    uint64_t count_call;
    size_t full_from;
    int page_rows; /* the present page size, adapted by feed_pass_took() */
    int64_t pg_us; /* PostgreSQL's time at the last plan */
    struct feed_memory memory;
};

void feed_init(struct feed *f, const struct feed_limits *limits);
void feed_set_limits(struct feed *f, const struct feed_limits *limits);
void feed_release(struct feed *f);

/* Adds a lane of a served queue that was found; it is read from its beginning. CONFLICT if it is
 * known already (it is then marked as seen), or walked in laps. LIMIT at FEED_LANES_MAX lanes; then
 * feed_laps_begin() makes room. NOMEM. */
enum status feed_lane_add(struct feed *f, const char *queue, int priority, int share,
                          int64_t now_us, struct err *err) MUST_USE;
struct feed_lane *feed_lane_find(struct feed *f, const char *queue, int priority, int share);

/* For the other files of the feed: finds the index in `order` of that lane, or of the first one
 * after it; adds a lane without a limit; forgets lanes. */
size_t feed_lane_place(const struct feed *f, const char *queue, int priority, int share);
enum status feed_lane_put(struct feed *f, const char *queue, int priority, int share,
                          int64_t now_us, struct feed_lane **ret, struct err *err) MUST_USE;
typedef bool feed_lane_test(const struct feed_lane *lane, const void *ctx);
void feed_lanes_drop(struct feed *f, feed_lane_test *is_gone, const void *ctx);

/* Forgets lanes of which no row was seen since `before_us`. Call it only between two passes, while
 * no full pass is in progress: no caller may hold an index of a lane or a group. */
void feed_lanes_forget(struct feed *f, int64_t before_us);

/* Call it when workers begin or stop serving the lane's queue; a lane that is served again
 * continues to be read. */
void feed_lane_serve(struct feed_lane *lane, bool is_served);
/* Does the same for all lanes, after the workers' queues and kinds have changed. Returns true if
 * some job is now routed differently. */
bool feed_serve(struct feed *f, const struct feed_served *old, const struct feed_served *served);

/* Returns when to look for unknown lanes again, after `last_us`: every `every_us`; if there are
 * tenants, as often as is cheap, so that a new tenant is found despite a flood of other tenants'
 * jobs. */
int64_t feed_gaps_due_us(const struct feed *f, int64_t last_us, int64_t every_us);

/* Lists the gaps to probe now, in queues that are served and not walked in laps; if there are more
 * than `max`, they take turns. Gaps of queues with few lanes do not wait for those of queues with
 * many. */
size_t feed_gaps(struct feed *f, const struct feed_served *served, struct feed_gap *ret,
                 size_t max);

/* Moves all cursors back to `us`, never forward. With FEED_BEGIN_US it also forgets which ranks
 * were given. */
void feed_rewind(struct feed *f, int64_t us);
void feed_lane_rewind(struct feed_lane *lane, int64_t us);

/* Plans what to read in this pass, at most `max` ranges; lanes take turns. Lanes of groups that are
 * full or not counted get no range ahead, except that a tenant that is next gets one row in
 * a full group. Lanes that no worker serves get no range at all. `woken`: every lane is read. The
 * lanes of the ranges are being read until feed_range_done() or feed_range_failed(). If
 * PostgreSQL's clock was set back, cursors that are ahead of it are moved back behind it. */
size_t feed_plan(struct feed *f, int64_t now_us, int64_t pg_us, bool woken,
                 struct feed_range *ret_ranges, size_t max);
/* Plans the same, woken, without ranges behind the cursors: for a glance after a NOTIFY. */
size_t feed_plan_ahead(struct feed *f, int64_t now_us, int64_t pg_us, struct feed_range *ret_ranges,
                       size_t max);

/* Takes a row of a range, in order. `wants_hint`: it is available and waits for no key. True: it
 * was not fed just now either, so push it (if a worker serves its kind). */
bool feed_range_row(const struct feed *f, const struct feed_range *range, struct feed_pos row,
                    bool wants_hint);
/* Call it when all rows of the range were handled, including pushes. `last` is the position of the
 * last one. `pg_us` is PostgreSQL's time when they were read. */
void feed_range_done(struct feed *f, const struct feed_range *range, int rows, struct feed_pos last,
                     int64_t pg_us);
void feed_range_failed(struct feed *f, const struct feed_range *range);
/* Call it when the walk was cut off because of millions of entries that are not visible yet. They
 * are left to the rewind at the end of their transaction and to the full pass, so that other young
 * rows are not delayed. */
void feed_range_too_long(struct feed *f, const struct feed_range *range, int64_t pg_us);

/* Call it after a pass with its duration: pages shrink above 20 ms. */
void feed_pass_took(struct feed *f, int64_t us);

/* Take the number of hints of a group: counted, or added by a push. A group that ran dry although
 * it was fed may have lost its hints (a FLUSHALL is not reported): its lanes are rewound to the
 * first row fed since the last such repair, at most once per `every_us`. */
void feed_group_counted(struct feed *f, size_t group, int64_t count, int64_t now_us,
                        int64_t every_us);
void feed_group_added(struct feed *f, size_t group, int64_t row_us, bool is_new);
void feed_forget_counts(struct feed *f);

/* Lists the groups to count before the next pass is planned; if there are more than `max`, they
 * take turns. */
size_t feed_counts_wanted(struct feed *f, size_t *ret_groups, size_t max);

/* ---- ranks of tenants (docs/decisions/0016) ---- */

bool feed_group_has_tenants(const struct feed_group *g);
/* called when a lane joins; for feed_lanes.c */
void feed_group_joined(struct feed *f, size_t group, int share);
void feed_group_left(struct feed *f, size_t group, int share);
/* Call it when a group with tenants was counted: `first_ms` is the lowest time in a score among its
 * hints, −1 = it has none. */
void feed_group_served(struct feed *f, size_t group, int64_t first_ms);
/* True if the lane is next by its rank. Then it may push one row even if there is no room. */
bool feed_lane_is_next(const struct feed *f, const struct feed_lane *l);
/* Returns the time for the score of a row that is to be pushed: the row's own time, or its rank if
 * the lanes of its group have ranks. */
int64_t feed_row_order_us(struct feed *f, const struct feed_range *range, struct feed_pos row);
/* Returns the whole score, with the row's present priority. An aged row is ordered by its own time
 * or, if there are tenants at that priority, no later than the rank being served there. */
int64_t feed_row_score(struct feed *f, const struct feed_range *range, struct feed_pos row);

/* ---- laps (docs/decisions/0023) ---- */

/* Makes room after a lane was found for which there was none: the queue with the most lanes is
 * walked in laps from now on, and its lanes are forgotten. NOT_FOUND: no queue has enough lanes;
 * NOMEM. As for feed_lanes_forget(), no caller may hold an index. */
enum status feed_laps_begin(struct feed *f, char ret_queue[JOB_NAME_MAX + 1],
                            struct err *err) MUST_USE;
/* Ends the laps of a queue whose lanes would fit again, with room to spare; false: there is none.
 * Its lanes are then found like any others. */
bool feed_laps_end(struct feed *f, char ret_queue[JOB_NAME_MAX + 1]);
bool feed_queue_has_laps(const struct feed *f, const char *queue);
/* Returns the number of all lanes, including those that laps found. */
int64_t feed_lanes_known(const struct feed *f);
/* Returns how long the longest lap takes; *ret_queue is its queue, borrowed, and stays unchanged if
 * no queue is walked in laps. */
int64_t feed_laps_longest(const struct feed *f, const char **ret_queue);

/* For feed.c. */
bool feed_lap_is_due(const struct feed_lane *l, int64_t pg_us);
struct feed_range feed_lap_range(struct feed *f, size_t lane, int64_t room, int64_t pg_us);
void feed_lap_done(struct feed *f, struct feed_lane *l, int shares, bool is_full, int64_t share,
                   int64_t pg_us);
void feed_lap_too_long(struct feed_lane *l);

/* Begins the next share of the lap; its rows follow, if it has any. */
void feed_lap_share(struct feed *f, const struct feed_range *range, bool has_rows);

bool feed_has_more(const struct feed *f); /* … and room for it */
bool feed_is_full(const struct feed *f);  /* a lane has more rows but no room */
/* row time; FEED_NEVER_US = no lane with room has one */
int64_t feed_next_due_us(const struct feed *f);

#endif
