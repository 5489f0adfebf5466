/* SPDX-License-Identifier: Apache-2.0
 *
 * What the examples share: a client on the nodes of the command line, and its failures. */
#include "common.h"

struct redlock *open_client(char **urls)
{
    struct redlock_options options = REDLOCK_OPTIONS_INIT;
    struct redlock_node nodes[REDLOCK_NODES_MAX] = {{0}};
    struct redlock_error error;
    struct redlock *client = NULL;
    while (urls[options.node_count] != NULL) {
        nodes[options.node_count].url = urls[options.node_count];
        options.node_count++;
    }
    options.nodes = nodes;
    options.node_timeout_ms = 200; /* all masters share one machine, which may be busy */
    options.trust_fresh = true;    /* they were started a moment ago, and hold no locks yet */
    if (redlock_open(&options, &client, &error) != 0) {
        fail("redlock_open", error.message);
    }
    return client;
}

struct redlock_lock *acquire(struct redlock *client, const struct redlock_request *request)
{
    struct redlock_report report;
    struct redlock_lock *lock = NULL;
    if (redlock_acquire(client, request, &lock, &report) != REDLOCK_WON) {
        fail(request->key, report.message);
    }
    return lock;
}
