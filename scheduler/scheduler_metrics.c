/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/scheduler_metrics.h"

#include "base/clock.h"
#include "scheduler/batches.h"
#include "scheduler/cron.h"
#include "scheduler/survey.h"

const struct metric_family scheduler_metrics_leader = {
    .name = "claimd_scheduler_leader", .help = "1: this one leads.", .type = METRIC_GAUGE};
static const struct metric_family fed = {.name = "claimd_hints_fed_total",
                                         .help = "Ids put into Redis that were not there before.",
                                         .type = METRIC_COUNTER};
static const struct metric_family rescues = {.name = "claimd_rescues_total",
                                             .help = "Jobs moved that no worker has any more.",
                                             .type = METRIC_COUNTER,
                                             .labels = {"outcome"}};
static const struct metric_family workers_dead = {
    .name = "claimd_workers_dead_total", .help = "Workers marked dead.", .type = METRIC_COUNTER};
static const struct metric_family pass_seconds = {
    .name = "claimd_feed_pass_seconds", .help = "One pass of the feed.", .type = METRIC_HISTOGRAM};

static const struct metric_family pass_age = {
    .name = "claimd_feed_pass_age_seconds",
    .help = "How long ago the leader's last pass of the feed ended, in seconds; 0 on a standby.",
    .type = METRIC_GAUGE};
static const struct metric_family lanes = {
    .name = "claimd_feed_lanes", .help = "Lanes that the leader knows.", .type = METRIC_GAUGE};
static const struct metric_family full_pass_age = {
    .name = "claimd_feed_full_pass_age_seconds",
    .help = "Since the last complete full pass of the leader began, or since it leads.",
    .type = METRIC_GAUGE};
static const struct metric_family full_pass_took = {.name = "claimd_feed_full_pass_took_seconds",
                                                    .help = "How long it took.",
                                                    .type = METRIC_GAUGE};
static const struct metric_family recovered = {.name = "claimd_hints_recovered_total",
                                               .help = "Hints that a full pass found missing.",
                                               .type = METRIC_COUNTER};

void scheduler_metrics_init(struct scheduler_metrics *m, struct metrics *registry,
                            const struct config *config)
{
    static const char *const outcomes[] = {
        [RESCUE_AVAILABLE] = "available", [RESCUE_DISCARDED] = "discarded", [RESCUE_LOST] = "lost"};
    m->registry = registry;
    daemon_metrics_init(&m->daemon, registry, config);
    m->fed = metrics_series(registry, &fed, NULL, NULL);
    for (size_t i = 0; i < ARRAY_COUNT(outcomes); i++) {
        m->rescues[i] = metrics_series(registry, &rescues, outcomes[i], NULL);
    }
    m->workers_dead = metrics_series(registry, &workers_dead, NULL, NULL);
    m->pass_seconds = metrics_series(registry, &pass_seconds, NULL, NULL);
    m->pass_age = metrics_series(registry, &pass_age, NULL, NULL);
    m->lanes = metrics_series(registry, &lanes, NULL, NULL);
    m->full_pass_age = metrics_series(registry, &full_pass_age, NULL, NULL);
    m->full_pass_took = metrics_series(registry, &full_pass_took, NULL, NULL);
    m->recovered = metrics_series(registry, &recovered, NULL, NULL);
    survey_metrics_init(registry);
    cron_metrics_init(registry);
    batches_metrics_init(registry);
}

static uint64_t splits_of(const struct scheduler_metrics_facts *facts)
{
    uint64_t sum = 0;
    if (facts->lock != NULL) {
        sum += redlock_async_counters(facts->lock)->results[REDLOCK_SPLIT];
    }
    if (facts->lead != NULL) {
        sum += lead_counters(facts->lead)->results[REDLOCK_SPLIT];
    }
    return sum;
}

static void collect_feed(struct scheduler_metrics *m, const struct feeder *feeder)
{
    const struct full_pass_counters *c = feeder_full_passes(feeder);
    metric_take(m->fed, feeder_counters(feeder)->added);
    metric_take(m->recovered, c->recovered);
    metric_set(m->lanes, (double)feeder_lane_count(feeder));
    metric_set(m->full_pass_took, (double)c->took_us / US_PER_S);
    metric_set(m->full_pass_age,
               c->began_us == 0 ? 0 : (double)(clock_boot_us() - c->began_us) / US_PER_S);
}

void scheduler_metrics_collect(struct scheduler_metrics *m,
                               const struct scheduler_metrics_facts *facts)
{
    const struct daemon_facts common = {.is_pg_up = facts->is_pg_up,
                                        .lock = facts->lead == NULL ? NULL : lead_lock(facts->lead),
                                        .splits = splits_of(facts)};
    metric_set(m->pass_age, (double)facts->feed_age_us / (double)US_PER_S);
    if (facts->feeder != NULL) {
        collect_feed(m, facts->feeder);
    }
    if (facts->rescuer != NULL) {
        const struct rescuer_counters *c = rescuer_counters(facts->rescuer);
        for (size_t i = 0; i < ARRAY_COUNT(m->rescues); i++) {
            metric_take(m->rescues[i], c->moved[i]);
        }
        metric_take(m->workers_dead, c->workers_dead);
    }
    daemon_metrics_collect(&m->daemon, &common);
}
