/* SPDX-License-Identifier: Apache-2.0 */
#include "store/batch_store.h"

#include "sql/queries.h"

enum { COLUMN_BATCH, COLUMN_JOB, COLUMN_WHY, COLUMN_OUTCOME };

/* Columns of job_release. */
enum { RELEASE_FAILED, RELEASE_WHY };

enum status batch_store_end_some(struct pg *pg, pg_done_cb *done, void *ctx, struct err *err)
{
    char batches[4];
    char jobs[4];
    char expiries[4];
    const struct pg_param batches_max = pg_param_i32(BATCHES_PER_ROUND, batches);
    const struct pg_param jobs_max = pg_param_i32(RELEASES_PER_ROUND, jobs);
    const struct pg_param expiries_max = pg_param_i32(EXPIRIES_PER_ROUND, expiries);
    struct pg_request request = {.steps = {{.statement = &SQL_JOB_RELEASE, .params = &jobs_max},
                                           {.statement = &SQL_BATCH_END, .params = &batches_max},
                                           {.statement = &SQL_JOB_EXPIRE, .params = &expiries_max}},
                                 .step_count = 3,
                                 .done = done,
                                 .ctx = ctx};
    return pg_send(pg, &request, err);
}

int64_t batch_store_expired(const struct pg_result *const *results)
{
    return pg_i64(results[2], 0, 0);
}

int batch_store_count(const struct pg_result *const *results)
{
    return pg_row_count(results[1]);
}

int64_t batch_store_kept(const struct pg_result *const *results, const char **ret_why)
{
    int64_t kept = pg_i64(results[0], 0, RELEASE_FAILED);
    *ret_why = kept > 0 ? pg_text(results[0], 0, RELEASE_WHY, NULL) : NULL;
    return kept;
}

struct batch_end batch_store_end(const struct pg_result *const *results, int row)
{
    const struct pg_result *r = results[1];
    return (struct batch_end){
        .batch = pg_i64(r, row, COLUMN_BATCH),
        .follow_up = pg_i64(r, row, COLUMN_JOB),
        .outcome_job = pg_i64(r, row, COLUMN_OUTCOME),
        .why = pg_is_null(r, row, COLUMN_WHY) ? NULL : pg_text(r, row, COLUMN_WHY, NULL)};
}
