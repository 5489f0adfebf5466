/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/locks_contended.h"

#include "bench/figures.h"
#include "bench/goals.h"
#include "bench/locks_contest.h"

#include <math.h>
#include <stdio.h>

#define ROUNDS_MAX 20 /* of --rounds */
#define VERDICT_SIZE 128
#define NOT_MEASURED ((double)NAN)

enum kind { ALONE, MIXED, PAIRS, READERS, KILLS, KINDS };

static const struct cell {
    const char *name;
    enum kind kind;
    struct contest ours;
} cells[] = {
    {"contended 2 x 1 ms", ALONE, {.clients = 2, .hold_ms = 1}},
    {"contended 10 x 1 ms", ALONE, {.clients = 10, .hold_ms = 1}},
    {"contended 50 x 1 ms", ALONE, {.clients = 50, .hold_ms = 1}},
    {"contended 2 x 20 ms", ALONE, {.clients = 2, .hold_ms = 20}},
    {"contended 10 x 20 ms", ALONE, {.clients = 10, .hold_ms = 20}},
    {"contended 50 x 20 ms", ALONE, {.clients = 50, .hold_ms = 20}},
    {"contended mixed 2 x 1 ms", MIXED, {.clients = 2, .rivals = 1, .hold_ms = 1}},
    {"contended mixed 10 x 1 ms", MIXED, {.clients = 10, .rivals = 5, .hold_ms = 1}},
    {"contended mixed 50 x 1 ms", MIXED, {.clients = 50, .rivals = 25, .hold_ms = 1}},
    {"contended mixed 2 x 20 ms", MIXED, {.clients = 2, .rivals = 1, .hold_ms = 20}},
    {"contended mixed 10 x 20 ms", MIXED, {.clients = 10, .rivals = 5, .hold_ms = 20}},
    {"contended mixed 50 x 20 ms", MIXED, {.clients = 50, .rivals = 25, .hold_ms = 20}},
    {"contended pairs of keys", PAIRS, {.clients = 6, .hold_ms = 2, .has_pairs = true}},
    {"contended readers, 1 of 10 writes",
     READERS,
     {.clients = 10, .hold_ms = 20, .has_readers = true}},
    {"contended with kills", KILLS, {.clients = 10, .hold_ms = 2, .has_kills = true}},
};
#define CELLS (sizeof cells / sizeof *cells)

/* The goals for each kind of contest. */
static const struct demand {
    enum contest_figure figure;
    enum goal_id goal;
} demands[KINDS][7] = {
    [ALONE] = {{FIGURE_LEAST, GOAL_CONTENDED_LEAST},
               {FIGURE_MOST, GOAL_CONTENDED_MOST},
               {FIGURE_WINS, GOAL_CONTENDED_REDSYNC},
               {FIGURE_CHANGES, GOAL_CONTENDED_CHANGES},
               {FIGURE_COMMANDS, GOAL_CONTENDED_COMMANDS},
               {FIGURE_OVERLAPS, GOAL_CONTENDED_OVERLAPS},
               {FIGURES, GOALS}},
    [MIXED] = {{FIGURE_OURS, GOAL_MIXED_OURS},
               {FIGURE_RIVALS, GOAL_MIXED_REDSYNC},
               {FIGURE_EARLY_MS, GOAL_MIXED_EARLY},
               {FIGURE_OURS_LATE_MS, GOAL_MIXED_LATE},
               {FIGURE_RIVALS_LATE_MS, GOAL_MIXED_LATE},
               {FIGURE_OVERLAPS, GOAL_CONTENDED_OVERLAPS},
               {FIGURES, GOALS}},
    [PAIRS] = {{FIGURE_LEAST, GOAL_PAIRS_LEAST},
               {FIGURE_OVERLAPS, GOAL_CONTENDED_OVERLAPS},
               {FIGURES, GOALS}},
    [READERS] = {{FIGURE_LEAST, GOAL_READERS_LEAST},
                 {FIGURE_OVERLAPS, GOAL_CONTENDED_OVERLAPS},
                 {FIGURES, GOALS}},
    [KILLS] = {{FIGURE_STALL_MS, GOAL_KILLS_STALL},
               {FIGURE_OVERLAPS, GOAL_CONTENDED_OVERLAPS},
               {FIGURES, GOALS}},
};

