/* SPDX-License-Identifier: Apache-2.0
 *
 * Makes a short text that is the same for the same list of nodes, in any order. */
#include "redlock/client/client.h"
#include "redlock/core/core.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>

/* "host:port/db": what identifies a node, without user and password. */
#define NODE_TEXT_SIZE (REDIS_ENDPOINT_TEXT_SIZE + 12)

static void node_text(const struct redis_endpoint *e, char *ret_text)
{
    char text[REDIS_ENDPOINT_TEXT_SIZE];
    redis_endpoint_text(e, text, sizeof text);
    for (char *p = text; e->path[0] == '\0' && *p != '\0'; p++) {
        *p = (char)tolower((unsigned char)*p); /* host names */
    }
    (void)snprintf(ret_text, NODE_TEXT_SIZE, "%s/%d", text, e->db);
}

static int by_text(const void *a, const void *b)
{
    return strcmp(a, b);
}

/* FNV-1a with 64 bits, followed by the last step of splitmix64, so that each bit depends on all. It
 * detects mistakes, not forgeries. */
static uint64_t digest(char texts[][NODE_TEXT_SIZE], size_t count)
{
    uint64_t h = UINT64_C(14695981039346656037);
    for (size_t i = 0; i < count; i++) {
        /* with its NUL, so that different lists can't give the same bytes */
        size_t len = strlen(texts[i]) + 1;
        for (size_t k = 0; k < len; k++) {
            h = (h ^ (unsigned char)texts[i][k]) * UINT64_C(1099511628211);
        }
    }
    h = (h ^ (h >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    h = (h ^ (h >> 27)) * UINT64_C(0x94d049bb133111eb);
    return h ^ (h >> 31);
}

static enum status fingerprint(char *list, char *ret_text, struct err *err)
{
    struct redlock_node nodes[REDLOCK_NODES_MAX];
    struct redis_endpoint endpoints[REDLOCK_NODES_MAX];
    char texts[REDLOCK_NODES_MAX][NODE_TEXT_SIZE];
    size_t count = 0;
    enum status st = settings_split_nodes(list, nodes, &count, err);
    if (st == STATUS_OK) {
        st = nodes_parse(nodes, count, endpoints, err);
    }
    if (st == STATUS_OK) {
        for (size_t i = 0; i < count; i++) {
            node_text(&endpoints[i], texts[i]);
        }
        qsort(texts, count, sizeof texts[0], by_text);
        (void)snprintf(ret_text, REDLOCK_FINGERPRINT_SIZE, "%016" PRIx64, digest(texts, count));
    }
    return st;
}

enum redlock_result redlock_fingerprint(const char *nodes, char ret_text[REDLOCK_FINGERPRINT_SIZE],
                                        struct redlock_report *ret_report)
{
    struct err err = {0};
    char *list = strdup(nodes);
    enum status st = STATUS_NOMEM;
    if (list != NULL) {
        st = fingerprint(list, ret_text, &err);
    } else {
        err_set(&err, STATUS_NOMEM, 0, "redlock: no memory for the nodes");
    }
    free(list);
    return report_status(st, &err, ret_report);
}
