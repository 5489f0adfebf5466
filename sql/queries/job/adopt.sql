-- SPDX-License-Identifier: Apache-2.0
-- Reads back a claim whose reply was lost: the jobs with these ids that run under this worker ($2) with a fence above all that it
-- knew when it sent the claim ($3). Same columns as job_claim_limited; (0,0): free_ended() looks up by the fence what the run holds.
-- params: int8[], uuid, int8
SELECT {claimed_columns},
       tid '(0,0)' AS key_row, tid '(0,0)' AS place, NULL::tid AS second_row
  FROM claimd.job
 WHERE id = ANY ($1) AND state = 'running' AND worker_id = $2 AND fence > $3