static const struct {
    const char *name; /* in JSON */
    const char *text; /* in verdicts */
} figure_names[FIGURES] = {
    [FIGURE_WINS] = {"wins_per_s", "wins"},
    [FIGURE_CHANGES] = {"changes_per_win", "changes"},
    [FIGURE_LEAST] = {"least_share", "least share"},
    [FIGURE_MOST] = {"most_share", "most share"},
    [FIGURE_OURS] = {"our_share", "our share"},
    [FIGURE_RIVALS] = {"redsync_share", "redsync's share"},
    [FIGURE_COMMANDS] = {"commands_per_win", "commands"},
    [FIGURE_WAIT_MS] = {"longest_wait_ms", "longest wait"},
    [FIGURE_EARLY_MS] = {"longest_early_wait_ms", "early wait"},
    [FIGURE_OURS_LATE_MS] = {"our_longest_late_wait_ms", "our late wait"},
    [FIGURE_RIVALS_LATE_MS] = {"redsync_longest_late_wait_ms", "redsync's late wait"},
    [FIGURE_STALL_MS] = {"longest_stall_ms", "stall"},
    [FIGURE_OVERLAPS] = {"overlaps", "OVERLAPS"},
    [FIGURE_FAILURES] = {"failures", "failures"},
    [FIGURE_KILLED] = {"killed", "killed"},
};

/* The figures of a cell, and of the same contest among redsync's clients. */
struct measured {
    double ours[ROUNDS_MAX][FIGURES];
    double rival[ROUNDS_MAX][FIGURES];
    double ratios[ROUNDS_MAX][FIGURES]; /* only of FIGURE_WINS */
};

static bool is_wanted(const struct cell *cell, const char *only)
{
    return only == NULL || strstr(cell->name, only) != NULL;
}

bool contended_is_wanted(const char *only, bool *ret_with_rival)
{
    bool is_any = false;
    *ret_with_rival = false;
    for (size_t i = 0; i < CELLS; i++) {
        if (is_wanted(&cells[i], only)) {
            is_any = true;
            *ret_with_rival |= cells[i].kind == ALONE || cells[i].kind == MIXED;
        }
    }
    return is_any;
}

/* ---- measuring ---- */

static void set_all(double *values, double value)
{
    for (size_t i = 0; i < FIGURES; i++) {
        values[i] = value;
    }
}

static void run(const struct locks_world *w, const struct contest *c, int64_t seconds,
                double *figures, struct err *err)
{
    struct err own = {0};
    set_all(figures, NOT_MEASURED);
    if (c->rivals > 0 && w->rival[0] == '\0') {
        return;
    }
    if (contest_run(w, c, seconds, figures, &own) != STATUS_OK) {
        set_all(figures, NOT_MEASURED);
        (void)fprintf(stderr, "bench: %s\n", own.msg);
        err_set(err, STATUS_UNAVAILABLE, 0, "a contest failed: %s", own.msg);
    }
}

/* A line may last 10 s before it yields to clients that do not stand in line (lock.L8). A contest
 * with redsync must last longer than that. */
#define MIXED_TIMES 5

/* In every other round, redsync goes first. */
static void measure_cell(const struct locks_world *w, const struct cell *cell, size_t round,
                         int64_t seconds, struct measured *m, struct err *err)
{
    struct contest rival = cell->ours;
    rival.rivals = rival.clients;
    set_all(m->rival[round], NOT_MEASURED);
    set_all(m->ratios[round], NOT_MEASURED);
    if (cell->kind == ALONE && round % 2 == 1) {
        run(w, &rival, seconds, m->rival[round], err);
    }
    run(w, &cell->ours, cell->kind == MIXED ? MIXED_TIMES * seconds : seconds, m->ours[round], err);
    if (cell->kind == ALONE && round % 2 == 0) {
        run(w, &rival, seconds, m->rival[round], err);
    }
    m->ratios[round][FIGURE_WINS] = m->ours[round][FIGURE_WINS] / m->rival[round][FIGURE_WINS];
}

