/* SPDX-License-Identifier: Apache-2.0
 *
 * A small queue and the leader that feeds it: rows, hints, PostgreSQL's clock, and around the real
 * decisions (model/feed*.c) the thin I/O that scheduler/ does with them: one pass, one full
 * pass, one tick. What lies between two functions here can be interrupted by anything; within
 * one nothing that happens could make a difference. */
#ifndef CLAIMD_TESTS_MODEL_FEED_WORLD_H
#define CLAIMD_TESTS_MODEL_FEED_WORLD_H

#include "base/clock.h"
#include "model/feed_full.h"
#include "model/feed_writers.h"

#define ROWS_MAX 3
#define LANES_MAX 2
#define READ_RANGES_MAX (2 * LANES_MAX)

/* The margin of feed_writers.c is one tick, the look-behind and the longest distance of ticks of
 * the leader are two. */
#define TICK_US (US_PER_S / 2)
#define WORLD_NOW_US (1000 * US_PER_S) /* by both clocks, where a step begins */
#define LOOK_BEHIND_US (2 * TICK_US)
#define CLOCK_STEP_US (4 * TICK_US)
#define LATER_US (2 * TICK_US) /* scheduled, or retried, for so long ahead */
#define LONG_AGO_US (4 * TICK_US)

enum marks {
    MARKS_NONE,
    MARKS_AT_AVAILABLE, /* rise to the first row that is available: past those that run */
    MARKS_AT_ROWS       /* rise to the first row */
};

struct world_rules {
    size_t rows;
    uint8_t share_of[ROWS_MAX]; /* the lane of each row */
    int look_ahead;
    int push_max; /* rows in one push, at most */
    bool has_no_full_pass;
    /* Rules that are taken away. */
    enum marks marks;             /* full passes and new leaders begin at a mark */
    bool is_mark_saved_later;     /* and hand-backs compare with the saved one */
    bool is_cap_stale;            /* marks rise although no roll call saw who writes */
    bool is_clock_only_rising;    /* the leader's idea of PostgreSQL's clock */
    bool is_full_done_by_failing; /* a full pass that could not push counts */
    bool is_full_to_the_cursor;   /* although a read was under way when it began */
    bool is_deaf_to_writers;      /* who writes is seen, and nothing follows */
    bool is_moved_before_push;    /* the cursor: it stays there when the push fails */
    bool is_rewound_by_time_only; /* a cursor among rows of one time stays there */
};

enum row_phase {
    ROW_NONE,
    ROW_OPEN, /* written, not committed: in the index, for nobody to see */
    ROW_AVAILABLE,
    ROW_RUNNING
};

struct world_row {
    enum row_phase phase;
    int64_t us;
    bool is_hinted; /* of a row that is gone, too */
    bool is_owed;   /* due and without a hint when the full pass under way began, and ever since */
};

enum read_stage { READ_IDLE, READ_PLANNED, READ_ANSWERED };

struct world_read {
    enum read_stage stage;
    struct feed_range ranges[READ_RANGES_MAX];
    int rows[READ_RANGES_MAX];
    struct feed_pos last[READ_RANGES_MAX];
    int64_t first_us[READ_RANGES_MAX]; /* where a mark may rise to */
    int64_t due_us[READ_RANGES_MAX];   /* when the next row of the lane falls due */
    size_t range_count;
    unsigned hints; /* to push: bits of rows */
    int64_t hint_us[ROWS_MAX];
    int64_t pg_us; /* when it was read */
};

struct world {
    const struct world_rules *rules;
    int64_t boot_us;
    int64_t pg_us;
    int64_t believed_us; /* what the leader takes for PostgreSQL's time */
    struct world_row rows[ROWS_MAX];
    struct feed feed;
    struct feed_served served;
    struct feed_writers writers;
    struct world_read ahead;
    struct world_read full;
    bool is_reset;    /* asked for while a pass was under way */
    bool is_owed_now; /* the full pass is complete, a read from before its end under way */
    int64_t mark_us[LANES_MAX];
    int64_t saved_us[LANES_MAX];
    int64_t cap_us;        /* no mark may rise above */
    size_t recovered;      /* hints that only a full pass pushed */
    const char *violation; /* NULL = none */
};

bool world_init(struct world *w, const struct world_rules *rules);
void world_release(struct world *w);

/* An empty feed, as a new leader has it. */
void world_forget(struct world *w);
void world_lead(struct world *w);

void world_tick(struct world *w);
void world_reset(struct world *w); /* a node for hints was lost or found empty, a new session */

/* A pass of the feed: count, plan, read; then push and end. */
enum push_end { PUSH_DONE, PUSH_REPLY_LOST, PUSH_LOST };
enum pass_kind {
    PASS_EVERYWHERE,
    PASS_KNOWN_LANES,
    PASS_GLANCE /* … ahead of their cursors alone (docs/decisions/0020) */
};
void world_pass(struct world *w, enum pass_kind kind);
void world_pass_uncounted(struct world *w); /* the hints could not be counted */
void world_pass_end(struct world *w, enum push_end end);
void world_pass_cut(struct world *w); /* the walk was cut off */

/* A full pass: lanes and the plan of a page, read it, push and plan the next. */
void world_full_begin(struct world *w);
void world_full_read(struct world *w);
void world_full_end(struct world *w, enum push_end end);
void world_full_finish(struct world *w); /* all that is left of it, at once */

/* A row changes: what was said about it before is void. */
void world_row_set(struct world *w, size_t row, enum row_phase phase, int64_t us);
void world_row_back(struct world *w, size_t row); /* available again at its old time */

struct feed_lane *world_lane(struct world *w, size_t row); /* NULL = not known to the leader */
bool world_is_due(const struct world *w, size_t row);
bool world_is_in_use(const struct world *w, size_t row); /* its number can't be taken for another */
void world_clear_memory(struct world *w);

#endif
