/* SPDX-License-Identifier: Apache-2.0
 *
 * Only in the preset `bugs` (store/seeded.h). */
#include "store/seeded.h"

#include "sql/queries.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TEXT_MAX 16384

/* A completion that checks less than it should; the carried columns appear twice. */
#define COMPLETE(condition)                                                                       \
    "WITH asked AS (SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::text[]) AS t(n, f, r))," \
    " gone AS (DELETE FROM claimd.job j USING asked a WHERE j.id = a.n " condition                \
    " RETURNING j.*, a.f, a.r), put AS (INSERT INTO claimd.job_history (%s, crashes, state,"      \
    " result) SELECT %s, crashes, 'completed', r::jsonb FROM gone) SELECT f FROM gone"

/* Returns the correct statement with every occurrence of one part replaced. */
static const struct pg_statement *changed(const struct pg_statement *right, const char *part,
                                          const char *instead)
{
    static char text[TEXT_MAX];
    static struct pg_statement wrong;
    size_t len = 0;
    for (const char *at = right->sql; *at != '\0';) {
        bool is_part = strncmp(at, part, strlen(part)) == 0;
        int n = is_part ? snprintf(text + len, sizeof text - len, "%s", instead)
                        : snprintf(text + len, sizeof text - len, "%c", *at);
        len += (size_t)n;
        at += is_part ? strlen(part) : 1;
        assert(len < sizeof text);
    }
    /* otherwise the correct statement was edited and the bug is gone */
    assert(strcmp(text, right->sql) != 0);
    wrong = *right;
    wrong.sql = text;
    return &wrong;
}

/* The brackets keep it from being expanded: in every other build the name is a macro. */
const struct pg_statement *(seeded_statement)(const struct pg_statement *right)
{
    static struct pg_statement complete;
    static char text[TEXT_MAX];
    bool is_complete = right == &SQL_JOB_COMPLETE || right == &SQL_JOB_COMPLETE_SKIP;
    if (is_complete && (SEEDED_BUG(1) || SEEDED_BUG(2))) {
        int n = SEEDED_BUG(1) ? snprintf(text, sizeof text, COMPLETE(""), sql_carried_columns,
                                         sql_carried_columns)
                              : snprintf(text, sizeof text, COMPLETE("AND j.state = 'running'"),
                                         sql_carried_columns, sql_carried_columns);
        assert(n > 0 && (size_t)n < sizeof text);
        complete = *right;
        complete.sql = text;
        return &complete;
    }
    if (right == &SQL_RESCUE_MOVE && SEEDED_BUG(3)) {
        return changed(
            right, "j.fence = t.fence AND uuid_hash_extended(j.worker_id, 0) = t.worker AND", "");
    }
    if (right == &SQL_JOB_RETRY && SEEDED_BUG(17)) {
        return changed(right, "'2286-01-01 00:00:00+00'", "'9999-01-01 00:00:00+00'");
    }
    if (right == &SQL_RESCUE_MOVE && SEEDED_BUG(12)) {
        return changed(right, "COALESCE(k.at_most_once, false) AS is_lost", "false AS is_lost");
    }
    return right;
}
