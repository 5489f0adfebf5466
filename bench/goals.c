/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/goals.h"

#include "base/cleanup.h"

#include <assert.h>
#include <string.h>

#define RATIO(number_, name_, what_, unit_, bound_is_, bound_)                  \
    {                                                                           \
        .number = (number_), .name = (name_), .what = (what_), .unit = (unit_), \
        .bound_is = (bound_is_), .bound = (bound_), .is_ratio = true            \
    }
#define VALUE(number_, name_, what_, unit_, bound_is_, bound_)                  \
    {                                                                           \
        .number = (number_), .name = (name_), .what = (what_), .unit = (unit_), \
        .bound_is = (bound_is_), .bound = (bound_)                              \
    }

const struct goal goals[GOALS] = {
    [GOAL_DRAIN_LIMIT] =
        RATIO("P1", "drain_limit", "drain, to the limit program", "jobs/s", BOUND_LEAST, 0.72),
    [GOAL_DRAIN_SKIP_LOCKED] =
        RATIO("P1", "drain_skip_locked", "drain, to batched SKIP LOCKED by 4 clients", "jobs/s",
              BOUND_LEAST, 0.9),
    [GOAL_DRAIN_RIVER] =
        RATIO("P1", "drain_river", "drain, to River at its best", "jobs/s", BOUND_LEAST, 2),
    [GOAL_MASTERS_3] =
        RATIO("P2", "masters_3", "drain with 3 masters, to 5", "jobs/s", BOUND_LEAST, 1.2),
    [GOAL_MASTERS_1] =
        RATIO("P2", "masters_1", "drain with 1 master, to 5", "jobs/s", BOUND_LEAST, 1.45),
    [GOAL_START_P50_RIVER] =
        RATIO("P3", "start_p50_river", "start p50, to River tuned", "ms", BOUND_MOST, 1.25),
    [GOAL_START_P99_RIVER] =
        RATIO("P3", "start_p99_river", "start p99, to River tuned", "ms", BOUND_MOST, 1),
    [GOAL_SCALE_64] =
        RATIO("P4", "scale_64", "drain by 64 workers, to 4", "jobs/s", BOUND_LEAST, 0.85),
    [GOAL_SCALE_COMMITS] =
        VALUE("P4", "scale_commits", "drain by 64 workers", "commits/job", BOUND_MOST, 0.035),
    [GOAL_HORIZON] =
        RATIO("P5", "horizon", "drain under a pinned horizon, after 1 M jobs to before", "jobs/s",
              BOUND_LEAST, 0.9),
    [GOAL_HORIZON_FREE] = RATIO("P5", "horizon_free", "drain under a pinned horizon, to a free one",
                                "jobs/s", BOUND_LEAST, 0.9),
    [GOAL_ENQUEUE_ONE] = RATIO("P6", "enqueue_one", "enqueue() one by one, to a plain INSERT",
                               "jobs/s", BOUND_LEAST, 0.75),
    [GOAL_INSERT_ONE] = RATIO("P6", "insert_one", "INSERT one by one, to a plain INSERT", "jobs/s",
                              BOUND_LEAST, 0.9),
    [GOAL_ENQUEUE_BULK] =
        RATIO("P6", "enqueue_bulk", "enqueue in bulk, to River's COPY", "jobs/s", BOUND_LEAST, 3),
    [GOAL_LOCKS_REDSYNC] =
        RATIO("P7", "locks_redsync", "locks, 50 in flight, to redsync", "locks/s", BOUND_LEAST, 6),
    [GOAL_LOCKS_AUTO_PIPELINE] =
        RATIO("P7", "locks_auto_pipeline", "locks, 50 in flight, to redsync over AutoPipeline",
              "locks/s", BOUND_LEAST, 2),
    [GOAL_LOCKS_RATE] =
        VALUE("P7", "locks_rate", "locks in batches of 128", "locks/s", BOUND_LEAST, 50000),
    [GOAL_CONTENDED_LEAST] =
        VALUE("P7", "contended_least", "contended lock: wins of the last client", "of a fair share",
              BOUND_LEAST, 0.9),
    [GOAL_CONTENDED_MOST] =
        VALUE("P7", "contended_most", "contended lock: wins of the first client", "of a fair share",
              BOUND_MOST, 1.1),
    [GOAL_CONTENDED_REDSYNC] = RATIO("P7", "contended_redsync", "contended lock: wins, to redsync",
                                     "wins/s", BOUND_LEAST, 0.9),
    [GOAL_CONTENDED_CHANGES] =
        VALUE("P7", "contended_changes", "contended lock: changes of the owner", "per win",
              BOUND_LEAST, 0.9),
    [GOAL_CONTENDED_COMMANDS] =
        VALUE("P7", "contended_commands", "contended lock: commands per node", "per win",
              BOUND_MOST, 3.5),
    [GOAL_CONTENDED_OVERLAPS] =
        VALUE("P7", "contended_overlaps", "contended lock: two holders at once", "", BOUND_MOST, 0),
    [GOAL_MIXED_OURS] = VALUE("P7", "mixed_ours", "contended with redsync: our wins",
                              "of a fair share", BOUND_LEAST, 0.3),
    [GOAL_MIXED_REDSYNC] = VALUE("P7", "mixed_redsync", "contended with redsync: its wins",
                                 "of a fair share", BOUND_LEAST, 0.3),
    [GOAL_MIXED_EARLY] =
        VALUE("P7", "mixed_early", "contended with redsync: a side waits, before its first win",
              "ms", BOUND_MOST, 12000),
    [GOAL_MIXED_LATE] =
        VALUE("P7", "mixed_late", "contended with redsync: a side waits, after that", "ms",
              BOUND_MOST, 2000),
    [GOAL_PAIRS_LEAST] = VALUE("P7", "pairs_least", "overlapping pairs of keys: the last client",
                               "of a fair share", BOUND_LEAST, 0.5),
    [GOAL_READERS_LEAST] = VALUE("P7", "readers_least", "readers and writers: the last client",
                                 "of a fair share", BOUND_LEAST, 0.5),
    [GOAL_KILLS_STALL] = VALUE("P7", "kills_stall", "contended lock, clients killed: longest stall",
                               "ms", BOUND_MOST, 1000),
    [GOAL_CPU_LIMIT] =
        RATIO("P8", "cpu_limit", "CPU per job, to the limit program", "us", BOUND_MOST, 1.4),
    [GOAL_CPU_RIVER] =
        RATIO("P8", "cpu_river", "CPU per job, to River at its best", "us", BOUND_MOST, 0.5),
    [GOAL_IDLE_STATEMENTS] = VALUE("P9", "idle_statements", "idle, 10 workers of 16 slots",
                                   "statements/s", BOUND_MOST, 8),
    [GOAL_IDLE_CPU] =
        VALUE("P9", "idle_cpu", "idle, 10 workers of 16 slots", "% of a core", BOUND_MOST, 1),
    [GOAL_BACKLOG_FIRST] =
        VALUE("P10", "backlog_first", "10 M jobs: the first hint", "s", BOUND_MOST, 1),
    [GOAL_BACKLOG_RATE] =
        RATIO("P10", "backlog_rate", "10 M jobs: drain, to 100 k", "jobs/s", BOUND_LEAST, 0.9),
    [GOAL_BACKLOG_MEMORY] =
        VALUE("P10", "backlog_memory", "10 M jobs: the scheduler's size", "MB", BOUND_MOST, 100),
    [GOAL_LOCKS_EXTEND] =
        VALUE("P11", "locks_extend", "10,000 leases are extended", "ms", BOUND_MOST, 200),
    [GOAL_WAL] = VALUE("P12", "wal", "WAL per job", "B", BOUND_MOST, 800),
    [GOAL_DEAD_ROWS] =
        VALUE("P13", "dead_rows", "dead rows at 800 jobs/s", "s of jobs", BOUND_MOST, 2),
    [GOAL_HOT] =
        VALUE("P13", "hot", "HOT updates of jobs at 800 jobs/s", "of all", BOUND_LEAST, 0.95),
    [GOAL_STEADY_P99] = RATIO("P14", "steady_p99", "start p99 at 800 jobs/s, to a commit's p50",
                              "ms", BOUND_MOST, 8),
    [GOAL_DEFERRED] = VALUE("P15", "deferred", "10 M deferred jobs, 6,000/s due: lateness p95",
                            "ms", BOUND_MOST, 100),
    [GOAL_START_500_P50_RIVER] = RATIO(
        "P3", "start_500_p50_river", "start p50 at 500/s, to River tuned", "ms", BOUND_MOST, 1.25),
    [GOAL_START_500_P99_RIVER] = RATIO("P3", "start_500_p99_river",
                                       "start p99 at 500/s, to River tuned", "ms", BOUND_MOST, 1),
    [GOAL_CPU_1_RIVER] =
        RATIO("P8", "cpu_1_river", "CPU per job that sleeps 1 ms, to River", "us", BOUND_MOST, 0.7),
    [GOAL_CPU_10_RIVER] = RATIO("P8", "cpu_10_river", "CPU per job that sleeps 10 ms, to River",
                                "us", BOUND_MOST, 0.7),
    [GOAL_CPU_100_RIVER] = RATIO("P8", "cpu_100_river", "CPU per job that sleeps 100 ms, to River",
                                 "us", BOUND_MOST, 0.7),
    [GOAL_COMMITS_10] =
        VALUE("P8", "commits_10", "jobs that sleep 10 ms", "commits/job", BOUND_MOST, 0.1),
    [GOAL_COMMANDS_10] =
        VALUE("P8", "commands_10", "jobs that sleep 10 ms", "Redis commands/job", BOUND_MOST, 5.5),
    [GOAL_HOARD_ONE] = VALUE("P16", "hoard_one", "a long job for each free slot: all are started",
                             "ms", BOUND_MOST, 50),
    [GOAL_HOARD_MANY] = VALUE("P16", "hoard_many", "the same on 14 queues", "ms", BOUND_MOST, 50),
    [GOAL_SHORT_BESIDE_LONG] = RATIO("P16", "short_beside_long",
                                     "start p99 of short jobs beside "
                                     "long ones, to alone",
                                     "ms", BOUND_MOST, 1.2),
    [GOAL_FAR_50] = VALUE("P17", "far_50", "50 ms to all servers, 100 ms handlers", "of the slots",
                          BOUND_LEAST, 0.9),
    [GOAL_HANDLER_CPU] =
        VALUE("P18", "handler_cpu", "CPU per job of a Python handler, above a plugin", "us",
              BOUND_MOST, 25),
    [GOAL_HANDLER_START] =
        VALUE("P18", "handler_start", "start p50 of a Python handler, after a plugin's", "ms",
              BOUND_MOST, 0.2),
    [GOAL_ONCE_FLOOR] = RATIO("P18", "once_floor", "a process for each job, to starts alone",
                              "jobs/s", BOUND_LEAST, 0.8),
    [GOAL_PYTHON_SPEED] =
        RATIO("P18", "python_speed", "Python handlers, to Celery and RQ: the least", "jobs/s",
              BOUND_LEAST, 1),
    [GOAL_PYTHON_CPU] =
        RATIO("P18", "python_cpu", "CPU per job, to Celery and RQ: the most", "us", BOUND_MOST, 1),
    [GOAL_FAR_20] = VALUE("P17", "far_20", "20 ms to all servers, 30 ms handlers", "of the slots",
                          BOUND_LEAST, 0.85),
};

