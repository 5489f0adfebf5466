/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/report.h"

#include "base/clock.h"
#include "bench/figures.h"

#include <stdio.h>

void report_times(json_t *result, const char *prefix, int64_t *us, size_t count)
{
    static const struct {
        const char *name;
        size_t percent;
    } points[] = {{"p50_ms", 50}, {"p90_ms", 90}, {"p99_ms", 99}, {"max_ms", 100}};
    char name[64];
    for (size_t i = 0; i < ARRAY_COUNT(points); i++) {
        int64_t at_us = figures_percentile_us(us, count, points[i].percent);
        (void)snprintf(name, sizeof name, "%s%s", prefix, points[i].name);
        (void)json_object_set_new(result, name, json_real((double)at_us / (double)US_PER_MS));
    }
}

double report_cpu(json_t *result, const struct cluster_cpu *from, const struct cluster_cpu *to,
                  double jobs)
{
    const struct {
        const char *name;
        int64_t us;
    } kinds[] = {{"postgres", to->postgres_us - from->postgres_us},
                 {"redis", to->redis_us - from->redis_us},
                 {"scheduler", to->scheduler_us - from->scheduler_us},
                 {"worker", to->worker_us - from->worker_us},
                 {"runner", to->runner_us - from->runner_us}};
    json_t *cpu = json_object();
    int64_t sum = 0;
    for (size_t i = 0; i < ARRAY_COUNT(kinds); i++) {
        (void)json_object_set_new(cpu, kinds[i].name, json_real((double)kinds[i].us / jobs));
        sum += kinds[i].us;
    }
    (void)json_object_set_new(cpu, "all", json_real((double)sum / jobs));
    (void)json_object_set_new(result, "cpu_us_per_job", cpu);
    return (double)sum / jobs;
}
