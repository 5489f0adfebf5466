-- SPDX-License-Identifier: Apache-2.0
-- job_complete without waiting: rows that another session has locked are left out (INTERFACES rule 4).
-- params: int8[], int8[], text[], uuid
WITH gone AS (
    DELETE FROM claimd.job
     WHERE {own_locked_runs} AND worker_id = $4
    RETURNING *
)
INSERT INTO claimd.job_history ({carried}, crashes, state, result)
SELECT {carried}, crashes, 'completed', $3[width_bucket(fence, $2)]::jsonb
  FROM gone
RETURNING fence
