/* SPDX-License-Identifier: Apache-2.0
 *
 * Decides what to read of the queue, without reading it: lanes, their cursors, how much room the
 * hints have, what to read again. Pure: time and rows come in, ranges to read go out.
 *
 * A lane is (queue, priority, share). A queue with more lanes than there is room for is walked in
 * laps instead (model/feed_laps.c). A lane's cursor moves forward. Rows that come to lie behind it
 * are found in three ways:
 * - Rows commit out of order, so young rows behind the cursor are read once more (FEED_BEHIND),
 *   except those that were already fed.
 * - Where the time of such rows is known, the cursor is moved back to it (feed_rewind).
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
#define FEED_RANGES_MAX 512 /* read in one pass */
#define FEED_NEVER_US INT64_MAX
#define FEED_SHARES 16384 /* a tenant has 1 or more (claimd.share_of()); 0 = no tenant */

/* Before every row: the schema allows no time before the year 1. */
#define FEED_BEGIN_US INT64_C(-62135596800000000)
#define FEED_BEGIN ((struct feed_pos){.us = FEED_BEGIN_US, .id = INT64_MIN})

struct feed_pos { /* the order of the feed index */
    int64_t us;
    int64_t id;
};

static inline bool feed_pos_before(struct feed_pos a, struct feed_pos b)
{
    return a.us < b.us || (a.us == b.us && a.id < b.id);
}

/* A lap over the tenants of one (queue, priority): some rows of each, once per lap. */
struct feed_lap {
    int share;        /* the last one that was read; −1 = none in this lap */
    int shares;       /* read in this lap … */
    int busy;         /* … and those of them that had rows to feed */
    int last_shares;  /* in the last complete one; −1 = there was none */
    int last_busy;    /* … */
    int page;         /* shares in one read */
    bool is_skipping; /* the next share takes too long to walk: past it */
    bool is_deep;     /* this lap reads jobs that wait for their key, too … */
    bool wants_deep;  /* … as the next one will */
    uint64_t fed;     /* by its group, when it began */
    int64_t begun_us; /* row time */
    int64_t next_us;  /* row time: the next one does not begin before */
    int64_t took_us;  /* the last one */
};

struct feed_lane {
    char queue[JOB_NAME_MAX + 1];
    int priority;
    int share;
    size_t group;
    struct feed_pos cursor;  /* all rows up to here were read since the last rewind */
    struct feed_pos behind;  /* where the look-behind continues */
    int64_t behind_since_us; /* row time when its present walk began; 0 = a new walk */
    int64_t rewind_us;       /* requested while a page was under way; FEED_NEVER_US = no */
    int64_t next_due_us;     /* row time of the first row that is not due yet */
    int64_t ahead_us;        /* BOOTTIME of the last read ahead */
    int64_t seen_us;         /* BOOTTIME when a row of it was last seen */
    int64_t turn;            /* of its next row, in the order of the tenants (feed_turns.c) … */
    int64_t full_turn;       /* … and in that of the full pass under way */
    struct feed_pos high;    /* the furthest cursor: rows up to here have got their turns */
    struct feed_pos full;    /* how far the full pass under way has read */
    bool is_full_read;       /* … which has nothing left to read here */
    bool is_full_open;       /* a read was under way when that pass began, and still is */
    bool has_more;           /* the last page was full, or the cursor moved back */
    bool is_young;           /* rows may still commit late beside those that were read */
    bool is_served;          /* a worker serves its queue; else it is not read */
    bool is_lap;             /* stands for all lanes of its group: share is FEED_SHARES */
    struct feed_lap lap;     /* … and this is where their lap is */
    bool is_used;            /* false: a free place in the table */
    int reading;             /* ranges of the pass under way */
};

/* The hints of one (queue, priority); `look_ahead` bounds them. */
struct feed_group {
    char queue[JOB_NAME_MAX + 1];
    int priority;
    int64_t held;       /* estimate of hints in Redis: last count and what was added since */
    bool is_counted;    /* false: count before feeding */
    int64_t fed_low_us; /* first row time fed since the last repair; FEED_NEVER_US = none */
    int64_t dry_us;     /* BOOTTIME of that repair */
    int busy;           /* lanes that share the room of the pass being planned: with more … */
    int idle;           /* … and those that seem empty */
    size_t lanes;       /* 0 = a free place in the table */
    size_t tenants;     /* lanes with a share: if there are any, all of its lanes take turns */
    int64_t now_turn;   /* the turn being served: the first hint's a moment ago … */
    int64_t next_turn;  /* … and the one that will follow it … */
    int64_t next_us;    /* … which was the first hint's at this row time */
    int64_t last_turn;  /* after all turns given so far */
    uint64_t fed;       /* hints that were new */
    uint64_t listed;    /* feed_counts_wanted() has listed it in this call */
};

