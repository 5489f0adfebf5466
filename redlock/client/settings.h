/* SPDX-License-Identifier: Apache-2.0
 *
 * The options of a client, checked, with defaults, in microseconds. */
#ifndef CLAIMD_REDLOCK_CLIENT_SETTINGS_H
#define CLAIMD_REDLOCK_CLIENT_SETTINGS_H

#include "base/err.h"
#include "redlock/redlock_async.h"

struct settings {
    int64_t ttl_us;
    int64_t ttl_max_us;
    int64_t node_timeout_us;
    int64_t open_us;
    int drift_ppm;
    char *list; /* the nodes' URLs point into it */
    struct redlock_node nodes[REDLOCK_NODES_MAX];
    size_t node_count;
    size_t refused_max; /* this many unsuitable nodes do not prevent opening */
    const char *prefix;
    char own_label[REDLOCK_LABEL_LEN_MAX + 1]; /* used if the options have none */
    void (*on_event)(void *ctx, const struct redlock_event *event);
    void *ctx;
};

/* Checks the options, and reads the environment if they say so. INVALID: the error names the option
 * and the allowed values. On success, the caller must free `list`. */
enum status settings_read(const struct redlock_options *options, struct settings *ret,
                          struct err *err) MUST_USE;
enum status settings_check_ttl(const struct settings *s, int64_t ttl_ms, struct err *err) MUST_USE;
/* Splits a list of URLs in place. */
enum status settings_split_nodes(char *list, struct redlock_node ret_nodes[REDLOCK_NODES_MAX],
                                 size_t *ret_count, struct err *err) MUST_USE;

#endif