bool goal_is_met(enum goal_id id, double value)
{
    return goals[id].bound_is == BOUND_LEAST ? value >= goals[id].bound : value <= goals[id].bound;
}

static void add(json_t *result, enum goal_id id, double measured, double value)
{
    json_t *all = json_object_get(result, "goals");
    if (all == NULL) {
        all = json_array();
        (void)json_object_set_new(result, "goals", all);
    }
    json_t *one = json_pack("{s:s, s:f, s:b}", "name", goals[id].name, "measured", measured,
                            "is_met", goal_is_met(id, value));
    if (goals[id].is_ratio) {
        (void)json_object_set_new(one, "ratio", json_real(value));
    }
    (void)json_array_append_new(all, one);
}

void goal_add(json_t *result, enum goal_id id, double measured)
{
    assert(!goals[id].is_ratio);
    add(result, id, measured, measured);
}

void goal_add_ratio(json_t *result, enum goal_id id, double measured, double ratio)
{
    assert(goals[id].is_ratio);
    add(result, id, measured, ratio);
}

/* ---- the table ---- */

/* Returns the entry of that goal in the last result that has one, or NULL. */
static const json_t *find(const json_t *results, const char *name)
{
    const json_t *found = NULL;
    size_t i = 0;
    const json_t *result = NULL;
    json_array_foreach(results, i, result)
    {
        size_t j = 0;
        const json_t *one = NULL;
        json_array_foreach(json_object_get(result, "goals"), j, one)
        {
            const char *its = json_string_value(json_object_get(one, "name"));
            found = its != NULL && strcmp(its, name) == 0 ? one : found;
        }
    }
    return found;
}