/* Returns the median of the rounds; for overlaps, the sum. */
static double over_rounds(double values[ROUNDS_MAX][FIGURES], size_t rounds, enum contest_figure f)
{
    double sorted[ROUNDS_MAX];
    double sum = 0;
    size_t count = 0;
    for (size_t i = 0; i < rounds; i++) {
        if (!isnan(values[i][f])) {
            sum += values[i][f];
            sorted[count++] = values[i][f];
        }
    }
    if (count == 0) {
        return NOT_MEASURED;
    }
    return f == FIGURE_OVERLAPS || f == FIGURE_KILLED ? sum : figures_median(sorted, count);
}

/* ---- the verdict ---- */

struct summary {
    double ours[FIGURES];
    double rival[FIGURES];
    double ratio; /* ratio of the wins: the median of the ratios within a round */
};

static struct summary summarize(struct measured *m, size_t rounds)
{
    struct summary s;
    for (enum contest_figure f = 0; f < FIGURES; f++) {
        s.ours[f] = over_rounds(m->ours, rounds, f);
        s.rival[f] = over_rounds(m->rival, rounds, f);
    }
    s.ratio = over_rounds(m->ratios, rounds, FIGURE_WINS);
    return s;
}

static double demanded(const struct summary *s, const struct demand *d)
{
    return goals[d->goal].is_ratio ? s->ratio : s->ours[d->figure];
}

/* Writes "reached", or the goals that were missed. */
static void verdict(const struct cell *cell, const struct summary *s, char *ret, size_t size)
{
    size_t used = 0;
    ret[0] = '\0';
    if (isnan(s->ours[FIGURE_WINS])) {
        (void)snprintf(ret, size, "not measured");
        return;
    }
    for (const struct demand *d = demands[cell->kind]; d->goal != GOALS; d++) {
        double value = demanded(s, d);
        if (!isnan(value) && !goal_is_met(d->goal, value) && used < size) {
            used += (size_t)snprintf(ret + used, size - used, "%s%s",
                                     used > 0 ? ", " : "MISSED: ", figure_names[d->figure].text);
        }
    }
    if (used == 0) {
        (void)snprintf(ret, size, "reached");
    }
}

/* ---- the output ---- */

static void print_heads(size_t rounds)
{
    char title[48];
    (void)snprintf(title, sizeof title, "CONTENDED, MEDIANS OF ROUNDS: %zu", rounds);
    (void)printf("\n%-34s %8s %6s %12s %8s %9s %15s %9s %8s %8s\n", title, "WINS/S", "RATIO",
                 "SHARES", "CHANGES", "COMMANDS", "LONGEST WAIT ms", "STALL ms", "OVERLAPS",
                 "GAVE UP");
}

/* Shares and waits are those of the clients. In a mixed contest, they are those of the two sides,
 * ours : redsync's, preceded by the wait before redsync's first win. */
static void print_line(const char *name, const struct cell *cell, const double *f, double ratio,
                       const char *end)
{
    bool is_mixed = cell->kind == MIXED;
    char ratio_text[16] = "";
    char shares[32];
    char waits[48];
    if (!isnan(ratio)) {
        (void)snprintf(ratio_text, sizeof ratio_text, "%.2f", ratio);
    }
    (void)snprintf(shares, sizeof shares, is_mixed ? "%.2f : %.2f" : "%.2f-%.2f",
                   f[is_mixed ? FIGURE_OURS : FIGURE_LEAST],
                   f[is_mixed ? FIGURE_RIVALS : FIGURE_MOST]);
    if (is_mixed) {
        (void)snprintf(waits, sizeof waits, "%.0f, %.0f : %.0f", f[FIGURE_EARLY_MS],
                       f[FIGURE_OURS_LATE_MS], f[FIGURE_RIVALS_LATE_MS]);
    } else {
        (void)snprintf(waits, sizeof waits, "%.0f", f[FIGURE_WAIT_MS]);
    }
    (void)printf("%-34s %8.1f %6s %12s %8.2f %9.2f %15s %9.0f %8.0f %8.0f  %s\n", name,
                 f[FIGURE_WINS], ratio_text, shares, f[FIGURE_CHANGES], f[FIGURE_COMMANDS], waits,
                 f[FIGURE_STALL_MS], f[FIGURE_OVERLAPS], f[FIGURE_FAILURES], end);
}

