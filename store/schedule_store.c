/* SPDX-License-Identifier: Apache-2.0 */
#include "store/schedule_store.h"

#include "base/cleanup.h"
#include "sql/queries.h"

#include <assert.h>
#include <string.h>

enum { COLUMN_SCHEDULE, COLUMN_OUTCOME, COLUMN_JOB, COLUMN_ERROR, COLUMN_DUE, COLUMN_LATE };
enum { MENDED_SCHEDULE, MENDED_WAS, MENDED_DUE };

static const char *const outcomes[] = {[SCHEDULE_FIRED] = "fired",
                                       [SCHEDULE_SKIPPED] = "skipped",
                                       [SCHEDULE_MISSED] = "missed",
                                       [SCHEDULE_FAILED] = "failed",
                                       [SCHEDULE_NEXT] = "next"};

const char *schedule_outcome_text(enum schedule_outcome outcome)
{
    return outcomes[outcome];
}

enum status schedule_store_fire(struct pg *pg, int64_t timeout_us, pg_done_cb *done, void *ctx,
                                struct err *err)
{
    char storage[4];
    const struct pg_param param = pg_param_i32(SCHEDULES_PER_FIRE, storage);
    struct pg_request request = {.steps = {{.statement = &SQL_SCHEDULE_FIRE, .params = &param}},
                                 .step_count = 1,
                                 .timeout_us = timeout_us,
                                 .done = done,
                                 .ctx = ctx};
    return pg_send(pg, &request, err);
}

static enum schedule_outcome outcome_of(const char *text)
{
    size_t i = 0;
    while (i < ARRAY_COUNT(outcomes) && strcmp(text, outcomes[i]) != 0) {
        i++;
    }
    assert(i < ARRAY_COUNT(outcomes));
    return (enum schedule_outcome)i;
}

static const char *text_or_null(const struct pg_result *r, int row, int column)
{
    return pg_is_null(r, row, column) ? NULL : pg_text(r, row, column, NULL);
}

void schedule_store_event(const struct pg_result *r, int row, struct schedule_event *ret)
{
    bool is_never = pg_is_null(r, row, COLUMN_LATE);
    *ret = (struct schedule_event){.outcome = outcome_of(pg_text(r, row, COLUMN_OUTCOME, NULL)),
                                   .schedule = text_or_null(r, row, COLUMN_SCHEDULE),
                                   .due = text_or_null(r, row, COLUMN_DUE),
                                   .error = text_or_null(r, row, COLUMN_ERROR),
                                   .job = pg_i64(r, row, COLUMN_JOB),
                                   .late_us = is_never ? 0 : pg_i64(r, row, COLUMN_LATE),
                                   .is_never = is_never};
}

enum status schedule_store_mend(struct pg *pg, const char *behind, int64_t timeout_us,
                                pg_done_cb *done, void *ctx, struct err *err)
{
    char storage[4];
    const struct pg_param params[] = {pg_param_text(behind),
                                      pg_param_i32(SCHEDULES_PER_MEND, storage)};
    struct pg_request request = {.steps = {{.statement = &SQL_SCHEDULE_MEND, .params = params}},
                                 .step_count = 1,
                                 .timeout_us = timeout_us,
                                 .done = done,
                                 .ctx = ctx};
    return pg_send(pg, &request, err);
}

void schedule_store_mended(const struct pg_result *r, int row, struct schedule_mended *ret)
{
    *ret = (struct schedule_mended){.schedule = text_or_null(r, row, MENDED_SCHEDULE),
                                    .was = text_or_null(r, row, MENDED_WAS),
                                    .due = text_or_null(r, row, MENDED_DUE)};
}
