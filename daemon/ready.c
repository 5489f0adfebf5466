/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/ready.h"

#include "base/clock.h"

#include <stdio.h>

bool ready_is_time(const struct config *c, const struct redlock_async *lock, int64_t since_us)
{
    bool is_known = true;
    for (size_t i = 0; i < c->lock.node_count; i++) {
        struct redlock_node_info node;
        redlock_async_node(lock, i, &node);
        is_known = is_known && (node.may_vote || node.why[0] != '\0');
    }
    return is_known || clock_boot_us() - since_us >= 2 * c->lock.node_timeout_us;
}

static void add_version(const struct redlock_node_info *node, char *texts, size_t size)
{
    char text[64];
    size_t len = strlen(texts);
    (void)snprintf(text, sizeof text, "%s %s", node->server, node->version);
    if (node->server[0] != '\0' && strstr(texts, text) == NULL) {
        (void)snprintf(texts + len, size - len, "%s%s", len > 0 ? ", " : "", text);
    }
}

void ready_describe(const struct config *c, const struct redlock_async *lock, int pg_version,
                    struct ready_servers *ret)
{
    *ret = (struct ready_servers){.redis_versions = ""};
    for (size_t i = 0; i < c->lock.node_count; i++) {
        struct redlock_node_info node;
        redlock_async_node(lock, i, &node);
        add_version(&node, ret->redis_versions, sizeof ret->redis_versions);
    }
    (void)snprintf(ret->postgres, sizeof ret->postgres, "%d.%d", pg_version / 10000,
                   pg_version % 10000);
    (void)snprintf(ret->redis, sizeof ret->redis, "%zu of %zu voting", redlock_async_voting(lock),
                   c->lock.node_count);
}
