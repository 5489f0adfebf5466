-- SPDX-License-Identifier: Apache-2.0
-- Ends available jobs that have used up their attempts because their limit was lowered: no claim may take them (lock.G5). $2 and $3
-- go together: kinds, and how many attempts each allows by default.
-- params: int8[], text[], int8[]
WITH gone AS (
    DELETE FROM claimd.job
     WHERE id = ANY (ARRAY(SELECT id FROM claimd.job WHERE id = ANY ($1) AND state = 'available' FOR UPDATE SKIP LOCKED))
       AND state = 'available' AND kind = ANY ($2) AND attempt >= COALESCE(max_attempts, $3[array_position($2, kind)])
    RETURNING *
)
INSERT INTO claimd.job_history ({carried}, crashes, state, error)
SELECT {carried}, crashes, 'discarded', 'no attempts left'
  FROM gone
