-- SPDX-License-Identifier: Apache-2.0
-- Claims those of the ids that may be claimed. By primary key, HOT; waits for a row lock up to lock_timeout (55P03).
-- (SELECT $1) hides the ids from the planner, which would otherwise examine each of 500 and take longer than a claim of ten.
-- params: int8[], uuid, text[], int8[], int4
UPDATE claimd.job
   SET state = 'running', attempt = attempt + 1, fence = nextval('claimd.fence'), worker_id = $2,
       attempted_at = clock_timestamp()
 WHERE id = ANY ((SELECT $1)::bigint[]) AND {claimable}
RETURNING {claimed_columns}
