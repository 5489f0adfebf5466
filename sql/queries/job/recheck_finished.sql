-- SPDX-License-Identifier: Apache-2.0
-- How these runs ended: `state` if they are in the history, and `outcome` if they are among the attempts. $3, the earliest start of
-- an attempt among them, leaves out earlier days; it reaches back one day more, because the clock may have gone back in between
-- (fault.D8). $4: the worker of the runs.
-- params: int8[], int8[], timestamptz, uuid
SELECT fence, max(state) AS state, max(outcome) AS outcome
  FROM (SELECT fence, state, NULL AS outcome FROM claimd.job_history
         WHERE id = ANY ($1) AND fence = ANY ($2) AND finalized_at >= $3 - interval '1 day' AND worker_id = $4
        UNION ALL
        SELECT fence, NULL, outcome FROM claimd.job_attempt
         WHERE job_id = ANY ($1) AND fence = ANY ($2) AND worker_id = $4) AS ended
 GROUP BY fence
