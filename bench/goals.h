/* SPDX-License-Identifier: Apache-2.0
 *
 * All goals of claimd, in one table. A workload adds its measurements to the "goals" of its result;
 * `all` lists the other goals as not measured. */
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
    GOAL_CONTENDED_LEAST, /* from here on goals of contests; the worst contest counts */
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
    GOAL_KILLS_STALL, /* the last goal of contests */
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
    const char *number; /* P1 … P18: groups of similar goals */
    const char *name;
    const char *what;
    const char *unit; /* of the measurement, and of the bound unless `is_ratio` */
    enum { BOUND_LEAST, BOUND_MOST } bound_is;
    double bound;
    bool is_ratio; /* the bound is for a ratio to another value of the same run */
};
extern const struct goal goals[GOALS];

bool goal_is_met(enum goal_id id, double value);

/* Adds a measurement of a goal that is not a ratio. */
void goal_add(json_t *result, enum goal_id id, double measured);
void goal_add_ratio(json_t *result, enum goal_id id, double measured, double ratio);

/* Prints all goals with the measurements in an array of results. */
void goals_print(FILE *out, const json_t *results);

#endif
