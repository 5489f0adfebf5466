-- SPDX-License-Identifier: Apache-2.0
-- job_claim without waiting: rows that another session has locked are left out (INTERFACES rule 4).
-- params: int8[], uuid, text[], int8[], int4
UPDATE claimd.job
   SET state = 'running', attempt = attempt + 1, fence = nextval('claimd.fence'), worker_id = $2,
       attempted_at = clock_timestamp()
 WHERE id = ANY (ARRAY(SELECT id FROM claimd.job
                        WHERE id = ANY ((SELECT $1)::bigint[]) AND state = 'available'
                          FOR UPDATE SKIP LOCKED))
   AND {claimable}
RETURNING {claimed_columns}
