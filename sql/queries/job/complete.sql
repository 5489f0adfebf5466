-- SPDX-License-Identifier: Apache-2.0
-- Moves completed runs of one worker ($4) to the history; fenced (lock.G3). $3[i] is the result of the run under the fence
-- $2[i]. Returns the accepted fences.
-- params: int8[], int8[], text[], uuid
WITH gone AS (
    DELETE FROM claimd.job
     WHERE {own_runs} AND worker_id = $4
    RETURNING *
)
INSERT INTO claimd.job_history ({carried}, crashes, state, result)
SELECT {carried}, crashes, 'completed', $3[width_bucket(fence, $2)]::jsonb
  FROM gone
RETURNING fence
