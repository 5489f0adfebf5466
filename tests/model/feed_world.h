/* SPDX-License-Identifier: Apache-2.0
 *
 * A small queue and the leader that feeds it: rows, hints, PostgreSQL's clock, and around the real
 * decisions (model/feed*.c) the thin I/O of scheduler/: one pass, one full pass, one tick. Anything
 * may happen between two calls of functions here; within one function, no event could make a
 * difference. */
#ifndef CLAIMD_TESTS_MODEL_FEED_WORLD_H
#define CLAIMD_TESTS_MODEL_FEED_WORLD_H

#include "base/clock.h"
#include "model/feed_full.h"
#include "model/feed_writers.h"

#define ROWS_MAX 3
#define LANES_MAX 2
#define READ_RANGES_MAX (2 * LANES_MAX)

/* The margin of feed_writers.c is one tick; the look-behind and the longest interval between the
 * leader's ticks are two. */
#define TICK_US (US_PER_S / 2)
#define WORLD_NOW_US (1000 * US_PER_S) /* by both clocks, at the beginning of a step */
#define LOOK_BEHIND_US (2 * TICK_US)
#define CLOCK_STEP_US (4 * TICK_US)
#define LATER_US (2 * TICK_US) /* how far ahead jobs are scheduled or retried */
#define LONG_AGO_US (4 * TICK_US)

enum marks {
    MARKS_NONE,
    MARKS_AT_AVAILABLE, /* rise to the first available row: past running ones */
    MARKS_AT_ROWS       /* rise to the first row */
};

struct world_rules {
    size_t rows;
    uint8_t share_of[ROWS_MAX]; /* lane of each row */
    int look_ahead;
    int push_max; /* most rows in one push */
    bool has_no_full_pass;
    /* Rules that can be removed or broken. */
    enum marks marks;             /* full passes and new leaders begin at a mark */
    bool is_mark_saved_later;     /* and hand-backs compare with the saved mark */
    bool is_cap_stale;            /* marks rise without a cluster poll that showed the writers */
    bool is_clock_only_rising;    /* the leader never sets back its idea of PostgreSQL's clock */
    bool is_full_done_by_failing; /* a full pass whose push failed counts as done */
    bool is_full_to_the_cursor;   /* even if a read was in flight when it began */
    bool is_deaf_to_writers;      /* writers are seen, without any effect */
    bool is_moved_before_push;    /* the cursor moves first, and stays there if the push fails */
    bool is_rewound_by_time_only; /* a cursor among rows of one time is not rewound */
};

enum row_phase {
    ROW_NONE,
    ROW_OPEN, /* written but not committed: in the index, and visible to no other session */
    ROW_AVAILABLE,
    ROW_RUNNING
};

struct world_row {
    enum row_phase phase;
    int64_t us;
    bool is_hinted; /* also for a row that is gone */
    bool is_owed;   /* due and without a hint since the present full pass began */
};

enum read_stage { READ_IDLE, READ_PLANNED, READ_ANSWERED };

struct world_read {
    enum read_stage stage;
    struct feed_range ranges[READ_RANGES_MAX];
    int rows[READ_RANGES_MAX];
    struct feed_pos last[READ_RANGES_MAX];
    int64_t first_us[READ_RANGES_MAX]; /* a mark may rise to here */
    int64_t due_us[READ_RANGES_MAX];   /* when the next row of the lane is due */
    size_t range_count;
    unsigned hints; /* to push: one bit per row */
    int64_t hint_us[ROWS_MAX];
    int64_t pg_us; /* time of the read */
};

struct world {
    const struct world_rules *rules;
    int64_t boot_us;
    int64_t pg_us;
    int64_t believed_us; /* what the leader assumes to be PostgreSQL's time */
    struct world_row rows[ROWS_MAX];
    struct feed feed;
    struct feed_served served;
    struct feed_writers writers;
    struct world_read ahead;
    struct world_read full;
    bool is_reset;    /* requested while a pass was in flight */
    bool is_owed_now; /* the full pass is complete, and a read from before its end is in flight */
    int64_t mark_us[LANES_MAX];
    int64_t saved_us[LANES_MAX];
    int64_t cap_us;        /* limit for marks */
    size_t recovered;      /* hints that only a full pass has pushed */
    const char *violation; /* NULL = none */
};

bool world_init(struct world *w, const struct world_rules *rules);
void world_release(struct world *w);

/* The first makes the feed empty, as that of a new leader; the second makes a new leader. */
void world_forget(struct world *w);
void world_lead(struct world *w);

void world_tick(struct world *w);
/* A hint node was lost or found empty, or there is a new session. */
void world_reset(struct world *w);

/* A pass of the feed: the first function counts, plans and reads; the second pushes and ends. */
enum push_end { PUSH_DONE, PUSH_REPLY_LOST, PUSH_LOST };
enum pass_kind {
    PASS_EVERYWHERE,
    PASS_KNOWN_LANES,
    PASS_GLANCE /* … only ahead of their cursors (docs/decisions/0020) */
};
void world_pass(struct world *w, enum pass_kind kind);
void world_pass_uncounted(struct world *w); /* counting the hints failed */
void world_pass_end(struct world *w, enum push_end end);
void world_pass_cut(struct world *w); /* the walk was cut off */

/* The steps of a full pass: find lanes and plan a page; read it; push it and plan the next one. */
void world_full_begin(struct world *w);
void world_full_read(struct world *w);
void world_full_end(struct world *w, enum push_end end);
void world_full_finish(struct world *w); /* runs the rest of it at once */

/* Changes a row: forgets what was recorded about it. */
void world_row_set(struct world *w, size_t row, enum row_phase phase, int64_t us);
void world_row_back(struct world *w, size_t row); /* makes it available again at its old time */

struct feed_lane *world_lane(struct world *w, size_t row); /* NULL = unknown to the leader */
bool world_is_due(const struct world *w, size_t row);
bool world_is_in_use(const struct world *w, size_t row); /* its number cannot be reused yet */
void world_clear_memory(struct world *w);

#endif
