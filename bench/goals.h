/* SPDX-License-Identifier: Apache-2.0
 *
 * What claimd is to reach, all of it, in one table. A workload adds what it has measured to its
 * result's "goals"; `all` lists the rest as not measured. */
#ifndef CLAIMD_BENCH_GOALS_H
#define CLAIMD_BENCH_GOALS_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

enum goal_id {
    GOAL_DRAIN_LIMIT,
    GOAL_DRAIN_SKIP_LOCKED,
    GOAL_DRAIN_RIVER,
    GOAL_MASTERS_3,
    GOAL_MASTERS_1,
    GOAL_START_P50_RIVER,
    GOAL_START_P99_RIVER,
    GOAL_SCALE_64,
    GOAL_SCALE_COMMITS,
    GOAL_HORIZON,
    GOAL_HORIZON_FREE,
    GOAL_ENQUEUE_ONE,
    GOAL_INSERT_ONE,
    GOAL_ENQUEUE_BULK,
    GOAL_LOCKS_REDSYNC,
    GOAL_LOCKS_AUTO_PIPELINE,
    GOAL_LOCKS_RATE,
    GOAL_CONTENDED_LEAST, /* from here on of contests, of all of them the worst */
    GOAL_CONTENDED_MOST,
    GOAL_CONTENDED_REDSYNC,
    GOAL_CONTENDED_CHANGES,
    GOAL_CONTENDED_COMMANDS,
    GOAL_CONTENDED_OVERLAPS,
    GOAL_MIXED_OURS,
    GOAL_MIXED_REDSYNC,
    GOAL_MIXED_EARLY,
    GOAL_MIXED_LATE,
    GOAL_PAIRS_LEAST,
    GOAL_READERS_LEAST,
    GOAL_KILLS_STALL, /* the last of them */
    GOAL_CPU_LIMIT,
    GOAL_CPU_RIVER,
    GOAL_IDLE_STATEMENTS,
    GOAL_IDLE_CPU,
    GOAL_BACKLOG_FIRST,
    GOAL_BACKLOG_RATE,
    GOAL_BACKLOG_MEMORY,
    GOAL_LOCKS_EXTEND,
    GOAL_WAL,
    GOAL_DEAD_ROWS,
    GOAL_HOT,
    GOAL_STEADY_P99,
    GOAL_DEFERRED,
    GOAL_START_500_P50_RIVER,
    GOAL_START_500_P99_RIVER,
    GOAL_CPU_1_RIVER,
    GOAL_CPU_10_RIVER,
    GOAL_CPU_100_RIVER,
    GOAL_COMMITS_10,
    GOAL_COMMANDS_10,
    GOAL_HOARD_ONE,
    GOAL_HOARD_MANY,
    GOAL_SHORT_BESIDE_LONG,
    GOAL_FAR_50,
    GOAL_FAR_20,
    GOAL_HANDLER_CPU,
    GOAL_HANDLER_START,
    GOAL_ONCE_FLOOR,
    GOAL_PYTHON_SPEED,
    GOAL_PYTHON_CPU,
    GOALS
};

struct goal {
    const char *number; /* P1 … P18: goals of one sort */
    const char *name;
    const char *what;
    const char *unit; /* of what is measured; the bound has it too, unless `is_ratio` */
    enum { BOUND_LEAST, BOUND_MOST } bound_is;
    double bound;
    bool is_ratio; /* the bound is that of a ratio to something else of the same run */
};
extern const struct goal goals[GOALS];

bool goal_is_met(enum goal_id id, double value);

/* For a goal that is no ratio. */
void goal_add(json_t *result, enum goal_id id, double measured);
void goal_add_ratio(json_t *result, enum goal_id id, double measured, double ratio);

/* All goals with what an array of results has of them. */
void goals_print(FILE *out, const json_t *results);

#endif
