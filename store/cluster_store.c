/* SPDX-License-Identifier: Apache-2.0 */
#include "store/cluster_store.h"

#include "sql/queries.h"

#include <string.h>

static void on_joined(void *ctx, enum status st, const struct pg_result *const *results,
                      const struct err *err)
{
    struct cluster_join *join = ctx;
    if (st != STATUS_OK) {
        join->done(join->ctx, st, 0, err);
        return;
    }
    const char *theirs = pg_text(results[0], 0, 0, NULL);
    struct err wrong = {0};
    if (strcmp(theirs, join->fingerprint) != 0) {
        err_set(&wrong, STATUS_CONFLICT, 0,
                "lock.nodes differs from the list that this cluster was made with: %s, not %s",
                theirs, join->fingerprint);
    }
    join->done(join->ctx, wrong.status, pg_i64(results[0], 0, 1), &wrong);
}

enum status cluster_store_join(struct cluster_join *join, struct err *err)
{
    char storage[8];
    struct pg_param params[] = {pg_param_text(join->fingerprint),
                                pg_param_i64(join->ttl_us, storage)};
    return pg_send_one(join->pg, &SQL_CLUSTER_JOIN, params, on_joined, join, err);
}