struct feed_limits {
    int64_t look_ahead;
    int64_t look_behind_us;
    int page_rows;         /* per pass, all lanes together */
    int behind_rows;       /* of the look-behind, per pass */
    int64_t read_every_us; /* lanes with no more rows are read again after this long */
    int64_t aging_us;      /* a row goes up by one priority each time it waited this; 0 = never */
};

enum feed_part { FEED_AHEAD, FEED_BEHIND, FEED_FULL, FEED_LAP };

struct feed_range {
    size_t lane;
    enum feed_part part;
    struct feed_pos after; /* FEED_LAP: `us` is a share */
    struct feed_pos to;    /* us = FEED_NEVER_US: up to now */
    int rows_max;          /* FEED_LAP: shares … */
    int each_max;          /* … and rows of each */
    int64_t turn;          /* of the lane, in case the read fails */
};

/* Where an unknown lane of a served queue may lie; known lanes are not walked to find others. */
#define FEED_GAPS_MAX 512

enum feed_gap_form {
    FEED_GAP_SHARES,     /* of (queue, priority): lo < share < hi */
    FEED_GAP_PRIORITIES, /* of queue: lo < priority < hi */
    FEED_GAP_REST        /* of queue: all after (priority, share lo) */
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
    size_t *order; /* of the lanes, by (queue, priority, share) */
    size_t order_count;
    size_t gap_turn; /* the gap that goes first, of queues with many lanes … */
    size_t few_turn; /* … and of those with few */
    size_t laps;     /* lanes that are walked in laps */
    bool is_crowded; /* a lane was found for which there was no place */
    size_t tenants;  /* lanes with a share */
    struct feed_group *groups;
    size_t group_count; /* places used so far, as above */
    size_t group_cap;
    size_t groups_used;
    size_t turn;       /* the lane that goes first in the next pass */
    size_t count_turn; /* the lane whose group is counted first */
    uint64_t count_call;
    size_t full_turn;
    int page_rows; /* now, adapted by feed_pass_took() */
    int64_t pg_us; /* as of the last plan */
    struct feed_memory memory;
};

void feed_init(struct feed *f, const struct feed_limits *limits);
void feed_set_limits(struct feed *f, const struct feed_limits *limits);
void feed_release(struct feed *f);

/* Adds a lane of a served queue that was found; it is read from its beginning. CONFLICT when it is
 * known already (it is then marked as seen), or walked in laps. LIMIT at FEED_LANES_MAX lanes; then
 * feed_laps_begin() makes room. NOMEM. */
enum status feed_lane_add(struct feed *f, const char *queue, int priority, int share,
                          int64_t now_us, struct err *err) MUST_USE;
struct feed_lane *feed_lane_find(struct feed *f, const char *queue, int priority, int share);

/* For the other files of the feed: the place in `order` of that lane, or of the first one after it;
 * adds a lane whatever their number; forgets lanes. */
size_t feed_lane_place(const struct feed *f, const char *queue, int priority, int share);
enum status feed_lane_put(struct feed *f, const char *queue, int priority, int share,
                          int64_t now_us, struct feed_lane **ret, struct err *err) MUST_USE;
typedef bool feed_lane_test(const struct feed_lane *lane, const void *ctx);
void feed_lanes_drop(struct feed *f, feed_lane_test *is_gone, const void *ctx);

/* Forgets lanes of which no row was seen since `before_us`. Only between two passes, with no full
 * pass under way: no caller may hold an index of a lane or a group. */
void feed_lanes_forget(struct feed *f, int64_t before_us);

/* To be called when workers begin or stop to serve the lane's queue; a lane that is served again is
 * read on. */
void feed_lane_serve(struct feed_lane *lane, bool is_served);
/* The same for all lanes, where workers serve other queues and kinds than they did. True: some job
 * is routed differently now. */
bool feed_serve(struct feed *f, const struct feed_served *old, const struct feed_served *served);

/* When to look for unknown lanes again, after `last_us`: every `every_us`; if there are tenants, as
 * often as is cheap, so that a new tenant is found beside a flood of others. */
int64_t feed_gaps_due_us(const struct feed *f, int64_t last_us, int64_t every_us);

/* The gaps to probe now, in queues that are served and not walked in laps; more than `max` take
 * turns. Those of queues with few lanes do not wait for those of queues with many. */
size_t feed_gaps(struct feed *f, const struct feed_served *served, struct feed_gap *ret,
                 size_t max);

/* Moves all cursors back to `us`, never forward. With FEED_BEGIN_US it also forgets which turns
 * were given. */
void feed_rewind(struct feed *f, int64_t us);
void feed_lane_rewind(struct feed_lane *lane, int64_t us);

/* Plans what to read in this pass, at most `max` ranges; lanes take turns. Lanes of groups that are
 * full or not counted get no range ahead, except that a tenant whose turn it is gets one row in a
 * full group. Lanes that nobody serves get no range at all. `woken`: every lane is read. The lanes
 * of the ranges are reading until feed_range_done() or feed_range_failed(). If PostgreSQL's clock
 * was set back, cursors ahead of it are moved back behind it. */
