/* SPDX-License-Identifier: Apache-2.0 */
#include "store/batch_store.h"

#include "sql/queries.h"

enum { COLUMN_BATCH, COLUMN_JOB, COLUMN_WHY };

enum status batch_store_end_some(struct pg *pg, pg_done_cb *done, void *ctx, struct err *err)
{
    char storage[4];
    const struct pg_param param = pg_param_i32(BATCHES_PER_ROUND, storage);
    return pg_send_one(pg, &SQL_BATCH_END, &param, done, ctx, err);
}

struct batch_end batch_store_end(const struct pg_result *r, int row)
{
    return (struct batch_end){
        .batch = pg_i64(r, row, COLUMN_BATCH),
        .follow_up = pg_i64(r, row, COLUMN_JOB),
        .why = pg_is_null(r, row, COLUMN_WHY) ? NULL : pg_text(r, row, COLUMN_WHY, NULL)};
}
