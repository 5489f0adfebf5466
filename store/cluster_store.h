/* SPDX-License-Identifier: Apache-2.0
 *
 * What all daemons of a cluster must agree on: the list of lock nodes (lock.N8) and T_max. */
#ifndef CLAIMD_STORE_CLUSTER_STORE_H
#define CLAIMD_STORE_CLUSTER_STORE_H

#include "store/pg/pg.h"

#define CLUSTER_FINGERPRINT_MAX 4096

/* The fingerprint is redis_endpoint_sorted_list() itself, so that a refusal can show both lists.
 * Stores it if nobody has joined yet, and raises T_max. CONFLICT: the cluster was made
 * with another list; err shows it. */
typedef void cluster_join_cb(void *ctx, enum status st, int64_t t_max_us, const struct err *err);

struct cluster_join {
    struct pg *pg;
    const char *fingerprint; /* borrowed until `done`, as is this struct */
    int64_t ttl_us;
    cluster_join_cb *done;
    void *ctx;
};

enum status cluster_store_join(struct cluster_join *join, struct err *err) MUST_USE;

#endif