size_t feed_plan(struct feed *f, int64_t now_us, int64_t pg_us, bool woken,
                 struct feed_range *ret_ranges, size_t max);
/* The same, woken, without ranges behind the cursors: for a glance at what somebody told of. */
size_t feed_plan_ahead(struct feed *f, int64_t now_us, int64_t pg_us, struct feed_range *ret_ranges,
                       size_t max);

/* A row of a range, in order. True: it is available and was not fed just now, so push it (if
 * somebody serves its kind). */
bool feed_range_row(const struct feed *f, const struct feed_range *range, struct feed_pos row,
                    bool is_available);
/* All rows of the range were handled, pushes included. `last` is the position of the last one.
 * `pg_us` is PostgreSQL's time when they were read. */
void feed_range_done(struct feed *f, const struct feed_range *range, int rows, struct feed_pos last,
                     int64_t pg_us);
void feed_range_failed(struct feed *f, const struct feed_range *range);
/* The walk was cut off by millions of entries that are not visible yet. They are left to the rewind
 * at their transaction's end and to the full pass, so that the young rows of others are not
 * delayed. */
void feed_range_too_long(struct feed *f, const struct feed_range *range, int64_t pg_us);

/* A pass took this long: pages shrink above 20 ms. */
void feed_pass_took(struct feed *f, int64_t us);

/* Hints of the group: counted, or added by a push. A group that ran dry although it was fed may
 * have lost its hints (a FLUSHALL is not reported): its lanes are rewound to the first row fed
 * since the last such repair, at most once in `every_us`. */
void feed_group_counted(struct feed *f, size_t group, int64_t count, int64_t now_us,
                        int64_t every_us);
void feed_group_added(struct feed *f, size_t group, int64_t row_us, bool is_new);
void feed_forget_counts(struct feed *f);

/* Groups to count before the next pass is planned; more than `max` take turns. */
size_t feed_counts_wanted(struct feed *f, size_t *ret_groups, size_t max);

/* ---- tenants take turns (docs/decisions/0016) ---- */

bool feed_group_has_tenants(const struct feed_group *g);
void feed_group_joined(struct feed *f, size_t group, int share); /* by a lane; for feed_lanes.c */
void feed_group_left(struct feed *f, size_t group, int share);
/* A group with tenants was counted: `first_ms` is the lowest time in a score among its hints, −1 =
 * it has none. */
void feed_group_served(struct feed *f, size_t group, int64_t first_ms);
/* Has the lane's turn come? Then it may push one row more than there is room for. */
bool feed_lane_is_next(const struct feed *f, const struct feed_lane *l);
/* For a row that is to be pushed: the time in its hint's score, which is the row's own, or its turn
 * if the lanes of its group take turns. */
int64_t feed_row_order_us(struct feed *f, const struct feed_range *range, struct feed_pos row);
/* The whole score, with the row's present priority. An aged row is ordered by its own time or, if
 * there are tenants at that priority, no later than the turn being served there. */
int64_t feed_row_score(struct feed *f, const struct feed_range *range, struct feed_pos row);

/* ---- laps (docs/decisions/0023) ---- */

/* Where a lane was found for which there is no place, the queue with the most lanes is walked in
 * laps from now on: its lanes are forgotten. NOT_FOUND: no queue has so many; NOMEM. As for
 * feed_lanes_forget(), no caller may hold an index. */
enum status feed_laps_begin(struct feed *f, char ret_queue[JOB_NAME_MAX + 1],
                            struct err *err) MUST_USE;
/* The other way round, where the lanes of a queue would fit again, with room to spare; false: of
 * none. They are then found as any lanes are. */
bool feed_laps_end(struct feed *f, char ret_queue[JOB_NAME_MAX + 1]);
bool feed_queue_has_laps(const struct feed *f, const char *queue);
/* All lanes, those that laps found included. */
int64_t feed_lanes_known(const struct feed *f);
/* How long the longest lap takes, and of which queue: borrowed; it stays as it is if none is walked
 * in laps. */
int64_t feed_laps_longest(const struct feed *f, const char **ret_queue);

/* For feed.c. */
bool feed_lap_is_due(const struct feed_lane *l, int64_t pg_us);
struct feed_range feed_lap_range(struct feed *f, size_t lane, int64_t room, int64_t pg_us);
void feed_lap_done(struct feed *f, struct feed_lane *l, int shares, bool is_full, int64_t share,
                   int64_t pg_us);
void feed_lap_too_long(struct feed_lane *l);

/* Rows of the next share of the lap follow, if it has any. */
void feed_lap_share(struct feed *f, const struct feed_range *range, bool has_rows);

bool feed_has_more(const struct feed *f);       /* and room for it */
bool feed_is_full(const struct feed *f);        /* a lane has more and no room */
int64_t feed_next_due_us(const struct feed *f); /* row time; FEED_NEVER_US = none that has room */

#endif
