/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl/commands/overview.h"

#include "sql/queries.h"

#include <assert.h>

static const struct table_column queue_columns[] = {{"queue", CELL_TEXT},
                                                    {"available", CELL_COUNT},
                                                    {"scheduled", CELL_COUNT},
                                                    {"retryable", CELL_COUNT},
                                                    {"waiting", CELL_COUNT | CELL_WIDE},
                                                    {"running", CELL_COUNT},
                                                    {"oldest_due_s", CELL_SECONDS},
                                                    {"per_s", CELL_NUMBER},
                                                    {"paused", CELL_BOOL},
                                                    {"workers", CELL_NUMBER},
                                                    {"kinds", CELL_TEXT | CELL_LIST},
                                                    {"estimated", CELL_BOOL | CELL_HIDDEN}};

static const struct table_column depth_columns[] = {{"queue", CELL_TEXT},
                                                    {"available", CELL_COUNT},
                                                    {"scheduled", CELL_COUNT},
                                                    {"retryable", CELL_COUNT},
                                                    {"waiting", CELL_COUNT | CELL_WIDE},
                                                    {"running", CELL_COUNT},
                                                    {"oldest_due_s", CELL_SECONDS},
                                                    {"paused", CELL_BOOL},
                                                    {"estimated", CELL_BOOL | CELL_HIDDEN}};

static const struct table_column finished_columns[] = {
    {"minutes", CELL_NUMBER},  {"completed", CELL_COUNT}, {"discarded", CELL_COUNT},
    {"cancelled", CELL_COUNT}, {"per_s", CELL_NUMBER},    {"estimated", CELL_BOOL | CELL_HIDDEN}};

static const struct table_column health_columns[] = {{"schedulers", CELL_NUMBER},
                                                     {"leaders", CELL_NUMBER},
                                                     {"workers_without_quorum", CELL_NUMBER},
                                                     {"trouble", CELL_TEXT | CELL_PROSE}};

static const struct table_column worker_columns[] = {{"host", CELL_TEXT},
                                                     {"pid", CELL_NUMBER},
                                                     {"state", CELL_TEXT},
                                                     {"beat_age_s", CELL_SECONDS},
                                                     {"running", CELL_NUMBER},
                                                     {"slots", CELL_NUMBER},
                                                     {"queues", CELL_TEXT | CELL_LIST},
                                                     {"kinds", CELL_TEXT | CELL_LIST},
                                                     {"version", CELL_TEXT | CELL_WIDE},
                                                     {"started_at", CELL_TIME | CELL_WIDE},
                                                     {"worker_id", CELL_TEXT | CELL_WIDE}};

enum status overview_queues(struct admin *a, struct table *ret, struct err *err)
{
    *ret = (struct table)TABLE("queues", queue_columns);
    return table_query(ret, a, &SQL_ADMIN_QUEUES, NULL, err);
}

/* The same without who serves them. */
enum status overview_depths(struct admin *a, struct table *ret, struct err *err)
{
    static const int sources[] = {0, 1, 2, 3, 4, 5, 6, 8, 11};
    static_assert(ARRAY_COUNT(sources) == ARRAY_COUNT(depth_columns), "one source per column");
    auto_admin_rows struct admin_rows *rows = NULL;
    *ret = (struct table)TABLE("queues", depth_columns);
    enum status st = admin_query(a, &SQL_ADMIN_QUEUES, NULL, &rows, err);
    if (st != STATUS_OK) {
        return st;
    }
    for (int row = 0; row < admin_row_count(rows); row++) {
        const char *values[ARRAY_COUNT(sources)];
        for (size_t i = 0; i < ARRAY_COUNT(sources); i++) {
            values[i] = admin_value(rows, row, sources[i]);
        }
        st = table_add(ret, values, err);
        if (st != STATUS_OK) {
            return st;
        }
    }
    return STATUS_OK;
}

enum status overview_finished(struct admin *a, struct table *ret, struct err *err)
{
    *ret = (struct table)TABLE("finished", finished_columns);
    return table_query(ret, a, &SQL_ADMIN_STATS_FINISHED, NULL, err);
}

enum status overview_health(struct admin *a, struct table *ret, struct err *err)
{
    *ret = (struct table)TABLE("health", health_columns);
    ret->is_record = true;
    return table_query(ret, a, &SQL_ADMIN_HEALTH, NULL, err);
}

enum status overview_workers(struct admin *a, bool is_all, struct table *ret, struct err *err)
{
    const char *const params[] = {is_all ? "t" : "f"};
    *ret = (struct table)TABLE("workers", worker_columns);
    enum status st = ctl_now(a, &ret->now_us, err);
    if (st != STATUS_OK) {
        return st;
    }
    return table_query(ret, a, &SQL_ADMIN_WORKERS, params, err);
}
