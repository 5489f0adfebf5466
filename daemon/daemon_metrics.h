/* SPDX-License-Identifier: Apache-2.0
 *
 * The metrics of both daemons about their servers and their log (docs/metrics.md, "all"). The
 * struct is part of a daemon's own metrics: it is initialised once, and collected before each text
 * is made. Without a registry nothing is counted. */
#ifndef CLAIMD_DAEMON_DAEMON_METRICS_H
#define CLAIMD_DAEMON_DAEMON_METRICS_H

#include "base/log.h"
#include "config/config.h"
#include "metrics/metrics.h"
#include "redlock/redlock_async.h"

struct daemon_metrics {
    struct metric *pg_up;
    struct metric *pg_connects;
    struct metric *quorum;
    struct metric *splits;
    struct metric *log_lines[LOG_DEBUG + 1];
    struct metric *log_dropped;
    size_t node_count;
    struct metric *node_up[CONFIG_NODES_MAX];
    struct metric *node_voting[CONFIG_NODES_MAX];
    struct metric *node_errors[CONFIG_NODES_MAX];
    struct metric *node_reply[CONFIG_NODES_MAX];
    struct metric *node_memory[CONFIG_NODES_MAX];
    struct metric *reload_ok;
    struct metric *reload_time;
};

/* Registers the metrics; `registry` may be NULL. */
void daemon_metrics_init(struct daemon_metrics *m, struct metrics *registry,
                         const struct config *c);

void daemon_metrics_reloaded(struct daemon_metrics *m, bool is_taken);
void daemon_metrics_pg_up(struct daemon_metrics *m); /* a session began */
void daemon_metrics_lock_node(struct daemon_metrics *m, size_t node, enum redlock_event_kind event);

/* Values that are read at each collection. `lock` is NULL until it is open; `splits` is the sum
 * over all locks. */
struct daemon_facts {
    bool is_pg_up;
    const struct redlock_async *lock;
    uint64_t splits;
};
void daemon_metrics_collect(struct daemon_metrics *m, const struct daemon_facts *facts);

#endif
