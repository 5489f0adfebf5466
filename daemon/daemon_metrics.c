/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/daemon_metrics.h"

#include "base/clock.h"
#include "daemon/daemon.h"

static const struct metric_family pg_up = {
    .name = "claimd_postgres_up", .help = "1: connected and ready.", .type = METRIC_GAUGE};
static const struct metric_family pg_connects = {.name = "claimd_postgres_connects_total",
                                                 .help = "Sessions begun with PostgreSQL.",
                                                 .type = METRIC_COUNTER};
static const struct metric_family node_up = {.name = "claimd_redis_node_up",
                                             .help = "1: the lock node answers and may be used.",
                                             .type = METRIC_GAUGE,
                                             .labels = {"node"}};
static const struct metric_family node_voting = {.name = "claimd_redis_node_voting",
                                                 .help = "1: the lock node has a vote.",
                                                 .type = METRIC_GAUGE,
                                                 .labels = {"node"}};
static const struct metric_family node_errors = {
    .name = "claimd_redis_node_errors_total",
    .help = "Times that the lock node went down or was refused.",
    .type = METRIC_COUNTER,
    .labels = {"node"}};
static const struct metric_family node_reply = {
    .name = "claimd_redis_node_reply_seconds",
    .help = "How long the lock node's last look at itself took, asked for every few seconds.",
    .type = METRIC_GAUGE,
    .labels = {"node"}};
static const struct metric_family node_memory = {.name = "claimd_redis_node_memory_bytes",
                                                 .help =
                                                     "Memory that the lock node uses, by itself.",
                                                 .type = METRIC_GAUGE,
                                                 .labels = {"node"}};
static const struct metric_family reload_ok = {.name = "claimd_config_last_reload_successful",
                                               .help = "1: the configuration's last reload was.",
                                               .type = METRIC_GAUGE};
static const struct metric_family reload_time = {
    .name = "claimd_config_last_reload_success_timestamp_seconds",
    .help = "When the present configuration was read, Unix time.",
    .type = METRIC_GAUGE};
static const struct metric_family quorum = {.name = "claimd_lock_quorum",
                                            .help = "1: enough lock nodes with a vote are up.",
                                            .type = METRIC_GAUGE};
static const struct metric_family splits = {
    .name = "claimd_lock_splits_total",
    .help = "Locks asked for of which no holder had a quorum: the votes were split.",
    .type = METRIC_COUNTER};
static const struct metric_family log_lines = {.name = "claimd_log_lines_total",
                                               .help = "Log lines, dropped ones too.",
                                               .type = METRIC_COUNTER,
                                               .labels = {"level"}};
static const struct metric_family log_dropped_lines = {
    .name = "claimd_log_lines_dropped_total",
    .help = "Log lines that were lost: who reads the log stood still, or it could not be written.",
    .type = METRIC_COUNTER};

void daemon_metrics_init(struct daemon_metrics *m, struct metrics *registry, const struct config *c)
{
    static const char *const levels[] = {
        [LOG_ERROR] = "error", [LOG_WARN] = "warn", [LOG_INFO] = "info", [LOG_DEBUG] = "debug"};
    m->pg_up = metrics_series(registry, &pg_up, NULL, NULL);
    m->pg_connects = metrics_series(registry, &pg_connects, NULL, NULL);
    m->quorum = metrics_series(registry, &quorum, NULL, NULL);
    m->splits = metrics_series(registry, &splits, NULL, NULL);
    for (size_t i = 0; i < ARRAY_COUNT(levels); i++) {
        m->log_lines[i] = metrics_series(registry, &log_lines, levels[i], NULL);
    }
    m->log_dropped = metrics_series(registry, &log_dropped_lines, NULL, NULL);
    m->reload_ok = metrics_series(registry, &reload_ok, NULL, NULL);
    m->reload_time = metrics_series(registry, &reload_time, NULL, NULL);
    daemon_metrics_reloaded(m, true); /* it was loaded a moment ago */
    m->node_count = c->lock.node_count;
    for (size_t i = 0; i < m->node_count; i++) {
        char node[CONFIG_TEXT_MAX];
        daemon_node_text(c, i, node, sizeof node);
        m->node_up[i] = metrics_series(registry, &node_up, node, NULL);
        m->node_voting[i] = metrics_series(registry, &node_voting, node, NULL);
        m->node_errors[i] = metrics_series(registry, &node_errors, node, NULL);
        m->node_reply[i] = metrics_series(registry, &node_reply, node, NULL);
        m->node_memory[i] = metrics_series(registry, &node_memory, node, NULL);
    }
}

void daemon_metrics_reloaded(struct daemon_metrics *m, bool is_taken)
{
    metric_set(m->reload_ok, is_taken ? 1 : 0);
    if (is_taken) {
        metric_set(m->reload_time, (double)clock_wall_us() / (double)US_PER_S);
    }
}

void daemon_metrics_pg_up(struct daemon_metrics *m)
{
    metric_add(m->pg_connects, 1);
}

void daemon_metrics_lock_node(struct daemon_metrics *m, size_t node, enum redlock_event_kind event)
{
    if (event == REDLOCK_EVENT_DOWN || event == REDLOCK_EVENT_REFUSED) {
        metric_add(m->node_errors[node], 1);
    }
}

void daemon_metrics_collect(struct daemon_metrics *m, const struct daemon_facts *facts)
{
    bool has_quorum = facts->lock != NULL && redlock_async_has_quorum(facts->lock);
    metric_set(m->pg_up, facts->is_pg_up ? 1 : 0);
    metric_set(m->quorum, has_quorum ? 1 : 0);
    metric_take(m->splits, facts->splits);
    for (size_t i = 0; i < ARRAY_COUNT(m->log_lines); i++) {
        metric_take(m->log_lines[i], log_count((enum log_level)i));
    }
    metric_take(m->log_dropped, log_dropped());
    for (size_t i = 0; i < m->node_count; i++) {
        struct redlock_node_info info = {0};
        struct redlock_async_load load = {0};
        if (facts->lock != NULL) {
            redlock_async_node(facts->lock, i, &info);
            redlock_async_load(facts->lock, i, &load);
        }
        metric_set(m->node_reply[i], (double)load.reply_us / (double)US_PER_S);
        metric_set(m->node_memory[i], (double)load.memory_bytes);
        metric_set(m->node_up[i], info.is_up ? 1 : 0);
        metric_set(m->node_voting[i], info.may_vote ? 1 : 0);
    }
}
