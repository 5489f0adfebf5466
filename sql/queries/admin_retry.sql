-- SPDX-License-Identifier: Apache-2.0
-- The state of a job that was retried, or made due; NULL when there is no such job. Raises CL003 where the state forbids it.
-- $2: completed ones, too.
-- params: int8, bool
SELECT CASE WHEN EXISTS (SELECT FROM claimd.jobs WHERE id = $1) AND claimd.retry($1, $2) IS NOT NULL THEN 'available' END
