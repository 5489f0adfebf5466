/* SPDX-License-Identifier: Apache-2.0
 *
 * The connections to the hint nodes, one to each, and which of them may be used now. Private to
 * hints/. */
#ifndef CLAIMD_HINTS_NODES_H
#define CLAIMD_HINTS_NODES_H

#include "hints/hints.h"

struct hints_nodes;

/* A node may be used from now on; on_node was called before. */
typedef void hints_nodes_up_cb(void *ctx, size_t node);

struct hints_nodes_options {
    const struct hints_options *user;
    const struct redis_script *script; /* or NULL */
    hints_nodes_up_cb *on_up;          /* may be NULL */
    void *ctx;
};

enum status hints_nodes_open(const struct hints_nodes_options *options,
                             struct hints_nodes **ret_nodes, struct err *err) MUST_USE;
void hints_nodes_close(struct hints_nodes *nodes); /* accepts NULL; ends all requests first */

/* Calls redis_node_set_password() for all of them. */
enum status hints_nodes_set_password(struct hints_nodes *nodes, const char *password,
                                     struct err *err) MUST_USE;

size_t hints_nodes_count(const struct hints_nodes *nodes);
bool hints_nodes_is_up(const struct hints_nodes *nodes, size_t node);
int hints_nodes_first_up(const struct hints_nodes *nodes); /* −1 = none */
struct redis_node *hints_nodes_connection(const struct hints_nodes *nodes, size_t node);

/* Leaves the node alone for a second: it replied with an error or accepts no request. */
void hints_nodes_rest(struct hints_nodes *nodes, size_t node, const struct err *why);

#endif