static const char *verdict(const json_t *one)
{
    if (one == NULL) {
        return "";
    }
    return json_is_true(json_object_get(one, "is_met")) ? "met" : "MISSED";
}

static void print_row(FILE *out, const struct goal *g, const json_t *one)
{
    char measured[48] = "not measured";
    char ratio[16] = "";
    char bound[48];
    const json_t *number = json_object_get(one, "ratio");
    if (one != NULL) {
        (void)snprintf(measured, sizeof measured, "%.5g %s",
                       json_number_value(json_object_get(one, "measured")), g->unit);
    }
    if (number != NULL) {
        (void)snprintf(ratio, sizeof ratio, "%.2f", json_number_value(number));
    }
    (void)snprintf(bound, sizeof bound, "%s %g",
                   g->bound_is == BOUND_LEAST ? ">=" : "<=", g->bound);
    (void)fprintf(out, "%-4s %-56s %-20s %6s  %-9s %s\n", g->number, g->what, measured, ratio,
                  bound, verdict(one));
}

void goals_print(FILE *out, const json_t *results)
{
    (void)fprintf(out, "%-4s %-56s %-20s %6s  %-9s %s\n", "", "", "MEASURED", "RATIO", "GOAL", "");
    for (size_t i = 0; i < GOALS; i++) {
        print_row(out, &goals[i], find(results, goals[i].name));
    }
}
