/* SPDX-License-Identifier: Apache-2.0
 *
 * A job with a value in each column, for tests of statements that must copy all columns. */
#ifndef CLAIMD_TESTS_WHOLE_JOB_H
#define CLAIMD_TESTS_WHOLE_JOB_H

#include "support/pg_fixture.h"

#include <check.h>

/* Its kind is "all"; the table `before` has its row as JSON, without the state. */
static inline void put_whole_job(struct sql *pg)
{
    sql_run(pg, "INSERT INTO claimd.job (kind, queue, args, priority, share, scheduled_at, "
                "attempt, crashes, generation, fence, attempted_at, worker_id, max_attempts, "
                "timeout, tags, metadata, flags, version, unique_key, backoff, exclusive_key, "
                "share_key, second_key, grace, owner) VALUES ('all', 'q', '{\"a\": 1}', 7, 5, "
                "now() + interval '1 h', 3, 2, 1, 77, now(), gen_random_uuid(), 9, '1 min', "
                "'{x,y}', '{\"m\": 1}', 3, 6, 'u', 'fixed:5s', 'e', 's', 'f', '3 s', 'shop')");
    sql_run(pg, "CREATE TABLE before AS SELECT to_jsonb(j) - 'state' AS row FROM claimd.job j "
                "WHERE kind = 'all'");
    ck_assert_msg(
        sql_number(pg, "SELECT count(*)::text FROM before WHERE row = jsonb_strip_nulls(row)") == 1,
        "give each column of the job above a value");
}

#endif
