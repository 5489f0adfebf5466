/* SPDX-License-Identifier: Apache-2.0
 *
 * Workload peers: medians over its rounds, as JSON and as a table. */
#include "bench/figures.h"
#include "bench/goals.h"
#include "bench/peers.h"

#include <stdio.h>

typedef double value_fn(const struct peers_figure *f, const struct peers_figure *claimd);

static double per_s(const struct peers_figure *f, const struct peers_figure *claimd)
{
    (void)claimd;
    return f->per_s;
}

static double cpu_us(const struct peers_figure *f, const struct peers_figure *claimd)
{
    (void)claimd;
    return f->cpu_us;
}

static double commits(const struct peers_figure *f, const struct peers_figure *claimd)
{
    (void)claimd;
    return f->commits;
}

static double redis_commands(const struct peers_figure *f, const struct peers_figure *claimd)
{
    (void)claimd;
    return f->redis_commands;
}

static double slots_used(const struct peers_figure *f, const struct peers_figure *claimd)
{
    (void)claimd;
    return f->slots_used;
}

static double p50_ms(const struct peers_figure *f, const struct peers_figure *claimd)
{
    (void)claimd;
    return f->p50_ms;
}

static double p99_ms(const struct peers_figure *f, const struct peers_figure *claimd)
{
    (void)claimd;
    return f->p99_ms;
}

static double per_s_ratio(const struct peers_figure *f, const struct peers_figure *claimd)
{
    return claimd->per_s / f->per_s;
}

static double cpu_ratio(const struct peers_figure *f, const struct peers_figure *claimd)
{
    return claimd->cpu_us / f->cpu_us;
}

static double p50_ratio(const struct peers_figure *f, const struct peers_figure *claimd)
{
    return claimd->p50_ms / f->p50_ms;
}

static double p99_ratio(const struct peers_figure *f, const struct peers_figure *claimd)
{
    return claimd->p99_ms / f->p99_ms;
}

struct column {
    const char *name;
    value_fn *value;
};

#define COLUMNS 4
/* Ratios are claimd's figure divided by the other's. */
static const struct column speed_columns[COLUMNS] = {{"jobs_per_s", per_s},
                                                     {"cpu_us_per_job", cpu_us},
                                                     {"claimd_speed_ratio", per_s_ratio},
                                                     {"claimd_cpu_ratio", cpu_ratio}};
static const struct column time_columns[COLUMNS] = {{"p50_ms", p50_ms},
                                                    {"p99_ms", p99_ms},
                                                    {"claimd_p50_ratio", p50_ratio},
                                                    {"claimd_p99_ratio", p99_ratio}};

/* Computes the median of a value of a row relative to another row. Returns false if it was not
 * measured. */
static bool median_of(const struct peers *p, enum peers_work work, size_t at, size_t beside,
                      value_fn *value, double *ret)
{
    double values[PEERS_ROUNDS_MAX];
    size_t count = 0;
    for (size_t i = 0; i < p->rounds; i++) {
        const struct peers_figure *figures = p->figures[i][work];
        if (figures[at].is_there && figures[beside].is_there) {
            values[count++] = value(&figures[at], &figures[beside]);
        }
    }
    if (count == 0) {
        return false;
    }
    *ret = figures_median(values, count);
    return true;
}

static void report_row(const struct peers *p, enum peers_work work, size_t at, json_t *list)
{
    const struct column *columns = peers_is_timed(work) ? time_columns : speed_columns;
    const struct peers_row *row = &p->rows[at];
    json_t *one = json_pack("{s:s, s:s, s:s, s:b}", "work", peers_works[work].name, "name",
                            row->name, "settings", row->settings, "is_durable", row->is_durable);
    double values[COLUMNS] = {0};
    for (size_t i = 0; i < COLUMNS; i++) {
        if (!median_of(p, work, at, PEERS_CLAIMD, columns[i].value, &values[i])) {
            json_decref(one);
            return;
        }
        (void)json_object_set_new(one, columns[i].name, json_real(values[i]));
    }
    double used = 0;
    if (median_of(p, work, at, at, slots_used, &used) && used > 0) {
        (void)json_object_set_new(one, "slots_used", json_real(used));
    }
    (void)json_array_append_new(list, one);
    (void)fprintf(stderr, "%-14s %-11s %-8s %-7s %10.*f %10.1f %9.2f %9.2f\n",
                  peers_works[work].name, row->name, row->settings, row->is_durable ? "yes" : "NO",
                  peers_is_timed(work) ? 2 : 0, values[0], values[1], values[2], values[3]);
}

