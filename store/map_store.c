/* SPDX-License-Identifier: Apache-2.0 */
#include "store/map_store.h"

#include "sql/queries.h"

enum status map_store_move(struct pg *pg, pg_done_cb *done, void *ctx, struct err *err)
{
    char most[4];
    const struct pg_param params[] = {pg_param_i32(MAP_ENDS_PER_ROUND, most)};
    struct pg_request request = {
        .steps = {{.statement = &SQL_MAP_MOVE, .params = params}, {.statement = &SQL_MAP_FEED}},
        .step_count = 2,
        .done = done,
        .ctx = ctx};
    return pg_send(pg, &request, err);
}

int64_t map_store_moved(const struct pg_result *const *results)
{
    return pg_i64(results[0], 0, 0);
}
