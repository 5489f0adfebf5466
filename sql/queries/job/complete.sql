-- SPDX-License-Identifier: Apache-2.0
-- Moves completed runs of one worker ($4) to the history; fenced (lock.G3): a fence belongs to one claim of one job, so the two
-- arrays need no pairing. $2 rises, so width_bucket's binary search finds a fence in it, and $3[i], the result that belongs to
-- $2[i]: no join, hence no plan that could go wrong. (SELECT $1): see job_claim. Returns the fences that were accepted.
-- params: int8[], int8[], text[], uuid
WITH gone AS (
    DELETE FROM claimd.job
     WHERE id = ANY ((SELECT $1)::bigint[]) AND state = 'running' AND fence = $2[width_bucket(fence, $2)] AND worker_id = $4
    RETURNING *
)
INSERT INTO claimd.job_history ({carried}, crashes, state, result)
SELECT {carried}, crashes, 'completed', $3[width_bucket(fence, $2)]::jsonb
  FROM gone
RETURNING fence
