/* SPDX-License-Identifier: Apache-2.0
 *
 * The settings on which all daemons of a cluster must agree: the list of lock nodes (lock.N8) and
 * T_max. */
#ifndef CLAIMD_STORE_CLUSTER_STORE_H
#define CLAIMD_STORE_CLUSTER_STORE_H

#include "store/pg/pg.h"

#define CLUSTER_FINGERPRINT_MAX 4096

/* Joins the cluster. The fingerprint is the text of redis_endpoint_sorted_list(), so that an error
 * can show both lists. Stores it if no daemon has joined yet, and raises T_max. CONFLICT: the
 * cluster was made with another list, which err shows. */
typedef void cluster_join_cb(void *ctx, enum status st, int64_t t_max_us, const struct err *err);

struct cluster_join {
    struct pg *pg;
    const char *fingerprint; /* borrowed until `done`, like this struct */
    int64_t ttl_us;
    cluster_join_cb *done;
    void *ctx;
};

enum status cluster_store_join(struct cluster_join *join, struct err *err) MUST_USE;

#endif