static void print_cell(const struct cell *cell, const struct summary *s)
{
    char text[VERDICT_SIZE];
    verdict(cell, s, text, sizeof text);
    if (cell->ours.has_kills) {
        size_t used = strlen(text);
        (void)snprintf(text + used, sizeof text - used, " (%.0f killed)", s->ours[FIGURE_KILLED]);
    }
    print_line(cell->name, cell, s->ours, s->ratio, text);
    if (cell->kind == ALONE) {
        print_line("  redsync", cell, s->rival, NOT_MEASURED, "");
    }
}

static json_t *figures_json(const double *values)
{
    json_t *o = json_object();
    for (enum contest_figure f = 0; f < FIGURES; f++) {
        (void)json_object_set_new(o, figure_names[f].name,
                                  isnan(values[f]) ? json_null() : json_real(values[f]));
    }
    return o;
}

static void add_cell(json_t *list, const struct cell *cell, const struct summary *s)
{
    char text[VERDICT_SIZE];
    verdict(cell, s, text, sizeof text);
    json_t *o = json_pack("{s:s, s:s, s:o}", "name", cell->name, "verdict", text, "ours",
                          figures_json(s->ours));
    if (cell->kind == ALONE) {
        (void)json_object_set_new(o, "redsync", figures_json(s->rival));
        (void)json_object_set_new(o, "redsync_ratio",
                                  isnan(s->ratio) ? json_null() : json_real(s->ratio));
    }
    (void)json_array_append_new(list, o);
}

/* Adds the worst figure of all cells that have this goal. */
static void add_goal(json_t *result, enum goal_id goal, const struct summary *summaries,
                     const bool *are_measured)
{
    double worst = NOT_MEASURED;
    double measured = NOT_MEASURED;
    for (size_t i = 0; i < CELLS; i++) {
        for (const struct demand *d = demands[cells[i].kind]; are_measured[i] && d->goal != GOALS;
             d++) {
            double value = demanded(&summaries[i], d);
            bool is_worse = goals[goal].bound_is == BOUND_LEAST ? value < worst : value > worst;
            if (d->goal == goal && !isnan(value) && (isnan(worst) || is_worse)) {
                worst = value;
                measured = summaries[i].ours[d->figure];
            }
        }
    }
    if (!isnan(worst) && goals[goal].is_ratio) {
        goal_add_ratio(result, goal, measured, worst);
    } else if (!isnan(worst)) {
        goal_add(result, goal, worst);
    }
}

static void report(const struct contended_options *options, struct measured *measured,
                   json_t *result, double *ret_overlaps)
{
    static struct summary summaries[CELLS];
    bool are_measured[CELLS] = {false};
    json_t *list = json_array();
    if (!options->is_json) {
        print_heads((size_t)options->rounds);
    }
    for (size_t i = 0; i < CELLS; i++) {
        are_measured[i] = is_wanted(&cells[i], options->only);
        if (are_measured[i]) {
            summaries[i] = summarize(&measured[i], (size_t)options->rounds);
            *ret_overlaps = fmax(*ret_overlaps, summaries[i].ours[FIGURE_OVERLAPS]);
            add_cell(list, &cells[i], &summaries[i]);
        }
        if (are_measured[i] && !options->is_json) {
            print_cell(&cells[i], &summaries[i]);
        }
    }
    (void)json_object_set_new(result, "contended", list);
    for (enum goal_id g = GOAL_CONTENDED_LEAST; g <= GOAL_KILLS_STALL; g++) {
        add_goal(result, g, summaries, are_measured);
    }
}

enum status contended_run(const struct locks_world *w, const struct contended_options *options,
                          json_t *result, struct err *err)
{
    static struct measured measured[CELLS];
    struct err failure = {0};
    double overlaps = 0;
    for (size_t round = 0; round < (size_t)options->rounds; round++) {
        for (size_t i = 0; i < CELLS; i++) {
            if (is_wanted(&cells[i], options->only)) {
                (void)fprintf(stderr, "bench: contests, round %zu of %lld: %s\n", round + 1,
                              (long long)options->rounds, cells[i].name);
                measure_cell(w, &cells[i], round, options->seconds, &measured[i], &failure);
            }
        }
    }
    report(options, measured, result, &overlaps);
    if (overlaps > 0) {
        return err_fail(err, STATUS_CONFLICT, "%.0f sections overlapped", overlaps);
    }
    if (failure.status != STATUS_OK) {
        return err_fail(err, failure.status, "%s", failure.msg);
    }
    return STATUS_OK;
}