static void report_goals(const struct peers *p, json_t *result)
{
    static const struct {
        enum goal_id id;
        enum peers_work work;
        size_t row;
        value_fn *value;
        value_fn *ratio;
    } all[] = {
        {GOAL_DRAIN_RIVER, PEERS_DRAIN, PEERS_CLAIMD, per_s, per_s_ratio},
        {GOAL_CPU_RIVER, PEERS_DRAIN, PEERS_CLAIMD, cpu_us, cpu_ratio},
        {GOAL_START_P50_RIVER, PEERS_START, PEERS_CLAIMD, p50_ms, p50_ratio},
        {GOAL_START_P99_RIVER, PEERS_START, PEERS_CLAIMD, p99_ms, p99_ratio},
        {GOAL_START_500_P50_RIVER, PEERS_START_500, PEERS_CLAIMD, p50_ms, p50_ratio},
        {GOAL_START_500_P99_RIVER, PEERS_START_500, PEERS_CLAIMD, p99_ms, p99_ratio},
        {GOAL_CPU_1_RIVER, PEERS_SLEEP_1, PEERS_CLAIMD, cpu_us, cpu_ratio},
        {GOAL_CPU_10_RIVER, PEERS_SLEEP_10, PEERS_CLAIMD, cpu_us, cpu_ratio},
        {GOAL_CPU_100_RIVER, PEERS_SLEEP_100, PEERS_CLAIMD, cpu_us, cpu_ratio},
        {GOAL_ENQUEUE_BULK, PEERS_INSERT, PEERS_CLAIMD_SELECT, per_s, per_s_ratio},
    };
    for (size_t i = 0; i < ARRAY_COUNT(all); i++) {
        double measured = 0;
        double ratio = 0;
        if (median_of(p, all[i].work, all[i].row, PEERS_RIVER, all[i].value, &measured) &&
            median_of(p, all[i].work, PEERS_RIVER, all[i].row, all[i].ratio, &ratio)) {
            goal_add_ratio(result, all[i].id, measured, ratio);
        }
    }
    double value = 0;
    if (median_of(p, PEERS_SLEEP_10, PEERS_CLAIMD, PEERS_CLAIMD, commits, &value)) {
        goal_add(result, GOAL_COMMITS_10, value);
    }
    if (median_of(p, PEERS_SLEEP_10, PEERS_CLAIMD, PEERS_CLAIMD, redis_commands, &value)) {
        goal_add(result, GOAL_COMMANDS_10, value);
    }
}

/* Adds the worst ratio over all works in which claimd's handlers are in Python, and over all
 * systems in these works. */
static void report_python(const struct peers *p, json_t *result)
{
    double least = 0;
    double most = 0;
    double speed = 0;
    double cpu = 0;
    for (size_t n = 0; n < PEERS_WORKS * p->row_count; n++) {
        enum peers_work work = (enum peers_work)(n / p->row_count);
        size_t at = n % p->row_count;
        double ratio = 0;
        if (!peers_works[work].is_python || at <= PEERS_RIVER ||
            !median_of(p, work, at, PEERS_CLAIMD, per_s_ratio, &ratio)) {
            continue;
        }
        if (least == 0 || ratio < least) {
            least = ratio;
            (void)median_of(p, work, PEERS_CLAIMD, at, per_s, &speed);
        }
        (void)median_of(p, work, at, PEERS_CLAIMD, cpu_ratio, &ratio);
        if (ratio > most) {
            most = ratio;
            (void)median_of(p, work, PEERS_CLAIMD, at, cpu_us, &cpu);
        }
    }
    if (least > 0) {
        goal_add_ratio(result, GOAL_PYTHON_SPEED, speed, least);
        goal_add_ratio(result, GOAL_PYTHON_CPU, cpu, most);
    }
}

void peers_report(const struct peers *p, json_t *result)
{
    json_t *list = json_array();
    json_t *skipped = json_array();
    for (enum peers_work work = 0; work < PEERS_WORKS; work++) {
        if (!p->figures[0][work][PEERS_CLAIMD].is_there) {
            continue;
        }
        (void)fprintf(stderr, "\n%-34s %-7s %10s %10s %19s\n", "MEDIANS", "DURABLE",
                      peers_is_timed(work) ? "p50 ms" : "jobs/s",
                      peers_is_timed(work) ? "p99 ms" : "CPU us/job", "claimd's by its");
        for (size_t at = 0; at < p->row_count; at++) {
            report_row(p, work, at, list);
        }
    }
    for (size_t at = 0; at < p->row_count; at++) {
        if (p->why_not[at][0] != '\0') {
            (void)json_array_append_new(
                skipped, json_pack("{s:s, s:s, s:s}", "name", p->rows[at].name, "settings",
                                   p->rows[at].settings, "why", p->why_not[at]));
            (void)fprintf(stderr, "%s %s: SKIPPED: %s\n", p->rows[at].name, p->rows[at].settings,
                          p->why_not[at]);
        }
    }
    (void)json_object_set_new(result, "peers", list);
    report_goals(p, result);
    report_python(p, result);
    (void)json_object_set_new(result, "skipped", skipped);
}
