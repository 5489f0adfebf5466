/* SPDX-License-Identifier: Apache-2.0
 *
 * What the examples share: a client on the nodes of the command line, and its failures. */
#include "common.h"

struct redlock_client *open_client(char **urls)
{
    char nodes[4096];
    size_t len = 0;
    struct redlock_report report = {0};
    struct redlock_client *client = NULL;
    for (size_t i = 0; urls[i] != NULL && len < sizeof nodes; i++) {
        len += (size_t)snprintf(nodes + len, sizeof nodes - len, "%s%s", i > 0 ? "," : "", urls[i]);
    }
    const struct redlock_options options = {
        .nodes = nodes,
        .node_timeout_ms = 200, /* all masters share one machine, which may be busy */
        .trust_fresh = true};   /* they were started a moment ago, and hold no locks yet */
    if (redlock_open(&options, &client, &report) != REDLOCK_OK) {
        fail("redlock_open", report.message);
    }
    return client;
}

struct redlock_lock *acquire(struct redlock_client *client, const struct redlock_request *request)
{
    struct redlock_report report = {0};
    struct redlock_lock *lock = NULL;
    if (redlock_acquire(client, request, &lock, &report) != REDLOCK_OK) {
        fail(request->key, report.message);
    }
    return lock;
}
